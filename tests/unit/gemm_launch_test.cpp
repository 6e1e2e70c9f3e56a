/// Gemm::launch and GemmPlan::launch: what reaches the kernel, and at what cost.

#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "gemm/simt/simt_backend.hpp"
#include "gemm/variant_chooser.hpp"
#include "gemm_runtime.hpp"
#include "heap_count.hpp"
#include "kernels/blackwell/blackwell_arguments.hpp"
#include "support/variants.hpp"

using namespace tessera;
using tessera::kernels::GemmArguments;
using tessera::test::GemmRuntime;

namespace {

struct LaunchRuntime : GemmRuntime {
    DeviceBuffer<float> bias{stream, 1000};

    /// The kernel parameters of the latest launch.
    static GemmArguments argument()
    {
        const auto all = arguments();
        REQUIRE_FALSE(all.empty());
        return all.back();
    }
};

void check_operand(const kernels::Operand& operand, const void* data, std::int64_t row_stride,
                   std::int64_t column_stride, std::int64_t batch_stride)
{
    CHECK(operand.data == data);
    CHECK(operand.row_stride == row_stride);
    CHECK(operand.column_stride == column_stride);
    CHECK(operand.batch_stride == batch_stride);
}

}  // namespace

TEST_CASE_FIXTURE(LaunchRuntime, "one launch is one kernel, no allocation, no wait")
{
    const auto view_a = a.matrix(30, 20);
    const auto view_b = b.matrix(20, 40);
    const auto view_d = d.matrix(30, 40);
    Gemm::launch(stream, view_a, view_b, view_d);
    for (const Variant variant : simt_variants()) {
        fake::clear_calls();
        Gemm::launch(stream, view_a, view_b, view_d, {}, variant);
        CHECK(fake::count("cudaLaunchKernelExC") == 1);
        for (const fake::Call& call : fake::calls()) {
            CHECK((call.name == "cudaLaunchKernelExC" || call.name == "cudaGetDevice"));
        }
    }
}

TEST_CASE_FIXTURE(LaunchRuntime, "a launch allocates nothing from the heap, planned or not")
{
    fake::keep_argument_bytes(0);
    const auto view_a = a.matrix(30, 20);
    const auto view_b = b.matrix(20, 40);
    const auto view_c = c.matrix(30, 40);
    const auto view_d = d.matrix(30, 40);
    const Epilogue epilogue{.alpha = 2.0F,
                            .beta = 1.0F,
                            .c = view_c,
                            .bias = Bias::per_column(bias.subspan(0, 40)),
                            .activation = Activation::gelu};
    GemmProblem problem{.m = 30, .n = 40, .k = 20};
    problem.has_c = true;
    problem.bias = BiasAxis::per_column;
    problem.activation = Activation::gelu;
    const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), problem);
    const long before = test::heap_allocations();
    for (int i = 0; i < 10; ++i) {
        Gemm::launch(stream, view_a, view_b, view_d, epilogue);
        plan.launch(stream, view_a, view_b, view_d, epilogue);
    }
    CHECK(test::heap_allocations() == before);
    CHECK(fake::launches().size() == 20);
    const auto proof = std::make_unique<int>(1);  // proves that the counter works
    CHECK(test::heap_allocations() > before);
}

TEST_CASE_FIXTURE(LaunchRuntime, "grid, block and function are those of the chosen kernel")
{
    for (const Variant variant : simt_variants()) {
        CAPTURE(to_string(variant));
        fake::clear_calls();
        Gemm::launch(stream, a.matrix(70, 20), b.matrix(20, 40), d.matrix(70, 40), {}, variant);
        GemmProblem problem{.m = 70, .n = 40, .k = 20};
        const kernels::SimtKernel kernel =
            detail::simt_kernel_of(variant, detail::resolved(problem), Device(fake::h200).properties());
        REQUIRE(fake::launches().size() == 1);
        const fake::Launch made = fake::launches()[0];
        const GemmArguments arguments = argument();
        CHECK(made.function == kernel.function);
        CHECK(made.block.x == static_cast<unsigned>(kernel.threads));
        CHECK(made.block.y * made.block.z == 1);
        CHECK(made.shared_bytes == kernel.shared_bytes);
        CHECK(made.stream == stream.get());
        const auto tiles_m = static_cast<unsigned>((70 + kernel.block_m - 1) / kernel.block_m);
        const auto tiles_n = static_cast<unsigned>((40 + kernel.block_n - 1) / kernel.block_n);
        CHECK(made.grid.x == tiles_m * tiles_n);
        const TilePosition last = arguments.raster.position(made.grid.x - 1);
        CHECK(last.row == tiles_m - 1);
        CHECK(last.column == tiles_n - 1);
        CHECK(last.batch == 0);
        CHECK(made.grid.y * made.grid.z == 1);
    }
}

