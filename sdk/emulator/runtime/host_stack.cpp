#include "runtime/host_stack.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

// The header is GCC's: clang's tools may not find it where GCC compiles.
#if defined(TESSERA_EMULATOR_HAS_LIBBACKTRACE) && __has_include(<backtrace.h>)
#include <backtrace.h>
#define TESSERA_EMULATOR_READS_DEBUG_INFORMATION
#endif

namespace tessera::emulator {

namespace {

/// A frame, and the mangled name of its function.
struct RawFrame {
    SourceFrame shown;
    std::string function;
};

#ifdef TESSERA_EMULATOR_READS_DEBUG_INFORMATION

constexpr std::string_view advice = "; compile with -g1 to see the line";

void ignore_error(void*, const char*, int) {}

backtrace_state* state()
{
    static backtrace_state* const made = backtrace_create_state(nullptr, 1, ignore_error, nullptr);
    return made;
}

/// The calls that were inlined at `address`, and the enclosing function, from the debug information.
std::vector<RawFrame> look_up(std::uintptr_t address)
{
    std::vector<RawFrame> frames;
    backtrace_pcinfo(
        state(), address,
        [](void* into, std::uintptr_t, const char* file, int line, const char* function) {
            if (file != nullptr) {
                const std::string name = function == nullptr ? "" : function;
                static_cast<std::vector<RawFrame>*>(into)->push_back(
                    {{file, static_cast<std::uint32_t>(line), demangled(name)}, name});
            }
            return 0;
        },
        ignore_error, &frames);
    return frames;
}

/// The symbol that contains `address`, and its start, from the symbol table, including static functions.
std::pair<std::string, std::uintptr_t> symbol_of(std::uintptr_t address)
{
    std::pair<std::string, std::uintptr_t> symbol;
    backtrace_syminfo(
        state(), address,
        [](void* into, std::uintptr_t, const char* name, std::uintptr_t value, std::uintptr_t) {
            if (name != nullptr) {
                *static_cast<std::pair<std::string, std::uintptr_t>*>(into) = {name, value};
            }
        },
        ignore_error, &symbol);
    return symbol;
}

#else

constexpr std::string_view advice;

std::vector<RawFrame> look_up(std::uintptr_t) { return {}; }

std::pair<std::string, std::uintptr_t> symbol_of(std::uintptr_t address)
{
    Dl_info info{};
    if (::dladdr(reinterpret_cast<const void*>(address), &info) == 0 || info.dli_sname == nullptr) {
        return {};
    }
    return {info.dli_sname, reinterpret_cast<std::uintptr_t>(info.dli_saddr)};
}

#endif

/// "f" of "space::f<int>(float*)".
std::string base_name(std::string_view function)
{
    std::string name = shown_kernel(function);
    name = name.substr(0, name.find('<'));
    return name.substr(name.rfind(':') + 1);
}

/// Functions between the program's line and the runtime: launch wrappers, function objects.
bool is_wrapper(std::string_view function)
{
    constexpr std::array prefixes{
        std::string_view{"__device_stub__"}, std::string_view{"cudaLaunch"}, std::string_view{"std::"},
        std::string_view{"__gnu_cxx::"},     std::string_view{"thrust::"},   std::string_view{"cub::"},
        std::string_view{"cuda::"},          std::string_view{"cudaError"},  std::string_view{"__libc_start"},
        std::string_view{"__cudart"},        std::string_view{"_start"},
    };
    const std::string name = shown_function(function);
    return std::ranges::any_of(prefixes, [&](std::string_view p) { return name.starts_with(p); });
}

/// Without debug information a library is recognized only by names.
bool is_library(std::string_view function) { return shown_function(function).starts_with("tessera::"); }

std::string file_name(const char* path)
{
    const std::string_view text = path == nullptr ? "" : path;
    return std::string(text.substr(text.rfind('/') + 1));
}

/// Build systems compile with paths relative to the build folder, which the debug information may not name. Looks for
/// it among the folders that contain the program.
std::string resolved(const std::string& file, const char* module)
{
    namespace fs = std::filesystem;
    std::error_code error;
    if (file.empty() || file.front() == '/' || fs::exists(file, error)) {
        return file;
    }
    const fs::path program = fs::absolute(module == nullptr ? "" : module, error);
    for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
        if (fs::exists(folder / file, error)) {
            return (folder / file).lexically_normal().string();
        }
    }
    return file;
}

/// Returns true if `address` is in one of the emulated libraries.
bool is_runtime(const Dl_info& module)
{
    Dl_info own{};
    ::dladdr(reinterpret_cast<const void*>(&HostStack::here), &own);
    return module.dli_fbase == own.dli_fbase || file_name(module.dli_fname).starts_with("libcuda.so");
}

struct Trace {
    std::uintptr_t* addresses;
    std::size_t count, most;
};

_Unwind_Reason_Code note(_Unwind_Context* context, void* argument)
{
    auto& trace = *static_cast<Trace*>(argument);
    int is_before_call = 0;
    const std::uintptr_t address = _Unwind_GetIPInfo(context, &is_before_call);
    if (address == 0 || trace.count == trace.most) {
        return _URC_END_OF_STACK;
    }
    trace.addresses[trace.count++] = is_before_call != 0 ? address : address - 1;  // inside the call itself
    return _URC_NO_REASON;
}

}  // namespace

HostStack HostStack::here()
{
    HostStack stack;
    Trace trace{stack.addresses_.data(), 0, deepest};
    _Unwind_Backtrace(note, &trace);
    stack.count_ = trace.count;
    return stack;
}

std::vector<SourceFrame> HostStack::frames(std::string_view kernel) const
{
    std::vector<SourceFrame> program;
    std::vector<SourceFrame> library;
    bool is_at_main = false;
    for (std::size_t i = 0; i < count_ && !is_at_main; ++i) {
        Dl_info module{};
        if (::dladdr(reinterpret_cast<const void*>(addresses_[i]), &module) == 0 || is_runtime(module)) {
            continue;
        }
        std::vector<RawFrame> found = look_up(addresses_[i]);
        bool is_from_names = false;
        if (found.empty()) {
            const auto [name, start] = symbol_of(addresses_[i]);
            const std::string where =
                name.empty() ? fmt::format("{:#x}", addresses_[i] - reinterpret_cast<std::uintptr_t>(module.dli_fbase))
                             : fmt::format("{}+{:#x}", shown_function(name), addresses_[i] + 1 - start);
            found.push_back({{{}, 0, fmt::format("{} ({})", where, file_name(module.dli_fname))}, name});
            is_from_names = true;
        }
        for (RawFrame& frame : found) {
            frame.shown.file = resolved(frame.shown.file, module.dli_fname);
            is_at_main = is_at_main || frame.function == "main";
            // nvcc makes a host function for each kernel that launches it. With little debug information it has a short
            // name.
            const bool is_kernel = !kernel.empty() && program.empty() && base_name(frame.function) == base_name(kernel);
            if (is_wrapper(frame.function) || is_kernel) {
                continue;
            }
            const Owner owner = is_from_names ? (is_library(frame.function) ? Owner::library : Owner::program)
                                              : owner_of(frame.shown.file);
            if (owner == Owner::program) {
                program.push_back(std::move(frame.shown));
            } else if (owner == Owner::library) {
                library.push_back(std::move(frame.shown));
            }
        }
    }
    std::vector<SourceFrame>& shown = program.empty() ? library : program;
    if (!shown.empty() && shown.front().file.empty()) {
        shown.front().function += advice;
    }
    return shown;
}

}  // namespace tessera::emulator
