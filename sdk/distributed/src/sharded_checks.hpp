#pragma once

// Checks of the matrices of a sharded product, and what they mean.

#include <array>
#include <cstdint>
#include <source_location>
#include <string_view>

#include "communicator_state.hpp"
#include "schedule.hpp"
#include "tessera/distributed/sharded_gemm.hpp"

namespace tessera::distributed::detail {

/// Returns which product it is, with all extents. @throws Error `shape_mismatch`, `invalid_argument`
ShardedShape shape_of(const CommunicatorState& state, const ShardedMatrix& a, const ShardedMatrix& b,
                      const ShardedMatrix& d, const Epilogue& epilogue, std::string_view operation,
                      const std::source_location& caller);

/// What all ranks must agree on.
struct Agreement {
    enum Field : std::uint8_t {
        m,
        n,
        k,
        kind,
        a_type,
        b_type,
        d_type,
        gathering,
        stride,
        chunks,
        overlaps,
        copies,
        at_once,
        activation,
        bias,
        gating,
        is_refused,
        fields
    };
    std::array<std::int64_t, 32> values{};
};
static_assert(Agreement::fields <= 32);

Agreement agreement_of(const Schedule& schedule, const ShardedMatrix& a, const ShardedMatrix& b, const ShardedMatrix& d,
                       const Epilogue& epilogue);

/// Compares what this rank has with what the others have. Collective.
/// @throws Error `shape_mismatch` on all ranks, with the rank that differs from rank 0 and both values
void require_agreement(CommunicatorState& state, const Agreement& own, std::string_view operation,
                       const std::source_location& caller);

/// @throws Error `shape_mismatch` if the matrix is not divided or stored as `planned`
void require_same_form(char name, const ShardedMatrix& planned, const ShardedMatrix& given, std::string_view operation,
                       const std::source_location& caller);

}  // namespace tessera::distributed::detail
