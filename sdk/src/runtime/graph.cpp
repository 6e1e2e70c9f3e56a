#include "tessera/graph.hpp"

#include "gemm/workspace.hpp"
#include "memory/owned_memory.hpp"

namespace tessera {
namespace detail {

Capture::Capture(StreamRef stream, const std::source_location& caller) : stream_(stream)
{
    if (stream.get() == nullptr || stream.get() == cudaStreamLegacy) {
        raise(ErrorCode::capture_violation, "Graph::capture", caller, "the legacy default stream cannot be captured",
              "capture a Stream of your own");
    }
    if (is_capturing(stream.get())) {
        raise(ErrorCode::capture_violation, "Graph::capture", caller, "the stream is already being captured",
              "enqueue into the running capture, or capture another stream");
    }
    const CurrentDevice current(stream.device(), "Graph::capture", caller);
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture",
          "Graph::capture", caller);
}

Capture::~Capture()
{
    if (active_) {
        cudaGraph_t abandoned = nullptr;
        // Fails if the work broke the capture. The stream is out of capture mode either way.
        if (cudaStreamEndCapture(stream_.get(), &abandoned) != cudaSuccess) {
            cudaGetLastError();
        }
        if (abandoned != nullptr) {
            drop(cudaGraphDestroy(abandoned), "cudaGraphDestroy");
        }
        release_retired_workspaces();
        free_deferred(stream_.state());
    }
}

cudaGraph_t Capture::finish(const std::source_location& caller)
{
    active_ = false;
    cudaGraph_t graph = nullptr;
    const cudaError_t status = cudaStreamEndCapture(stream_.get(), &graph);
    free_deferred(stream_.state());
    if (status != cudaSuccess) {
        if (graph != nullptr) {
            drop(cudaGraphDestroy(graph), "cudaGraphDestroy");
        }
        release_retired_workspaces();
        raise_cuda(status, "cudaStreamEndCapture", "Graph::capture", caller);
    }
    return graph;
}

}  // namespace detail

namespace {

[[noreturn]] void raise_moved(std::string_view operation, const std::source_location& caller)
{
    detail::raise(ErrorCode::empty_handle, operation, caller, "the graph was moved from",
                  "use the object that it was moved to");
}

}  // namespace

Graph::Graph(cudaGraph_t graph, int device, const std::source_location& caller) : graph_(graph), device_(device)
{
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph_, 0);
    if (status != cudaSuccess) {
        executable_ = nullptr;
        destroy();  // a constructor that throws runs no destructor
        detail::raise_cuda(status, "cudaGraphInstantiate", "Graph::capture", caller);
    }
}

void Graph::destroy() noexcept
{
    if (executable_ != nullptr) {
        detail::drop(cudaGraphExecDestroy(executable_), "cudaGraphExecDestroy");
    }
    if (graph_ != nullptr) {
        detail::drop(cudaGraphDestroy(graph_), "cudaGraphDestroy");
        detail::release_retired_workspaces();
    }
}

void Graph::launch(StreamRef stream, std::source_location caller) const
{
    if (executable_ == nullptr) {
        raise_moved("Graph::launch", caller);
    }
    detail::require_same_device("Graph::launch", caller, "the graph", device_, "the stream", stream.device());
    const detail::CurrentDevice current(device_, "Graph::launch", caller);
    detail::check(cudaGraphLaunch(executable_, stream.get()), "cudaGraphLaunch", "Graph::launch", caller);
}

std::size_t Graph::node_count(std::source_location caller) const
{
    if (graph_ == nullptr) {
        raise_moved("Graph::node_count", caller);
    }
    std::size_t count = 0;
    detail::check(cudaGraphGetNodes(graph_, nullptr, &count), "cudaGraphGetNodes", "Graph::node_count", caller);
    return count;
}

}  // namespace tessera
