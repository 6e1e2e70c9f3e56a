#pragma once

// Streams: order of work, waiting, capture.

#include <functional>
#include <span>

#include "runtime/state.hpp"

namespace tessera::emulator {

/// The stream of `handle` for the calling thread; null if there is none.
[[nodiscard]] Stream* find_stream(cudaStream_t handle);

/// A stream handle for the *_ptsz functions, where null is the thread's own default stream.
[[nodiscard]] inline cudaStream_t per_thread(cudaStream_t handle)
{
    return handle == nullptr ? cudaStreamPerThread : handle;
}

/// Makes a new stream known to the runtime. Requires the runtime's mutex.
[[nodiscard]] Stream* add_stream(Device& device, Stream::Kind kind, unsigned flags, int priority);

/// Enqueues `work`, or makes it a node of the graph that is being captured. `waits` are in addition to the stream's
/// order.
[[nodiscard]] cudaError_t submit(Stream& stream, Work work, std::vector<Position> waits = {});

/// Notes that `work` is launched: a kernel that uses printf or malloc fixes the size of their memory.
void note_launch(Device& device, const Work& work);

/// Enqueues work that cannot be captured. Returns its position, so that the caller can wait.
/// Requires the runtime's mutex.
Position enqueue(Stream& stream, std::function<void()> body, std::vector<Position> waits = {}, bool is_instant = false);

/// Waits for all work of the device, or of one stream, and writes the output of kernels. The caller must not hold the
/// runtime's mutex.
void wait_for(Device& device);
void wait_for(Device& device, const Position& position);

/// Positions of all work enqueued on the device.
[[nodiscard]] std::vector<Position> all_positions(Device& device);

// Capture.

/// Returns the error of a call that would make a capture undefined (allocation, synchronization, the legacy stream), or
/// success if the calling thread may make it. Invalidates the affected captures.
[[nodiscard]] cudaError_t forbid_in_capture();
/// The same for a call on this stream that waits for it or queries it.
[[nodiscard]] cudaError_t forbid_on_captured(Stream& stream);
void invalidate(Capture& capture);

/// Records `event` after the work enqueued on `stream` so far.
[[nodiscard]] cudaError_t record_event(Stream& stream, cudaEvent_t event, bool as_node);
/// Makes `stream` wait for what `event` recorded last.
[[nodiscard]] cudaError_t wait_event(Stream& stream, cudaEvent_t event, bool as_node);

}  // namespace tessera::emulator
