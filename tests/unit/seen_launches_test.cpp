/// GemmPlan::launch with operands that the plan has seen, and Gemm::launch with operands that it has seen twice: they
/// encode nothing again, and never enqueue what belongs to other operands.

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "clean_runtime.hpp"
#include "gemm/seen_launches.hpp"
#include "gemm/variant_chooser.hpp"
#include "kernels/hopper/hopper_arguments.hpp"
#include "tessera/gemm_tuner.hpp"
#include "tuning/tuning_table.hpp"

using namespace tessera;
using tessera::kernels::GemmArguments;
using tessera::kernels::HopperArguments;
using tessera::test::CleanRuntime;

namespace {

/// Everything that a launch takes, as values that a test can change.
struct Call {
    MatrixOperand a;
    MatrixOperand b;
    MatrixOperand d;
    Epilogue epilogue;
};

struct Change {
    const char* name;
    std::function<void(Call&)> make;
};

struct SeenRuntime : CleanRuntime {
    static constexpr std::int64_t size = 256;
    static constexpr std::int64_t room = 4 * size * size;

    Device device{fake::h200};
    Stream stream{device};
    DeviceBuffer<bf16> inputs{stream, 4 * room};
    DeviceBuffer<bf16> outputs{stream, 4 * room};
    DeviceBuffer<float> vector{stream, 4 * size};

    SeenRuntime() { fake::keep_argument_bytes(sizeof(HopperArguments)); }
    ~SeenRuntime() { GemmPlan::release_workspaces(); }

    MatrixOperand input(int index)
    {
        return inputs.subspan(static_cast<std::size_t>(index * room), room).matrix(size, size);
    }
    MatrixOperand output(int index)
    {
        return outputs.subspan(static_cast<std::size_t>(index * room), room).matrix(size, size);
    }

    Call usual()
    {
        Call call{input(0), input(1), output(0), {}};
        call.epilogue.alpha = 2;
        call.epilogue.beta = 3;
        call.epilogue.c = output(1);
        call.epilogue.bias = Bias::per_column(vector.subspan(0, size));
        call.epilogue.activation = Activation::relu;
        call.epilogue.pre_activation = output(3);
        call.epilogue.scale_a = vector.subspan(size, 1);
        call.epilogue.scale_b = vector.subspan(size + 1, 1);
        return call;
    }
    GemmProblem problem() const
    {
        return {.m = size,
                .n = size,
                .k = size,
                .input = ElementType::bf16,
                .output = ElementType::bf16,
                .has_c = true,
                .bias = BiasAxis::per_column,
                .activation = Activation::relu,
                .has_pre_activation = true};
    }
    /// Variants that this build has: those whose arguments have no tensor maps, and Hopper's.
    std::vector<Variant> variants_here() const
    {
        std::vector<Variant> here{Variant::simt_register_blocked};
        if (GemmPlan::refusal(problem(), device.properties(), Variant::hopper).empty()) {
            here.push_back(Variant::hopper);
        }
        return here;
    }

    void launch(const GemmPlan& plan, const Call& call) { plan.launch(stream, call.a, call.b, call.d, call.epilogue); }
    void launch(Variant variant, const Call& call)
    {
        Gemm::launch(stream, call.a, call.b, call.d, call.epilogue, variant);
    }
    /// Launches by a plan of its own, or by Gemm::launch so often that it keeps the operands. Returns how to go on.
    std::function<void(const Call&)> seen_by(bool planned, Variant variant)
    {
        if (!planned) {
            launch(variant, usual());
            launch(variant, usual());
            return [this, variant](const Call& call) { launch(variant, call); };
        }
        const GemmPlan plan = GemmPlan::prepare(device, problem(), variant);
        launch(plan, usual());
        return [this, plan](const Call& call) { launch(plan, call); };
    }

