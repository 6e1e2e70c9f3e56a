#include "stress_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <map>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "device_check.hpp"
#include "gemm/gemm_batches.hpp"
#include "gemm/gemm_operands.hpp"
#include "gemm/hopper/hopper_chooser.hpp"
#include "gemm/variant_chooser.hpp"
#include "support/gemm_runner.hpp"
#include "tessera/device_buffer.hpp"
#include "tessera/error.hpp"
#include "tessera/gemm.hpp"
#include "tuning/tuner.hpp"

namespace tessera::test {
namespace {

using Clock = std::chrono::steady_clock;
using detail::KernelChoice;

constexpr std::array all_types{ElementType::f32,  ElementType::f16,    ElementType::bf16,
                               ElementType::tf32, ElementType::f8e4m3, ElementType::f8e5m2};
constexpr std::size_t most_findings = 512;  // read together, since reading waits for the device
constexpr std::size_t most_callers_workspace = std::size_t{16} << 20;

/// What a finding is about.
struct Launch {
    std::uint64_t index;
    std::string what;
    PlacedMatrix written;
    std::optional<Fault> damage;  ///< the finding must be this
};

class Stress {
public:
    explicit Stress(const StressOptions& options)
        : options_(options),
          device_(Device::current()),
          findings_(stream_, most_findings),
          sums_(stream_, static_cast<std::size_t>(options.limits.elements())),
          factors_(stream_, 3),
          workspace_(stream_, most_callers_workspace)
    {
        for (const ElementType type : all_types) {
            const auto size = static_cast<std::size_t>(options.limits.pool());
            pools_.emplace_back(stream_, size * size_of(type));
            fill_random(stream_, pool(type), options.seed + pools_.size());
        }
        nothing_.fill(stream_, 0xFF);  // NaN in every type
        for (DeviceBuffer<std::uint8_t>& output : outputs_) {
            output =
                DeviceBuffer<std::uint8_t>(stream_, static_cast<std::size_t>(options.limits.written()) * sizeof(float));
        }
        findings_.fill(stream_, Finding{});
    }

    bool run()
    {
        const Clock::time_point start = Clock::now();
        const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
        const std::uint64_t first = options_.only.value_or(0);
        const std::uint64_t end = options_.only ? first + 1 : options_.count;
        std::uint64_t index = first;
        for (; index < end && failures_ < options_.most_failures; ++index) {
            if (options_.time_limit_seconds > 0 && seconds() > options_.time_limit_seconds) {
                break;
            }
            run_one(index);
        }
        read_findings();
        print_summary(index - first, seconds());
        return failures_ == 0 && (!options_.self_test || damages_ > 0);
    }

private:
    static std::size_t place_of(ElementType type)
    {
        return static_cast<std::size_t>(std::find(all_types.begin(), all_types.end(), type) - all_types.begin());
    }
    DeviceArray pool(ElementType type) { return {pools_[place_of(type)].data(), type, options_.limits.pool()}; }
    /// An array of NaN, for an operand that must not be read.
    DeviceArray unreadable(ElementType type) { return {nothing_.data(), type, options_.limits.pool()}; }

    /// The part of output array `number` that a matrix of the product occupies, with guards on both sides.
    DeviceArray output(std::size_t number, ElementType type, const Placement& place)
    {
        return {outputs_[number].data(), type, place.first + place.span() + guard_elements};
    }

    MatrixOperand operand(const DeviceArray& array, const Placement& place, const RandomProduct& product) const
    {
        const bool is_single = place.batch_stride == 0 && !product.counts_shared;
        OperandLayout layout{.rows = place.rows, .columns = place.columns, .row_major = place.row_major};
        layout.leading_dimension = place.leading_dimension;
        if (place.batches > 1 && !is_single) {
            layout.count = place.batches;
            layout.stride = place.batch_stride;
        }
        void* const first =
            static_cast<std::byte*>(array.data) + static_cast<std::size_t>(place.first) * size_of(array.type);
        return MatrixOperand::from_raw_device_pointer(first, array.type, layout);
    }

