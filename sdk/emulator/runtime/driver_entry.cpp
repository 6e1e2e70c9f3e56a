#include "runtime/driver_entry.hpp"

#include <cuda.h>

#include <string_view>

// cuDeviceComputeCapability is deprecated, but programs still look it up.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace tessera::emulator {

namespace {

struct Entry {
    std::string_view name;
    void* address;
};

const Entry entries[] = {
#define TESSERA_DRIVER_SYMBOL(name) {#name, reinterpret_cast<void*>(&name)},
#include "runtime/driver_symbols.def"
#undef TESSERA_DRIVER_SYMBOL
};

std::string_view without_version(std::string_view name)
{
    const std::size_t suffix = name.rfind("_v");
    return suffix == std::string_view::npos ? name : name.substr(0, suffix);
}

}  // namespace

void* find_driver_function(const char* name)
{
    for (const Entry& entry : entries) {
        if (entry.name == name || without_version(entry.name) == name) {
            return entry.address;
        }
    }
    return nullptr;
}

}  // namespace tessera::emulator
