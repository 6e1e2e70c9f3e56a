#pragma once

/// @file
/// @ingroup host_streams
/// @brief CUDA graphs: work that is recorded once from a stream and replayed at a small fraction of the launch cost.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <source_location>
#include <utility>

#include "tessera/stream.hpp"

namespace tessera {

namespace detail {

/// Keeps the stream in capture mode from construction to finish(). Leaving early abandons the capture.
class Capture {
public:
    Capture(StreamRef stream, const std::source_location& caller);
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    cudaGraph_t finish(const std::source_location& caller);

private:
    StreamRef stream_;
    bool active_ = true;
};

}  // namespace detail

/// Owns an executable graph. Move-only.
///
/// @code{.cpp}
/// const auto graph = Graph::capture(stream, [&](StreamRef captured) {
///     Gemm::launch(captured, a16, b16, d16);
/// });
/// for (int i = 0; i < 1000; ++i) {
///     graph.launch(stream);
/// }
/// @endcode
///
/// @par Lifetime
/// The memory that the captured work uses must stay alive and in place for as long as the graph is launched. After a
/// move, every use but `get()` and `device()` throws `empty_handle`.
///
/// @par Thread safety
/// Several threads may call `capture` at the same time, on streams of their own. CUDA takes one `launch` of a graph at
/// a time: guard it if several threads launch one graph. Not while the graph is being moved or destroyed.
class Graph {
public:
    /// Records what `work(stream)` enqueues, without running it, and makes it executable. Work that `work` forks to
    /// other streams belongs to the graph if it is joined again. Other threads may use CUDA meanwhile.
    ///
    /// If `work` throws, the capture is abandoned, the stream is as before and the exception passes through.
    ///
    /// @tparam Work   a callable that takes a StreamRef
    /// @param stream  the stream to capture; it runs nothing meanwhile
    /// @param work    enqueues the work to record
    /// @throws Error  `capture_violation` if `stream` is the legacy default stream or is already being captured, or if
    ///                `work` did what cannot be captured (blocking calls, unjoined streams)
    template <class Work>
    static Graph capture(StreamRef stream, Work&& work, std::source_location caller = std::source_location::current())
    {
        detail::Capture capture(stream, caller);
        std::forward<Work>(work)(stream);
        return Graph(capture.finish(caller), stream.device(), caller);
    }

    /// Moves the graph; `other` is empty afterwards.
    Graph(Graph&& other) noexcept
        : graph_(std::exchange(other.graph_, nullptr)),
          executable_(std::exchange(other.executable_, nullptr)),
          device_(std::exchange(other.device_, -1))
    {}
    /// Destroys this graph, then moves; `other` is empty afterwards.
    Graph& operator=(Graph&& other) noexcept
    {
        if (this != &other) {
            destroy();
            graph_ = std::exchange(other.graph_, nullptr);
            executable_ = std::exchange(other.executable_, nullptr);
            device_ = std::exchange(other.device_, -1);
        }
        return *this;
    }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    /// Destroys the graph. Does not wait.
    ~Graph() { destroy(); }

    /// Enqueues one replay on `stream`. Asynchronous. Replays of one graph do not overlap.
    /// @throws Error  `device_mismatch`, `empty_handle`
    void launch(StreamRef stream, std::source_location caller = std::source_location::current()) const;

    /// Returns the number of recorded nodes (kernels, copies, fills).
    /// @throws Error  `empty_handle`
    std::size_t node_count(std::source_location caller = std::source_location::current()) const;

    /// Returns the recorded graph, for example for cudaGraphDebugDotPrint; null after a move.
    cudaGraph_t get() const noexcept { return graph_; }
    /// Returns the ordinal of the graph's device, -1 after a move.
    int device() const noexcept { return device_; }

private:
    Graph(cudaGraph_t graph, int device, const std::source_location& caller);
    void destroy() noexcept;

    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t executable_ = nullptr;
    int device_ = -1;
};

}  // namespace tessera
