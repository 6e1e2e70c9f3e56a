#pragma once

// Streams: order of work, waiting, capture.

#include <functional>
#include <span>

#include "runtime/state.hpp"

namespace tessera::emulator {

/// The stream that `handle` means for the calling thread; null if it is none.
[[nodiscard]] Stream* find_stream(cudaStream_t handle);

/// A stream handle as the *_ptsz functions take it: there, null is the thread's own default stream.
[[nodiscard]] inline cudaStream_t per_thread(cudaStream_t handle)
{
    return handle == nullptr ? cudaStreamPerThread : handle;
}

/// A new stream, known to the runtime. The runtime's mutex must be held.
[[nodiscard]] Stream* add_stream(Device& device, Stream::Kind kind, unsigned flags, int priority);

/// Enqueues `work`, or makes it a node of the graph that is being captured. `waits` come in addition to the order that
/// streams have.
[[nodiscard]] cudaError_t submit(Stream& stream, Work work, std::vector<Position> waits = {});

/// Enqueues something that cannot be captured. Gives the position, so that the caller can wait.
/// The runtime's mutex must be held.
Position enqueue(Stream& stream, std::function<void()> body, std::vector<Position> waits = {}, bool is_instant = false);

/// Waits for all work of the device, or of one stream, and writes what kernels printed. The runtime's mutex must not be
/// held.
void wait_for(Device& device);
void wait_for(Device& device, const Position& position);

/// All that has been enqueued on the device.
[[nodiscard]] std::vector<Position> all_positions(Device& device);

// Capture.

/// The error of a call that would make a capture undefined (allocation, synchronization, the legacy stream): success if
/// the calling thread may make it. Invalidates the captures that it concerns.
[[nodiscard]] cudaError_t forbid_in_capture();
/// The same for a call on this stream that waits for it or queries it.
[[nodiscard]] cudaError_t forbid_on_captured(Stream& stream);
void invalidate(Capture& capture);

/// Records `event`: what was enqueued on `stream` so far.
[[nodiscard]] cudaError_t record_event(Stream& stream, cudaEvent_t event, bool as_node);
/// Makes `stream` wait for what `event` recorded last.
[[nodiscard]] cudaError_t wait_event(Stream& stream, cudaEvent_t event, bool as_node);

}  // namespace tessera::emulator