    /// The operands of one product; D and the pre-activation are in output arrays `d` and `d + 2`.
    struct Operands {
        detail::GemmOperands matrices;
        Epilogue epilogue;
        PlacedMatrix d;
        PlacedMatrix pre_activation;
        Expectation expectation;  // without the error of the sums
    };

    Operands operands_of(const RandomProduct& product, std::size_t d)
    {
        const GemmCase& gemm = product.gemm;
        const bool reads_inputs = gemm.alpha != 0;
        const PlacedMatrix a{reads_inputs ? pool(gemm.input.a) : unreadable(gemm.input.a), product.a};
        const PlacedMatrix b{reads_inputs ? pool(gemm.input.b) : unreadable(gemm.input.b), product.b};
        Operands operands;
        operands.d = {output(d, gemm.output, product.d), product.d};
        operands.matrices = {operand(a.array, a.place, product), operand(b.array, b.place, product),
                             operand(operands.d.array, product.d, product)};
        Epilogue& epilogue = operands.epilogue;
        Expectation& expectation = operands.expectation;
        expectation.sums = sums_.data();
        expectation.columns = gemm.n;
        expectation.depth = gemm.depth();
        expectation.alpha = gemm.alpha * gemm.scale_a.value_or(1) * gemm.scale_b.value_or(1);
        epilogue.alpha = gemm.alpha;
        expectation.activation = epilogue.activation = gemm.activation;
        expectation.gating = epilogue.gating = gemm.gating;
        epilogue.fp8_accumulation = gemm.fp8_accumulation;
        epilogue.f16_accumulation = gemm.f16_accumulation;
        if (gemm.addend != Addend::none) {
            epilogue.beta = gemm.beta;
            expectation.beta = gemm.beta;
            expectation.c = {gemm.beta != 0 ? pool(gemm.addend_type()) : unreadable(gemm.addend_type()), product.c};
            epilogue.c = gemm.addend == Addend::in_place ? operands.matrices.d
                                                         : operand(expectation.c.array, product.c, product);
        }
        if (gemm.bias != BiasAxis::none) {
            const std::int64_t size = gemm.bias == BiasAxis::per_row ? gemm.m : gemm.n;
            void* const first = static_cast<std::byte*>(pool(gemm.bias_type).data) +
                                static_cast<std::size_t>(product.bias_first) * size_of(gemm.bias_type);
            expectation.axis = gemm.bias;
            expectation.bias = {first, gemm.bias_type, size};
            with_addend_type(gemm.bias_type, [&]<class T>(std::type_identity<T>) {
                const DeviceSpan<const T> vector(static_cast<const T*>(first), static_cast<std::size_t>(size),
                                                 device_.ordinal());
                epilogue.bias = gemm.bias == BiasAxis::per_row ? Bias::per_row(vector) : Bias::per_column(vector);
            });
        }
        if (gemm.scale_a) {
            epilogue.scale_a = factors_.span().subspan(0, 1);
        }
        if (gemm.scale_b) {
            epilogue.scale_b = factors_.span().subspan(1, 1);
        }
        if (gemm.scale_d) {
            epilogue.scale_d = factors_.span().subspan(2, 1);
            expectation.scale_d = *gemm.scale_d;
        }
        if (gemm.pre_activation) {
            operands.pre_activation = {output(d + 2, gemm.addend_type(), product.pre_activation),
                                       product.pre_activation};
            epilogue.pre_activation = operand(operands.pre_activation.array, product.pre_activation, product);
        }
        return operands;
    }

    /// Everything outside of the operands becomes poison, and D gets C's values if it is C.
    void prepare(const RandomProduct& product, const Operands& operands)
    {
        const bool holds_c = product.gemm.addend == Addend::in_place && product.gemm.beta != 0;
        prepare_output(stream_, operands.d.array, product.d, holds_c ? operands.expectation.c : PlacedMatrix{});
        if (product.gemm.pre_activation) {
            prepare_output(stream_, operands.pre_activation.array, product.pre_activation, {});
        }
    }

