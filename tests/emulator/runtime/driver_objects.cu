/// Driver calls that libraries look up by name (CCCL's cuda::stream, cuda::event, memory pools and kernels; numba's driver
/// layer): streams, events, host functions, kernels of a library, pools, copies, captures and graphs. The exit status is the
/// number of calls that answered wrongly.

#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver_lookup.hpp"

namespace {

const char* const ptx =
    ".version 8.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 count;\n"
    ".visible .entry add(.param .u64 p, .param .u32 step) .maxntid 256, 1, 1 { .reg .b64 %rd<3>; .reg .b32 %r<4>; "
    ".shared .align 4 .b8 room[1024];\n"
    "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [step]; ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, %r1;\n"
    "st.shared.u32 [room], %r2; ld.shared.u32 %r2, [room]; st.global.u32 [%rd1], %r2; ret; }\n";

struct Loaded {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
};

Loaded load()
{
    Loaded loaded;
    expect("load", DRIVER(cuLibraryLoadData)(&loaded.library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0),
           CUDA_SUCCESS);
    expect("kernel", DRIVER(cuLibraryGetKernel)(&loaded.kernel, loaded.library, "add"), CUDA_SUCCESS);
    expect("function", DRIVER(cuKernelGetFunction)(&loaded.function, loaded.kernel), CUDA_SUCCESS);
    return loaded;
}

void test_kernels()
{
    const Loaded loaded = load();
    const auto get = DRIVER(cuKernelGetAttribute);
    int value = 0;
    expect("threads", get(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, loaded.kernel, 0), CUDA_SUCCESS);
    expect("of .maxntid", value, 256);
    expect("shared", get(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, loaded.kernel, 0), CUDA_SUCCESS);
    expect("static bytes", value, 1024);
    expect("cluster", get(&value, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, loaded.kernel, 0), CUDA_SUCCESS);
    expect("no cluster", value, 0);
    expect("no such device", get(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, loaded.kernel, 7), CUDA_ERROR_INVALID_DEVICE);
    expect("no such attribute", get(&value, static_cast<CUfunction_attribute>(77), loaded.kernel, 0),
           CUDA_ERROR_INVALID_VALUE);
    expect("into null", get(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, loaded.kernel, 0), CUDA_ERROR_INVALID_VALUE);
    expect("set",
           DRIVER(cuKernelSetAttribute)(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000, loaded.kernel, 0),
           CUDA_SUCCESS);
    expect("get", get(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, loaded.kernel, 0), CUDA_SUCCESS);
    expect("as set", value, 50000);
    expect("cache", DRIVER(cuKernelSetCacheConfig)(loaded.kernel, CU_FUNC_CACHE_PREFER_SHARED, 0), CUDA_SUCCESS);

    const char* name = nullptr;
    expect("name", DRIVER(cuKernelGetName)(&name, loaded.kernel), CUDA_SUCCESS);
    expect("add", std::strcmp(name, "add"), 0);
    CUlibrary library = nullptr;
    expect("library", DRIVER(cuKernelGetLibrary)(&library, loaded.kernel), CUDA_SUCCESS);
    expect("it came from", library == loaded.library, true);
    std::size_t offset = 0, size = 0;
    expect("parameter", DRIVER(cuKernelGetParamInfo)(loaded.kernel, 1, &offset, &size), CUDA_SUCCESS);
    expect("its offset", offset, std::size_t{8});
    expect("its size", size, std::size_t{4});
    expect("no parameter", DRIVER(cuKernelGetParamInfo)(loaded.kernel, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    unsigned count = 0;
    expect("count", DRIVER(cuLibraryGetKernelCount)(&count, loaded.library), CUDA_SUCCESS);
    expect("one kernel", count, 1U);
    CUkernel only = nullptr;
    expect("enumerate", DRIVER(cuLibraryEnumerateKernels)(&only, 1, loaded.library), CUDA_SUCCESS);
    expect("the kernel", only == loaded.kernel, true);
    CUmodule module = nullptr;
    expect("module", DRIVER(cuLibraryGetModule)(&module, loaded.library), CUDA_SUCCESS);
    CUfunction function = nullptr;
    expect("its function", DRIVER(cuModuleGetFunction)(&function, module, "add"), CUDA_SUCCESS);
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
    expect("is loaded", DRIVER(cuFuncIsLoaded)(&state, function), CUDA_SUCCESS);
    expect("loaded", state, CU_FUNCTION_LOADING_STATE_LOADED);

    int blocks = 0, threads = 0;
    expect("occupancy", DRIVER(cuOccupancyMaxPotentialBlockSize)(&blocks, &threads, function, nullptr, 0, 0),
           CUDA_SUCCESS);
    expect("largest block", threads, 256);
    expect("smaller block", DRIVER(cuOccupancyMaxPotentialBlockSize)(&blocks, &threads, function, nullptr, 0, 64),
           CUDA_SUCCESS);
    expect("as limited", threads, 64);
    int processors = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    expect("fills the device", blocks % processors, 0);
    expect("not empty", blocks >= processors, true);
    expect("unload", DRIVER(cuLibraryUnload)(loaded.library), CUDA_SUCCESS);
}

void test_streams()
{
    int least = 0, greatest = 0;
    expect("range", DRIVER(cuCtxGetStreamPriorityRange)(&least, &greatest), CUDA_SUCCESS);
    CUstream stream = nullptr;
    expect("create", DRIVER(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, greatest), CUDA_SUCCESS);
    int priority = 1;
    expect("priority", DRIVER(cuStreamGetPriority)(stream, &priority), CUDA_SUCCESS);
    expect("as created", priority, greatest);
    unsigned flags = 0;
    expect("flags", DRIVER(cuStreamGetFlags)(stream, &flags), CUDA_SUCCESS);
    expect("non-blocking", flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
    CUdevice device = -1;
    expect("device", DRIVER(cuStreamGetDevice)(stream, &device), CUDA_SUCCESS);
    expect("the first", device, 0);
    unsigned long long id = 0, other = 0;
    expect("id", DRIVER(cuStreamGetId)(stream, &id), CUDA_SUCCESS);
    expect("the runtime's id", cudaStreamGetId(stream, &other), cudaSuccess);
    expect("is the same", id, other);
    CUcontext context = nullptr, current = nullptr;
    CUgreenCtx green = reinterpret_cast<CUgreenCtx>(&green);
    expect("context", DRIVER(cuStreamGetCtx)(stream, &context), CUDA_SUCCESS);
    expect("current", DRIVER(cuCtxGetCurrent)(&current), CUDA_SUCCESS);
    expect("is current", context == current, true);
    expect("newer form", DRIVER(cuStreamGetCtx_v2)(stream, &context, &green), CUDA_SUCCESS);
    expect("not green", green == nullptr, true);

    static int called = 0;
    expect("host function",
           DRIVER(cuLaunchHostFunc)(stream, [](void* by) { called += *static_cast<int*>(by); }, &least), CUDA_SUCCESS);
    int one = 1;
    expect("again",
           DRIVER(cuLaunchHostFunc)(stream, [](void* by) { called += *static_cast<int*>(by); }, &one), CUDA_SUCCESS);
    expect("callback",
           DRIVER(cuStreamAddCallback)(
               stream,
               [](CUstream, CUresult status, void* by) {
                   called += status == CUDA_SUCCESS ? *static_cast<int*>(by) : 100;
               },
               &one, 0),
           CUDA_SUCCESS);
    CUevent event = nullptr;
    expect("event", DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    expect("record", DRIVER(cuEventRecord)(event, stream), CUDA_SUCCESS);
    expect("wait", driver<CUresult(CUevent)>("cuEventSynchronize")(event), CUDA_SUCCESS);
    expect("query", DRIVER(cuEventQuery)(event), CUDA_SUCCESS);
    expect("both were called", called, least + 2);
    expect("the runtime's last error", cudaGetLastError(), cudaSuccess);
    driver<CUresult(CUevent)>("cuEventDestroy_v2")(event);
    expect("destroy", driver<CUresult(CUstream)>("cuStreamDestroy_v2")(stream), CUDA_SUCCESS);
}

void test_memory()
{
    CUmemoryPool pool = nullptr, usual = nullptr;
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    expect("usual pool", DRIVER(cuDeviceGetDefaultMemPool)(&usual, 0), CUDA_SUCCESS);
    expect("create pool", DRIVER(cuMemPoolCreate)(&pool, &properties), CUDA_SUCCESS);
    expect("another", pool != usual, true);
    cuuint64_t threshold = 4096, got = 0;
    const auto attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    expect("set", DRIVER(cuMemPoolSetAttribute)(pool, attribute, &threshold), CUDA_SUCCESS);
    expect("get", DRIVER(cuMemPoolGetAttribute)(pool, attribute, &got), CUDA_SUCCESS);
    expect("as set", got, threshold);
    CUdeviceptr memory = 0;
    expect("allocate", DRIVER(cuMemAllocFromPoolAsync)(&memory, 1024, pool, nullptr), CUDA_SUCCESS);

    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
    unsigned type = 77;
    CUdeviceptr start = 0;
    std::size_t size = 0;
    CUmemoryPool owner = nullptr;
    void* answers[] = {&type, &start, &size, &owner};
    expect("attributes", DRIVER(cuPointerGetAttributes)(4, asked, answers, memory + 100), CUDA_SUCCESS);
    expect("type", type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    expect("start", start, memory);
    expect("size", size, std::size_t{1024});
    expect("pool", owner == pool, true);
    int unknown = 0;
    const auto nowhere = reinterpret_cast<CUdeviceptr>(&unknown);
    expect("of the stack", DRIVER(cuPointerGetAttributes)(4, asked, answers, nowhere), CUDA_SUCCESS);
    expect("no type", type, 0U);
    expect("no start", start, CUdeviceptr{0});
    expect("one of the stack", DRIVER(cuPointerGetAttribute)(&type, asked[0], nowhere), CUDA_ERROR_INVALID_VALUE);
    const auto range = driver<CUresult(CUdeviceptr*, size_t*, CUdeviceptr)>("cuMemGetAddressRange_v2");
    expect("range", range(&start, &size, memory + 1023), CUDA_SUCCESS);
    expect("its start", start, memory);
    expect("beyond it", range(&start, &size, memory + 1024), CUDA_ERROR_NOT_FOUND);

    void* host = nullptr;
    expect("host memory", driver<CUresult(void**, size_t)>("cuMemAllocHost_v2")(&host, 1024), CUDA_SUCCESS);
    auto* const words = static_cast<unsigned*>(host);
    for (unsigned i = 0; i < 256; ++i) {
        words[i] = i;
    }
    const auto at_host = reinterpret_cast<CUdeviceptr>(host);
    expect("there", DRIVER(cuMemcpyAsync)(memory, at_host, 512, nullptr), CUDA_SUCCESS);
    CUdeviceptr to[] = {memory + 512, at_host + 4}, from[] = {memory, memory + 8};
    std::size_t sizes[] = {512, 4}, first = 0;
    CUmemcpyAttributes order{};
    order.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    CUstream stream = nullptr;
    DRIVER(cuStreamCreate)(&stream, CU_STREAM_DEFAULT);
    expect(
        "batch",
        driver<CUresult(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*, size_t*, size_t, CUstream)>(
            "cuMemcpyBatchAsync_v2")(to, from, sizes, 2, &order, &first, 1, stream),
        CUDA_SUCCESS);
    expect("done", cudaDeviceSynchronize(), cudaSuccess);
    expect("the second copy", words[1], 2U);
    expect("back", DRIVER(cuMemcpy)(at_host, memory + 512, 512), CUDA_SUCCESS);
    expect("the first copy", words[127], 127U);
    driver<CUresult(CUstream)>("cuStreamDestroy_v2")(stream);

    expect("free", DRIVER(cuMemFreeAsync)(memory, nullptr), CUDA_SUCCESS);
    expect("freed", cudaDeviceSynchronize(), cudaSuccess);
    expect("trim", DRIVER(cuMemPoolTrimTo)(pool, 0), CUDA_SUCCESS);
    expect("destroy pool", DRIVER(cuMemPoolDestroy)(pool), CUDA_SUCCESS);
    CUdeviceptr seen = 0;
    expect("mapped", driver<CUresult(CUdeviceptr*, void*, unsigned)>("cuMemHostGetDevicePointer_v2")(&seen, host, 0),
           CUDA_SUCCESS);
    expect("at the same address", seen, at_host);
    expect("free host memory", DRIVER(cuMemFreeHost)(host), CUDA_SUCCESS);
}

void test_graphs()
{
    const Loaded loaded = load();
    int* value = nullptr;
    cudaMallocManaged(&value, sizeof(int));
    *value = 0;
    unsigned step = 5;
    void* arguments[] = {&value, &step};
    CUstream stream = nullptr;
    DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);

    CUDA_KERNEL_NODE_PARAMS parameters{};
    parameters.kern = loaded.kernel;  // instead of a function
    parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
    parameters.kernelParams = arguments;
    CUgraph graph = nullptr, captured = nullptr;
    CUgraphNode first = nullptr, second = nullptr;
    CUgraphExec executable = nullptr;
    const auto add =
        driver<CUresult(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_KERNEL_NODE_PARAMS*)>(
            "cuGraphAddKernelNode_v2");
    expect("graph", DRIVER(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
    expect("first node", add(&first, graph, nullptr, 0, &parameters), CUDA_SUCCESS);
    step = 7;
    expect("second node", add(&second, graph, &first, 1, &parameters), CUDA_SUCCESS);
    CUkernelNodeAttrValue priority{};
    priority.priority = -1;
    expect("priority", DRIVER(cuGraphKernelNodeSetAttribute)(first, CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority),
           CUDA_SUCCESS);
    priority.priority = 0;
    expect("of node", DRIVER(cuGraphKernelNodeGetAttribute)(first, CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority),
           CUDA_SUCCESS);
    expect("as set", priority.priority, -1);
    const auto instantiate = driver<CUresult(CUgraphExec*, CUgraph, unsigned long long)>("cuGraphInstantiateWithFlags");
    expect("instantiate", instantiate(&executable, graph, 0), CUDA_SUCCESS);
    expect("launch", DRIVER(cuGraphLaunch)(executable, stream), CUDA_SUCCESS);
    expect("run", cudaDeviceSynchronize(), cudaSuccess);
    expect("5 and 7", *value, 12);
    DRIVER(cuGraphExecDestroy)(executable);
    DRIVER(cuGraphDestroy)(graph);

    expect("capture",
           driver<CUresult(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2")(stream,
                                                                                      CU_STREAM_CAPTURE_MODE_RELAXED),
           CUDA_SUCCESS);
    expect("captured launch", DRIVER(cuLaunchKernel)(loaded.function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr),
           CUDA_SUCCESS);
    expect("end", DRIVER(cuStreamEndCapture)(stream, &captured), CUDA_SUCCESS);
    std::size_t count = 1;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    expect("nodes", DRIVER(cuGraphGetNodes)(captured, &first, &count), CUDA_SUCCESS);
    expect("one node", count, std::size_t{1});
    expect("its type", DRIVER(cuGraphNodeGetType)(first, &type), CUDA_SUCCESS);
    expect("a kernel", type, CU_GRAPH_NODE_TYPE_KERNEL);
    expect("nothing ran", *value, 12);
    DRIVER(cuGraphDestroy)(captured);

    expect("cooperative", DRIVER(cuLaunchCooperativeKernel)(loaded.function, 1, 1, 1, 1, 1, 1, 0, stream, arguments),
           CUDA_SUCCESS);
    expect("run", cudaDeviceSynchronize(), cudaSuccess);
    expect("7 more", *value, 19);
    driver<CUresult(CUstream)>("cuStreamDestroy_v2")(stream);
    DRIVER(cuLibraryUnload)(loaded.library);
    cudaFree(value);
}

template <class Function>
Function* by_version(const char* name, int version)
{
    void* function = nullptr;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    driver<CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*)>("cuGetProcAddress_v2")(
        name, &function, version, 0, &found);
    expect(name, found == CU_GET_PROC_ADDRESS_SUCCESS, function != nullptr);
    return reinterpret_cast<Function*>(function);
}

/// A name stands for the function that the asking program's version of CUDA had.
void test_versions()
{
    CUcontext context = nullptr;
    CUgreenCtx green = reinterpret_cast<CUgreenCtx>(&green);
    expect("older form", by_version<CUresult(CUstream, CUcontext*)>("cuStreamGetCtx", 12000)(nullptr, &context),
           CUDA_SUCCESS);
    expect("newer form",
           by_version<CUresult(CUstream, CUcontext*, CUgreenCtx*)>("cuStreamGetCtx", 12050)(nullptr, &context, &green),
           CUDA_SUCCESS);
    expect("writes all", green == nullptr, true);
    expect("an older form that is not there", by_version<void()>("cuMemcpyBatchAsync", 12080) == nullptr, true);
    expect("the newer form", by_version<void()>("cuMemcpyBatchAsync", 13000) != nullptr, true);
    expect("a name of another call", by_version<void()>("cuGraphInstantiate", 13000) != nullptr, true);
    expect("a call for a later driver", by_version<void()>("cuNoSuchCall", 13000) == nullptr, true);
    void* function = nullptr;
    expect("runtime",
           cudaGetDriverEntryPointByVersion("cuMemcpyBatchAsync", &function, 12080, cudaEnableDefault, nullptr),
           cudaSuccess);
    expect("the same rule", function == nullptr, true);
}

/// NVRTC asks for one, and goes on when it gets an error.
void test_export_table()
{
    const CUuuid id{};
    const void* table = &id;
    expect("no table", DRIVER(cuGetExportTable)(&table, &id), CUDA_ERROR_NOT_FOUND);
    expect("nothing", table == nullptr, true);
}

/// Prints what is not emulated.
void test_refusals()
{
    CUgreenCtx green = nullptr;
    expect("green context", DRIVER(cuGreenCtxCreate)(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM),
           CUDA_ERROR_NOT_SUPPORTED);
    unsigned groups = 1;
    expect("a call that cannot be looked up",
           DRIVER(cuDevSmResourceSplitByCount)(nullptr, &groups, nullptr, nullptr, 0, 8), CUDA_ERROR_NOT_SUPPORTED);
    CUdeviceptr reserved = 0;
    expect("reserved addresses", DRIVER(cuMemAddressReserve)(&reserved, 1 << 21, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
    expect("the runtime's last error", cudaGetLastError(), cudaSuccess);
}

}  // namespace

int main()
{
    expect("cuInit", DRIVER(cuInit)(0), CUDA_SUCCESS);
    test_kernels();
    test_streams();
    test_memory();
    test_graphs();
    test_versions();
    test_export_table();
    test_refusals();
    if (failures == 0) {
        std::printf("all as expected\n");
    }
    return failures;
}
