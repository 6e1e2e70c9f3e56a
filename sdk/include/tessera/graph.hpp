#pragma once

/// CUDA graphs: work recorded once from a stream and replayed at a small fraction of the launch cost.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <source_location>
#include <utility>

#include "tessera/stream.hpp"

namespace tessera {

namespace detail {

/// Between construction and finish() the stream is in capture mode; leaving early abandons the capture.
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
///     auto graph = Graph::capture(stream, [&](StreamRef s) { Gemm::launch(s, a, b, d); });
///     for (int i = 0; i < 1000; ++i) graph.launch(stream);
///
/// The memory that the captured work uses must stay alive and in place for as long as the graph is launched. After a
/// move, every use but `get()` and `device()` throws `empty_handle`.
///
/// Thread safety: `capture` may be called by several threads at the same time, on streams of their own. CUDA takes one
/// `launch` of a graph at a time: guard them if several threads launch one. Not while it is being moved or destroyed.
class Graph {
public:
    /// Records what `work(stream)` enqueues, without running it, and makes it executable. Work that `work` forks to
    /// other streams belongs to the graph if it is joined again. Other threads may go on using CUDA meanwhile.
    ///
    /// If `work` throws, the capture is abandoned, the stream is as before and the exception passes through.
    /// @throws Error `capture_violation` if `stream` is the legacy default stream or already capturing, or if `work`
    ///               did what cannot be captured (blocking calls, unjoined streams)
    template <class Work>
    static Graph capture(StreamRef stream, Work&& work, std::source_location caller = std::source_location::current())
    {
        detail::Capture capture(stream, caller);
        std::forward<Work>(work)(stream);
        return Graph(capture.finish(caller), stream.device(), caller);
    }

    /// The other one is empty afterwards.
    Graph(Graph&& other) noexcept
        : graph_(std::exchange(other.graph_, nullptr)),
          executable_(std::exchange(other.executable_, nullptr)),
          device_(std::exchange(other.device_, -1))
    {}
    /// The other one is empty afterwards.
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
    ~Graph() { destroy(); }

    /// Enqueues one replay. Asynchronous. Replays of one graph do not overlap each other.
    /// @throws Error `device_mismatch`, `empty_handle`
    void launch(StreamRef stream, std::source_location caller = std::source_location::current()) const;

    /// How many nodes (kernels, copies, fills) were recorded.
    std::size_t node_count(std::source_location caller = std::source_location::current()) const;

    /// The recorded graph, e.g. for cudaGraphDebugDotPrint; null after a move.
    cudaGraph_t get() const noexcept { return graph_; }
    /// The ordinal of the graph's device, -1 after a move.
    int device() const noexcept { return device_; }

private:
    Graph(cudaGraph_t graph, int device, const std::source_location& caller);
    void destroy() noexcept;

    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t executable_ = nullptr;
    int device_ = -1;
};

}  // namespace tessera
