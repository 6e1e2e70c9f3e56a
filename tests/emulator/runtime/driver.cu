/// Driver calls that Python's runtimes and libcu++ look up in libcuda.so.1: contexts, limits, capture, managed memory, and
/// kernels that cannot be loaded. The exit status is the number of calls that answered wrongly.

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "driver_lookup.hpp"

namespace {

__global__ void print() { printf("printed\n"); }
__global__ void allocate(int* is_allocated)
{
    void* const memory = malloc(16);
    *is_allocated = memory != nullptr;
    free(memory);
}
__global__ void increment(int* value) { ++*value; }

std::size_t limit_of(CUlimit limit)
{
    std::size_t value = 0;
    expect("cuCtxGetLimit", DRIVER(cuCtxGetLimit)(&value, limit), CUDA_SUCCESS);
    return value;
}

void test_limits()
{
    const auto set = DRIVER(cuCtxSetLimit);
    expect("default FIFO", limit_of(CU_LIMIT_PRINTF_FIFO_SIZE), std::size_t{8650752});
    expect("set FIFO", set(CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20), CUDA_SUCCESS);
    expect("new FIFO", limit_of(CU_LIMIT_PRINTF_FIFO_SIZE), std::size_t{1 << 20});
    std::size_t value = 0;
    expect("the runtime's limit", cudaDeviceGetLimit(&value, cudaLimitPrintfFifoSize), cudaSuccess);
    expect("the runtime sees it", value, std::size_t{1 << 20});
    expect("set heap", set(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20), CUDA_SUCCESS);
    expect("set stack", set(CU_LIMIT_STACK_SIZE, 4096), CUDA_SUCCESS);
    expect("new stack", limit_of(CU_LIMIT_STACK_SIZE), std::size_t{4096});
    expect("too wide a fetch", set(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 1000), CUDA_SUCCESS);
    expect("clamped", limit_of(CU_LIMIT_MAX_L2_FETCH_GRANULARITY), std::size_t{128});
    int major = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    expect("nesting depth", set(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 4),
           major >= 9 ? CUDA_ERROR_UNSUPPORTED_LIMIT : CUDA_SUCCESS);
    expect("unknown limit", set(static_cast<CUlimit>(77), 1), CUDA_ERROR_INVALID_VALUE);
    expect("get unknown limit", DRIVER(cuCtxGetLimit)(&value, static_cast<CUlimit>(77)), CUDA_ERROR_UNSUPPORTED_LIMIT);
    expect("get into null", DRIVER(cuCtxGetLimit)(nullptr, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_VALUE);
    expect("the runtime's last error", cudaGetLastError(), cudaSuccess);
}

CUcontext current_context()
{
    CUcontext context = nullptr;
    expect("cuCtxGetCurrent", DRIVER(cuCtxGetCurrent)(&context), CUDA_SUCCESS);
    return context;
}

void test_contexts()
{
    int count = 0;
    cudaGetDeviceCount(&count);
    const CUcontext first = current_context();
    CUcontext last = nullptr;
    expect("retain", DRIVER(cuDevicePrimaryCtxRetain)(&last, count - 1), CUDA_SUCCESS);
    expect("push", driver<CUresult(CUcontext)>("cuCtxPushCurrent_v2")(last), CUDA_SUCCESS);
    expect("pushed", current_context() == last, true);
    int device = -1;
    cudaGetDevice(&device);
    expect("the runtime's device", device, count - 1);

    const auto pop = driver<CUresult(CUcontext*)>("cuCtxPopCurrent_v2");
    CUcontext popped = nullptr;
    expect("pop", pop(&popped), CUDA_SUCCESS);
    expect("popped", popped == last, true);
    expect("the one below", current_context() == first, true);
    expect("pop the first", pop(nullptr), CUDA_SUCCESS);
    expect("none", current_context() == nullptr, true);
    expect("its device", DRIVER(cuCtxGetDevice)(&device), CUDA_ERROR_INVALID_CONTEXT);
    expect("pop of none", pop(&popped), CUDA_ERROR_INVALID_CONTEXT);
    expect("set none", DRIVER(cuCtxSetCurrent)(nullptr), CUDA_SUCCESS);

    expect("cudaSetDevice", cudaSetDevice(0), cudaSuccess);
    expect("the runtime's", current_context() == first, true);
    expect("set", DRIVER(cuCtxSetCurrent)(last), CUDA_SUCCESS);
    expect("replaced", current_context() == last, true);
    expect("back", DRIVER(cuCtxSetCurrent)(first), CUDA_SUCCESS);
    expect("release", driver<CUresult(CUdevice)>("cuDevicePrimaryCtxRelease_v2")(count - 1), CUDA_SUCCESS);
}

void test_access_of_the_host()
{
    cudaMemPool_t pool = nullptr;
    cudaDeviceGetDefaultMemPool(&pool, 0);
    cudaMemLocation host{};
    host.type = cudaMemLocationTypeHost;
    cudaMemAccessFlags flags = cudaMemAccessFlagsProtReadWrite;
    expect("cudaMemPoolGetAccess", cudaMemPoolGetAccess(&flags, pool, &host), cudaSuccess);
    expect("its flags", flags, cudaMemAccessFlagsProtNone);
}

void test_limits_in_use()
{
    const auto set = DRIVER(cuCtxSetLimit);
    int* flag = nullptr;
    cudaMalloc(&flag, sizeof(int));
    cudaMemset(flag, 0, sizeof(int));
    increment<<<1, 1>>>(flag);
    expect("set FIFO before printf", set(CU_LIMIT_PRINTF_FIFO_SIZE, 2 << 20), CUDA_SUCCESS);
    print<<<1, 1>>>();
    expect("set FIFO after printf", set(CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20), CUDA_ERROR_INVALID_VALUE);
    expect("FIFO after printf", limit_of(CU_LIMIT_PRINTF_FIFO_SIZE), std::size_t{2 << 20});
    expect("set heap before malloc", set(CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20), CUDA_SUCCESS);
    // A graph that is only captured has not launched anything.
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    allocate<<<1, 1, 0, stream>>>(flag);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    expect("set heap after capture", set(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20), CUDA_SUCCESS);
    cudaGraphLaunch(executable, stream);
    expect("set heap after malloc", set(CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20), CUDA_ERROR_INVALID_VALUE);
    expect("set stack after both", set(CU_LIMIT_STACK_SIZE, 2048), CUDA_SUCCESS);
    cudaStreamSynchronize(stream);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    cudaFree(flag);
    expect("clean", cudaDeviceSynchronize(), cudaSuccess);
}

void test_capture()
{
    const auto status_of = DRIVER(cuStreamIsCapturing);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    expect("before", status_of(stream, &status), CUDA_SUCCESS);
    expect("none", status, CU_STREAM_CAPTURE_STATUS_NONE);
    expect("into null", status_of(stream, nullptr), CUDA_ERROR_INVALID_VALUE);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    expect("while capturing", status_of(stream, &status), CUDA_SUCCESS);
    expect("active", status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    expect("the null stream", status_of(nullptr, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    status = CU_STREAM_CAPTURE_STATUS_NONE;
    expect("still capturing", status_of(stream, &status), CUDA_SUCCESS);
    expect("still active", status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    expect("synchronize", cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);  // ends the capture
    expect("after a mistake", status_of(stream, &status), CUDA_SUCCESS);
    expect("invalidated", status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream, &graph);
    static_cast<void>(cudaGetLastError());
    expect("after the end", status_of(stream, &status), CUDA_SUCCESS);
    expect("none again", status, CU_STREAM_CAPTURE_STATUS_NONE);
    cudaStreamDestroy(stream);
}

void test_managed()
{
    const auto allocate_managed = DRIVER(cuMemAllocManaged);
    CUdeviceptr address = 0;
    expect("no bytes", allocate_managed(&address, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    expect("no flags", allocate_managed(&address, 64, 0), CUDA_ERROR_INVALID_VALUE);
    expect("one stream's", allocate_managed(&address, 64, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
    expect("nowhere", allocate_managed(nullptr, 64, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    expect("too much", allocate_managed(&address, std::size_t{1} << 60, CU_MEM_ATTACH_GLOBAL),
           CUDA_ERROR_OUT_OF_MEMORY);
    for (const unsigned flags : {CU_MEM_ATTACH_GLOBAL, CU_MEM_ATTACH_HOST}) {
        expect("allocate", allocate_managed(&address, sizeof(int), flags), CUDA_SUCCESS);
        int* const value = reinterpret_cast<int*>(address);
        *value = 41;
        increment<<<1, 1>>>(value);
        expect("kernel", cudaDeviceSynchronize(), cudaSuccess);
        expect("the host reads", *value, 42);
        unsigned is_managed = 0;
        expect("attribute", DRIVER(cuPointerGetAttribute)(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address),
               CUDA_SUCCESS);
        expect("is managed", is_managed, 1U);
        expect("free", driver<CUresult(CUdeviceptr)>("cuMemFree_v2")(address), CUDA_SUCCESS);
        expect("free again", driver<CUresult(CUdeviceptr)>("cuMemFree_v2")(address), CUDA_ERROR_INVALID_VALUE);
    }
}

void test_unsupported_kernel()
{
    const char* const ptx =
        ".version 8.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry good() { ret; }\n"
        ".visible .entry bad() { .reg .b32 %r<2>; isspacep.unheard.of %r1, %r1; ret; }\n";
    CUmodule module = nullptr;
    CUfunction good = nullptr, bad = nullptr;
    expect("module", DRIVER(cuModuleLoadData)(&module, ptx), CUDA_SUCCESS);
    expect("good", DRIVER(cuModuleGetFunction)(&good, module, "good"), CUDA_SUCCESS);
    expect("bad", DRIVER(cuModuleGetFunction)(&bad, module, "bad"), CUDA_ERROR_NOT_SUPPORTED);
    int registers = 0;
    expect("good's attribute", DRIVER(cuFuncGetAttribute)(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, good), CUDA_SUCCESS);
    expect("good's launch", DRIVER(cuLaunchKernel)(good, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
    expect("good runs", cudaDeviceSynchronize(), cudaSuccess);
    expect("unload", DRIVER(cuModuleUnload)(module), CUDA_SUCCESS);
}

void test_link()
{
    std::string caller =
        ".version 8.0\n.target sm_75\n.address_size 64\n.extern .func twice(.param .b64 p);\n"
        ".visible .entry k(.param .u64 p) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [p];\n"
        "{ .param .b64 a; st.param.b64 [a], %rd1; call.uni twice, (a); } ret; }\n";
    std::string callee =
        ".version 8.0\n.target sm_75\n.address_size 64\n.visible .func twice(.param .b64 p) { .reg .b64 %rd<2>; "
        ".reg .b32 %r<2>; ld.param.u64 %rd1, [p]; ld.u32 %r1, [%rd1]; add.u32 %r1, %r1, %r1; st.u32 [%rd1], %r1; ret; "
        "}\n";
    std::string broken = ".version 8.0\n.target sm_75\n.visible .entry k( {";
    char log[256] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    CUlinkState link = nullptr;
    const auto create = driver<CUresult(unsigned, CUjit_option*, void**, CUlinkState*)>("cuLinkCreate_v2");
    const auto add =
        driver<CUresult(CUlinkState, CUjitInputType, void*, size_t, const char*, unsigned, CUjit_option*, void**)>(
            "cuLinkAddData_v2");
    const auto add_text = [&](CUjitInputType type, std::string& text, const char* name) {
        return add(link, type, text.data(), text.size(), name, 0, nullptr, nullptr);
    };
    expect("link", create(2, options, values, &link), CUDA_SUCCESS);
    void* code = nullptr;
    std::size_t size = 0;
    expect("nothing to link", DRIVER(cuLinkComplete)(link, &code, &size), CUDA_ERROR_INVALID_VALUE);
    expect("machine code", add_text(CU_JIT_INPUT_CUBIN, caller, "one.cubin"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    expect("its log", std::strstr(log, "one.cubin is not PTX") != nullptr, true);
    expect("broken PTX", add_text(CU_JIT_INPUT_PTX, broken, "two.ptx"), CUDA_ERROR_INVALID_PTX);
    expect("its log", std::strstr(log, "two.ptx: PTX line 3") != nullptr, true);
    expect("caller", add_text(CU_JIT_INPUT_PTX, caller, "caller"), CUDA_SUCCESS);
    expect("callee", add_text(CU_JIT_INPUT_PTX, callee, "callee"), CUDA_SUCCESS);
    expect("complete", DRIVER(cuLinkComplete)(link, &code, &size), CUDA_SUCCESS);
    expect("too late", add_text(CU_JIT_INPUT_PTX, callee, "callee"), CUDA_ERROR_INVALID_VALUE);
    const std::string copy(static_cast<const char*>(code), size);
    expect("destroy", DRIVER(cuLinkDestroy)(link), CUDA_SUCCESS);
    expect("destroy again", DRIVER(cuLinkDestroy)(link), CUDA_ERROR_INVALID_HANDLE);

    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    expect("module", DRIVER(cuModuleLoadData)(&module, copy.data()), CUDA_SUCCESS);
    expect("kernel", DRIVER(cuModuleGetFunction)(&kernel, module, "k"), CUDA_SUCCESS);
    int* value = nullptr;
    cudaMallocManaged(&value, sizeof(int));
    *value = 21;
    void* arguments[] = {&value};
    expect("launch", DRIVER(cuLaunchKernel)(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr), CUDA_SUCCESS);
    expect("run", cudaDeviceSynchronize(), cudaSuccess);
    expect("both units ran", *value, 42);
    cudaFree(value);
    expect("unload", DRIVER(cuModuleUnload)(module), CUDA_SUCCESS);
}

}  // namespace

int main()
{
    expect("cuInit", DRIVER(cuInit)(0), CUDA_SUCCESS);
    test_contexts();
    test_access_of_the_host();
    test_limits();
    test_limits_in_use();
    test_capture();
    test_managed();
    test_unsupported_kernel();
    test_link();
    if (failures == 0) {
        std::printf("all as expected\n");
    }
    return failures;
}
