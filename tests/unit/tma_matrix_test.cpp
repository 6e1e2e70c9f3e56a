/// Which matrices the tensor-core kernels reach by TMA.

#include <bit>
#include <cstring>

#include "clean_runtime.hpp"
#include "gemm/backend.hpp"
#include "gemm/gemm_operands.hpp"
#include "gemm/tma_matrix.hpp"
#include "kernels/blackwell/blackwell_arguments.hpp"
#include "kernels/hopper/hopper_arguments.hpp"

namespace tessera::detail {
namespace {

using test::CleanRuntime;

TEST_CASE("TMA takes addresses and strides that are multiples of 16 bytes, and strides below 2^40 bytes")
{
    const TmaMatrix good{.data = std::bit_cast<const void*>(std::uintptr_t{0x1000}),
                         .element_bytes = 2,
                         .run = 100,
                         .lines = 50,
                         .stride = 104,
                         .batches = 3,
                         .batch_stride = 8000,
                         .contiguous = true};
    const auto is_addressable_with = [&](auto change) {
        TmaMatrix matrix = good;
        change(matrix);
        return matrix.is_addressable();
    };
    constexpr std::int64_t first_refused = tma_stride_limit / 2;  // in elements
    CHECK(good.is_addressable());
    CHECK_FALSE(is_addressable_with([](TmaMatrix& x) { x.data = std::bit_cast<const void*>(std::uintptr_t{0x1008}); }));
    CHECK_FALSE(is_addressable_with([](TmaMatrix& x) { x.contiguous = false; }));
    for (std::int64_t TmaMatrix::*const stride : {&TmaMatrix::stride, &TmaMatrix::batch_stride}) {
        CHECK_FALSE(is_addressable_with([&](TmaMatrix& x) { x.*stride = 4; }));
        CHECK(is_addressable_with([&](TmaMatrix& x) { x.*stride = first_refused - 8; }));
        CHECK_FALSE(is_addressable_with([&](TmaMatrix& x) { x.*stride = first_refused; }));
        CHECK_FALSE(is_addressable_with([&](TmaMatrix& x) { x.*stride = std::int64_t{1} << 62U; }));
    }
    // A stride that is never used may be anything.
    CHECK(is_addressable_with([](TmaMatrix& x) { x.lines = 1, x.stride = 1; }));
    CHECK(is_addressable_with([](TmaMatrix& x) { x.batches = 1, x.batch_stride = 1; }));
    CHECK(is_addressable_with([](TmaMatrix& x) { x.batch_stride = 0; }));
    CHECK_FALSE(good.has_whole_chunks());
    TmaMatrix whole = good;
    whole.run = 104;
    CHECK(whole.has_whole_chunks());
}

/// What a launch reads and writes without TMA.
struct WithoutTma {
    bool a;
    bool b;
    bool d;

    friend bool operator==(const WithoutTma&, const WithoutTma&) = default;
};

WithoutTma encoded(int device, Variant variant, const GemmOperands& operands)
{
    const DeviceProperties& properties = Device(device).properties();
    const GemmProblem problem = resolved(problem_of(operands, Epilogue()));
    const GemmRequest request{problem, properties};
    const Backend& backend = backend_of(variant);
    EncodedLaunch launch;
    KernelChoice choice = backend.choose(variant, request, 0);  // without a workspace, so that nothing is repacked
    choice.swapped = false;                                     // A stays A
    const CallStatus ended =
        backend.encode(launch, request, choice, arguments_of(operands, Epilogue()), WorkspaceMemory{});
    CHECK(ended.status == cudaSuccess);
    CHECK(launch.copy_count == 0);
    if (variant == Variant::hopper) {
        kernels::HopperArguments arguments{};
        std::memcpy(&arguments, launch.argument.data(), sizeof arguments);
        return {arguments.a_by_threads, arguments.b_by_threads, !arguments.stores_by_tma};
    }
    kernels::BlackwellArguments arguments{};
    std::memcpy(&arguments, launch.argument.data(), sizeof arguments);
    return {arguments.a.by_threads, arguments.b.by_threads, !arguments.stores_by_tma};
}

TEST_CASE_FIXTURE(CleanRuntime, "a matrix with a stride of 2^40 bytes is loaded and stored without TMA")
{
    for (const auto& [device, variant] :
         {std::pair(fake::h200, Variant::hopper), std::pair(fake::b200, Variant::blackwell)}) {
        CAPTURE(to_string(variant));
        const Stream stream{Device(device)};
        const DeviceBuffer<bf16> input(stream, 64 * 64);
        DeviceBuffer<bf16> output(stream, 64 * 64);
        GemmOperands operands{operand_of(input.matrix(64, 64)), operand_of(input.matrix(64, 64)),
                              operand_of(output.matrix(64, 64))};
        const GemmProblem problem = resolved(problem_of(operands, Epilogue()));
        if (backend_of(variant).find_refusal(variant, {problem, Device(device).properties()})) {
            MESSAGE("skipped: this build has no code for it");
            continue;
        }
        for (MatrixOperand* const operand : {&operands.a, &operands.b, &operands.d}) {
            operand->batches = 2;
            operand->batch_stride = 64 * 64;
        }
        for (std::int64_t MatrixOperand::*const stride :
             {&MatrixOperand::leading_dimension, &MatrixOperand::batch_stride}) {
            for (MatrixOperand GemmOperands::*const operand : {&GemmOperands::a, &GemmOperands::b, &GemmOperands::d}) {
                GemmOperands far = operands;
                far.*operand.*stride = tma_stride_limit / 2 - 8;
                CHECK(encoded(device, variant, far) == WithoutTma{false, false, false});
                far.*operand.*stride = tma_stride_limit / 2;
                CHECK(encoded(device, variant, far) == WithoutTma{operand == &GemmOperands::a,
                                                                  operand == &GemmOperands::b,
                                                                  operand == &GemmOperands::d});
            }
        }
    }
}

}  // namespace
}  // namespace tessera::detail