    static HopperArguments argument_of(const fake::Launch& launch)
    {
        HopperArguments arguments{};
        std::memcpy(&arguments, launch.argument.data(), launch.argument.size());
        return arguments;
    }
};

auto values_of(const kernels::Operand& operand)
{
    const auto& [data, row_stride, column_stride, batch_stride] = operand;
    return std::make_tuple(data, row_stride, column_stride, batch_stride);
}

auto values_of(const kernels::Destination& matrix)
{
    const auto& [data, row_stride, column_stride, batch_stride, type] = matrix;
    return std::make_tuple(data, row_stride, column_stride, batch_stride, type);
}

/// All members, with the factors as bits.
auto values_of(const GemmArguments& arguments)
{
    const auto& [a, b, c, d, d_row_stride, d_column_stride, d_batch_stride, pre_activation, bias, scale_a, scale_b,
                 row_scales, column_scales, scale_d, amax_d, m, n, k, alpha, beta, raster, a_type, b_type, c_type,
                 d_type, bias_type, bias_axis, activation, gating] = arguments;
    return std::tuple_cat(
        values_of(a), values_of(b), values_of(c), values_of(pre_activation),
        std::make_tuple(d, d_row_stride, d_column_stride, d_batch_stride, bias, scale_a, scale_b, row_scales,
                        column_scales, scale_d, amax_d, m, n, k, std::bit_cast<std::uint32_t>(alpha),
                        std::bit_cast<std::uint32_t>(beta), std::bit_cast<std::array<std::uint32_t, 13>>(raster),
                        a_type, b_type, c_type, d_type, bias_type, bias_axis, activation, gating));
}

/// Returns true if the kernels get the same: for a variant without tensor maps, only the product's arguments.
bool same_arguments(Variant variant, const fake::Launch& one, const fake::Launch& other)
{
    if (variant != Variant::hopper) {
        GemmArguments left{};
        GemmArguments right{};
        std::memcpy(&left, one.argument.data(), sizeof left);
        std::memcpy(&right, other.argument.data(), sizeof right);
        return values_of(left) == values_of(right);
    }
    const HopperArguments left = SeenRuntime::argument_of(one);
    const HopperArguments right = SeenRuntime::argument_of(other);
    const auto same_map = [](const AnyTensorMap<3>& x, const AnyTensorMap<3>& y) {
        return std::memcmp(&x, &y, sizeof x) == 0;
    };
    return values_of(left.gemm) == values_of(right.gemm) && same_map(left.a, right.a) && same_map(left.b, right.b) &&
           same_map(left.c, right.c) && same_map(left.c_rest, right.c_rest) && same_map(left.d, right.d) &&
           same_map(left.d_rest, right.d_rest) && same_map(left.pre_activation, right.pre_activation) &&
           left.c_batched == right.c_batched && left.finishing == right.finishing &&
           left.workspace.partials == right.workspace.partials && left.workspace.arrivals == right.workspace.arrivals;
}

}  // namespace

TEST_CASE_FIXTURE(SeenRuntime, "a launch with seen operands encodes nothing, and enqueues the same")
{
    for (const Variant variant : variants_here()) {
        for (const bool planned : {true, false}) {
            CAPTURE(to_string(variant));
            CAPTURE(planned);
            const auto again = seen_by(planned, variant);
            fake::set_encoder_status(1);  // fails from now on
            fake::clear_calls();
            again(usual());
            REQUIRE(fake::count("cudaLaunchKernelExC") == 1);
            for (const fake::Call& call : fake::calls()) {
                CAPTURE(call.name);
                CHECK((call.name == "cudaLaunchKernelExC" || call.name == "cudaGetDevice" ||
                       call.name == "cudaStreamIsCapturing" || call.name == "cudaStreamGetId"));
            }
            if (variant == Variant::hopper) {  // the proof that the encoder is needed otherwise
                Call other = usual();
                other.a = input(2);
                CHECK(test::error_of([&] { again(other); }).has_value());
            }
            fake::set_encoder_status(0);
        }
    }
}

