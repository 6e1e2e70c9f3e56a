/// The part of the conformance program about stream capture and graphs.

#include "conformance.hpp"

#include <thread>

__global__ void count_up(int* counter) { atomicAdd(counter, 1); }

namespace {

void say_capture(const char* what, cudaStream_t stream)
{
    cudaStreamCaptureStatus status{};
    const cudaError_t error = cudaStreamIsCapturing(stream, &status);
    std::printf("%-58s %s status %d\n", what, cudaGetErrorName(error), status);
    cudaGetLastError();
}

}  // namespace

void captures()
{
    cudaStream_t a = nullptr;
    cudaStream_t b = nullptr;
    cudaEvent_t fork = nullptr;
    cudaEvent_t join = nullptr;
    cudaGraph_t graph = nullptr;
    int* counter = nullptr;
    void* memory = nullptr;
    cudaMalloc(&counter, 4);
    cudaMemset(counter, 0, 4);
    cudaStreamCreate(&a);
    cudaStreamCreate(&b);
    cudaEventCreate(&fork);
    cudaEventCreate(&join);
    const auto begin = [&](cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
        say("-- begin", cudaStreamBeginCapture(a, mode));
    };
    const auto end = [&] {
        say("   end", cudaStreamEndCapture(a, &graph));
        say("   graph is null", graph == nullptr);
        if (graph != nullptr) {
            std::size_t nodes = 0;
            cudaGraphGetNodes(graph, nullptr, &nodes);
            say("   nodes", static_cast<long long>(nodes));
            cudaGraphDestroy(graph);
            graph = nullptr;
        }
    };
    say("capture legacy", cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
    say("end without begin", cudaStreamEndCapture(a, &graph));
    begin();
    say("begin twice", cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    count_up<<<1, 1, 0, a>>>(counter);
    say_capture("is capturing", a);
    end();
    begin();
    say("malloc in global capture", cudaMalloc(&memory, 16));
    say_capture("after malloc", a);
    end();
    begin(cudaStreamCaptureModeRelaxed);
    say("malloc in relaxed capture", cudaMalloc(&memory, 16));
    say("free in relaxed capture", cudaFree(memory));
    end();
    begin(cudaStreamCaptureModeThreadLocal);
    say("malloc in thread-local capture", cudaMalloc(&memory, 16));
    end();
    begin(cudaStreamCaptureModeThreadLocal);
    std::thread([&] { say("malloc in another thread", cudaMalloc(&memory, 16)); }).join();
    end();
    cudaFree(memory);
    begin();
    say("synchronize captured", cudaStreamSynchronize(a));
    end();
    begin();
    say("query captured", cudaStreamQuery(a));
    end();
    begin();
    say("device synchronize", cudaDeviceSynchronize());
    end();
    begin();
    count_up<<<1, 1>>>(counter);
    say("launch on legacy", cudaGetLastError());
    end();
    begin();
    say_capture("legacy is capturing", nullptr);
    end();
    begin();
    say("copy on legacy", cudaMemcpy(counter, counter, 4, cudaMemcpyDeviceToDevice));
    end();
    begin();
    say("record", cudaEventRecord(fork, a));
    say("query captured event", cudaEventQuery(fork));
    say_capture("after the query", a);
    end();
    begin();
    say("record", cudaEventRecord(fork, a));
    say("wait joins", cudaStreamWaitEvent(b, fork));
    count_up<<<1, 1, 0, b>>>(counter);
    say_capture("b is capturing", b);
    end();
    begin();
    cudaEventRecord(fork, a);
    cudaStreamWaitEvent(b, fork);
    count_up<<<1, 1, 0, a>>>(counter);
    count_up<<<1, 1, 0, b>>>(counter);
    cudaEventRecord(join, b);
    say("join", cudaStreamWaitEvent(a, join));
    say("end on b", cudaStreamEndCapture(b, &graph));
    end();
    begin();
    cudaEventRecord(fork, a);
    cudaStreamWaitEvent(b, fork);
    count_up<<<1, 1, 0, a>>>(counter);
    count_up<<<1, 1, 0, b>>>(counter);
    cudaEventRecord(join, b);
    cudaStreamWaitEvent(a, join);
    end();
    cudaEventRecord(fork, b);
    begin();
    say("wait for uncaptured work", cudaStreamWaitEvent(a, fork));
    end();
    begin();
    say("begin b", cudaStreamBeginCapture(b, cudaStreamCaptureModeGlobal));
    cudaEventRecord(fork, b);
    say("merge", cudaStreamWaitEvent(a, fork));
    say("end b", cudaStreamEndCapture(b, &graph));
    end();
    begin();
    std::thread([&] { say("end in another thread", cudaStreamEndCapture(a, &graph)); }).join();
    end();
    begin();
    say("mallocAsync", cudaMallocAsync(&memory, 64, a));
    say("memset", cudaMemsetAsync(memory, 0, 64, a));
    say("freeAsync", cudaFreeAsync(memory, a));
    end();
    begin();
    const int on_host = 0;
    say("host pageable copy", cudaMemcpyAsync(counter, &on_host, 4, cudaMemcpyHostToDevice, a));
    end();
    cudaFree(counter);
    cudaEventDestroy(fork);
    cudaEventDestroy(join);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
}

void graphs()
{
    int* counter = nullptr;
    cudaMalloc(&counter, 4);
    cudaMemset(counter, 0, 4);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    say("create", cudaGraphCreate(&graph, 0));
    cudaGraph_t refused = nullptr;
    say("create bad flags", cudaGraphCreate(&refused, 5));
    cudaGraphNode_t first = nullptr;
    cudaGraphNode_t second = nullptr;
    void* arguments[] = {&counter};
    cudaKernelNodeParams parameters{};
    parameters.func = reinterpret_cast<void*>(count_up);
    parameters.gridDim = 1;
    parameters.blockDim = 1;
    parameters.kernelParams = arguments;
    say("add kernel", cudaGraphAddKernelNode(&first, graph, nullptr, 0, &parameters));
    say("add kernel", cudaGraphAddKernelNode(&second, graph, &first, 1, &parameters));
    say("add edge twice", cudaGraphAddDependencies(graph, &first, &second, nullptr, 1));
    say("add circle", cudaGraphAddDependencies(graph, &second, &first, nullptr, 1));
    std::size_t count = 0;
    say("edges", cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
    say("edge count", static_cast<long long>(count));
    cudaGraphNode_t roots[3] = {};
    count = 3;
    say("roots", cudaGraphGetRootNodes(graph, roots, &count));
    say("root count", static_cast<long long>(count));
    say("instantiate a circle", cudaGraphInstantiate(&exec, graph, 0));
    say("remove edge", cudaGraphRemoveDependencies(graph, &second, &first, nullptr, 1));
    say("remove edge twice", cudaGraphRemoveDependencies(graph, &second, &first, nullptr, 1));
    say("instantiate", cudaGraphInstantiate(&exec, graph, 0));
    cudaGraphNode_t stranger = first;
    say("type of a node", [&] {
        cudaGraphNodeType type{};
        return cudaGraphNodeGetType(stranger, &type);
    }());
    parameters.blockDim = 2;
    say("exec set params", cudaGraphExecKernelNodeSetParams(exec, first, &parameters));
    parameters.blockDim = 2000;
    say("exec set params, 2000 threads", cudaGraphExecKernelNodeSetParams(exec, first, &parameters));
    cudaGraph_t clone = nullptr;
    say("clone", cudaGraphClone(&clone, graph));
    cudaGraphNode_t in_clone = nullptr;
    say("find in clone", cudaGraphNodeFindInClone(&in_clone, first, clone));
    say("find second in original", cudaGraphNodeFindInClone(&in_clone, second, graph));
    say("destroy clone", cudaGraphDestroy(clone));
    say("destroy node", cudaGraphDestroyNode(second));
    count = 7;
    say("nodes", cudaGraphGetNodes(graph, nullptr, &count));
    say("node count", static_cast<long long>(count));
    say("destroy graph", cudaGraphDestroy(graph));
    say("launch", cudaGraphLaunch(exec, nullptr));
    say("launch", cudaGraphLaunch(exec, nullptr));
    int value = 0;
    cudaMemcpy(&value, counter, 4, cudaMemcpyDeviceToHost);
    say("two launches: two threads, then one thread", value);
    say("destroy exec", cudaGraphExecDestroy(exec));
    cudaFree(counter);
}
