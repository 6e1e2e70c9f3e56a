#include "gemm/operand_overlap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace tessera::detail {
namespace {

/// `count` repetitions, `stride` bytes apart.
struct Repetition {
    std::uintptr_t stride;
    std::uintptr_t count;
};

/// The memory of an operand: runs of `run` bytes, repeated by its leading dimension and by each level of its batch.
struct Footprint {
    std::uintptr_t begin;
    std::uintptr_t end;
    std::uintptr_t run;
    std::array<Repetition, 3> repetitions;
};

Footprint footprint(const MatrixOperand& operand)
{
    const std::uintptr_t bytes = size_of(operand.type);
    const auto run = static_cast<std::uintptr_t>(operand.row_major ? operand.columns : operand.rows) * bytes;
    const auto begin = std::bit_cast<std::uintptr_t>(operand.data);
    const auto repetition = [&](std::int64_t stride, std::int64_t count) {
        return Repetition{static_cast<std::uintptr_t>(stride) * bytes, static_cast<std::uintptr_t>(count)};
    };
    Footprint result{
        begin,
        begin,
        run,
        {repetition(operand.leading_dimension, operand.row_major ? operand.rows : operand.columns),
         repetition(operand.batch_stride, operand.batches), repetition(operand.outer_stride, operand.outer_batches)}};
    if (run == 0) {
        return result;
    }
    std::uintptr_t end = begin + run;
    for (Repetition& one : result.repetitions) {
        if (one.count == 0) {
            return result;
        }
        end += (one.count - 1) * one.stride;
        one.stride = one.count == 1 ? 0 : one.stride;
    }
    result.end = end;
    return result;
}

/// Returns the length, in bytes, of the range that all runs occupy modulo `pitch`, or 0 if they do not fit in it.
std::uintptr_t run_modulo(const Footprint& memory, std::uintptr_t pitch)
{
    std::uintptr_t run = memory.run;
    for (const Repetition& one : memory.repetitions) {
        if (one.stride % pitch != 0) {
            run += (one.count - 1) * one.stride;
        }
        if (run > pitch) {
            return 0;
        }
    }
    return run;
}

/// Returns true if the two may share a byte. Adjacent blocks of one parent matrix do not: their runs repeat with the
/// same pitch and never meet.
bool may_overlap(const Footprint& left, const Footprint& right)
{
    if (left.begin == left.end || right.begin == right.end || left.end <= right.begin || right.end <= left.begin) {
        return false;
    }
    const auto are_apart = [&](std::uintptr_t pitch) {
        const std::uintptr_t left_run = pitch == 0 ? 0 : run_modulo(left, pitch);
        const std::uintptr_t right_run = pitch == 0 ? 0 : run_modulo(right, pitch);
        if (left_run == 0 || right_run == 0) {
            return false;
        }
        const std::uintptr_t offset = (right.begin % pitch + pitch - left.begin % pitch) % pitch;  // of right's runs
        return offset >= left_run && offset + right_run <= pitch;
    };
    const auto by_pitch_of = [&](const Footprint& memory) {
        return std::any_of(memory.repetitions.begin(), memory.repetitions.end(),
                           [&](const Repetition& one) { return are_apart(one.stride); });
    };
    return !by_pitch_of(left) && !by_pitch_of(right);
}

/// Checks that each stride of D, or of another output, steps over everything that the shorter strides reach.
void require_no_self_overlap(const char* name, const MatrixOperand& d, std::string_view operation,
                             const std::source_location& caller)
{
    struct Level {
        const char* stride_name;
        Repetition repetition;
        std::uintptr_t enough;  // the smallest stride that steps over all repetitions of the level
    };
    const Footprint memory = footprint(d);
    if (memory.begin == memory.end) {
        return;
    }
    const auto& [lines, batch, outer] = memory.repetitions;
    const std::uintptr_t matrix = memory.run + (lines.count - 1) * lines.stride;
    std::array levels{Level{"a leading dimension", lines, memory.run}, Level{"a batch stride", batch, matrix},
                      Level{"an outer stride", outer, matrix + (batch.count - 1) * batch.stride}};
    std::sort(levels.begin(), levels.end(),
              [](const Level& left, const Level& right) { return left.repetition.stride < right.repetition.stride; });
    std::uintptr_t reach = memory.run;
    for (const Level& level : levels) {
        if (level.repetition.count == 1) {
            continue;
        }
        if (level.repetition.stride < reach) {
            const std::uintptr_t bytes = size_of(d.type);
            raise(ErrorCode::aliasing, operation, caller,
                  fmt::format("{}'s {} matrices of {} overlap with {} of {} elements: each product needs its own "
                              "memory",
                              name, count(d), shape(d), level.stride_name, level.repetition.stride / bytes),
                  fmt::format("{} of at least {} for {}; only inputs may overlap", level.stride_name,
                              std::max(level.enough, reach) / bytes, name));
        }
        reach += (level.repetition.count - 1) * level.repetition.stride;
    }
}

Footprint vector(const void* data, std::uintptr_t bytes)
{
    const auto begin = std::bit_cast<std::uintptr_t>(data);
    return {begin, begin + bytes, bytes, {}};
}

/// Calls `visit(name, memory)` for everything that each launch reads. C is not among it: it may be D.
template <class Visit>
void for_each_input(const GemmOperands& operands, const Epilogue& epilogue, Visit&& visit)
{
    visit("A", footprint(operands.a));
    visit("B", footprint(operands.b));
    const Bias& bias = epilogue.bias;
    if (bias.axis != BiasAxis::none) {
        visit("the bias", vector(bias.data, bias.size * size_of(bias.type)));
    }
    visit("scale_a", vector(epilogue.scale_a.data(), epilogue.scale_a.size_bytes()));
    visit("scale_b", vector(epilogue.scale_b.data(), epilogue.scale_b.size_bytes()));
    visit("scale_d", vector(epilogue.scale_d.data(), epilogue.scale_d.size_bytes()));
}

/// Returns true if the two are the same view.
bool is_same(const MatrixOperand& left, const MatrixOperand& right)
{
    return left.data == right.data && left.type == right.type && left.row_major == right.row_major &&
           left.leading_dimension == right.leading_dimension && left.batches == right.batches &&
           (right.batches <= 1 || left.batch_stride == right.batch_stride) &&
           left.outer_batches == right.outer_batches &&
           (right.outer_batches <= 1 || left.outer_stride == right.outer_stride);
}

/// Checks that `written`, D or the pre-activation, shares no memory with what the kernel reads.
void require_output_apart(const char* name, const MatrixOperand& written, const GemmOperands& operands,
                          const Epilogue& epilogue, std::string_view operation, const std::source_location& caller)
{
    require_no_self_overlap(name, written, operation, caller);
    const Footprint output = footprint(written);
    const auto refuse = [&](const char* other, bool may_be_same = false) {
        raise(
            ErrorCode::aliasing, operation, caller,
            fmt::format("{} at {} overlaps {}, which the kernel reads while it writes {}", name, fmt::ptr(written.data),
                        other, name),
            fmt::format("{}give {} memory of its own",
                        may_be_same ? fmt::format("pass the same view as {} and as {}, or ", other, name) : "", name));
    };
    for_each_input(operands, epilogue, [&](const char* other, const Footprint& memory) {
        if (may_overlap(output, memory)) {
            refuse(other);
        }
    });
    const MatrixOperand& c = epilogue.c;
    if (beta_of(epilogue) != 0 && !is_same(c, written) && may_overlap(output, footprint(c))) {
        refuse("C", true);
    }
}

/// Checks that the launch can write amax_d without changing another operand.
void require_amax_apart(const GemmOperands& operands, const Epilogue& epilogue, std::string_view operation,
                        const std::source_location& caller)
{
    if (epilogue.amax_d.empty()) {
        return;
    }
    const Footprint amax = vector(epilogue.amax_d.data(), epilogue.amax_d.size_bytes());
    const auto require = [&](const char* name, const Footprint& memory) {
        if (may_overlap(amax, memory)) {
            raise(ErrorCode::aliasing, operation, caller,
                  fmt::format("amax_d at {} overlaps {}", fmt::ptr(epilogue.amax_d.data()), name),
                  "give amax_d memory of its own");
        }
    };
    for_each_input(operands, epilogue, require);
    require("D", footprint(operands.d));
    if (beta_of(epilogue) != 0) {
        require("C", footprint(epilogue.c));
    }
    if (epilogue.pre_activation.present) {
        require("the pre-activation", footprint(epilogue.pre_activation));
    }
}

}  // namespace

