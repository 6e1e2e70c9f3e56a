#include "gemm/tuned.hpp"

#include <fmt/format.h>

#include "gemm/ours.hpp"
#include "report/gemm_summary.hpp"
#include "tessera/gemm_tuner.hpp"

namespace tessera::bench {

GemmContender tuned_contender(const Tuning& tuning)
{
    return {fmt::format("{}tuned", our_prefix), [tuning](const Task& task) -> Prepared {
                const GemmProblem problem = gemm_problem_of(task);
                if (tuning.measure) {
                    static_cast<void>(Gemm::tune(task.device, problem));
                    if (!tuning.cache_file.empty()) {
                        GemmTuningCache::save(tuning.cache_file);
                    }
                } else {
                    GemmTuningCache::load(tuning.cache_file);
                }
                const Prepared prepared = prepare_plan(task, GemmPlan::prepare(task.device, problem));
                GemmTuningCache::clear();
                return prepared;
            }};
}

}  // namespace tessera::bench
