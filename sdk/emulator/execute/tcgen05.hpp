#pragma once

// What the files of the tcgen05 family share (PTX ISA "TensorCore 5th Generation Family Instructions").

#include <cstdint>
#include <optional>
#include <string>

#include "checks/shared_shadow.hpp"
#include "machine/matrix_descriptor.hpp"
#include "machine/tensor_memory.hpp"
#include "machine/warp.hpp"
#include "program/decoder.hpp"

namespace tessera::emulator::tcgen05 {

// Decoders of the instructions, by the modifier after the opcode.
void decode_alloc(Decoder& decoder, Operation& operation);       // tcgen05_alloc.cpp
void decode_dealloc(Decoder& decoder, Operation& operation);     // tcgen05_alloc.cpp
void decode_relinquish(Decoder& decoder, Operation& operation);  // tcgen05_alloc.cpp
void decode_load_store(Decoder& decoder, Operation& operation);  // tcgen05_data.cpp
void decode_wait(Decoder& decoder, Operation& operation);        // tcgen05_data.cpp
void decode_copy(Decoder& decoder, Operation& operation);        // tcgen05_copy.cpp
void decode_shift(Decoder& decoder, Operation& operation);       // tcgen05_copy.cpp
void decode_mma(Decoder& decoder, Operation& operation);         // tcgen05_mma.cpp
void decode_commit(Decoder& decoder, Operation& operation);      // tcgen05_commit.cpp

/// Takes .cta_group::1 or .cta_group::2.
[[nodiscard]] unsigned take_cta_group(Decoder& decoder);
/// Takes .sync.aligned.
void take_sync_aligned(Decoder& decoder);

[[nodiscard]] std::uint32_t line_of(const Operation* operation) noexcept;
/// Reports the finding, if there is one.
void report(Warp& warp, const Operation& operation, LaneMask lanes, const std::optional<ShadowFinding>& finding);
void report(Cluster& cluster, const AsyncOperation& work, const std::optional<ShadowFinding>& finding);

/// The other CTA of the pair; null if the cluster has none.
[[nodiscard]] Cta* peer_of(Cta& cta) noexcept;
/// The same for an instruction that needs one: faults if there is none, reports if it has not started or has exited.
[[nodiscard]] Cta& require_peer(Warp& warp, const Operation& operation, LaneMask lanes);
/// Notes which CTA group the kernel's tcgen05 instructions use, and reports a mix.
void note_cta_group(Warp& warp, const Operation& operation, LaneMask lanes, unsigned cta_group);
/// More than one lane issues what each issues for itself.
void check_single_lane(Warp& warp, const Operation& operation, LaneMask active, const char* what);

/// Faults if the region ends beyond the last column; reports columns that are not allocated and loads or stores that
/// are under way.
void check_region(Warp& warp, const Operation& operation, LaneMask lanes, Cta& cta, const TensorRegion& region,
                  bool writes, const char* what);
/// Faults if a tile lies outside of the CTA's shared memory.
void check_tile_bounds(Warp& warp, const Operation& operation, LaneMask lanes, const Cta& cta, const OperandTile& tile,
                       const char* what);
/// From now until the work is done, writes to the tile are findings.
void begin_reading(TensorWork& work, Cta& cta, const OperandTile& tile, const char* what);
/// The work reads the tile now, through the async proxy: checks it.
void check_reading(Cluster& cluster, TensorWork& work, Cta& cta, const OperandTile& tile, const char* what);
/// Copies the tile's lines to `out`, one after the other; a line takes `pitch` bytes there.
void gather(const Cta& cta, const OperandTile& tile, std::byte* out, std::size_t pitch);

/// What codes of 4 and 6 bits become where 16 of them lie in 16 bytes with padding at the end (kind::f8f6f4, tcgen05.cp
/// with decompression): one code per byte, right aligned. `bytes` is a multiple of 16, in place.
void unpack_padded(std::byte* data, std::size_t bytes, unsigned bits);

}  // namespace tessera::emulator::tcgen05
