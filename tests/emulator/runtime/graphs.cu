/// Graphs: capture over streams that are created and destroyed, conditional nodes, objects that live as long as a
/// graph, batches of copies. Prints what is wrong; the exit status is the number of faults.

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void add(int* value, int increment) { *value += increment; }
__global__ void set_condition(cudaGraphConditionalHandle condition, const int* value)
{
    cudaGraphSetConditional(condition, static_cast<unsigned>(*value));
}
/// Counts down, and leaves the loop at zero.
__global__ void count_down(cudaGraphConditionalHandle condition, int* value)
{
    cudaGraphSetConditional(condition, static_cast<unsigned>(--*value));
}

__device__ int runs;
__global__ void count_a_run() { ++runs; }

namespace {

int faults = 0;

template <class Value>
void expect(const char* what, Value got, Value wanted)
{
    if (got != wanted) {
        std::printf("FAILED: %s: %lld instead of %lld\n", what, static_cast<long long>(got),
                    static_cast<long long>(wanted));
        ++faults;
    }
}

/// Required for the rest.
void check(const char* what, cudaError_t status)
{
    if (status != cudaSuccess) {
        std::printf("FAILED: %s: %s\n", what, cudaGetErrorName(status));
        std::exit(1);
    }
}

/// Numbers in device memory.
class Numbers {
public:
    explicit Numbers(std::size_t count)
    {
        check("malloc", cudaMalloc(&data_, count * sizeof(int)));
        check("memset", cudaMemset(data_, 0, count * sizeof(int)));
        check("synchronize", cudaDeviceSynchronize());  // streams that do not block are not ordered after the memset
    }
    Numbers(const Numbers&) = delete;
    Numbers& operator=(const Numbers&) = delete;
    ~Numbers() { cudaFree(data_); }

