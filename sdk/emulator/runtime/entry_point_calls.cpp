// Driver functions by name.

#include <cuda_runtime_api.h>

#include "runtime/call.hpp"
#include "runtime/driver_entry.hpp"

using namespace tessera::emulator;

namespace {

cudaError_t get(const char* name, const char* symbol, void** address, cudaDriverEntryPointQueryResult* result,
                int version = CUDART_VERSION)
{
    return call(name, query_call, [&]() -> cudaError_t {
        if (symbol == nullptr || address == nullptr) {
            return cudaErrorInvalidValue;
        }
        *address = find_driver_function(symbol, version);
        if (result != nullptr) {
            *result = *address == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
        }
        return cudaSuccess;
    });
}

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** address, unsigned long long /*flags*/,
                                    cudaDriverEntryPointQueryResult* result)
{
    return get("cudaGetDriverEntryPoint", symbol, address, result);
}
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** address, unsigned long long /*flags*/,
                                         cudaDriverEntryPointQueryResult* result)
{
    return get("cudaGetDriverEntryPoint", symbol, address, result);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** address, unsigned version,
                                             unsigned long long /*flags*/, cudaDriverEntryPointQueryResult* result)
{
    return get("cudaGetDriverEntryPointByVersion", symbol, address, result, static_cast<int>(version));
}
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** address, unsigned version,
                                                  unsigned long long /*flags*/, cudaDriverEntryPointQueryResult* result)
{
    return get("cudaGetDriverEntryPointByVersion", symbol, address, result, static_cast<int>(version));
}

}  // extern "C"
