#include "gemm/candidate_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "gemm/presets.hpp"
#include "kernels/hopper/hopper_kernels.hpp"
#include "report/gemm_summary.hpp"
#include "sdk/src/gemm/hopper/hopper_cycles.hpp"
#include "sdk/src/gemm/hopper/hopper_launch.hpp"
#include "sdk/src/gemm/hopper/hopper_repack.hpp"

namespace tessera::bench {

CandidateFile::CandidateFile(const std::string& path) : path_(path), file_(path)
{
    if (!file_) {
        throw std::invalid_argument(fmt::format("cannot write {}", path));
    }
    // The cost model's names. m, n and the four columns after them are those of the kernel: exchanged if it computes the
    // transposed product. two_level_columns is 0 if sums have one level.
    file_
        << "problem,split,sm_count,l2_bytes,m,n,a_by_threads,b_by_threads,a_k_major,b_k_major,k,batches,input_bytes,"
           "output_bytes,a_row_bytes,"
           "b_row_bytes,repacked_bytes,fused,activation,has_c,gated,config,tile_m,tile_n,block_k,stages,stages_in_turn,"
           "consumers,ping_pong,copies,"
           "ctas,two_level_columns,cluster_m,cluster_n,cluster_k,swapped,stream_k,band,clusters,slots,expected_"
           "cycles,us\n";
}

void CandidateFile::write(const Problem& problem, const GemmProblem& resolved, const DeviceProperties& device,
                          const std::vector<detail::KernelChoice>& choices, const std::vector<double>& seconds)
{
    const auto table = kernels::hopper_kernels(size_of(resolved.input));
    const bool is_two_level = is_float8(resolved.input) && resolved.fp8_accumulation == Fp8Accumulation::two_level;
    for (std::size_t i = 0; i < choices.size(); ++i) {
        if (!std::isfinite(seconds[i])) {
            continue;
        }
        const detail::KernelChoice& choice = choices[i];
        const kernels::HopperKernel& kernel = table[choice.config];
        const detail::HopperShape shape = detail::hopper_shape(resolved, choice.swapped);
        const int cluster_size = choice.cluster_m * choice.cluster_n * choice.cluster_k;
        file_ << fmt::format("{},{},{},{},{},{},{:d},{:d},{:d},{:d},{},{},{},{},{},{},{},", name_of(problem),
                             split_of(problem) == Split::fit ? "fit" : "held-out", device.sm_count,
                             device.l2_cache_bytes, shape.m, shape.n, shape.a_by_threads, shape.b_by_threads,
                             shape.a_k_major, shape.b_k_major, shape.k, shape.batches, size_of(resolved.input),
                             size_of(resolved.output),
                             static_cast<std::size_t>(resolved.a.leading_dimension) * size_of(resolved.input.a),
                             static_cast<std::size_t>(resolved.b.leading_dimension) * size_of(resolved.input.b),
                             kernel.copies ? 0 : detail::repacked_bytes(resolved))
              << fmt::format("{:d},{},{:d},{:d},", problem.fusion != Fusion::none && problem.fusion != Fusion::scaled,
                             to_string(resolved.activation), resolved.has_c, is_gated(problem.fusion))
              << fmt::format("{},{},{},{},{},{},{},{:d},{:d},{},{},", kernel.name, kernel.tile_m, kernel.tile_n,
                             kernel.block_k, kernel.stages, kernel.stages_in_turn, kernel.consumers, kernel.ping_pong,
                             kernel.copies, kernel.ctas, is_two_level ? kernel.two_level_columns : 0)
              << fmt::format("{},{},{},{:d},{:d},{},{},{},{:.9g},{:.6g}\n", choice.cluster_m, choice.cluster_n,
                             choice.cluster_k, choice.swapped, choice.stream_k, choice.band, choice.clusters,
                             detail::hopper_cluster_slots(device, kernel, cluster_size),
                             detail::expected_hopper_cycles(resolved, device, choice), 1e6 * seconds[i]);
    }
    if (!file_.flush()) {
        throw std::runtime_error(fmt::format("writing {} failed", path_));
    }
}

}  // namespace tessera::bench
