#pragma once

/// Two levels of batches as launches of kernels, which know one level.
///
/// Words: the *inner* level has `batches` matrices, and the *outer* level has `outer_batches` of such batches. The two
/// *fold* into one level of batches * outer_batches matrices if one stride reaches all of them. Where they do not fold,
/// there is one launch per index of the level with fewer, and the other level is the launch's batch.

#include <cstdint>

#include "tessera/gemm.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// How the levels of a problem are launched.
struct BatchLevels {
    enum class Form : std::uint8_t {
        inner,        // the inner level is all there is, or the outer one continues it
        outer,        // the outer level is all there is, or the inner one continues it
        loops_outer,  // a launch of the inner level per outer index
        loops_inner   // a launch of the outer level per inner index
    };
    Form form = Form::inner;
    std::int64_t per_launch = 1;
    std::int64_t launches = 1;

    bool folded() const noexcept { return form == Form::inner || form == Form::outer; }
    friend bool operator==(const BatchLevels&, const BatchLevels&) = default;
};

/// The fewest launches that serve `problem`.
BatchLevels levels_of(const GemmProblem& problem) noexcept;

/// What the kernel of each launch is chosen for: a problem of one level, whose addresses are aligned as all of the
/// launches' are.
GemmProblem one_launch(const GemmProblem& problem, const BatchLevels& levels) noexcept;
inline GemmProblem one_launch(const GemmProblem& problem) noexcept { return one_launch(problem, levels_of(problem)); }

/// An operand of launch `index`.
MatrixOperand one_launch(const MatrixOperand& operand, const BatchLevels& levels, std::int64_t index) noexcept;

}  // namespace tessera::detail