void require_no_alias(const GemmOperands& operands, const Epilogue& epilogue, std::string_view operation,
                      const std::source_location& caller)
{
    const MatrixOperand& d = operands.d;
    require_output_apart("D", d, operands, epilogue, operation, caller);
    require_amax_apart(operands, epilogue, operation, caller);
    const MatrixOperand& x = epilogue.pre_activation;
    if (!x.present) {
        return;
    }
    require_output_apart("the pre-activation", x, operands, epilogue, operation, caller);
    if (may_overlap(footprint(d), footprint(x))) {
        raise(ErrorCode::aliasing, operation, caller,
              fmt::format("the pre-activation at {} overlaps D at {}: the kernel writes both", fmt::ptr(x.data),
                          fmt::ptr(d.data)),
              "give the pre-activation memory of its own");
    }
}

void require_workspace_apart(const Workspace& workspace, std::size_t bytes, const GemmOperands& operands,
                             const Epilogue& epilogue, std::string_view operation, const std::source_location& caller)
{
    if (!workspace.is_callers() || bytes == 0) {
        return;
    }
    const Footprint used = vector(workspace.memory().data(), bytes);
    const auto require = [&](const char* name, const Footprint& memory) {
        if (may_overlap(used, memory)) {
            raise(ErrorCode::aliasing, operation, caller,
                  fmt::format("the workspace at {} overlaps {}", fmt::ptr(workspace.memory().data()), name),
                  "give the workspace memory of its own");
        }
    };
    for_each_input(operands, epilogue, require);
    require("D", footprint(operands.d));
    if (epilogue.c.present) {
        require("C", footprint(epilogue.c));
    }
    if (epilogue.pre_activation.present) {
        require("the pre-activation", footprint(epilogue.pre_activation));
    }
    require("amax_d", vector(epilogue.amax_d.data(), epilogue.amax_d.size_bytes()));
}

}  // namespace tessera::detail
