/// Queries the runtime in corner cases that programs meet, and prints each answer on a line. The answers of a real H200
/// are in conformance_h200.txt: the emulated runtime must give the same for an emulated H200.

#include "conformance.hpp"

#include <cuda.h>

#include <vector>

__global__ void bump(int* counter) { atomicAdd(counter, 1); }
__global__ void add(const float* a, const float* b, float* c, int count)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) {
        c[i] = a[i] + b[i];
    }
}
__global__ void __launch_bounds__(128) bump_bounded(int* counter) { atomicAdd(counter, 1); }
__global__ void __cluster_dims__(2, 1, 1) bump_cluster(int* counter) { atomicAdd(counter, 1); }
__global__ void spin(volatile int* flag)
{
    while (*flag == 0) {
    }
}
__device__ int device_values[4] = {1, 2, 3, 4};
__constant__ float constant_value = 2.5F;
int not_a_symbol = 0;

namespace {

void allocation()
{
    void* p = nullptr;
    void* q = nullptr;
    say("malloc 0 bytes", cudaMalloc(&p, 0));
    say("malloc 0 bytes gives null", p == nullptr);
    say("malloc null", cudaMalloc(nullptr, 16));
    say("malloc 1 PB", cudaMalloc(&p, std::size_t{1} << 50));
    say("free null", cudaFree(nullptr));
    say("free wild", cudaFree(reinterpret_cast<void*>(0x1230)));
    say("malloc", cudaMalloc(&p, 1000));
    say("malloc alignment at least 256", reinterpret_cast<std::size_t>(p) % 256 == 0);
    say("free inside", cudaFree(static_cast<char*>(p) + 16));
    say("freeHost of device memory", cudaFreeHost(p));
    say("freeAsync of cudaMalloc's", cudaFreeAsync(p, nullptr));
    p = nullptr;
    say("malloc", cudaMalloc(&p, 1000));
    say("free", cudaFree(p));
    say("free twice", cudaFree(p));
    say("mallocAsync", cudaMallocAsync(&p, 1000, nullptr));
    say("freeAsync", cudaFreeAsync(p, nullptr));
    say("freeAsync twice", cudaFreeAsync(p, nullptr));
    say("mallocAsync", cudaMallocAsync(&p, 1000, nullptr));
    say("free of a pool's", cudaFree(p));
    say("mallocAsync 0 bytes", cudaMallocAsync(&p, 0, nullptr));
    say("mallocHost 0 bytes", cudaMallocHost(&p, 0));
    say("mallocHost", cudaMallocHost(&p, 100));
    say("free of pinned", cudaFree(p));
    say("freeHost", cudaFreeHost(p));
    say("freeHost twice", cudaFreeHost(p));
    say("hostAlloc bad flags", cudaHostAlloc(&p, 100, 0x100));
    say("mallocManaged 0 bytes", cudaMallocManaged(&p, 0));
    say("mallocManaged bad flags", cudaMallocManaged(&p, 16, 77));
    say("mallocManaged", cudaMallocManaged(&p, 16));
    say("free managed", cudaFree(p));
    std::size_t pitch = 0;
    say("mallocPitch", cudaMallocPitch(&p, &pitch, 100, 3));
    say("pitch of 100 bytes", static_cast<long long>(pitch));
    say("free", cudaFree(p));
    std::vector<char> host(8192);
    say("hostRegister", cudaHostRegister(host.data(), host.size(), 0));
    say("hostRegister twice", cudaHostRegister(host.data(), host.size(), 0));
    say("hostGetDevicePointer", cudaHostGetDevicePointer(&q, host.data(), 0));
    say("device pointer is the host's", q == host.data());
    say("hostUnregister", cudaHostUnregister(host.data()));
    say("hostUnregister twice", cudaHostUnregister(host.data()));
    say("hostGetDevicePointer of pageable", cudaHostGetDevicePointer(&q, host.data(), 0));
    unsigned flags = 0;
    say("hostGetFlags of pageable", cudaHostGetFlags(&flags, host.data()));
}

void attributes_of_pointers()
{
    int on_stack = 0;
    void* device = nullptr;
    void* pinned = nullptr;
    void* managed = nullptr;
    cudaMalloc(&device, 64);
    cudaMallocHost(&pinned, 64);
    cudaMallocManaged(&managed, 64);
    for (const auto& [name, pointer] : {std::pair<const char*, void*>{"stack", &on_stack},
                                        {"device", device},
                                        {"inside device", static_cast<char*>(device) + 8},
                                        {"pinned", pinned},
                                        {"managed", managed},
                                        {"null", nullptr}}) {
        cudaPointerAttributes a{};
        std::printf("attributes of %-44s ", name);
        const cudaError_t status = cudaPointerGetAttributes(&a, pointer);
        std::printf("%s type %d device %d device pointer %s host pointer %s\n", cudaGetErrorName(status), a.type,
                    a.device,
                    a.devicePointer == nullptr   ? "null"
                    : a.devicePointer == pointer ? "same"
                                                 : "other",
                    a.hostPointer == nullptr   ? "null"
                    : a.hostPointer == pointer ? "same"
                                               : "other");
    }
    cudaFree(device);
    cudaFreeHost(pinned);
    cudaFree(managed);
}

void copies()
{
    char* device = nullptr;
    char* other = nullptr;
    std::vector<char> host(4096, 7);
    cudaMalloc(&device, 1024);
    cudaMalloc(&other, 1024);
    say("copy in", cudaMemcpy(device, host.data(), 1024, cudaMemcpyHostToDevice));
    say("copy 0 bytes to null", cudaMemcpy(nullptr, host.data(), 0, cudaMemcpyHostToDevice));
    say("copy to null", cudaMemcpy(nullptr, host.data(), 16, cudaMemcpyHostToDevice));
    say("copy bad kind", cudaMemcpy(device, host.data(), 16, static_cast<cudaMemcpyKind>(9)));
    say("copy default kind", cudaMemcpy(device, host.data(), 16, cudaMemcpyDefault));
    say("copy DtoD", cudaMemcpy(other, device, 1024, cudaMemcpyDeviceToDevice));
    say("copy HtoH", cudaMemcpy(host.data(), host.data() + 100, 100, cudaMemcpyHostToHost));
    say("copy HtoD from device", cudaMemcpy(other, device, 16, cudaMemcpyHostToDevice));
    say("copy DtoH from host", cudaMemcpy(host.data(), host.data() + 100, 16, cudaMemcpyDeviceToHost));
    say("copy DtoH to device", cudaMemcpy(other, device, 16, cudaMemcpyDeviceToHost));
    say("copy DtoD from host", cudaMemcpy(other, host.data(), 16, cudaMemcpyDeviceToDevice));
    say("copy2D width above pitch", cudaMemcpy2D(device, 10, host.data(), 100, 20, 2, cudaMemcpyHostToDevice));
    say("copy2D", cudaMemcpy2D(device, 32, host.data(), 100, 20, 2, cudaMemcpyHostToDevice));
    say("copyAsync", cudaMemcpyAsync(device, host.data(), 100, cudaMemcpyHostToDevice, nullptr));
    say("copyAsync on a bad device kind",
        cudaMemcpyAsync(device, host.data(), 100, static_cast<cudaMemcpyKind>(-1), nullptr));
    say("memset", cudaMemset(device, 3, 1024));
    say("memset null", cudaMemset(nullptr, 3, 16));
    say("memset 0 bytes", cudaMemset(device, 3, 0));
    say("memset host memory", cudaMemset(host.data(), 3, 16));
    say("memset2D width above pitch", cudaMemset2D(device, 8, 1, 16, 2));
    say("copy 1 byte beyond 1024", cudaMemcpy(host.data(), device, 1025, cudaMemcpyDeviceToHost));
    say("memset 1 byte beyond 1024", cudaMemset(device, 0, 1025));
    char* large = nullptr;
    cudaMalloc(&large, 64 << 20);
    say("memset 1 byte beyond 64 MiB", cudaMemset(large, 0, (64 << 20) + 1));
    cudaFree(large);
    say("memset freed", cudaMemset(large, 0, 16));
    say("copy from freed", cudaMemcpy(host.data(), large, 16, cudaMemcpyDeviceToHost));
    int values[4] = {};
    say("copyFromSymbol", cudaMemcpyFromSymbol(values, device_values, sizeof values));
    say("value 2", values[2]);
    say("copyFromSymbol beyond", cudaMemcpyFromSymbol(values, device_values, 16, 4));
    say("copyFromSymbol wrong direction", cudaMemcpyFromSymbol(values, device_values, 16, 0, cudaMemcpyHostToDevice));
    say("copyToSymbol not a symbol", cudaMemcpyToSymbol(not_a_symbol, values, 4));
    float constant = 0;
    say("copyFromSymbol constant", cudaMemcpyFromSymbol(&constant, constant_value, sizeof constant));
    say("constant in quarters", static_cast<long long>(constant * 4));
    std::size_t size = 0;
    say("symbolSize", cudaGetSymbolSize(&size, device_values));
    say("symbol size", static_cast<long long>(size));
    cudaFree(device);
    cudaFree(other);
}

void launches()
{
    int* counter = nullptr;
    cudaMalloc(&counter, 4);
    cudaMemset(counter, 0, 4);
    bump<<<1, 1>>>(counter);
    say("launch", cudaGetLastError());
    bump<<<0, 1>>>(counter);
    say("launch empty grid", cudaGetLastError());
    bump<<<1, 0>>>(counter);
    say("launch empty block", cudaGetLastError());
    bump<<<1, 1025>>>(counter);
    say("launch 1025 threads", cudaGetLastError());
    bump<<<1, dim3(32, 32, 2)>>>(counter);
    say("launch 2048 threads", cudaGetLastError());
    bump<<<1, dim3(1, 1, 65)>>>(counter);
    say("launch block z 65", cudaGetLastError());
    bump<<<dim3(1, 65536, 1), 1>>>(counter);
    say("launch grid y 65536", cudaGetLastError());
    bump_bounded<<<1, 129>>>(counter);
    say("launch above its launch bounds", cudaGetLastError());
    bump<<<1, 1, 49152>>>(counter);
    say("launch 48 KiB shared", cudaGetLastError());
    bump<<<1, 1, 49153>>>(counter);
    say("launch 48 KiB + 1 shared", cudaGetLastError());
    say("set 227 KiB", cudaFuncSetAttribute(bump, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
    bump<<<1, 1, 227 << 10>>>(counter);
    say("launch 227 KiB shared", cudaGetLastError());
    say("set 228 KiB", cudaFuncSetAttribute(bump, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10));
    say("set negative", cudaFuncSetAttribute(bump, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
    bump_cluster<<<2, 1>>>(counter);
    say("launch cluster kernel", cudaGetLastError());
    bump_cluster<<<3, 1>>>(counter);
    say("launch cluster kernel, grid 3", cudaGetLastError());
    void* arguments[] = {&counter};
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {4, 1, 1};
    cudaLaunchConfig_t config{};
    config.blockDim = 32;
    config.gridDim = 8;
    config.attrs = &attribute;
    config.numAttrs = 1;
    const auto* function = reinterpret_cast<const void*>(bump);
    say("ExC cluster 4 of 8", cudaLaunchKernelExC(&config, function, arguments));
    config.gridDim = 6;
    say("ExC cluster 4 of 6", cudaLaunchKernelExC(&config, function, arguments));
    config.gridDim = 16;
    attribute.val.clusterDim = {16, 1, 1};
    say("ExC cluster 16 without opt-in", cudaLaunchKernelExC(&config, function, arguments));
    say("opt in", cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    say("ExC cluster 16", cudaLaunchKernelExC(&config, function, arguments));
    config.gridDim = 32;
    attribute.val.clusterDim = {32, 1, 1};
    say("ExC cluster 32", cudaLaunchKernelExC(&config, function, arguments));
    attribute.val.clusterDim = {0, 1, 1};
    say("ExC cluster 0", cudaLaunchKernelExC(&config, function, arguments));
    attribute.val.clusterDim = {4, 1, 1};
    config.gridDim = 8;
    const auto* clustered = reinterpret_cast<const void*>(bump_cluster);
    say("ExC cluster 4 of a kernel with 2", cudaLaunchKernelExC(&config, clustered, arguments));
    config.numAttrs = 0;
    config.gridDim = 0;
    say("ExC empty grid", cudaLaunchKernelExC(&config, function, arguments));
    config.gridDim = 1;
    config.blockDim = 1025;
    say("ExC 1025 threads", cudaLaunchKernelExC(&config, function, arguments));
    config.blockDim = 32;
    config.dynamicSmemBytes = 1 << 20;
    say("ExC 1 MiB shared", cudaLaunchKernelExC(&config, function, arguments));
    config.dynamicSmemBytes = 0;
    say("launch kernel, empty grid", cudaLaunchKernel(function, 0, 1, arguments, 0, nullptr));
    say("launch kernel, 1025 threads", cudaLaunchKernel(function, 1, 1025, arguments, 0, nullptr));
    say("launch kernel, 1 MiB shared", cudaLaunchKernel(function, 1, 1, arguments, 1 << 20, nullptr));
    say("cooperative empty grid", cudaLaunchCooperativeKernel(function, 0, 32, arguments, 0, nullptr));
    say("launch null function", cudaLaunchKernel(nullptr, 1, 1, arguments, 0, nullptr));
    say("launch not a kernel", cudaLaunchKernel(&not_a_symbol, 1, 1, arguments, 0, nullptr));
    say("cooperative", cudaLaunchCooperativeKernel(function, 4, 32, arguments, 0, nullptr));
    say("cooperative too large", cudaLaunchCooperativeKernel(function, 1000000, 32, arguments, 0, nullptr));
    say("synchronize", cudaDeviceSynchronize());
    int count = 0;
    cudaMemcpy(&count, counter, 4, cudaMemcpyDeviceToHost);
    cudaFree(counter);
}

void functions()
{
    cudaFuncAttributes a{};
    const auto* function = reinterpret_cast<const void*>(bump_bounded);
    say("attributes", cudaFuncGetAttributes(&a, function));
    say("attributes: threads", a.maxThreadsPerBlock);
    say("attributes: dynamic shared", a.maxDynamicSharedSizeBytes);
    say("attributes: static shared", static_cast<long long>(a.sharedSizeBytes));
    say("attributes: carveout", a.preferredShmemCarveout);
    say("attributes: cluster must be set", a.clusterDimMustBeSet);
    cudaFuncAttributes c{};
    say("attributes of a cluster kernel", cudaFuncGetAttributes(&c, reinterpret_cast<const void*>(bump_cluster)));
    std::printf("required cluster %d %d %d, must be set %d\n", c.requiredClusterWidth, c.requiredClusterHeight,
                c.requiredClusterDepth, c.clusterDimMustBeSet);
    say("attributes of nothing", cudaFuncGetAttributes(&a, &not_a_symbol));
    int count = 0;
    say("occupancy 1024", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, bump, 1024, 0));
    say("CTAs of 1024", count);
    say("occupancy 32", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, bump, 32, 0));
    say("CTAs of 32", count);
    say("occupancy shared 100 KiB", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, bump, 32, 100 << 10));
    say("CTAs of 100 KiB", count);
    say("occupancy 0 threads", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, bump, 0, 0));
    say("occupancy 1025 threads", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, bump, 1025, 0));
    say("occupancy shared 1 MiB", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, bump, 32, 1 << 20));
    const char* name = nullptr;
    say("name", cudaFuncGetName(&name, function));
    std::printf("name %s\n", name);
    std::size_t shared = 0;
    say("available shared", cudaOccupancyAvailableDynamicSMemPerBlock(&shared, bump, 2, 128));
    say("available shared of 2 CTAs", static_cast<long long>(shared));
    say("potential cluster", [&] {
        cudaLaunchConfig_t config{};
        config.gridDim = 32;
        config.blockDim = 128;
        return cudaOccupancyMaxPotentialClusterSize(&count, reinterpret_cast<const void*>(bump_bounded), &config);
    }());
    say("potential cluster size", count);
}

