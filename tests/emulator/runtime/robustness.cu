/// What a program can do wrong with the runtime, or very often. Arguments: what to do, and a fat binary made by nvcc that
/// has the kernel `scale`. The exit status is the number of failed expectations.

#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

int failures = 0;

void expect(const char* what, cudaError_t got, cudaError_t wanted)
{
    if (got != wanted) {
        std::printf("FAILED: %s gave %s instead of %s\n", what, cudaGetErrorName(got), cudaGetErrorName(wanted));
        ++failures;
    }
}

void expect(const char* what, bool holds)
{
    if (!holds) {
        std::printf("FAILED: %s\n", what);
        ++failures;
    }
}

cudaError_t load(cudaLibrary_t& library, const void* code)
{
    return cudaLibraryLoadData(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

cudaError_t load_file(cudaLibrary_t& library, const char* path)
{
    return cudaLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

std::string read_file(const char* path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// ---- CUDA calls in host functions ----

struct Called {
    cudaStream_t stream = nullptr;
    void* memory = nullptr;
    cudaError_t allocate, release, own_stream, device, reset, destroy, last;
    std::atomic<int> runs{0};
};

void CUDART_CB call_cuda(void* argument)
{
    auto& called = *static_cast<Called*>(argument);
    void* memory = nullptr;
    called.allocate = cudaMalloc(&memory, 64);
    called.release = cudaFree(called.memory);
    called.own_stream = cudaStreamSynchronize(called.stream);
    called.device = cudaDeviceSynchronize();
    called.reset = cudaDeviceReset();
    called.destroy = cudaStreamDestroy(called.stream);
    called.last = cudaGetLastError();
    ++called.runs;
}

void CUDART_CB call_nothing(void* argument) { ++static_cast<Called*>(argument)->runs; }

void CUDART_CB call_cuda_with_status(cudaStream_t, cudaError_t, void* argument) { call_cuda(argument); }

void expect_refused(const Called& called, int runs)
{
    expect("the host function ran", called.runs == runs);
    expect("cudaMalloc in a host function", called.allocate, cudaErrorNotPermitted);
    expect("cudaFree in a host function", called.release, cudaErrorNotPermitted);
    expect("cudaStreamSynchronize of the own stream", called.own_stream, cudaErrorNotPermitted);
    expect("cudaDeviceSynchronize in a host function", called.device, cudaErrorNotPermitted);
    expect("cudaDeviceReset in a host function", called.reset, cudaErrorNotPermitted);
    expect("cudaStreamDestroy in a host function", called.destroy, cudaErrorNotPermitted);
    expect("cudaGetLastError in a host function", called.last, cudaErrorNotPermitted);
}

void host_functions()
{
    Called called;
    expect("create", cudaStreamCreate(&called.stream), cudaSuccess);
    expect("allocate", cudaMalloc(&called.memory, 64), cudaSuccess);
    expect("launch", cudaLaunchHostFunc(called.stream, call_cuda, &called), cudaSuccess);
    expect("synchronize", cudaStreamSynchronize(called.stream), cudaSuccess);
    expect_refused(called, 1);
    expect("callback", cudaStreamAddCallback(called.stream, call_cuda_with_status, &called, 0), cudaSuccess);
    expect("synchronize", cudaStreamSynchronize(called.stream), cudaSuccess);
    expect_refused(called, 2);
    // In a graph, too.
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaGraphNode_t node = nullptr;
    const cudaHostNodeParams parameters{call_cuda, &called};
    expect("graph", cudaGraphCreate(&graph, 0), cudaSuccess);
    expect("node", cudaGraphAddHostNode(&node, graph, nullptr, 0, &parameters), cudaSuccess);
    expect("instantiate", cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    expect("launch graph", cudaGraphLaunch(executable, called.stream), cudaSuccess);
    expect("synchronize", cudaStreamSynchronize(called.stream), cudaSuccess);
    expect_refused(called, 3);
    expect("destroy", cudaGraphExecDestroy(executable), cudaSuccess);
    expect("destroy", cudaGraphDestroy(graph), cudaSuccess);
    // Nothing was lost, and the calls work again.
    expect("free", cudaFree(called.memory), cudaSuccess);
    expect("destroy", cudaStreamDestroy(called.stream), cudaSuccess);
    expect("no error on this thread", cudaGetLastError(), cudaSuccess);
}

void host_functions_without_calls()
{
    Called called;
    expect("create", cudaStreamCreate(&called.stream), cudaSuccess);
    expect("launch", cudaLaunchHostFunc(called.stream, call_nothing, &called), cudaSuccess);
    expect("synchronize", cudaStreamSynchronize(called.stream), cudaSuccess);
    expect("the host function ran", called.runs == 1);
    expect("destroy", cudaStreamDestroy(called.stream), cudaSuccess);
}

// ---- Code loaded at run time ----

void files()
{
    cudaLibrary_t library = nullptr;
    expect("/dev/zero", load_file(library, "/dev/zero"), cudaErrorInvalidKernelImage);
    expect("a folder", load_file(library, "/"), cudaErrorInvalidKernelImage);
    expect("no file", load_file(library, "/no/such/file"), cudaErrorFileNotFound);
    expect("a file of /proc", load_file(library, "/proc/self/maps"), cudaErrorInvalidKernelImage);
}

void scale_by_two(cudaLibrary_t library)
{
    cudaKernel_t kernel = nullptr;
    expect("kernel", cudaLibraryGetKernel(&kernel, library, "scale"), cudaSuccess);
    const std::vector<float> values(32, 3.0F);
    float* data = nullptr;
    cudaMalloc(&data, sizeof(float) * values.size());
    cudaMemcpy(data, values.data(), sizeof(float) * values.size(), cudaMemcpyHostToDevice);
    float factor = 2.0F;
    void* arguments[] = {&data, &factor};
    expect("launch", cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(32), arguments, 0, nullptr),
           cudaSuccess);
    // The kernel may still run.
    expect("unload", cudaLibraryUnload(library), cudaSuccess);
    std::vector<float> result(32);
    expect("copy", cudaMemcpy(result.data(), data, sizeof(float) * result.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    expect("the result", result == std::vector<float>(32, 6.0F));
    cudaFree(data);
    expect("a kernel of an unloaded library",
           cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(32), arguments, 0, nullptr),
           cudaErrorInvalidResourceHandle);
    cudaGetLastError();
}

/// Every byte of a header is replaced, and the file is loaded.
void damaged(const char* path)
{
    const std::string original = read_file(path);
    cudaLibrary_t library = nullptr;
    expect("the file itself", load_file(library, path), cudaSuccess);
    scale_by_two(library);
    {
        // The memory may be freed after the call.
        std::string copy = original;
        expect("from memory", load(library, copy.data()), cudaSuccess);
        copy.assign(copy.size(), 'x');
    }
    scale_by_two(library);
    char name[] = "/tmp/tessera-damaged-XXXXXX";
    const int file = ::mkstemp(name);
    int refused = 0;
    for (std::size_t byte = 0; byte < 96; ++byte) {
        for (const char value : {'\0', '\1', '\x7f', '\x80', '\xff'}) {
            std::string bytes = original;
            bytes[byte] = value;
            const bool written = ::pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
            expect("the file is written", written);
            unsigned count = 0;
            if (load_file(library, name) != cudaSuccess) {
                ++refused;
                continue;
            }
            refused += cudaLibraryGetKernelCount(&count, library) == cudaSuccess ? 0 : 1;
            expect("unload", cudaLibraryUnload(library), cudaSuccess);
        }
    }
    ::close(file);
    ::unlink(name);
    cudaGetLastError();
    expect("many are refused", refused > 20);
}

std::size_t resident_bytes()
{
    std::ifstream file("/proc/self/statm");
    std::size_t all = 0;
    std::size_t resident = 0;
    file >> all >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void load_and_unload(const std::string& ptx)
{
    cudaLibrary_t library = nullptr;
    cudaKernel_t kernel = nullptr;
    expect("load", load(library, ptx.c_str()), cudaSuccess);
    expect("kernel", cudaLibraryGetKernel(&kernel, library, "k0"), cudaSuccess);
    expect("launch", cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(32), nullptr, 0, nullptr),
           cudaSuccess);
    expect("unload", cudaLibraryUnload(library), cudaSuccess);
    expect("synchronize", cudaDeviceSynchronize(), cudaSuccess);
}

void many_libraries()
{
    std::string ptx = ".version 8.0\n.target sm_75\n.address_size 64\n";
    for (int kernel = 0; kernel < 40; ++kernel) {
        ptx += ".global .u32 g" + std::to_string(kernel) + "[64];\n.visible .entry k" + std::to_string(kernel) +
               "()\n{\n    .reg .b32 %r<3>;\n    mov.u32 %r1, %tid.x;\n";
        for (int i = 0; i < 200; ++i) {
            ptx += "    mad.lo.u32 %r2, %r1, " + std::to_string(i) + ", %r1;\n";
        }
        ptx += "    ret;\n}\n";
    }
    const auto grown_by = [&](int loads) {
        const std::size_t before = resident_bytes();
        for (int i = 0; i < loads; ++i) {
            load_and_unload(ptx);
        }
        const std::size_t after = resident_bytes();
        return after > before ? after - before : 0;
    };
    const std::size_t first = grown_by(3);
    const std::size_t later = grown_by(12);
    std::printf("memory grew by %zu bytes in 3 loads, then by %zu in 12\n", first, later);
    expect("memory is given back", later < first);
}

/// PTX for a chip that no emulated device has, and PTX that every device runs.
void other_target()
{
    const std::string head = ".version 8.0\n.target ";
    const std::string tail = "\n.address_size 64\n.visible .entry k()\n{\n    ret;\n}\n";
    const auto count_kernels = [&](const std::string& target) {
        cudaLibrary_t library = nullptr;
        unsigned count = 0;
        expect("load", load(library, (head + target + tail).c_str()), cudaSuccess);
        const cudaError_t status = cudaLibraryGetKernelCount(&count, library);
        expect("one kernel, or an error", count == (status == cudaSuccess ? 1U : 0U));
        expect("unload", cudaLibraryUnload(library), cudaSuccess);
        return status;
    };
    for (const char* target : {"sm_120", "sm_120a", "sm_70a", "sm_120f, debug"}) {
        expect(target, count_kernels(target), cudaErrorInvalidPtx);
    }
    for (const char* target : {"sm_50", "sm_75", "sm_75, debug"}) {
        expect(target, count_kernels(target), cudaSuccess);
    }
    cudaGetLastError();
}

/// A variable that this machine has no memory for.
void large_variable()
{
    const auto memory =
        static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::string head = ".version 8.0\n.target sm_75\n.address_size 64\n.global .b8 table[";
    const std::string tail = "];\n.visible .entry k()\n{\n    ret;\n}\n";
    cudaLibrary_t library = nullptr;
    unsigned count = 0;
    expect("load", load(library, (head + std::to_string(memory / 4 * 3) + tail).c_str()), cudaSuccess);
    expect("too large", cudaLibraryGetKernelCount(&count, library), cudaErrorInvalidPtx);
    expect("unload", cudaLibraryUnload(library), cudaSuccess);
    expect("load", load(library, (head + std::to_string(1 << 20) + tail).c_str()), cudaSuccess);
    expect("fits", cudaLibraryGetKernelCount(&count, library), cudaSuccess);
    expect("unload", cudaLibraryUnload(library), cudaSuccess);
    cudaGetLastError();
}

// ---- Calls that fail on purpose ----

struct Gate {
    std::atomic<bool> is_open{false}, came_too_late{false};
};

void CUDART_CB wait_for_gate(void* argument)
{
    auto& gate = *static_cast<Gate*>(argument);
    const auto start = std::chrono::steady_clock::now();
    while (!gate.is_open) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (std::chrono::steady_clock::now() - start > std::chrono::seconds(5)) {
            gate.came_too_late = true;
            return;
        }
    }
}

/// Run with --fail cudaStreamSynchronize:1=cudaErrorUnknown: the first does not wait.
void lost_wait()
{
    Gate gate;
    cudaStream_t stream = nullptr;
    expect("create", cudaStreamCreate(&stream), cudaSuccess);
    expect("launch", cudaLaunchHostFunc(stream, wait_for_gate, &gate), cudaSuccess);
    expect("the lost wait", cudaStreamSynchronize(stream), cudaErrorUnknown);
    gate.is_open = true;
    expect("the second wait", cudaStreamSynchronize(stream), cudaSuccess);
    expect("the first call did not wait", !gate.came_too_late);
    expect("destroy", cudaStreamDestroy(stream), cudaSuccess);
}

/// A stream whose thread cannot be started, because the process may have no memory for its stack.
void no_threads()
{
    constexpr rlim_t less_than_a_stack = 1 << 20;
    cudaStream_t stream = nullptr;
    void* memory = nullptr;
    expect("create", cudaStreamCreate(&stream), cudaSuccess);
    expect("allocate", cudaMalloc(&memory, 64), cudaSuccess);
    std::ifstream file("/proc/self/statm");
    rlim_t pages = 0;
    file >> pages;
    rlimit limit{};
    expect("the limit is known", ::getrlimit(RLIMIT_AS, &limit) == 0);
    rlimit lower = limit;
    lower.rlim_cur = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + less_than_a_stack;
    expect("a lower limit", ::setrlimit(RLIMIT_AS, &lower) == 0);
    expect("fill without a thread", cudaMemsetAsync(memory, 0, 64, stream), cudaErrorMemoryAllocation);
    expect("nothing to wait for", cudaStreamSynchronize(stream), cudaSuccess);
    expect("the old limit", ::setrlimit(RLIMIT_AS, &limit) == 0);
    expect("fill", cudaMemsetAsync(memory, 7, 64, stream), cudaSuccess);
    std::vector<char> result(64);
    expect("copy", cudaMemcpyAsync(result.data(), memory, 64, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    expect("synchronize", cudaStreamSynchronize(stream), cudaSuccess);
    expect("the result", result == std::vector<char>(64, 7));
    cudaFree(memory);
    cudaStreamDestroy(stream);
    cudaGetLastError();
}

/// One of each thing that a program must release.
void everything()
{
    void* memory = nullptr;
    void* pooled = nullptr;
    void* pinned = nullptr;
    std::vector<char> registered(4096);
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaStreamCreate(&stream);
    cudaMalloc(&memory, 64);
    cudaMallocAsync(&pooled, 64, stream);
    cudaMallocHost(&pinned, 64);
    cudaHostRegister(registered.data(), registered.size(), 0);
    cudaEventCreate(&event);
    cudaGraphCreate(&graph, 0);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaEventDestroy(event);
    cudaHostUnregister(registered.data());
    cudaFreeHost(pinned);
    cudaFreeAsync(pooled, stream);
    cudaFree(memory);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
}

// ---- Recursion ----

__device__ __noinline__ unsigned depth_of(volatile unsigned* stop, unsigned depth)
{
    volatile unsigned own = depth;
    return *stop == depth ? depth : depth_of(stop, depth + 1) + own - depth;
}

__global__ void recurse(unsigned* stop, unsigned* result) { *result = depth_of(stop, 0); }

void recursion()
{
    unsigned* memory = nullptr;
    cudaMallocManaged(&memory, 2 * sizeof(unsigned));
    const auto run = [&](unsigned depth) {
        memory[0] = depth;
        recurse<<<1, 1>>>(memory, memory + 1);
        return cudaDeviceSynchronize();
    };
    expect("10 deep", run(10), cudaSuccess);
    expect("the result", memory[1] == 10);
    expect("limit", cudaDeviceSetLimit(cudaLimitStackSize, 64 << 10), cudaSuccess);
    expect("500 deep, with more stack", run(500), cudaSuccess);
    expect("the result", memory[1] == 500);
    expect("limit", cudaDeviceSetLimit(cudaLimitStackSize, 1024), cudaSuccess);
    expect("without end", run(~0U), cudaErrorHardwareStackError);
    expect("the context is lost", cudaDeviceSynchronize(), cudaErrorHardwareStackError);
    cudaFree(memory);
}

// ---- Device malloc and printf without end ----

__global__ void take(unsigned* pieces, unsigned most)
{
    while (*pieces < most && malloc(1 << 20) != nullptr) {
        ++*pieces;
    }
}

void heap()
{
    unsigned* pieces = nullptr;
    cudaMallocManaged(&pieces, sizeof *pieces);
    const auto taken = [&] {
        *pieces = 0;
        take<<<1, 1>>>(pieces, 100);
        expect("take", cudaDeviceSynchronize(), cudaSuccess);
        return *pieces;
    };
    expect("limit", cudaDeviceSetLimit(cudaLimitMallocHeapSize, 5 << 20), cudaSuccess);
    expect("the limit", taken() == 5);
    expect("nothing is left", taken() == 0);
    expect("reset", cudaDeviceReset(), cudaSuccess);
    cudaMallocManaged(&pieces, sizeof *pieces);
    expect("the default limit, and a new heap", taken() == 8);
    cudaFree(pieces);
}

__global__ void print_much(int lines)
{
    for (int i = 0; i < lines; ++i) {
        printf("%0100d\n", i);
    }
}

/// The most memory that the process had so far, in KiB.
long most_resident()
{
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/// 106 MB in lines of 101 bytes, to nobody: not all of them are kept until the host synchronizes.
void flood()
{
    constexpr long allowed = 40 << 10;
    const int output = ::dup(STDOUT_FILENO);
    const int nobody = ::open("/dev/null", O_WRONLY);
    ::dup2(nobody, STDOUT_FILENO);
    print_much<<<1, 1>>>(1);
    expect("print", cudaDeviceSynchronize(), cudaSuccess);
    const long before = most_resident();
    print_much<<<1, 1>>>(1 << 20);
    expect("print", cudaDeviceSynchronize(), cudaSuccess);
    const long after = most_resident();
    std::fflush(stdout);
    ::dup2(output, STDOUT_FILENO);
    std::printf("memory grew by %ld KiB\n", after - before);
    expect("memory is bounded", after - before < allowed);
}

}  // namespace

int main(int argc, char** argv)
{
    const std::string what = argc > 2 ? argv[1] : "";
    if (what == "host_functions") {
        host_functions();
    } else if (what == "host_functions_without_calls") {
        host_functions_without_calls();
    } else if (what == "files") {
        files();
    } else if (what == "damaged") {
        damaged(argv[2]);
    } else if (what == "many_libraries") {
        many_libraries();
    } else if (what == "large_variable") {
        large_variable();
    } else if (what == "lost_wait") {
        lost_wait();
    } else if (what == "other_target") {
        other_target();
    } else if (what == "heap") {
        heap();
    } else if (what == "flood") {
        flood();
    } else if (what == "no_threads") {
        no_threads();
    } else if (what == "everything") {
        everything();
    } else if (what == "recursion") {
        recursion();
    } else {
        std::printf("FAILED: unknown test\n");
        ++failures;
    }
    std::printf("%s: %d failures\n", what.c_str(), failures);
    std::fflush(stdout);  // before the report
    return failures;
}
