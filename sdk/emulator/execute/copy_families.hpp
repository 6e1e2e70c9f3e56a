#pragma once

// Decoders of the forms of cp, each in its own file. The modifiers that name the form are already taken.

#include "program/decoder.hpp"

namespace tessera::emulator {

void decode_async_copy(Decoder& decoder, Operation& operation);   // execute/async_copy.cpp: cp.async and its groups
void decode_bulk_copy(Decoder& decoder, Operation& operation);    // execute/bulk_copy.cpp: cp.async.bulk
void decode_bulk_reduce(Decoder& decoder, Operation& operation);  // execute/bulk_copy.cpp: cp.reduce.async.bulk
void decode_tensor_copy(Decoder& decoder, Operation& operation);  // execute/tensor_copy.cpp: cp.async.bulk.tensor
void decode_tensor_reduce(Decoder& decoder,
                          Operation& operation);  // execute/tensor_copy.cpp: cp.reduce.async.bulk.tensor
void decode_tensor_prefetch(Decoder& decoder,
                            Operation& operation);  // execute/tensor_copy.cpp: cp.async.bulk.prefetch.tensor
void decode_tensormap(Decoder& decoder, Operation& operation);  // execute/tensormap.cpp

/// Fills in the effects of a bulk copy. `by_barrier`: it completes on an mbarrier.
void note_bulk_copy(Decoder& decoder, Space from, Space to, bool reduces, bool by_barrier);
/// For hints: does nothing.
[[nodiscard]] Step execute_nothing(Warp& warp, const Operation& operation, LaneMask active);

}  // namespace tessera::emulator