TEST_CASE_FIXTURE(SeenRuntime, "each value that goes into the arguments is noticed when it changes")
{
    DeviceBuffer<f16> halves(stream, size);
    const std::array changes{
        Change{"A's address", [&](Call& call) { call.a = input(2); }},
        Change{"B's address", [&](Call& call) { call.b = input(2); }},
        Change{"D's address", [&](Call& call) { call.d = output(2); }},
        Change{"C's address", [&](Call& call) { call.epilogue.c = output(2); }},
        Change{"C's leading dimension", [&](Call& call) { call.epilogue.c.leading_dimension += 8; }},
        Change{"C's order", [&](Call& call) { call.epilogue.c.row_major = false; }},
        Change{"alpha", [&](Call& call) { call.epilogue.alpha = 4; }},
        Change{"beta", [&](Call& call) { call.epilogue.beta = 4; }},
        Change{"beta, left out", [&](Call& call) { call.epilogue.beta.reset(); }},
        Change{"the bias's address",
               [&](Call& call) { call.epilogue.bias = Bias::per_column(vector.subspan(8, size)); }},
        Change{"the bias's type", [&](Call& call) { call.epilogue.bias = Bias::per_column(halves.span()); }},
        Change{"the pre-activation's address", [&](Call& call) { call.epilogue.pre_activation = output(2); }},
        Change{"the pre-activation's leading dimension",
               [&](Call& call) { call.epilogue.pre_activation.leading_dimension += 8; }},
        Change{"scale_a", [&](Call& call) { call.epilogue.scale_a = vector.subspan(size + 2, 1); }},
        Change{"scale_b", [&](Call& call) { call.epilogue.scale_b = vector.subspan(size + 2, 1); }},
        Change{"scale_a, left out", [&](Call& call) { call.epilogue.scale_a = {}; }},
    };
    for (const Variant variant : variants_here()) {
        for (const bool planned : {true, false}) {
            CAPTURE(to_string(variant));
            CAPTURE(planned);
            const auto launch_seen = seen_by(planned, variant);
            for (const Change& change : changes) {
                CAPTURE(change.name);
                Call changed = usual();
                change.make(changed);
                fake::clear_calls();
                launch_seen(usual());
                launch_seen(changed);
                launch_seen(usual());
                launch(GemmPlan::prepare(device, problem(), variant), changed);  // has seen nothing
                const auto launches = fake::launches();
                REQUIRE(launches.size() == 4);
                CHECK_FALSE(same_arguments(variant, launches[0], launches[1]));
                CHECK(same_arguments(variant, launches[0], launches[2]));
                CHECK(same_arguments(variant, launches[1], launches[3]));
            }
        }
    }
}

TEST_CASE_FIXTURE(SeenRuntime, "Gemm::launch chooses again for another variant or tuned choice")
{
    Call call = usual();
    const auto function_of = [&](Variant variant) {
        fake::clear_calls();
        launch(variant, call);
        return fake::launches().at(0).function;
    };
    const auto thrice = [&](Variant variant) {
        const void* const first = function_of(variant);
        CHECK(function_of(variant) == first);
        CHECK(function_of(variant) == first);
        return first;
    };
    GemmTuningCache::clear();
    const void* const automatic = thrice(Variant::automatic);
    CHECK(thrice(Variant::simt_naive) != thrice(Variant::simt_tiled));
    CHECK(function_of(Variant::automatic) == automatic);

    detail::store_tuned(detail::tuning_key(detail::resolved(problem()), device.properties()),
                        {{.variant = Variant::simt_naive}, 1e-6, 2e-6, 1});
    CHECK(function_of(Variant::automatic) == thrice(Variant::simt_naive));
    GemmTuningCache::clear();
    CHECK(function_of(Variant::automatic) == automatic);
}

TEST_CASE_FIXTURE(SeenRuntime, "Gemm::launch refuses a stream of another device after launches as before them")
{
    const Stream elsewhere{Device(fake::b200)};
    const auto launch_seen = seen_by(false, Variant::automatic);
    launch_seen(usual());
    fake::clear_calls();
    CHECK(test::error_of([&] {
              const Call call = usual();
              Gemm::launch(elsewhere, call.a, call.b, call.d, call.epilogue);
          }).has_value());
    CHECK(fake::launches().empty());
}

TEST_CASE_FIXTURE(SeenRuntime, "-0 is another factor than 0")
{
    const GemmPlan plan = GemmPlan::prepare(device, problem());
    Call call = usual();
    call.epilogue.alpha = 0.0F;
    launch(plan, call);
    call.epilogue.alpha = -0.0F;
    launch(plan, call);
    const auto launches = fake::launches();
    REQUIRE(launches.size() == 2);
    CHECK_FALSE(same_arguments(plan.variant(), launches[0], launches[1]));
}

