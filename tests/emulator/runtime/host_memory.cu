/// Host memory that a copy reads, changed too early and at the right time; managed variables; and launches whose error is
/// ignored.
/// host_memory <case> runs one case; each is a finding or is right, as tests/emulator/runtime/CMakeLists.txt says.

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

namespace {

constexpr std::size_t count = 4096;
constexpr std::size_t bytes = count * sizeof(int);

__global__ void add(int* data) { data[threadIdx.x] += 1; }

__managed__ int managed[2] = {40, 7};
template <typename T>
__managed__ T managed_of{};

__global__ void add_to_managed()
{
    managed[0] += 1;
    managed_of<int> += managed[1];
}

__global__ void announce(volatile int* flag) { *flag = 1; }

struct Memory {
    int* host = nullptr;
    int* device = nullptr;
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    Memory()
    {
        cudaMallocHost(&host, bytes);
        std::memset(host, 0, bytes);
        cudaMalloc(&device, bytes);
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaEventCreate(&event);
    }
    ~Memory()
    {
        cudaStreamSynchronize(stream);
        cudaFreeHost(host);
        cudaFree(device);
        cudaStreamDestroy(stream);
        cudaEventDestroy(event);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    void send() const { cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream); }
};

// ---- wrong ----

void changed()
{
    const Memory memory;
    memory.send();
    memory.host[count - 1] = 1;
    cudaStreamSynchronize(memory.stream);
}

void changed_behind_a_kernel()
{
    const Memory memory;
    memory.send();
    add<<<1, 32, 0, memory.stream>>>(memory.device);
    memory.host[7] = 1;
    cudaDeviceSynchronize();
}

void changed_before_the_event()
{
    const Memory memory;
    memory.send();
    cudaEventRecord(memory.event, memory.stream);
    memory.host[0] = 1;
    while (cudaEventQuery(memory.event) == cudaErrorNotReady) {
    }
}

void changed_row()
{
    const Memory memory;
    cudaMemcpy2DAsync(memory.device, 256, memory.host + 4, 512, 200, 16, cudaMemcpyHostToDevice, memory.stream);
    memory.host[128 * 15 + 4] = 1;  // the last row
    cudaStreamSynchronize(memory.stream);
}

void launch_ignored()
{
    const Memory memory;
    add<<<1, 5000, 0, memory.stream>>>(memory.device);
}

void call_ignored()
{
    cudaMemset(nullptr, 0, 4);
    cudaGetLastError();
}

// ---- right ----

void right()
{
    const Memory memory;
    for (int i = 0; i < 8; ++i) {  // a buffer that is reused
        memory.host[i] = i;
        memory.send();
        if (i % 2 == 0) {
            cudaStreamSynchronize(memory.stream);
        } else {
            cudaEventRecord(memory.event, memory.stream);
            cudaEventSynchronize(memory.event);
        }
    }
    // Rows between the copied ones may change.
    cudaMemcpy2DAsync(memory.device, 256, memory.host, 512, 200, 16, cudaMemcpyHostToDevice, memory.stream);
    memory.host[60] = 77;
    cudaStreamSynchronize(memory.stream);
    // The stream itself overwrites the buffer.
    memory.send();
    add<<<1, 32, 0, memory.stream>>>(memory.device);
    cudaMemcpyAsync(memory.host, memory.device, bytes, cudaMemcpyDeviceToHost, memory.stream);
    cudaMemsetAsync(memory.host + 100, 1, 16, memory.stream);
    cudaStreamSynchronize(memory.stream);
    // So does a host function.
    memory.send();
    cudaLaunchHostFunc(memory.stream, [](void* host) { static_cast<int*>(host)[3] = 5; }, memory.host);
    cudaStreamSynchronize(memory.stream);
    // Another stream waits for the copy, and the host for that stream.
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    memory.send();
    cudaEventRecord(memory.event, memory.stream);
    cudaStreamWaitEvent(other, memory.event, 0);
    cudaStreamSynchronize(other);
    memory.host[9] = 1;
    cudaStreamSynchronize(memory.stream);
    // Another thread waits.
    memory.send();
    std::thread([&] { cudaStreamSynchronize(memory.stream); }).join();
    memory.host[10] = 1;
    cudaStreamSynchronize(memory.stream);
    // A kernel behind the copy tells the host.
    auto* flag = static_cast<volatile int*>(memory.host + 4095);
    *flag = 0;
    cudaMemcpyAsync(memory.device, memory.host, bytes / 2, cudaMemcpyHostToDevice, memory.stream);
    announce<<<1, 1, 0, memory.stream>>>(memory.host + 4095);
    while (*flag == 0) {
    }
    memory.host[11] = 1;
    cudaStreamSynchronize(memory.stream);
    cudaStreamDestroy(other);
}

void pageable()
{
    const Memory memory;
    int values[64] = {};
    cudaMemcpyAsync(memory.device, values, sizeof values, cudaMemcpyHostToDevice, memory.stream);
    values[0] = 1;  // it was copied when the call returned
    cudaStreamSynchronize(memory.stream);
}

void launch_checked()
{
    const Memory memory;
    add<<<1, 5000, 0, memory.stream>>>(memory.device);
    std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    add<<<1, 5000, 0, memory.stream>>>(memory.device);
    std::printf("%s\n", cudaGetErrorName(cudaPeekAtLastError()));
    void* arguments[] = {const_cast<int**>(&memory.device)};
    if (cudaLaunchKernel(add, 1, 5000, arguments, 0, memory.stream) != cudaSuccess) {
        std::printf("refused\n");
    }
}

void expect(bool right, const char* what)
{
    if (!right) {
        std::printf("%s is wrong\n", what);
        std::exit(1);
    }
}

/// Host and kernels share a managed variable: its initial value, and what either stores.
void managed_variable()
{
    managed[0] += 1;
    managed_of<int> = 2;
    add_to_managed<<<1, 1>>>();
    cudaDeviceSynchronize();
    expect(managed[0] == 42 && managed_of<int> == 9, "what a kernel has stored");
}

/// A managed variable as a symbol: its address is the host's, too.
void managed_symbol()
{
    void* address = nullptr;
    std::size_t size = 0;
    expect(cudaGetSymbolAddress(&address, managed) == cudaSuccess && address == &managed, "address");
    expect(cudaGetSymbolSize(&size, managed) == cudaSuccess && size == sizeof managed, "size");
    const int value = 30;
    expect(cudaMemcpyToSymbol(managed, &value, sizeof value, sizeof value) == cudaSuccess && managed[1] == value,
           "copy to it");
    int read[2] = {};
    expect(cudaMemcpyFromSymbol(read, managed, sizeof read) == cudaSuccess && read[0] == 40 && read[1] == value,
           "copy from it");
    expect(cudaGetSymbolAddress(&address, value) == cudaErrorInvalidSymbol, "another variable is none");
    cudaGetLastError();
}

}  // namespace

int main(int arguments, char** values)
{
    const std::map<std::string, std::function<void()>> cases{
        {"changed", changed},
        {"changed_behind_a_kernel", changed_behind_a_kernel},
        {"changed_before_the_event", changed_before_the_event},
        {"changed_row", changed_row},
        {"launch_ignored", launch_ignored},
        {"call_ignored", call_ignored},
        {"right", right},
        {"pageable", pageable},
        {"launch_checked", launch_checked},
        {"managed_variable", managed_variable},
        {"managed_symbol", managed_symbol},
    };
    const auto found = cases.find(arguments == 2 ? values[1] : "");
    if (found == cases.end()) {
        std::printf("unknown case\n");
        return 2;
    }
    found->second();
    return 0;
}
