/// Streams, the default streams, events, host functions and graphs, where order shows in results. Exits with 0 if every
/// result is right. Compiled twice, with and without the per-thread default stream.

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

__global__ void wait_for(const volatile int* flag)
{
    while (*flag == 0) {
    }
}
__global__ void append(int* log, int value) { log[1 + log[0]++] = value; }
__global__ void fill(int* to, int value, int count)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) {
        to[i] = value;
    }
}

namespace {

int failures = 0;

#define EXPECT(condition)                                               \
    do {                                                                \
        if (!(condition)) {                                             \
            std::printf("FAILED, line %d: %s\n", __LINE__, #condition); \
            ++failures;                                                 \
        }                                                               \
    } while (false)

#define OK(call) EXPECT((call) == cudaSuccess)

/// A kernel that blocks its stream until open().
class Gate {
public:
    Gate()
    {
        void* pinned = nullptr;
        OK(cudaHostAlloc(&pinned, sizeof(int), cudaHostAllocDefault));
        flag_ = static_cast<volatile int*>(pinned);
        *flag_ = 0;
    }
    ~Gate()
    {
        open();
        cudaDeviceSynchronize();
        cudaFreeHost(const_cast<int*>(flag_));
    }
    void hold(cudaStream_t stream) { wait_for<<<1, 1, 0, stream>>>(const_cast<int*>(flag_)); }
    void open() { *flag_ = 1; }

private:
    volatile int* flag_ = nullptr;
};

struct Log {
    Log()
    {
        OK(cudaMalloc(&values, 64 * sizeof(int)));
        OK(cudaMemset(values, 0, 64 * sizeof(int)));
        OK(cudaDeviceSynchronize());
    }
    ~Log() { cudaFree(values); }
    std::vector<int> read() const
    {
        OK(cudaDeviceSynchronize());
        std::vector<int> all(64);
        OK(cudaMemcpy(all.data(), values, 64 * sizeof(int), cudaMemcpyDeviceToHost));
        return {all.begin() + 1, all.begin() + 1 + all[0]};
    }
    int* values = nullptr;
};

struct Stream {
    explicit Stream(unsigned flags = cudaStreamDefault) { OK(cudaStreamCreateWithFlags(&handle, flags)); }
    ~Stream() { cudaStreamDestroy(handle); }
    cudaStream_t handle = nullptr;
};

/// The host continues while a kernel waits for it.
void host_is_not_held_up()
{
    Gate gate;
    const Stream stream;
    gate.hold(stream.handle);
    EXPECT(cudaStreamQuery(stream.handle) == cudaErrorNotReady);
    gate.open();
    OK(cudaStreamSynchronize(stream.handle));
    OK(cudaStreamQuery(stream.handle));
}

void default_stream()
{
    Gate gate;
    const Log log;
    const Stream blocking;
    const Stream free(cudaStreamNonBlocking);
    gate.hold(blocking.handle);
    append<<<1, 1, 0, blocking.handle>>>(log.values, 1);
    append<<<1, 1>>>(log.values, 2);
    OK(cudaStreamSynchronize(free.handle));
#ifdef PER_THREAD
    // The thread's default stream does not wait for other streams.
    OK(cudaStreamSynchronize(nullptr));
    EXPECT(cudaStreamQuery(blocking.handle) == cudaErrorNotReady);
    gate.open();
    EXPECT((log.read() == std::vector{2, 1}));
#else
    EXPECT(cudaStreamQuery(nullptr) == cudaErrorNotReady);
    const Stream later;
    append<<<1, 1, 0, later.handle>>>(log.values, 3);
    EXPECT(cudaStreamQuery(later.handle) == cudaErrorNotReady);
    gate.open();
    EXPECT((log.read() == std::vector{1, 2, 3}));
#endif
}

void events_order_streams()
{
    Gate gate;
    const Log log;
    const Stream a(cudaStreamNonBlocking);
    const Stream b(cudaStreamNonBlocking);
    cudaEvent_t event = nullptr;
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    gate.hold(a.handle);
    append<<<1, 1, 0, a.handle>>>(log.values, 1);
    OK(cudaEventRecord(event, a.handle));
    OK(cudaStreamWaitEvent(b.handle, event));
    append<<<1, 1, 0, b.handle>>>(log.values, 2);
    EXPECT(cudaEventQuery(event) == cudaErrorNotReady);
    EXPECT(cudaStreamQuery(b.handle) == cudaErrorNotReady);
    gate.open();
    OK(cudaEventSynchronize(event));
    EXPECT((log.read() == std::vector{1, 2}));
    OK(cudaEventDestroy(event));
}

void host_functions_come_in_order()
{
    Gate gate;
    const Stream stream;
    std::atomic<int> state{0};
    gate.hold(stream.handle);
    OK(cudaLaunchHostFunc(
        stream.handle, [](void* argument) { *static_cast<std::atomic<int>*>(argument) = 1; }, &state));
    OK(cudaStreamAddCallback(
        stream.handle,
        [](cudaStream_t, cudaError_t status, void* argument) {
            auto& value = *static_cast<std::atomic<int>*>(argument);
            value = value == 1 && status == cudaSuccess ? 2 : -1;
        },
        &state, 0));
    EXPECT(state == 0);
    gate.open();
    OK(cudaStreamSynchronize(stream.handle));
    EXPECT(state == 2);
}

/// A pageable source is read before the call returns.
void pageable_sources_are_staged()
{
    Gate gate;
    const Stream stream;
    int* device = nullptr;
    OK(cudaMalloc(&device, sizeof(int)));
    gate.hold(stream.handle);
    int value = 5;
    OK(cudaMemcpyAsync(device, &value, sizeof value, cudaMemcpyHostToDevice, stream.handle));
    value = 6;
    gate.open();
    int back = 0;
    OK(cudaMemcpyAsync(&back, device, sizeof back, cudaMemcpyDeviceToHost, stream.handle));
    EXPECT(back == 5);  // a pageable destination is written when the call returns
    OK(cudaFree(device));
}

void frees_wait_for_their_stream()
{
    Gate gate;
    const Stream stream;
    int* memory = nullptr;
    OK(cudaMallocAsync(&memory, 1024 * sizeof(int), stream.handle));
    gate.hold(stream.handle);
    fill<<<4, 256, 0, stream.handle>>>(memory, 7, 1024);
    OK(cudaFreeAsync(memory, stream.handle));
    gate.open();
    OK(cudaStreamSynchronize(stream.handle));
    OK(cudaGetLastError());
}

void graphs_replay()
{
    const Log log;
    const Stream a(cudaStreamNonBlocking);
    const Stream b(cudaStreamNonBlocking);
    cudaEvent_t fork = nullptr;
    cudaEvent_t join = nullptr;
    OK(cudaEventCreate(&fork));
    OK(cudaEventCreate(&join));
    cudaGraph_t graph = nullptr;
    int* scratch = nullptr;
    OK(cudaStreamBeginCapture(a.handle, cudaStreamCaptureModeThreadLocal));
    OK(cudaMallocAsync(&scratch, 256 * sizeof(int), a.handle));
    fill<<<1, 256, 0, a.handle>>>(scratch, 9, 256);
    OK(cudaEventRecord(fork, a.handle));
    OK(cudaStreamWaitEvent(b.handle, fork));
    append<<<1, 1, 0, b.handle>>>(log.values, 1);
    OK(cudaEventRecord(join, b.handle));
    OK(cudaStreamWaitEvent(a.handle, join));
    append<<<1, 1, 0, a.handle>>>(log.values, 2);
    OK(cudaMemcpyAsync(log.values + 40, scratch, sizeof(int), cudaMemcpyDeviceToDevice, a.handle));
    OK(cudaFreeAsync(scratch, a.handle));
    OK(cudaStreamEndCapture(a.handle, &graph));
    EXPECT(log.read().empty());  // nothing ran yet
    cudaGraphExec_t exec = nullptr;
    OK(cudaGraphInstantiate(&exec, graph));
    for (int i = 0; i < 3; ++i) {
        OK(cudaGraphLaunch(exec, b.handle));
    }
    EXPECT((log.read() == std::vector{1, 2, 1, 2, 1, 2}));
    int copied = 0;
    OK(cudaMemcpy(&copied, log.values + 40, sizeof copied, cudaMemcpyDeviceToHost));
    EXPECT(copied == 9);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaEventDestroy(fork));
    OK(cudaEventDestroy(join));
}

/// Its id and its device are what a captured stream does not tell; asking breaks the capture. `handle` is what the
/// caller's compilation makes of it: null and cudaStreamPerThread among them.
template <class Question>
void ask_captured(cudaStream_t handle, const Question& question)
{
    cudaGraph_t graph = nullptr;
    OK(question(handle));
    OK(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal));
    EXPECT(question(handle) == cudaErrorStreamCaptureUnsupported);
    EXPECT(cudaStreamEndCapture(handle, &graph) == cudaErrorStreamCaptureInvalidated);
    OK(question(handle));
    EXPECT(cudaGetLastError() == cudaErrorStreamCaptureInvalidated);
}