TEST_CASE_FIXTURE(LaunchRuntime, "a row-major D is computed without transposing the product")
{
    Gemm::launch(stream, a.matrix(5, 7, 9), b.matrix(7, 6, 8, ColumnMajor{}), d.matrix(5, 6, 10),
                 {.alpha = 3.0F,
                  .beta = 0.5F,
                  .c = c.matrix(5, 6, 11, ColumnMajor{}),
                  .bias = Bias::per_row(bias.subspan(0, 5)),
                  .activation = Activation::silu});
    const GemmArguments arguments = argument();
    check_operand(arguments.a, a.data(), 9, 1, 0);
    check_operand(arguments.b, b.data(), 1, 8, 0);
    check_operand(arguments.c, c.data(), 1, 11, 0);
    CHECK(arguments.d == d.data());
    CHECK(arguments.d_row_stride == 10);
    CHECK(arguments.d_column_stride == 1);
    CHECK(arguments.m == 5);
    CHECK(arguments.n == 6);
    CHECK(arguments.k == 7);
    CHECK(arguments.alpha == 3.0F);
    CHECK(arguments.beta == 0.5F);
    CHECK(arguments.bias == bias.data());
    CHECK(arguments.bias_axis == BiasAxis::per_row);
    CHECK(arguments.activation == Activation::silu);
    CHECK(arguments.d_type == ElementType::f32);
    CHECK(arguments.bias_type == ElementType::f32);
}

TEST_CASE_FIXTURE(LaunchRuntime,
                  "a column-major D is computed as the transposed product, with the bias along the other axis")
{
    // D^T = B^T * A^T: the kernel's A is B with its strides exchanged, and so on.
    Gemm::launch(stream, a.matrix(5, 7, 9), b.matrix(7, 6, 8), d.matrix(5, 6, 10, ColumnMajor{}),
                 {.beta = 1.0F, .c = c.matrix(5, 6, 11), .bias = Bias::per_row(bias.subspan(0, 5))});
    GemmArguments arguments = argument();
    check_operand(arguments.a, b.data(), 1, 8, 0);
    check_operand(arguments.b, a.data(), 1, 9, 0);
    check_operand(arguments.c, c.data(), 1, 11, 0);
    CHECK(arguments.d_row_stride == 10);
    CHECK(arguments.d_column_stride == 1);
    CHECK(arguments.m == 6);
    CHECK(arguments.n == 5);
    CHECK(arguments.k == 7);
    CHECK(arguments.bias_axis == BiasAxis::per_column);

    Gemm::launch(stream, a.matrix(5, 7), b.matrix(7, 6), d.matrix(5, 6, ColumnMajor{}),
                 {.bias = Bias::per_column(bias.subspan(0, 6))});
    CHECK(argument().bias_axis == BiasAxis::per_row);
    Gemm::launch(stream, a.matrix(5, 7), b.matrix(7, 6), d.matrix(5, 6, ColumnMajor{}));
    CHECK(argument().bias_axis == BiasAxis::none);
}

TEST_CASE_FIXTURE(LaunchRuntime, "a batch is one kernel, and all its products may share an input")
{
    const auto shared = std::as_const(a).span().matrices(3, 0, 5, 7, 7);
    const auto each_b = b.span().matrices(3, 50, 7, 6, 6);
    const auto each_d = d.span().matrices(3, 100, 5, 6, 6);
    const auto each_c = c.span().matrices(3, 200, 5, 6, 6);
    fake::clear_calls();
    Gemm::launch(stream, shared, each_b, each_d, {.beta = 1.0F, .c = each_c});
    REQUIRE(fake::launches().size() == 1);
    const GemmArguments arguments = argument();
    check_operand(arguments.a, a.data(), 7, 1, 0);
    check_operand(arguments.b, b.data(), 6, 1, 50);
    check_operand(arguments.c, c.data(), 6, 1, 200);
    CHECK(arguments.d_batch_stride == 100);
    CHECK(fake::launches()[0].grid.x == 3 * arguments.raster.tiles());
}