TEST_CASE_FIXTURE(SeenRuntime, "operands that the plan does not fit are refused after a launch as before it")
{
    const Stream elsewhere{Device(fake::b200)};
    const DeviceBuffer<float> far(elsewhere, size);
    const std::array changes{
        Change{"A's rows", [&](Call& call) { call.a.rows -= 1; }},
        Change{"A's columns", [&](Call& call) { call.a.columns -= 1; }},
        Change{"A's leading dimension", [&](Call& call) { call.a.leading_dimension += 8; }},
        Change{"A's order", [&](Call& call) { call.a.row_major = false; }},
        Change{"A's type", [&](Call& call) { call.a.type = ElementType::f16; }},
        Change{"A, left out", [&](Call& call) { call.a.present = false; }},
        Change{"A's device", [&](Call& call) { call.a.device = fake::b200; }},
        Change{"A's batches", [&](Call& call) { call.a.batches = 2; }},
        Change{"A's outer batches", [&](Call& call) { call.a.outer_batches = 2; }},
        Change{"A's strides", [&](Call& call) { call.a.batch_stride = -1; }},
        Change{"A's outer strides", [&](Call& call) { call.a.outer_stride = -1; }},
        Change{"B's leading dimension", [&](Call& call) { call.b.leading_dimension += 8; }},
        Change{"D's leading dimension", [&](Call& call) { call.d.leading_dimension += 8; }},
        Change{"D, const", [&](Call& call) { call.d.writable = false; }},
        Change{"D, over A", [&](Call& call) { call.d.data = call.a.data; }},
        Change{"C's type", [&](Call& call) { call.epilogue.c.type = ElementType::f16; }},
        Change{"C, left out", [&](Call& call) { call.epilogue.c = {}; }},
        Change{"the gating", [&](Call& call) { call.epilogue.gating = Gating::interleaved; }},
        Change{"C, over D", [&](Call& call) { call.epilogue.c.data = static_cast<const bf16*>(call.d.data) + 8; }},
        Change{"the bias's axis", [&](Call& call) { call.epilogue.bias.axis = BiasAxis::per_row; }},
        Change{"the bias's size", [&](Call& call) { call.epilogue.bias.size -= 1; }},
        Change{"the bias's device", [&](Call& call) { call.epilogue.bias = Bias::per_column(far.span()); }},
        Change{"the activation", [&](Call& call) { call.epilogue.activation = Activation::gelu; }},
        Change{"scale_a's size", [&](Call& call) { call.epilogue.scale_a = vector.subspan(size, 2); }},
        Change{"scale_b's device", [&](Call& call) { call.epilogue.scale_b = far.subspan(0, 1); }},
    };
    const GemmPlan plan = GemmPlan::prepare(device, problem());
    launch(plan, usual());
    for (const Change& change : changes) {
        CAPTURE(change.name);
        Call changed = usual();
        change.make(changed);
        CHECK(test::error_of([&] { launch(plan, changed); }).has_value());
    }
    CHECK(test::error_of([&] {
              const Call call = usual();
              plan.launch(elsewhere, call.a, call.b, call.d, call.epilogue);
          }).has_value());
    CHECK(fake::launches().size() == 1);
}

