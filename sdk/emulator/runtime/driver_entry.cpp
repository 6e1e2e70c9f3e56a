#include "runtime/driver_entry.hpp"

#include <cuda.h>
#include <cudaProfiler.h>

#include <algorithm>
#include <iterator>
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
#include "runtime/driver_not_emulated.def"
#include "runtime/driver_symbols.def"
#undef TESSERA_DRIVER_SYMBOL
};

/// Functions that had other parameters before this version of CUDA. A program made for an earlier one is not given the
/// present form.
struct ChangedForm {
    std::string_view name;
    int since;
};

constexpr ChangedForm changed_forms[] = {
    {"cuCtxCreate_v4", 12050},        {"cuGraphAddKernelNode_v2", 12000},   {"cuMemAdvise_v2", 12020},
    {"cuMemPrefetchAsync_v2", 12020}, {"cuMemcpyBatchAsync_v2", 13000},     {"cuStreamBeginCapture_v2", 10010},
    {"cuStreamGetCtx_v2", 12050},     {"cuStreamGetCaptureInfo_v3", 12030},
};

/// Since CUDA 12, the first is a name of the second.
constexpr std::string_view instantiate = "cuGraphInstantiate", instantiate_with_flags = "cuGraphInstantiateWithFlags";
constexpr int instantiate_has_flags = 12000;

bool is_known_to(int version, std::string_view name)
{
    const auto* form = std::find_if(std::begin(changed_forms), std::end(changed_forms),
                                    [&](const ChangedForm& changed) { return changed.name == name; });
    return form == std::end(changed_forms) || version >= form->since;
}

std::string_view without_version(std::string_view name)
{
    const std::size_t suffix = name.rfind("_v");
    return suffix == std::string_view::npos ? name : name.substr(0, suffix);
}

}  // namespace

void* find_driver_function(std::string_view name, int version)
{
    if (name == instantiate) {
        return version >= instantiate_has_flags ? find_driver_function(instantiate_with_flags, version) : nullptr;
    }
    void* found = nullptr;
    for (const Entry& entry : entries) {
        if (entry.name == name) {
            found = entry.address;  // of two forms, the one with the suffix is the newer one
        }
    }
    for (const Entry& entry : entries) {
        if (entry.name != name && without_version(entry.name) == name && is_known_to(version, entry.name)) {
            found = entry.address;
        }
    }
    return found;
}

}  // namespace tessera::emulator
