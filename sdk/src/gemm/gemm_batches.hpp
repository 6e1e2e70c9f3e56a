#pragma once

/// Maps two levels of batches to kernel launches; kernels know one level.
///
/// Terminology: the *inner* level has `batches` matrices, and the *outer* level has `outer_batches` of these batches.
/// The two *fold* into one level of batches * outer_batches matrices if one stride reaches all of them. If they do not
/// fold, there is one launch per index of the smaller level, and the other level is the launch's batch.

#include <cstdint>

#include "tessera/gemm.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// How the levels of a problem are launched.
struct BatchLevels {
    enum class Form : std::uint8_t {
        inner,        // one launch: only the inner level exists, or the outer one continues it
        outer,        // one launch: only the outer level exists, or the inner one continues it
        loops_outer,  // one launch of the inner level per outer index
        loops_inner   // one launch of the outer level per inner index
    };
    Form form = Form::inner;
    std::int64_t per_launch = 1;
    std::int64_t launches = 1;

    bool folded() const noexcept { return form == Form::inner || form == Form::outer; }
    friend bool operator==(const BatchLevels&, const BatchLevels&) = default;
};

/// Returns the fewest launches that serve `problem`.
BatchLevels levels_of(const GemmProblem& problem) noexcept;

/// Returns the problem that the kernel of each launch is chosen for: one level, with the worst alignment of all
/// launches.
GemmProblem one_launch(const GemmProblem& problem, const BatchLevels& levels) noexcept;
inline GemmProblem one_launch(const GemmProblem& problem) noexcept { return one_launch(problem, levels_of(problem)); }

/// Returns an operand of launch `index`.
MatrixOperand one_launch(const MatrixOperand& operand, const BatchLevels& levels, std::int64_t index) noexcept;

}  // namespace tessera::detail