    int* at(std::size_t index) const { return data_ + index; }
    int operator[](std::size_t index) const
    {
        int value = -1;
        check("read", cudaMemcpy(&value, at(index), sizeof value, cudaMemcpyDeviceToHost));
        return value;
    }
    void set(std::size_t index, int value) const
    {
        check("write", cudaMemcpy(at(index), &value, sizeof value, cudaMemcpyHostToDevice));
    }

private:
    int* data_ = nullptr;
};

/// Launches `graph` `times` times.
void run(cudaGraph_t graph, int times = 1)
{
    cudaGraphExec_t exec = nullptr;
    check("instantiate", cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < times; ++i) {
        check("launch", cudaGraphLaunch(exec, cudaStreamPerThread));
    }
    check("synchronize", cudaStreamSynchronize(cudaStreamPerThread));
    check("destroy exec", cudaGraphExecDestroy(exec));
}

/// A stream is forked from a capture, and destroyed before the capture ends, joined or not.
void destroy_forked_stream(bool joins)
{
    const Numbers numbers(2);
    cudaStream_t origin = nullptr;
    cudaStream_t forked = nullptr;
    cudaEvent_t event = nullptr;
    cudaStreamCreateWithFlags(&origin, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&forked, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    check("begin", cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal));
    cudaEventRecord(event, origin);
    check("fork", cudaStreamWaitEvent(forked, event));
    add<<<1, 1, 0, origin>>>(numbers.at(0), 1);
    add<<<1, 1, 0, forked>>>(numbers.at(1), 10);
    cudaEventRecord(event, forked);
    if (joins) {
        check("join", cudaStreamWaitEvent(origin, event));
    }
    check("destroy forked", cudaStreamDestroy(forked));
    cudaStreamCaptureStatus status{};
    check("still capturing", cudaStreamIsCapturing(origin, &status));
    expect("capture status", status, cudaStreamCaptureStatusActive);
    cudaGraph_t graph = nullptr;
    expect("end", cudaStreamEndCapture(origin, &graph), joins ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    if (joins) {
        run(graph, 2);
        expect("origin's node", numbers[0], 2);
        expect("forked stream's node", numbers[1], 20);
        check("destroy graph", cudaGraphDestroy(graph));
    }
    cudaGetLastError();
    check("destroy origin", cudaStreamDestroy(origin));
    cudaEventDestroy(event);
}

/// The stream that a capture began on is destroyed: the others are free again.
void destroy_origin()
{
    const Numbers numbers(1);
    cudaStream_t origin = nullptr;
    cudaStream_t forked = nullptr;
    cudaEvent_t event = nullptr;
    cudaStreamCreateWithFlags(&origin, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&forked, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    check("begin", cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal));
    cudaEventRecord(event, origin);
    check("fork", cudaStreamWaitEvent(forked, event));
    check("destroy origin", cudaStreamDestroy(origin));
    add<<<1, 1, 0, forked>>>(numbers.at(0), 1);
    check("synchronize forked", cudaStreamSynchronize(forked));
    expect("forked stream runs", numbers[0], 1);
    check("destroy forked", cudaStreamDestroy(forked));
    cudaEventDestroy(event);
}

/// A kernel node, the only one or after another one.
template <class... Arguments>
cudaGraphNode_t add_kernel(cudaGraph_t graph, void (*kernel)(Arguments...), cudaGraphNode_t after,
                           Arguments... arguments)
{
    void* pointers[] = {&arguments...};
    cudaKernelNodeParams parameters{};
    parameters.func = reinterpret_cast<void*>(kernel);
    parameters.gridDim = 1;
    parameters.blockDim = 1;
    parameters.kernelParams = pointers;
    cudaGraphNode_t node = nullptr;
    check("add kernel", cudaGraphAddKernelNode(&node, graph, &after, after == nullptr ? 0 : 1, &parameters));
    return node;
}

std::vector<cudaGraph_t> add_conditional(cudaGraph_t graph, cudaGraphConditionalHandle condition,
                                         cudaGraphConditionalNodeType type, unsigned size, cudaGraphNode_t after)
{
    cudaGraphNodeParams parameters{};
    parameters.type = cudaGraphNodeTypeConditional;
    parameters.conditional.handle = condition;
    parameters.conditional.type = type;
    parameters.conditional.size = size;
    cudaGraphNode_t node = nullptr;
    check("add conditional", cudaGraphAddNode(&node, graph, &after, nullptr, after == nullptr ? 0 : 1, &parameters));
    cudaGraphNodeType kind{};
    check("type", cudaGraphNodeGetType(node, &kind));
    expect("node type", kind, cudaGraphNodeTypeConditional);
    return {parameters.conditional.phGraph_out, parameters.conditional.phGraph_out + size};
}

void if_and_else()
{
    const Numbers numbers(3);
    cudaGraph_t graph = nullptr;
    cudaGraphCreate(&graph, 0);
    cudaGraphConditionalHandle condition{};
    check("handle", cudaGraphConditionalHandleCreate(&condition, graph, 0, 0));
    const cudaGraphNode_t set =
        add_kernel<cudaGraphConditionalHandle, const int*>(graph, set_condition, nullptr, condition, numbers.at(0));
    const auto bodies = add_conditional(graph, condition, cudaGraphCondTypeIf, 2, set);
    add_kernel(bodies[0], add, nullptr, numbers.at(1), 1);
    add_kernel(bodies[1], add, nullptr, numbers.at(2), 1);
    run(graph, 3);
    numbers.set(0, 7);
    run(graph, 5);
    expect("times if", numbers[1], 5);
    expect("times else", numbers[2], 3);
    cudaGraphDestroy(graph);
}

/// A loop in a loop: the inner loop's default is set again for each iteration of the outer one.
void nested_loops()
{
    const Numbers numbers(3);
    cudaGraph_t graph = nullptr;
    cudaGraphCreate(&graph, 0);
    cudaGraphConditionalHandle outer{};
    check("outer handle", cudaGraphConditionalHandleCreate(&outer, graph, 1, cudaGraphCondAssignDefault));
    const cudaGraph_t body = add_conditional(graph, outer, cudaGraphCondTypeWhile, 1, nullptr)[0];
    cudaGraphConditionalHandle inner{};
    check("inner handle", cudaGraphConditionalHandleCreate(&inner, body, 1, cudaGraphCondAssignDefault));
    const cudaGraphNode_t three = add_kernel(body, add, nullptr, numbers.at(1), 3);
    const cudaGraph_t inner_body = add_conditional(body, inner, cudaGraphCondTypeWhile, 1, three)[0];
    const cudaGraphNode_t work = add_kernel(inner_body, add, nullptr, numbers.at(2), 1);
    add_kernel(inner_body, count_down, work, inner, numbers.at(1));
    cudaGraphNode_t all[2]{};
    std::size_t count = 2;
    check("nodes", cudaGraphGetNodes(body, all, &count));
    add_kernel(body, count_down, all[count - 1], outer, numbers.at(0));
    numbers.set(0, 4);
    run(graph);
    expect("turns of the inner loop", numbers[2], 12);
    cudaGraphDestroy(graph);
}

void switch_by_capture()
{
    const Numbers numbers(4);
    cudaGraph_t graph = nullptr;
    cudaGraphCreate(&graph, 0);
    cudaGraphConditionalHandle condition{};
    check("handle", cudaGraphConditionalHandleCreate(&condition, graph, 0, 0));
    const cudaGraphNode_t set =
        add_kernel<cudaGraphConditionalHandle, const int*>(graph, set_condition, nullptr, condition, numbers.at(0));
    const auto bodies = add_conditional(graph, condition, cudaGraphCondTypeSwitch, 3, set);
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        check("begin",
              cudaStreamBeginCaptureToGraph(stream, bodies[i], nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
        add<<<1, 1, 0, stream>>>(numbers.at(1 + i), 1);
        cudaGraph_t same = nullptr;
        check("end", cudaStreamEndCapture(stream, i == 0 ? nullptr : &same));  // it is known, as it was given
        expect("it is the graph that was given", same == (i == 0 ? nullptr : bodies[i]), true);
    }
    for (const int value : {2, 0, 2, 3}) {  // there is no body 3
        numbers.set(0, value);
        run(graph);
    }
    expect("case 0", numbers[1], 1);
    expect("case 1", numbers[2], 0);
    expect("case 2", numbers[3], 2);
    cudaStreamDestroy(stream);
    cudaGraphDestroy(graph);
}

void wrong_conditionals()
{
    cudaGraph_t graph = nullptr;
    cudaGraphCreate(&graph, 0);
    cudaGraphConditionalHandle condition{};
    expect("unknown flags", cudaGraphConditionalHandleCreate(&condition, graph, 0, 2), cudaErrorInvalidValue);
    check("handle", cudaGraphConditionalHandleCreate(&condition, graph, 0, 0));
    cudaGraphNodeParams parameters{};
    parameters.type = cudaGraphNodeTypeConditional;
    parameters.conditional.handle = condition;
    parameters.conditional.type = cudaGraphCondTypeWhile;
    parameters.conditional.size = 2;
    cudaGraphNode_t node = nullptr;
    const auto add_node = [&] { return cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters); };
    expect("a loop with two bodies", add_node(), cudaErrorInvalidValue);
    parameters.conditional.size = 1;
    check("a loop", add_node());
    expect("a handle for two nodes", add_node(), cudaErrorInvalidValue);
    parameters.conditional.handle = 42;
    expect("not a handle", add_node(), cudaErrorInvalidValue);
    cudaGetLastError();
    cudaGraphDestroy(graph);
}

/// A workspace tied to a graph lives until the graph, its executables and their launches are gone.
void workspace_of_a_graph()
{
    int destroyed = 0;
    const auto destroy = [](void* count) { ++*static_cast<int*>(count); };
    cudaGraph_t graph = nullptr;
    cudaGraphCreate(&graph, 0);
    cudaGraphNode_t node = nullptr;
    cudaGraphAddEmptyNode(&node, graph, nullptr, 0);
    cudaUserObject_t object = nullptr;
    check("create", cudaUserObjectCreate(&object, &destroyed, destroy, 1, cudaUserObjectNoDestructorSync));
    check("retain", cudaUserObjectRetain(object, 1));
    check("give to the graph", cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    check("release", cudaUserObjectRelease(object, 1));
    expect("release by a graph that has fewer", cudaGraphReleaseUserObject(graph, object, 2), cudaErrorInvalidValue);
    cudaGetLastError();
    cudaGraph_t copy = nullptr;
    check("clone", cudaGraphClone(&copy, graph));
    cudaGraphExec_t exec = nullptr;
    check("instantiate", cudaGraphInstantiate(&exec, graph, 0));
    check("release by the graph", cudaGraphReleaseUserObject(graph, object, 1));
    cudaGraphDestroy(graph);
    expect("the clone and the executable keep it", destroyed, 0);
    cudaGraphDestroy(copy);
    expect("the executable keeps it", destroyed, 0);
    check("launch", cudaGraphLaunch(exec, cudaStreamPerThread));
    check("synchronize", cudaStreamSynchronize(cudaStreamPerThread));
    check("destroy", cudaGraphExecDestroy(exec));
    for (int i = 0; i < 1000 && destroyed == 0; ++i) {  // the launch gives it up after it is done
        cudaStreamSynchronize(cudaStreamPerThread);
    }
    expect("destroyed once", destroyed, 1);
}

/// Memory that a graph allocates may be freed outside of it, by any call; the next launch allocates it again.
void memory_of_a_graph()
{
    cudaGraph_t graph = nullptr;
    cudaGraphCreate(&graph, 0);
    cudaMemAllocNodeParams parameters{};
    parameters.poolProps.allocType = cudaMemAllocationTypePinned;
    parameters.poolProps.location.type = cudaMemLocationTypeDevice;
    parameters.poolProps.location.id = 0;
    parameters.bytesize = sizeof(int);
    cudaGraphNode_t node = nullptr;
    check("allocation node", cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &parameters));
    int* const memory = static_cast<int*>(parameters.dptr);
    cudaMemsetParams fill{};
    fill.dst = memory;
    fill.elementSize = 4;
    fill.width = 1;
    fill.height = 1;
    fill.value = 41;
    cudaGraphNode_t filled = nullptr;
    check("memset node", cudaGraphAddMemsetNode(&filled, graph, &node, 1, &fill));
    add_kernel(graph, add, filled, memory, 1);
    for (const bool in_stream_order : {false, true, false}) {
        run(graph);
        int value = 0;
        check("read", cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost));
        expect("allocated again", value, 42);
        check("free", in_stream_order ? cudaFreeAsync(memory, cudaStreamPerThread) : cudaFree(memory));
    }
    check("synchronize", cudaStreamSynchronize(cudaStreamPerThread));
    check("destroy", cudaGraphDestroy(graph));
}

void kernel_without_parameters()
{
    cudaGraph_t graph = nullptr;
    cudaGraphCreate(&graph, 0);
    cudaGraphNodeParams parameters{};
    parameters.type = cudaGraphNodeTypeKernel;
    parameters.kernel.func = reinterpret_cast<void*>(count_a_run);
    parameters.kernel.gridDim = {1, 1, 1};
    parameters.kernel.blockDim = {1, 1, 1};
    cudaGraphNode_t node = nullptr;
    check("add kernel", cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
    run(graph, 3);
    int count = 0;
    check("count", cudaMemcpyFromSymbol(&count, runs, sizeof count));
    expect("runs", count, 3);
    cudaGraphDestroy(graph);
}

void batch_of_copies()
{
    const Numbers numbers(3);
    const int from[3] = {5, 6, 7};
    void* to[3] = {numbers.at(2), numbers.at(0), numbers.at(1)};
    const void* sources[3] = {&from[0], &from[1], &from[2]};
    const std::size_t sizes[3] = {4, 4, 4};
    cudaMemcpyAttributes attributes[2]{};
    attributes[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    attributes[1].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
    std::size_t first[2] = {0, 1};
    const auto batch = [&](cudaStream_t stream) {
        return cudaMemcpyBatchAsync(to, sources, sizes, 3, attributes, first, 2, stream);
    };
    check("batch", batch(cudaStreamPerThread));
    check("synchronize", cudaStreamSynchronize(cudaStreamPerThread));
    expect("first", numbers[0], 6);
    expect("second", numbers[1], 7);
    expect("third", numbers[2], 5);
    expect("on the legacy stream", batch(nullptr), cudaErrorInvalidValue);
    first[0] = 1;
    expect("no attributes for the first", batch(cudaStreamPerThread), cudaErrorInvalidValue);
    cudaGetLastError();
}

}  // namespace

int main()
{
    destroy_forked_stream(true);
    destroy_forked_stream(false);
    destroy_origin();
    if_and_else();
    nested_loops();
    switch_by_capture();
    wrong_conditionals();
    workspace_of_a_graph();
    memory_of_a_graph();
    kernel_without_parameters();
    batch_of_copies();
    return faults;
}
