// The driver's linker. What it makes is not machine code but the PTX of all inputs as one module, which the emulated device
// loads. Compiled twice, as driver_calls.cpp.

#include <cuda.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/parser.hpp"
#include "runtime/ptx_link.hpp"

using namespace tessera::emulator;

namespace {

struct Link {
    std::vector<std::string> units;
    std::string linked;  ///< after cuLinkComplete
    bool is_complete = false;
    char* error_log = nullptr;  ///< the caller's
    std::size_t error_log_bytes = 0;

    void say(std::string_view sentence) const
    {
        if (error_log != nullptr && error_log_bytes != 0) {
            const std::size_t size = std::min(sentence.size(), error_log_bytes - 1);
            std::memcpy(error_log, sentence.data(), size);
            error_log[size] = '\0';
        }
    }
};

struct Links {
    std::mutex mutex;
    std::vector<std::unique_ptr<Link>> living;

    static Links& get()
    {
        static Links links;
        return links;
    }

    /// Requires the mutex. Null if there is no such link.
    Link* find(CUlinkState state)
    {
        const auto found = std::ranges::find_if(
            living, [&](const auto& link) { return reinterpret_cast<CUlinkState>(link.get()) == state; });
        return found == living.end() ? nullptr : found->get();
    }
};

CUresult add(CUlinkState state, CUjitInputType type, const void* data, std::size_t size, const char* name)
{
    const std::scoped_lock lock(Links::get().mutex);
    Link* const link = Links::get().find(state);
    if (link == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (data == nullptr || size == 0 || link->is_complete) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::string shown = name == nullptr || *name == '\0' ? "an input" : name;
    if (type != CU_JIT_INPUT_PTX) {
        link->say(fmt::format("{} is not PTX, which is all that the emulated device can link: give it PTX", shown));
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    std::string text(static_cast<const char*>(data), size);
    text.resize(std::strlen(text.c_str()));  // the size may include the zero at the end
    try {
        static_cast<void>(ptx::parse(text));
    } catch (const ptx::ParseError& error) {
        link->say(fmt::format("{}: {}", shown, error.what()));
        return CUDA_ERROR_INVALID_PTX;
    }
    link->units.push_back(std::move(text));
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* state)
{
    if (state == nullptr || (count != 0 && (options == nullptr || values == nullptr))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto link = std::make_unique<Link>();
    for (unsigned i = 0; i < count; ++i) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
            link->error_log = static_cast<char*>(values[i]);
        } else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            link->error_log_bytes = reinterpret_cast<std::uintptr_t>(values[i]);
        }
    }
    *state = reinterpret_cast<CUlinkState>(link.get());
    const std::scoped_lock lock(Links::get().mutex);
    Links::get().living.push_back(std::move(link));
    return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                          unsigned /*count*/, CUjit_option* /*options*/, void** /*values*/)
{
    return add(state, type, data, size, name);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned /*count*/,
                          CUjit_option* /*options*/, void** /*values*/)
{
    if (path == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return add(state, type, text.data(), text.size(), path);
}

CUresult cuLinkComplete(CUlinkState state, void** code, size_t* size)
{
    const std::scoped_lock lock(Links::get().mutex);
    Link* const link = Links::get().find(state);
    if (link == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (code == nullptr || link->units.empty()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!link->is_complete) {
        try {
            link->linked = link->units.size() == 1 ? link->units.front() : link_ptx(link->units);
        } catch (const std::exception& error) {
            link->say(error.what());
            return CUDA_ERROR_INVALID_PTX;
        }
        link->is_complete = true;
    }
    *code = link->linked.data();
    if (size != nullptr) {
        *size = link->linked.size() + 1;  // with the terminating zero: callers load the copy as text
    }
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
    const std::scoped_lock lock(Links::get().mutex);
    const auto erased = std::erase_if(
        Links::get().living, [&](const auto& link) { return reinterpret_cast<CUlinkState>(link.get()) == state; });
    return erased == 0 ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

}  // extern "C"
