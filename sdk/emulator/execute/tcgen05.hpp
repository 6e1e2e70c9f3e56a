#pragma once

// What the tcgen05 files share (PTX ISA "TensorCore 5th Generation Family Instructions").

#include <cstdint>
#include <optional>
#include <string>

#include "checks/shared_shadow.hpp"
#include "machine/matrix_descriptor.hpp"
#include "machine/tensor_memory.hpp"
#include "machine/tile_provenance.hpp"
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

/// Reports the finding, if any.
void report(Warp& warp, const Operation& operation, LaneMask lanes, const std::optional<ShadowFinding>& finding);
void report(Cluster& cluster, const AsyncOperation& work, const std::optional<ShadowFinding>& finding);

/// The other CTA of the pair; null if the cluster has none.
[[nodiscard]] Cta* peer_of(Cta& cta) noexcept;
/// The same for an instruction that needs a peer: faults if there is none, reports if it has not started or has exited.
[[nodiscard]] Cta& require_peer(Warp& warp, const Operation& operation, LaneMask lanes);
/// Notes the CTA group of the kernel's tcgen05 instructions, and reports a mix.
void note_cta_group(Warp& warp, const Operation& operation, LaneMask lanes, unsigned cta_group);
/// Reports if more than one lane issues an operation of its own.
void check_single_lane(Warp& warp, const Operation& operation, LaneMask active, const char* what);

/// Faults if the region ends after the last column. Reports columns that are not allocated, and loads or stores in
/// flight.
void check_region(Warp& warp, const Operation& operation, LaneMask lanes, Cta& cta, const TensorRegion& region,
                  bool writes, const char* what);
/// Faults if a tile is outside of the CTA's shared memory.
void check_tile_bounds(Warp& warp, const Operation& operation, LaneMask lanes, const Cta& cta, const OperandTile& tile,
                       const char* what);
/// Until the work is complete, writes to the tile are findings.
void begin_reading(TensorWork& work, Cta& cta, const OperandTile& tile, const char* what);
/// The work reads the tile now, through the async proxy: checks the access.
/// Of each 16 bytes, `data_bytes` are data; the rest is padding, which nobody has to write.
void check_reading(Cluster& cluster, TensorWork& work, Cta& cta, const OperandTile& tile, const char* what,
                   unsigned data_bytes = OperandTile::chunk_bytes);
/// The same, and whether the tile is read as it was loaded.
void check_reading(Cluster& cluster, TensorWork& work, Cta& cta, const OperandTile& tile, const TileUse& use,
                   unsigned data_bytes = OperandTile::chunk_bytes);
/// Data bytes of 16 elements that are padded to 16 bytes: PTX ISA, tcgen05, packing formats of 4- and 6-bit types.
constexpr unsigned data_bytes_of(unsigned element_bits) noexcept { return 2 * element_bits; }
/// Copies the tile's lines to `out`, one after the other, `pitch` bytes apart.
void gather(const Cta& cta, const OperandTile& tile, std::byte* out, std::size_t pitch);

/// Unpacks codes of 4 or 6 bits, 16 of them in 16 bytes with padding at the end (kind::f8f6f4, tcgen05.cp with
/// decompression): one right-aligned code per byte, in place. `bytes` is a multiple of 16.
void unpack_padded(std::byte* data, std::size_t bytes, unsigned bits);

}  // namespace tessera::emulator::tcgen05