    static void expect_sums(Expectation& expectation, const Summation& summation)
    {
        expectation.relative_error = relative_error_of_sum(expectation.depth, summation);
        expectation.smallest_error = summation.smallest;
    }

    Finding* next_finding(Launch launch)
    {
        if (launches_.size() == most_findings) {
            read_findings();
        }
        launches_.push_back(std::move(launch));
        return findings_.data() + launches_.size() - 1;
    }

    void check(std::uint64_t index, const RandomProduct& product, const Operands& operands, Variant variant,
               const std::string& what)
    {
        Expectation expectation = operands.expectation;
        expect_sums(expectation, summation_of(variant, product.gemm));
        check_output(stream_, operands.d, expectation, next_finding({index, what, operands.d, {}}));
        if (product.gemm.pre_activation) {
            Expectation before = expectation;
            before.activation = Activation::none;
            before.scale_d = 1;
            check_output(stream_, operands.pre_activation, before,
                         next_finding({index, what + ", the pre-activation", operands.pre_activation, {}}));
        }
        ++launched_[std::string(to_string(variant))];
    }

    void run_one(std::uint64_t index)
    {
        const RandomProduct product = random_product(options_.seed, index, options_.limits);
        const GemmCase& gemm = product.gemm;
        try {
            upload_factors(gemm);
            const Operands operands = operands_of(product, 0);
            if (gemm.m * gemm.n > 0) {
                sum_products(stream_, {pool(gemm.input.a), product.a}, {pool(gemm.input.b), product.b}, gemm.depth(),
                             sums_.data());
            }
            prepare(product, operands);
            const std::string name(to_string(options_.variant));
            try {
                launch(product, operands);
            } catch (const Error& error) {
                if (error.code() != ErrorCode::variant_refused || options_.variant == Variant::automatic) {
                    throw;
                }
                ++refused_;
                return;
            }
            check(index, product, operands, options_.variant, name);
            const Operands again = operands_of(product, 1);
            prepare(product, again);
            launch(product, again);
            compare_bits(stream_, operands.d.array, again.d.array,
                         next_finding({index, name + ", the second time", again.d, {}}));
            if (options_.self_test) {
                damage(index, product, operands, again);
            }
            if (gemm.m * gemm.n > 0) {
                run_candidates(index, product, again);
            }
        } catch (const std::exception& error) {
            fail(index, product, error.what());
        }
    }

    void upload_factors(const GemmCase& gemm)
    {
        const std::array factors{gemm.scale_a.value_or(1), gemm.scale_b.value_or(1), gemm.scale_d.value_or(1)};
        if (factors != uploaded_) {
            factors_.copy_from(factors);
            uploaded_ = factors;
        }
    }

    void launch(const RandomProduct& product, const Operands& operands)
    {
        const auto& [a, b, d] = operands.matrices;
        Workspace workspace;
        if (product.workspace == WorkspaceKind::none) {
            workspace = Workspace::at_most(0);
        } else if (product.workspace == WorkspaceKind::callers) {
            workspace = Workspace(workspace_.span().subspan(0, static_cast<std::size_t>(product.workspace_bytes)));
        }
        Gemm::launch(stream_, a, b, d, operands.epilogue, options_.variant, workspace);
    }