TEST_CASE_FIXTURE(LaunchRuntime, "16-bit inputs have their own kernel, and the epilogue converts to the output type")
{
    const DeviceBuffer<f16> half(stream, 100);
    const DeviceBuffer<bf16> brain(stream, 100);
    DeviceBuffer<bf16> brain_out(stream, 100);
    DeviceBuffer<f16> half_bias(stream, 6);
    Gemm::launch(stream, half.matrix(5, 7), half.matrix(7, 6), brain_out.matrix(5, 6),
                 {.bias = Bias::per_column(half_bias.span())}, Variant::simt_register_blocked);
    CHECK(argument().d_type == ElementType::bf16);
    CHECK(argument().bias_type == ElementType::f16);
    Gemm::launch(stream, brain.matrix(5, 7), brain.matrix(7, 6), d.matrix(5, 6), {}, Variant::simt_register_blocked);
    CHECK(argument().d_type == ElementType::f32);
    Gemm::launch(stream, a.matrix(5, 7), b.matrix(7, 6), d.matrix(5, 6), {}, Variant::simt_register_blocked);
    const auto launches = fake::launches();
    CHECK(launches[0].function != launches[1].function);
    CHECK(launches[1].function != launches[2].function);
    CHECK(launches[0].function != launches[2].function);
}

TEST_CASE_FIXTURE(LaunchRuntime, "alpha = 0 skips the product, k = 0 still writes D, an empty D launches nothing")
{
    Gemm::launch(stream, a.matrix(5, 7), b.matrix(7, 6), d.matrix(5, 6), {.alpha = 0.0F});
    CHECK(argument().k == 0);
    Gemm::launch(stream, a.matrix(5, 0), b.matrix(0, 6), d.matrix(5, 6));
    CHECK(argument().k == 0);
    CHECK(argument().m == 5);
    CHECK(fake::launches().size() == 2);
    Gemm::launch(stream, a.matrix(0, 7), b.matrix(7, 6), d.matrix(0, 6));
    Gemm::launch(stream, a.matrix(5, 7), b.matrix(7, 0), d.matrix(5, 0));
    Gemm::launch(stream, a.span().matrices(0, 10, 2, 2, 2), b.span().matrices(0, 10, 2, 2, 2),
                 d.span().matrices(0, 10, 2, 2, 2));
    const DeviceBuffer<float> nothing(stream, 0);
    DeviceBuffer<float> no_output(stream, 0);
    Gemm::launch(stream, nothing.matrix(0, 0), nothing.matrix(0, 0), no_output.matrix(0, 0));
    CHECK(fake::launches().size() == 2);
}

TEST_CASE_FIXTURE(LaunchRuntime, "a launch is captured into a graph as one node")
{
    const Graph graph = Graph::capture(
        stream, [&](StreamRef captured) { Gemm::launch(captured, a.matrix(5, 7), b.matrix(7, 6), d.matrix(5, 6)); });
    CHECK(graph.node_count() == 1);
}

TEST_CASE_FIXTURE(LaunchRuntime, "a launch makes its stream's device current and restores the caller's")
{
    const Stream there{Device(fake::t4)};
    DeviceBuffer<float> matrix(there, 64);
    DeviceBuffer<float> output(there, 64);
    Gemm::launch(there, matrix.matrix(8, 8), matrix.matrix(8, 8), output.matrix(8, 8));
    CHECK(fake::launches().at(0).device == fake::t4);
    CHECK(Device::current().ordinal() == fake::h200);
}