void streams_and_events()
{
    cudaStream_t stream = nullptr;
    cudaEvent_t first = nullptr;
    cudaEvent_t second = nullptr;
    cudaEvent_t untimed = nullptr;
    say("stream", cudaStreamCreate(&stream));
    say("stream null", cudaStreamCreate(nullptr));
    cudaStream_t bad = nullptr;
    say("stream bad flags", cudaStreamCreateWithFlags(&bad, 0x80));
    say("stream priority", cudaStreamCreateWithPriority(&bad, 0, -100));
    int priority = 0;
    cudaStreamGetPriority(bad, &priority);
    say("priority of -100", priority);
    cudaStreamDestroy(bad);
    say("query idle", cudaStreamQuery(stream));
    say("event", cudaEventCreate(&first));
    say("event", cudaEventCreate(&second));
    say("event untimed", cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    say("event bad flags", cudaEventCreateWithFlags(&bad == nullptr ? nullptr : &untimed, 0x70));
    cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming);
    float ms = 0;
    say("query never recorded", cudaEventQuery(first));
    say("synchronize never recorded", cudaEventSynchronize(first));
    say("elapsed never recorded", cudaEventElapsedTime(&ms, first, second));
    int* flag = nullptr;
    cudaMallocHost(&flag, 4);
    *flag = 0;
    cudaEventRecord(first, stream);
    spin<<<1, 1, 0, stream>>>(flag);
    cudaEventRecord(second, stream);
    say("stream query busy", cudaStreamQuery(stream));
    say("event query busy", cudaEventQuery(second));
    say("elapsed busy", cudaEventElapsedTime(&ms, first, second));
    *static_cast<volatile int*>(flag) = 1;
    say("synchronize", cudaStreamSynchronize(stream));
    say("elapsed", cudaEventElapsedTime(&ms, first, second));
    say("elapsed is positive", ms > 0);
    cudaEventRecord(untimed, stream);
    cudaEventSynchronize(untimed);
    say("elapsed untimed", cudaEventElapsedTime(&ms, first, untimed));
    say("elapsed null", cudaEventElapsedTime(nullptr, first, second));
    cudaFreeHost(flag);
    say("wait", cudaStreamWaitEvent(stream, first));
    say("wait null event", cudaStreamWaitEvent(stream, nullptr));
    say("record null event", cudaEventRecord(nullptr, stream));
    unsigned flags = 9;
    say("flags", cudaStreamGetFlags(stream, &flags));
    say("stream flags", flags);
    say("destroy event", cudaEventDestroy(first));
    say("destroy null event", cudaEventDestroy(nullptr));
    say("destroy null stream", cudaStreamDestroy(nullptr));
    cudaEventDestroy(second);
    cudaEventDestroy(untimed);
    say("destroy stream", cudaStreamDestroy(stream));
}