    /// Launches kernels and configurations that may run the product, whether the library would choose them or not.
    void run_candidates(std::uint64_t index, const RandomProduct& product, const Operands& operands)
    {
        constexpr std::string_view operation = "tessera-stress";
        const std::source_location here = std::source_location::current();
        detail::GemmOperands matrices = operands.matrices;
        Epilogue epilogue = operands.epilogue;
        detail::share_single_matrices(matrices, epilogue);
        const GemmProblem problem = detail::one_launch(detail::problem_of(matrices, epilogue));
        std::map<std::pair<Variant, int>, std::vector<KernelChoice>> groups;
        for (const KernelChoice& choice : detail::all_candidates(problem, device_.properties())) {
            if (options_.variant == Variant::automatic || options_.variant == choice.variant) {
                groups[{choice.variant, choice.config}].push_back(choice);
            }
        }
        Draw draw(options_.seed ^ 0xCA4D1DA7E5U, index);
        for (std::uint64_t i = 0; i < options_.candidates && !groups.empty(); ++i) {
            auto group = groups.begin();
            std::advance(group, draw.below(static_cast<std::int64_t>(groups.size())));
            const KernelChoice choice = draw.pick(group->second);
            groups.erase(group);
            const std::string what = choice.variant == Variant::hopper
                                         ? fmt::format("hopper as {}", detail::describe_hopper(problem, choice))
                                         : std::string(to_string(choice.variant));
            prepare(product, operands);
            try {
                detail::enqueue_gemm(stream_, matrices, epilogue, problem, device_.properties(), choice, operation,
                                     here);
            } catch (const std::exception& error) {
                throw std::runtime_error(fmt::format("{}: {}", what, error.what()));
            }
            check(index, product, operands, choice.variant, what);
            if (choice.variant == Variant::hopper) {
                ++configs_[choice.config];
            }
        }
    }

    /// Damages D in each way that the checks must find, and repairs it by the product in between.
    void damage(std::uint64_t index, const RandomProduct& product, const Operands& operands, const Operands& other)
    {
        const GemmCase& gemm = product.gemm;
        Draw draw(options_.seed ^ 0xDA4A6EU, index);
        Expectation expectation = operands.expectation;
        expect_sums(expectation, summation_of(options_.variant, gemm));
        const auto expect = [&](Fault fault, const char* what) {
            ++damages_;
            return next_finding({index, what, operands.d, fault});
        };
        const auto repair = [&] {
            prepare(product, operands);
            launch(product, operands);
        };
        const std::int64_t columns = gemm.d_columns();
        const std::int64_t elements = gemm.m * columns * gemm.batches;
        const std::int64_t outside =
            draw.one_in(2) ? draw.below(product.d.first) : operands.d.array.size - 1 - draw.below(guard_elements);
        flip_bit(stream_, operands.d.array, outside);
        check_output(stream_, operands.d, expectation, expect(Fault::outside, "damage around D"));
        compare_bits(stream_, other.d.array, operands.d.array, expect(Fault::other_bits, "a changed bit"));
        if (elements > 0) {
            const std::int64_t element = draw.below(elements);
            repair();
            nudge_element(stream_, operands.d, expectation, element);
            check_output(stream_, operands.d, expectation, expect(Fault::wrong, "an error above its bound"));
            const std::int64_t batch = element / columns / gemm.m;
            const std::size_t position = product.d.index(batch, element / columns % gemm.m, element % columns);
            poison_element(stream_, operands.d.array, static_cast<std::int64_t>(position));
            check_output(stream_, operands.d, expectation, expect(Fault::unwritten, "an element that was not written"));
        }
    }

    void read_findings()
    {
        std::vector<Finding> findings(launches_.size());
        if (findings.empty()) {
            return;
        }
        findings_.copy_to(findings);
        findings_.fill(stream_, Finding{});
        for (std::size_t i = 0; i < findings.size() && failures_ < options_.most_failures; ++i) {
            judge(launches_[i], findings[i]);
        }
        launches_.clear();
    }

    void judge(const Launch& launch, const Finding& finding)
    {
        const auto fault = static_cast<Fault>(finding.fault);
        if (fault == launch.damage.value_or(Fault::none)) {
            return;
        }
        const RandomProduct product = random_product(options_.seed, launch.index, options_.limits);
        if (launch.damage) {
            fail(launch.index, product, fmt::format("the check did not find {}", launch.what));
            return;
        }
        fail(launch.index, product, fmt::format("{}: {}", launch.what, describe(launch.written, finding)));
    }