void captured_streams_keep_their_identity()
{
    const Stream stream(cudaStreamNonBlocking);
    for (const cudaStream_t handle : {stream.handle, cudaStreamPerThread}) {
        ask_captured(handle, [](cudaStream_t asked) {
            unsigned long long id = 0;
            return cudaStreamGetId(asked, &id);
        });
        ask_captured(handle, [](cudaStream_t asked) {
            int device = 0;
            return cudaStreamGetDevice(asked, &device);
        });
    }
#ifdef PER_THREAD
    ask_captured(nullptr, [](cudaStream_t asked) {
        unsigned long long id = 0;
        return cudaStreamGetId(asked, &id);
    });
#endif
}

void streams_may_be_destroyed_with_work_pending()
{
    Gate gate;
    const Log log;
    {
        const Stream stream;
        gate.hold(stream.handle);
        append<<<1, 1, 0, stream.handle>>>(log.values, 4);
    }
    gate.open();
    EXPECT((log.read() == std::vector{4}));
}

void threads_have_their_own_errors()
{
    OK(cudaGetLastError());
    std::thread([] {
        void* memory = nullptr;
        EXPECT(cudaMalloc(&memory, std::size_t{1} << 50) == cudaErrorMemoryAllocation);
        EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    }).join();
    OK(cudaPeekAtLastError());
}

void many_threads_launch()
{
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&wrong, t] {
            const Stream stream(cudaStreamNonBlocking);
            int* memory = nullptr;
            std::vector<int> host(100);
            for (int i = 0; i < 20; ++i) {
                cudaMallocAsync(&memory, 400, stream.handle);
                fill<<<1, 128, 0, stream.handle>>>(memory, t * 100 + i, 100);
                cudaMemcpyAsync(host.data(), memory, 400, cudaMemcpyDeviceToHost, stream.handle);
                cudaFreeAsync(memory, stream.handle);
                cudaStreamSynchronize(stream.handle);
                wrong += host[0] != t * 100 + i || host[99] != t * 100 + i;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT(wrong == 0);
}

}  // namespace

int main()
{
    host_is_not_held_up();
    default_stream();
    events_order_streams();
    host_functions_come_in_order();
    pageable_sources_are_staged();
    frees_wait_for_their_stream();
    graphs_replay();
    captured_streams_keep_their_identity();
    streams_may_be_destroyed_with_work_pending();
    threads_have_their_own_errors();
    many_threads_launch();
    std::printf("%s\n", failures == 0 ? "all right" : "FAILED");
    return failures == 0 ? 0 : 1;
}