void devices()
{
    int device = 0;
    say("set device -1", cudaSetDevice(-1));
    say("set device 99", cudaSetDevice(99));
    say("get device", cudaGetDevice(&device));
    say("device", device);
    int value = 0;
    say("attribute of device 99", cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99));
    say("unknown attribute", cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(100000), 0));
    int least = 0;
    int greatest = 0;
    cudaDeviceGetStreamPriorityRange(&least, &greatest);
    std::printf("priorities %d %d\n", least, greatest);
    for (const auto& [name, limit] : {std::pair{"stack", cudaLimitStackSize},
                                      {"printf", cudaLimitPrintfFifoSize},
                                      {"heap", cudaLimitMallocHeapSize}}) {
        std::size_t size = 0;
        std::printf("limit %s %s", name, cudaGetErrorName(cudaDeviceGetLimit(&size, limit)));
        std::printf(" %zu\n", size);
    }
    say("unknown limit", cudaDeviceSetLimit(static_cast<cudaLimit>(77), 1));
    say("peer self", cudaDeviceEnablePeerAccess(0, 0));
    say("error name", cudaErrorInvalidClusterSize);
    std::printf("unknown error: %s, %s\n", cudaGetErrorName(static_cast<cudaError_t>(12345)),
                cudaGetErrorString(static_cast<cudaError_t>(12345)));
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    say("entry point", cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
    say("entry point found", found == cudaDriverEntryPointSuccess && function != nullptr);
    say("entry point unknown", cudaGetDriverEntryPoint("cuNoSuchCall", &function, cudaEnableDefault, &found));
    say("entry point result", found);
    say("entry point unknown, no result",
        cudaGetDriverEntryPoint("cuNoSuchCall", &function, cudaEnableDefault, nullptr));
    say("set flags", cudaSetDeviceFlags(0x1000));
    say("set limit stack", cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    say("disable peer", cudaDeviceDisablePeerAccess(0));
    int can = 5;
    say("can access itself", cudaDeviceCanAccessPeer(&can, 0, 0));
    say("can", can);
    char bus[16] = {};
    say("bus id in 4 bytes", cudaDeviceGetPCIBusId(bus, 4, 0));
    say("device of a bus id", cudaDeviceGetByPCIBusId(&device, "ffff:ff:1f.0"));
    const void* table = nullptr;
    const cudaUUID_t id{};
    say("export table", cudaGetExportTable(&table, &id));
}

void pools()
{
    cudaMemPool_t pool = nullptr;
    say("default pool", cudaDeviceGetDefaultMemPool(&pool, 0));
    cuuint64_t value = 1;
    for (const auto& [name, attribute] : {std::pair{"threshold", cudaMemPoolAttrReleaseThreshold},
                                          {"used", cudaMemPoolAttrUsedMemCurrent},
                                          {"reserved", cudaMemPoolAttrReservedMemCurrent}}) {
        say(name, cudaMemPoolGetAttribute(pool, attribute, &value));
        say(name, static_cast<long long>(value));
    }
    void* memory = nullptr;
    cudaMallocAsync(&memory, 1000, nullptr);
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value);
    say("used after 1000 bytes", static_cast<long long>(value));
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value);
    say("reserved after 1000 bytes", static_cast<long long>(value));
    cudaFreeAsync(memory, nullptr);
    cudaDeviceSynchronize();
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value);
    say("reserved after a synchronization", static_cast<long long>(value));
    say("destroy default pool", cudaMemPoolDestroy(pool));
    value = 12;
    say("set used", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
    say("set used high 12", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value));
}

}  // namespace

int main()
{
    std::setvbuf(stdout, nullptr, _IONBF, 0);
    pools();
    allocation();
    attributes_of_pointers();
    copies();
    launches();
    functions();
    streams_and_events();
    captures();
    graphs();
    devices();
    return 0;
}