    static std::string describe(const PlacedMatrix& written, const Finding& finding)
    {
        const Placement& place = written.place;
        const std::int64_t from_start = finding.element - place.first;
        std::string where = fmt::format("element {} from its start", from_start);
        if (from_start >= 0 && !place.empty()) {
            const std::int64_t batch = place.batches > 1 ? from_start / place.batch_stride : 0;
            const std::int64_t within = from_start - batch * place.batch_stride;
            const std::int64_t vector = within / place.leading_dimension;
            const std::int64_t rest = within % place.leading_dimension;
            where += fmt::format(" ({}, {}) of matrix {}", place.row_major ? vector : rest,
                                 place.row_major ? rest : vector, batch);
        }
        switch (static_cast<Fault>(finding.fault)) {
            case Fault::none: break;
            case Fault::wrong:
                return fmt::format("{} is {}, but must be {} +- {}", where, finding.actual, finding.expected,
                                   finding.error);
            case Fault::unwritten: return fmt::format("{} was never written, and must be {}", where, finding.expected);
            case Fault::outside: return fmt::format("{}, which is outside of the matrix, was overwritten", where);
            case Fault::other_bits:
                return fmt::format("{} is {}, but was {} the first time", where, finding.actual, finding.expected);
        }
        return where;
    }

    void fail(std::uint64_t index, const RandomProduct& product, const std::string& what)
    {
        ++failures_;
        fmt::print(
            "FAILED: {}\n  {}\n  again: tessera-stress --seed {} --only {} --work {} --variant {} --candidates {}{}\n",
            product.describe(), what, options_.seed, index, options_.limits.multiply_adds, to_string(options_.variant),
            options_.candidates, options_.self_test ? " --self-test" : "");
        std::fflush(stdout);
    }

    void print_summary(std::uint64_t products, double seconds) const
    {
        fmt::print("{} random products of seed {} in {:.1f} s: {}\n", products, options_.seed, seconds,
                   failures_ == 0 ? "none wrong" : fmt::format("{} FAILED", failures_));
        for (const auto& [variant, count] : launched_) {
            fmt::print("  {}: {} launches\n", variant, count);
        }
        if (!configs_.empty()) {
            fmt::print("  {} configurations of hopper\n", configs_.size());
        }
        if (refused_ > 0) {
            fmt::print("  {} products were refused by {}\n", refused_, to_string(options_.variant));
        }
        if (options_.self_test) {
            fmt::print("  {} damages\n", damages_);
        }
        if (!options_.only && products < options_.count && failures_ == 0) {
            fmt::print("  {} products were left out: the time limit was reached\n", options_.count - products);
        }
    }

    const StressOptions& options_;
    Device device_;
    Stream stream_;
    std::vector<DeviceBuffer<std::uint8_t>> pools_;  // as all_types
    DeviceBuffer<Finding> findings_;
    DeviceBuffer<SumOfProducts> sums_;
    DeviceBuffer<float> factors_;
    DeviceBuffer<std::byte> workspace_;
    DeviceBuffer<std::uint8_t> nothing_{stream_, static_cast<std::size_t>(options_.limits.pool()) * sizeof(float)};
    // D twice, then the pre-activation twice.
    std::array<DeviceBuffer<std::uint8_t>, 4> outputs_{
        DeviceBuffer<std::uint8_t>(stream_, 0), DeviceBuffer<std::uint8_t>(stream_, 0),
        DeviceBuffer<std::uint8_t>(stream_, 0), DeviceBuffer<std::uint8_t>(stream_, 0)};
    std::array<float, 3> uploaded_{};
    std::vector<Launch> launches_;  // of the findings that were not read yet
    std::map<std::string, std::uint64_t> launched_;
    std::map<int, std::uint64_t> configs_;
    std::uint64_t refused_ = 0;
    std::uint64_t failures_ = 0;
    std::uint64_t damages_ = 0;
};

}  // namespace

bool run_stress(const StressOptions& options) { return Stress(options).run(); }

}  // namespace tessera::test
