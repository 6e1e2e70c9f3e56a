// For any bytes, loading them as code at run time (cudaLibraryLoadData) either fails with a sentence, or makes modules
// whose kernels can be queried. The bytes are a fat binary, or else PTX text. They lie at the end of readable memory.
// Text is also linked (cuLinkAddData, nvcc -rdc=true): lines that begin with //---- separate its units.
//
// With libFuzzer: compile this file and the emulated device by clang++ -fsanitize=fuzzer,address,undefined. Without:
// link fuzz_driver.cpp.

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "machine/launch.hpp"
#include "ptx/parser.hpp"
#include "runtime/fatbin.hpp"
#include "runtime/ptx_link.hpp"

namespace {

using namespace tessera::emulator;

constexpr std::size_t page = 4096;
constexpr std::size_t largest_input = 64 * page;
constexpr std::uint64_t largest_variables = 64 << 20;
constexpr long most_kilobytes = 3 << 20;  // of this process, with sanitizers

/// Ends the process, as fuzzers expect, if loading broke a promise.
void require(bool kept, std::string_view promise, std::string_view detail)
{
    if (!kept) {
        fmt::print(stderr, "loading code broke a promise: {}\n{}\n", promise, detail);
        std::abort();
    }
}

/// The input, with memory behind it that nobody can access.
std::span<const std::byte> at_the_end_of_memory(std::span<const std::byte> input)
{
    static std::byte* const memory = [] {
        void* const mapped = ::mmap(nullptr, largest_input + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        require(mapped != MAP_FAILED && ::mprotect(mapped, largest_input, PROT_READ | PROT_WRITE) == 0,
                "there is memory", "");
        return static_cast<std::byte*>(mapped);
    }();
    std::byte* const at = memory + largest_input - input.size();
    if (!input.empty()) {
        std::memcpy(at, input.data(), input.size());
    }
    return {at, input.size()};
}

void check_error(const std::exception& error)
{
    const std::string_view what = error.what();
    require(what.size() > 10, "an error is a sentence", what);
}

void load_text(const std::string& text, const DeviceModel& device)
{
    AddressSpace memory;
    try {
        // Variables of a valid program may be large, and all their bytes are written.
        std::uint64_t bytes = 0;
        for (const ptx::Variable& variable : ptx::parse(text).variables) {
            bytes += variable.size();
        }
        if (bytes > largest_variables) {
            return;
        }
        const LoadedModule module(text, device, 0, memory);
        for (const std::string& name : module.kernel_names()) {
            const KernelInfo* const kernel = module.find_kernel(name);
            require(kernel != nullptr, "a kernel that is listed is found", name);
            require(kernel->load_error.empty() || kernel->load_error.size() > 10, "an error is a sentence",
                    kernel->load_error);
            std::uint64_t end = 0;
            for (const ParameterLayout& parameter : kernel->parameters) {
                end = std::max<std::uint64_t>(end, std::uint64_t{parameter.offset} + parameter.size);
            }
            require(end <= kernel->parameter_bytes, "parameters lie in their block", name);
        }
    } catch (const std::exception& error) {
        check_error(error);
    }
}

/// Loads all units of `text` as one module.
void link(std::string_view text)
{
    constexpr std::string_view separator = "\n//----";
    std::vector<std::string> units;
    while (true) {
        const std::size_t end = text.find(separator);
        units.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            break;
        }
        text.remove_prefix(end + 1);
    }
    std::string linked;
    try {
        linked = link_ptx(units);
    } catch (const std::exception& error) {
        check_error(error);
        return;
    }
    load_text(linked, *device_models().begin());
}

/// True if the bytes are a wrapper whose pointer leads out of them. Such a pointer is refused unless it happens to be
/// readable; AddressSanitizer ends the process when its own memory is read.
[[maybe_unused]] bool leads_elsewhere(std::span<const std::byte> input)
{
    struct Wrapper {
        std::uint32_t magic, version;
        const std::byte* data;
    };
    constexpr std::uint32_t wrapper_magic = 0x466243B1;
    Wrapper wrapper{};
    if (input.size() < sizeof wrapper) {
        return false;
    }
    std::memcpy(&wrapper, input.data(), sizeof wrapper);
    return wrapper.magic == wrapper_magic &&
           (wrapper.data < input.data() || wrapper.data >= input.data() + input.size());
}

void load_fatbin(const std::vector<FatbinEntry>& entries)
{
    for (const DeviceModel& device : device_models()) {
        const FatbinEntry* const entry = choose_ptx(entries, device);
        require(entry != nullptr || !explain_no_ptx(entries, device).empty(), "a missing target is explained", "");
        if (entry != nullptr) {
            load_text(ptx_text(*entry), device);
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size < 4 || size > largest_input) {
        return 0;
    }
    const std::span<const std::byte> input = at_the_end_of_memory(std::as_bytes(std::span(data, size)));
    if (is_fatbin(input.data())) {
        // As a file, whose size is known, and as an address.
        for (const bool as_file : {true, false}) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
            if (!as_file && leads_elsewhere(input)) {
                continue;
            }
#endif
#endif
            try {
                load_fatbin(as_file ? read_fatbin(input) : read_fatbin(static_cast<const void*>(input.data())));
            } catch (const std::exception& error) {
                check_error(error);
            }
        }
    } else {
        const std::string text(reinterpret_cast<const char*>(input.data()), input.size());
        for (const DeviceModel& device : device_models()) {
            load_text(text, device);
        }
        link(text);
    }
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    require(usage.ru_maxrss < most_kilobytes, "memory is bounded", fmt::format("{} KB", usage.ru_maxrss));
    return 0;
}