TEST_CASE_FIXTURE(LaunchRuntime, "a failed launch names variant and problem, and leaves no pending error")
{
    fake::fail_call("cudaLaunchKernelExC", 1, cudaErrorLaunchOutOfResources);
    CHECK_ERROR(
        "tessera: launch_refused in Gemm::launch\n  cudaLaunchKernelExC returned cudaErrorLaunchOutOfResources "
        "(701): too many resources requested for launch\n  while launching simt_tiled for 5x6x7 (MxNxK) f32 -> "
        "f32, A row-major, B row-major, D row-major",
        Gemm::launch(stream, a.matrix(5, 7), b.matrix(7, 6), d.matrix(5, 6), {}, Variant::simt_tiled));
    CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE_FIXTURE(LaunchRuntime, "the error of a launch names the CUDA call that failed")
{
    const auto refusal_on = [](int device, Variant variant, const char* call) {
        const Stream there{Device(device)};
        const DeviceBuffer<bf16> input(there, 256 * 256);
        DeviceBuffer<bf16> output(there, 256 * 256);
        const auto launch = [&] {
            Gemm::launch(there, input.matrix(256, 256), input.matrix(256, 256), output.matrix(256, 256), {}, variant);
        };
        detail::forget_tensor_map_encoder();
        fake::fail_call(call, 1, cudaErrorUnknown);
        const auto error = test::error_of(launch);
        REQUIRE(error.has_value());
        CHECK(error->code() == ErrorCode::cuda_failure);
        CHECK(cudaPeekAtLastError() == cudaSuccess);
        launch();  // works again after the failure
        return std::string(error->message());
    };
    const std::string problem = "256x256x256 (MxNxK) bf16 -> bf16, A row-major, B row-major, D row-major";
    for (const auto& [device, variant] :
         {std::pair(fake::h200, Variant::hopper), std::pair(fake::b200, Variant::blackwell)}) {
        if (!GemmPlan::refusal({.m = 256, .n = 256, .k = 256, .input = ElementType::bf16, .output = ElementType::bf16},
                               Device(device).properties(), variant)
                 .empty()) {
            continue;  // this build has no code for it
        }
        CHECK(refusal_on(device, variant, "cudaGetDriverEntryPointByVersion") ==
              fmt::format("cudaGetDriverEntryPointByVersion of cuTensorMapEncodeTiled returned cudaErrorUnknown (999): "
                          "unknown error\n  while launching {} for {}",
                          to_string(variant), problem));
        CHECK(refusal_on(device, variant, "cudaLaunchKernelExC") ==
              fmt::format(
                  "cudaLaunchKernelExC returned cudaErrorUnknown (999): unknown error\n  while launching {} for {}",
                  to_string(variant), problem));
        fake::set_encoder_status(1);
        const Stream there{Device(device)};
        const DeviceBuffer<bf16> input(there, 256 * 256);
        DeviceBuffer<bf16> output(there, 256 * 256);
        const auto error = test::error_of([&] {
            Gemm::launch(there, input.matrix(256, 256), input.matrix(256, 256), output.matrix(256, 256), {}, variant);
        });
        fake::set_encoder_status(0);
        REQUIRE(error.has_value());
        CHECK(error->message().starts_with("cuTensorMapEncodeTiled returned cudaErrorInvalidValue (1): "));
    }
}

TEST_CASE_FIXTURE(LaunchRuntime, "tensor maps of small operands are mended in a product on Blackwell, too")
{
    const Device device(fake::b200);
    const GemmProblem problem{.m = 256, .n = 2048, .k = 64, .input = ElementType::bf16, .output = ElementType::bf16};
    if (!GemmPlan::refusal(problem, device.properties(), Variant::blackwell).empty()) {
        MESSAGE("skipped: this build has no code for compute capability 10.0");
        return;
    }
    fake::keep_argument_bytes(sizeof(kernels::BlackwellArguments));
    const Stream there(device);
    const DeviceBuffer<bf16> small(there, 256 * 64);  // 32 KiB
    const DeviceBuffer<bf16> large(there, 64 * 2048);
    DeviceBuffer<bf16> product(there, 256 * 2048);
    Gemm::launch(there, small.matrix(256, 64), large.matrix(64, 2048), product.matrix(256, 2048), {},
                 Variant::blackwell);
    kernels::BlackwellArguments arguments{};
    std::memcpy(&arguments, fake::launches().back().argument.data(), sizeof arguments);
    const auto has_bit_85 = [](const AnyTensorMap<3>& map) {  // the fake's encoder sets it
        detail::TensorMapBits bits{};
        static_assert(sizeof map == sizeof bits);
        std::memcpy(&bits, &map, sizeof bits);
        return (bits.words[1] & std::uint64_t{1} << 21U) != 0;
    };
    CHECK_FALSE(has_bit_85(arguments.a.map));
    CHECK(has_bit_85(arguments.b.map));
    CHECK(has_bit_85(arguments.d));
}

TEST_CASE_FIXTURE(LaunchRuntime, "several threads can launch at once, each on its own stream and device")
{
    constexpr int threads = 4;
    constexpr int launches_each = 200;
    fake::keep_argument_bytes(0);
    const GemmPlan plan = GemmPlan::prepare(Device(fake::h200), {.m = 8, .n = 8, .k = 8});
    const DeviceBuffer<float>& input = a;
    std::vector<std::string> failures(threads);
    {
        std::vector<std::jthread> workers;
        for (int i = 0; i < threads; ++i) {
            workers.emplace_back([&, i] {
                const auto error = test::error_of([&] {
                    const Stream own{Device(i % 2 == 0 ? fake::h200 : fake::b200)};
                    DeviceBuffer<float> product(own, 64);
                    DeviceBuffer<float> factor(own, 64);
                    for (int j = 0; j < launches_each; ++j) {
                        Gemm::launch(own, factor.matrix(8, 8), factor.matrix(8, 8), product.matrix(8, 8));
                        if (i % 2 == 0) {
                            plan.launch(own, input.matrix(8, 8), input.matrix(8, 8), product.matrix(8, 8));
                        }
                    }
                    own.synchronize();
                });
                failures[static_cast<std::size_t>(i)] = error ? error->what() : "";
            });
        }
    }
    CHECK(failures == std::vector<std::string>(threads));
    CHECK(fake::launches().size() == threads * launches_each + threads / 2 * launches_each);
}
