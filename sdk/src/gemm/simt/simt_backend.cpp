#include "gemm/simt/simt_backend.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "gemm/gemm_operands.hpp"

namespace tessera::detail {
namespace {

constexpr std::int64_t max_ctas = 0x7FFFFFFF;
constexpr std::uint32_t raster_band = 16;  // a wave of 132 to 264 CTAs is then roughly square

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return value / by + (value % by != 0 ? 1 : 0); }

kernels::SimtRung rung_of(Variant variant)
{
    switch (variant) {
        case Variant::simt_naive: return kernels::SimtRung::naive;
        case Variant::simt_tiled: return kernels::SimtRung::tiled;
        case Variant::simt_coarsened: return kernels::SimtRung::coarsened;
        case Variant::simt_vectorized: return kernels::SimtRung::vectorized;
        default: return kernels::SimtRung::register_blocked;
    }
}

/// `SimtOrders::whole_chunks` for one operand with runs of `run` elements. The layouts are those of the actual operands
/// (a plan compares them at each launch), so the promise holds.
bool has_whole_chunks(const MatrixLayout& layout, std::int64_t run, const GemmProblem& problem)
{
    const std::size_t chunk_bytes = kernels::simt_chunk * size_of(problem.input);
    return layout.address_alignment % chunk_bytes == 0 && run % kernels::simt_chunk == 0 &&
           layout.leading_dimension % kernels::simt_chunk == 0 &&
           (problem.batches == 1 || layout.batch_stride % kernels::simt_chunk == 0);
}

std::optional<Refusal> find_simt_refusal(Variant variant, const GemmProblem& problem, const DeviceProperties& device)
{
    using Reason = Refusal::Reason;
    if (!kernels::simt_takes(rung_of(variant), problem.input)) {
        return Refusal{Reason::input_types, ' ', 0, 0, problem.input};
    }
    if (problem.gating != Gating::none && variant != Variant::simt_naive) {
        if (variant != Variant::simt_register_blocked) {
            return Refusal{Reason::gated_pairs};
        }
        if (problem.gating == Gating::side_by_side) {
            return Refusal{Reason::side_by_side};
        }
    }
    const kernels::SimtKernel kernel = simt_kernel_of(variant, problem, device);
    const auto required = static_cast<std::int64_t>(kernel.required_alignment);
    const auto element_bytes = static_cast<std::int64_t>(size_of(problem.input));

    struct Side {
        char name;
        const MatrixLayout& layout;
        std::int64_t vectors;
    };
    const std::array sides{Side{'A', problem.a, problem.a.row_major ? problem.m : problem.k},
                           Side{'B', problem.b, problem.b.row_major ? problem.k : problem.n}};
    for (const Side& side : sides) {
        const auto address = static_cast<std::int64_t>(side.layout.address_alignment);
        const std::int64_t stride = side.layout.leading_dimension * element_bytes;
        const std::int64_t batch = side.layout.batch_stride * element_bytes;
        if (address % required != 0) {
            return Refusal{Reason::address_alignment, side.name, address, required};
        }
        if (side.vectors > 1 && stride % required != 0) {
            return Refusal{Reason::leading_dimension, side.name, stride, required};
        }
        if (problem.batches > 1 && batch % required != 0) {
            return Refusal{Reason::batch_stride, side.name, batch, required};
        }
    }
    const std::int64_t rows = is_transposed(problem) ? problem.n : problem.m;
    const std::int64_t columns = is_transposed(problem) ? problem.m : problem.n;
    std::int64_t ctas = 0;
    if (__builtin_mul_overflow(divide_up(rows, kernel.block_m), divide_up(columns, kernel.block_n), &ctas) ||
        __builtin_mul_overflow(ctas, problem.batches, &ctas)) {
        ctas = std::numeric_limits<std::int64_t>::max();
    }
    if (ctas > max_ctas) {
        return Refusal{Reason::grid_size, ' ', ctas, max_ctas};
    }
    return std::nullopt;
}

class SimtBackend final : public Backend {
public:
    bool has_tensor_cores_of(const DeviceProperties& /*device*/) const noexcept override { return false; }

    std::optional<Refusal> find_refusal(Variant variant, const GemmRequest& request) const override
    {
        return find_simt_refusal(variant, request.problem, request.device);
    }
    std::size_t required_alignment(Variant variant, InputTypes input) const noexcept override
    {
        // The same for every tile of a variant, so any problem and device will do.
        GemmProblem problem;
        problem.input = input;
        return simt_kernel_of(variant, problem, DeviceProperties{}).required_alignment;
    }
    std::string describe(const GemmRequest& request, const KernelChoice& choice) const override
    {
        const kernels::SimtKernel kernel = simt_kernel_of(choice.variant, request.problem, request.device);
        return fmt::format("with a {}x{} tile per CTA of {} threads", kernel.block_m, kernel.block_n, kernel.threads);
    }
    CallStatus encode(EncodedLaunch& launch, const GemmRequest& request, const KernelChoice& choice,
                      const kernels::GemmArguments& given, const WorkspaceMemory& /*memory*/) const override
    {
        const kernels::SimtKernel kernel = simt_kernel_of(choice.variant, request.problem, request.device);
        auto& arguments = launch.emplace_arguments<kernels::GemmArguments>();
        arguments = given;
        arguments.raster = raster_of(arguments, kernel.block_m, kernel.block_n, raster_band);
        launch.function = kernel.function;
        // Does not overflow: a grid that is too large makes a variant ineligible.
        launch.ctas = arguments.raster.tiles() * static_cast<std::uint32_t>(request.problem.batches);
        launch.threads = static_cast<std::uint32_t>(kernel.threads);
        launch.shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes);
        launch.cluster = 1;
        launch.programmatic = false;
        launch.copy_count = 0;
        return {};
    }
};

constinit const SimtBackend backend{};

}  // namespace

kernels::SimtKernel simt_kernel_of(Variant variant, const GemmProblem& problem, const DeviceProperties& device)
{
    // The kernels write rows of D. A column-major D is computed as the transposed product, B^T * A^T.
    const bool direct = !is_transposed(problem);
    const std::int64_t rows = direct ? problem.m : problem.n;
    const std::int64_t columns = direct ? problem.n : problem.m;
    const bool whole_chunks = has_whole_chunks(problem.a, problem.a.row_major ? problem.k : problem.m, problem) &&
                              has_whole_chunks(problem.b, problem.b.row_major ? problem.n : problem.k, problem);
    const kernels::SimtOrders orders{.a_k_contiguous = direct ? problem.a.row_major : !problem.b.row_major,
                                     .b_k_contiguous = direct ? !problem.b.row_major : problem.a.row_major,
                                     .whole_chunks = whole_chunks};
    return kernels::simt_kernel(rung_of(variant), problem.input,
                                kernels::choose_simt_tile(rows, columns, problem.batches, device.sm_count), orders);
}

const Backend& simt_backend() noexcept { return backend; }

}  // namespace tessera::detail