TEST_CASE_FIXTURE(SeenRuntime, "a seen launch uses the workspace of its stream, or the caller's")
{
    if (variants_here().size() == 1) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    const Stream second(device);
    // Few tiles and a long K: their tiles are shared. Rows of 8191 elements: A is copied first.
    for (const std::int64_t leading_dimension : {16384, 16385}) {
        CAPTURE(leading_dimension);
        GemmProblem deep{.m = 256, .n = 256, .k = 16384, .input = ElementType::bf16, .output = ElementType::bf16};
        deep.a.leading_dimension = leading_dimension;
        const DeviceBuffer<bf16> a(stream, static_cast<std::size_t>(256 * leading_dimension));
        const DeviceBuffer<bf16> b(stream, 256 * 16384);
        DeviceBuffer<bf16> d(stream, 256 * 256);
        const GemmPlan plan = GemmPlan::prepare(device, deep, Variant::hopper);
        REQUIRE(plan.workspace_bytes() > 0);
        DeviceBuffer<std::byte> one(stream, plan.workspace_bytes());
        DeviceBuffer<std::byte> other(stream, plan.workspace_bytes());
        const auto last_launch = [&](const GemmPlan& used, StreamRef on, const Workspace& workspace) {
            fake::clear_calls();
            used.launch(on, a.matrix(256, 16384, leading_dimension), b.matrix(16384, 256), d.matrix(256, 256), {},
                        workspace);
            const auto launches = fake::launches();
            REQUIRE_FALSE(launches.empty());
            return launches.back();
        };
        const std::array<std::pair<StreamRef, Workspace>, 4> places{
            {{stream, Workspace()}, {second, Workspace()}, {stream, Workspace(one)}, {stream, Workspace(other)}}};
        for (int round = 0; round < 3; ++round) {
            std::vector<fake::Launch> launches;
            for (const auto& [on, workspace] : places) {
                launches.push_back(last_launch(plan, on, workspace));
                const GemmPlan fresh = GemmPlan::prepare(device, deep, Variant::hopper);
                CHECK(same_arguments(Variant::hopper, launches.back(), last_launch(fresh, on, workspace)));
                fake::clear_calls();
                Gemm::launch(on, a.matrix(256, 16384, leading_dimension), b.matrix(16384, 256), d.matrix(256, 256), {},
                             Variant::hopper, workspace);
                REQUIRE_FALSE(fake::launches().empty());
                CHECK(same_arguments(Variant::hopper, launches.back(), fake::launches().back()));
            }
            CHECK_FALSE(same_arguments(Variant::hopper, launches[0], launches[1]));
            CHECK_FALSE(same_arguments(Variant::hopper, launches[2], launches[3]));
            if (round == 1) {
                GemmPlan::release_workspaces();  // the streams' next ones may be elsewhere
            }
        }
        CHECK(test::error_of([&] {
                  last_launch(plan, stream, Workspace(one.subspan(0, plan.workspace_bytes() - 1)));
              }).has_value());
    }
}

TEST_CASE_FIXTURE(SeenRuntime, "copies of a plan share what they have seen, and a plan that was moved from still runs")
{
    std::optional<GemmPlan> first = GemmPlan::prepare(device, problem());
    const GemmPlan copy = *first;
    launch(*first, usual());
    GemmPlan moved = std::move(*first);
    launch(*first, usual());
    first.reset();
    moved = copy;
    fake::set_encoder_status(1);
    launch(copy, usual());
    launch(moved, usual());
    fake::set_encoder_status(0);
    CHECK(fake::launches().size() == 4);
}

TEST_CASE_FIXTURE(SeenRuntime, "threads that launch one plan with more operands than it keeps get their own")
{
    constexpr std::size_t threads = 4;
    constexpr std::size_t rounds = 200;
    constexpr std::size_t sets = detail::SeenLaunches::capacity + 5;
    const GemmPlan plan = GemmPlan::prepare(device, problem());
    const auto call_of = [&](std::size_t set) {
        Call call = usual();
        call.a.data = static_cast<const bf16*>(call.a.data) + set * 64;
        call.d.data = static_cast<const bf16*>(call.d.data) + set * 64;
        return call;
    };
    {
        std::vector<std::jthread> workers;
        for (std::size_t i = 0; i < threads; ++i) {
            workers.emplace_back([&, i] {
                const Stream own(device);
                for (std::size_t round = 0; round < rounds; ++round) {
                    // Mostly a few sets, and now and then one that takes the place of another.
                    const Call call = call_of(round % 7 == 0 ? (round + i) % sets : round % 3);
                    plan.launch(own, call.a, call.b, call.d, call.epilogue);
                }
            });
        }
    }
    const auto launches = fake::launches();
    CHECK(launches.size() == threads * rounds);
    std::size_t mixed = 0;
    for (const fake::Launch& launch : launches) {
        GemmArguments arguments{};
        const std::size_t offset = plan.variant() == Variant::hopper ? offsetof(HopperArguments, gemm) : 0;
        std::memcpy(&arguments, launch.argument.data() + offset, sizeof arguments);
        const auto distance = [](const void* from, const void* to) {
            return static_cast<const std::byte*>(to) - static_cast<const std::byte*>(from);
        };
        mixed += distance(inputs.data(), arguments.a.data) != distance(outputs.data(), arguments.d);
    }
    CHECK(mixed == 0);
}
