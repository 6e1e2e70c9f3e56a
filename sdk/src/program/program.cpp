#include "tessera/tile/program.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "base/hash.hpp"
#include "program/embedded_headers.hpp"
#include "program/nvrtc.hpp"
#include "program/program_cache.hpp"
#include "program/program_state.hpp"
#include "tessera/device.hpp"
#include "tessera/error.hpp"

namespace tessera::tile {
namespace detail {
namespace {

using tessera::detail::raise;
constexpr std::string_view operation = "tile::Program";
constexpr std::size_t most_lines = 30;  // of the compiler that are shown

/// Returns the name of an architecture for NVRTC. Its "a" form has instructions that later GPUs do not have: warpgroups' products, and
/// tensor memory.
std::string architecture(int capability)
{
    return fmt::format("sm_{}{}", capability,
                       capability == 90 || capability / 10 == 10 || capability / 10 == 11 ? "a" : "");
}

/// Returns the source with the entries of a type.
std::string with_entries(const ProgramState& state, const std::string& type)
{
    return fmt::format(
        "#include <tessera/tile.cuh>\n"
        "#line 1 \"{}\"\n{}\n"
        "#line 1 \"the type that was asked for\"\n"
        "using tessera_tile_program = {};\n"
        "#define TESSERA_TILE_PROGRAM ::tessera_tile_program\n"
        "#include <tessera/tile/program_entries.cuh>\n",
        state.options.name, state.source, type);
}

std::vector<std::string> options_of(const ProgramState& state, int capability)
{
    std::vector<std::string> options{"-std=c++20", "-default-device", "--gpu-architecture=" + architecture(capability)};
    for (const std::string& definition : state.options.definitions) {
        options.push_back("-D" + definition);
    }
    for (const std::string& folder : state.options.include_folders) {
        options.push_back("-I" + folder);
    }
    if (state.options.line_numbers) {
        options.emplace_back("-lineinfo");
    }
    return options;
}

/// Returns everything that the compiled code depends on, as text.
std::string key_of(const Source& source, const Nvrtc& nvrtc)
{
    static const std::string headers = [] {
        std::size_t bytes = 0;
        std::uint64_t hash = tessera::detail::hash_start;
        for (std::size_t i = 0; i < embedded_header_count; ++i) {
            const std::string_view text(embedded_header_texts[i]);
            hash = tessera::detail::hash(text, hash);
            bytes += text.size();
        }
        return fmt::format("{} bytes of headers, {:016x}", bytes, hash);
    }();
    return fmt::format("NVRTC {}\n{}\n{}\n{}", nvrtc.version(), headers, fmt::join(source.options, "\n"), source.text);
}

/// Returns the first lines of what the compiler says, without what it says of every program.
std::string shortened(const std::string& log)
{
    std::istringstream lines(log);
    std::string text;
    std::string line;
    std::size_t count = 0;
    while (std::getline(lines, line)) {
        if (line.empty() || line.find("C7519") != std::string::npos) {  // registers of warpgroups' products
            continue;
        }
        if (++count > most_lines) {
            return text + "\n...";
        }
        text += (text.empty() ? "" : "\n") + line;
    }
    return text;
}

/// Returns what is wrong, one line each, as "layer.cu(19): error: ...": our own sentences at the line of the user's source that they
/// are about, and the compiler's errors in the source. Nothing if there are none of these.
std::string errors_in_source(const std::string& log, const std::string& name)
{
    constexpr std::string_view sentence_begins = "static assertion failed with \"";
    std::vector<std::string> errors;
    const auto add = [&](const std::string& place, std::string_view text) {
        const std::string error = fmt::format("{}: error: {}\n", place, text);
        // What the compiler makes of a refusal that it has reported is no news.
        const bool is_known = std::any_of(errors.begin(), errors.end(), [&](const std::string& other) {
            return other.starts_with(place + ": error: tessera:") || other == error;
        });
        if (!is_known) {
            errors.push_back(error);
        }
    };
    std::istringstream lines(log);
    std::string line;
    std::string sentence;  // whose place is not known yet
    while (std::getline(lines, line)) {
        const std::size_t error = line.find("): error: ");
        if (error != std::string::npos) {
            const std::size_t begin = line.find(sentence_begins, error);
            sentence.clear();
            if (begin != std::string::npos && line.find("tessera: ", begin) != std::string::npos) {
                sentence = line.substr(begin + sentence_begins.size());
                sentence.resize(sentence.size() - (sentence.ends_with('"') ? 1 : 0));
            }
            if (line.starts_with(name + "(")) {
                add(line.substr(0, error + 1), sentence.empty() ? line.substr(error + 10) : sentence);
                sentence.clear();
            }
        } else if (!sentence.empty() && line.ends_with(" of " + name)) {
            const std::size_t number = line.rfind("at line ") + 8;
            add(fmt::format("{}({})", name, line.substr(number, line.size() - number - 4 - name.size())), sentence);
            sentence.clear();
        }
    }
    return fmt::format("{}", fmt::join(errors, ""));
}

std::shared_ptr<const NotedProgram> noted(CompiledProgram code, const std::string& type,
                                          const std::source_location& caller)
{
    auto program = std::make_shared<NotedProgram>();
    program->code = std::move(code);
    try {
        program->notes = notes_of(program->code.ptx);
    } catch (const std::runtime_error& error) {
        raise(ErrorCode::compilation_failed, operation, caller,
              fmt::format("what {} needs cannot be told from its code: {}", type, error.what()),
              "hold tiles in the outermost scope of the loop over the places");
    }
    return program;
}

/// Compiles, or reads from disk.
std::shared_ptr<const NotedProgram> compile(const ProgramState& state, const std::string& type, int capability,
                                            const std::source_location& caller)
{
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const Nvrtc& nvrtc = Nvrtc::get(caller);
    if (!nvrtc.knows(capability)) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("NVRTC {} does not compile for compute capability {}.{}", nvrtc.version(), capability / 10,
                          capability % 10),
              "from 7.5 on, and as new as your CUDA Toolkit");
    }
    const Source source{state.options.name, with_entries(state, type), options_of(state, capability)};
    const std::string key = key_of(source, nvrtc);
    const std::string folder = cache_folder(state.options.cache_folder);
    std::string warnings;
    if (std::optional<CompiledProgram> kept = read_program(folder, key, warnings)) {
        kept->seconds = seconds();
        return noted(std::move(*kept), type, caller);
    }
    Compiled compiled = nvrtc.compile(source, caller);
    if (!compiled.succeeded) {
        const std::string errors = errors_in_source(compiled.log, state.options.name);
        raise(ErrorCode::compilation_failed, operation, caller,
              fmt::format("{} does not compile:\n{}", type, shortened(errors.empty() ? compiled.log : errors)));
    }
    CompiledProgram code;
    code.ptx = std::move(compiled.ptx);
    code.machine_code = std::move(compiled.machine_code);
    const std::shared_ptr<const NotedProgram> first = noted(code, type, caller);  // only what can be used is kept
    keep_program(folder, key, code, warnings);
    code.warnings = warnings + shortened(compiled.log);
    code.seconds = seconds();
    return std::make_shared<NotedProgram>(NotedProgram{std::move(code), first->notes});
}

std::shared_ptr<const NotedProgram> compiled(ProgramState& state, const std::string& type, int capability,
                                             const std::source_location& caller)
{
    const std::scoped_lock lock(state.mutex);
    std::shared_ptr<const NotedProgram>& place = state.compiled[{type, capability}];
    if (!place) {
        place = compile(state, type, capability, caller);
    }
    return place;
}

std::shared_ptr<const LoadedProgram> load(const std::shared_ptr<const NotedProgram>& program, const std::string& type,
                                          int device, const std::source_location& caller)
{
    using tessera::detail::check;
    const auto loaded = std::make_shared<LoadedProgram>();
    loaded->type = type;
    loaded->program = program;
    loaded->device = device;
    const CompiledProgram& code = program->code;
    const auto load = [&](const std::string& image) {
        return cudaLibraryLoadData(&loaded->library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    };
    // The emulated device runs PTX alone. It is there if its library is.
    const bool is_emulated = dlsym(RTLD_DEFAULT, "tessera_emulator_library_of") != nullptr;
    cudaError_t status =
        is_emulated || code.machine_code.empty() ? cudaErrorNoKernelImageForDevice : load(code.machine_code);
    if (status == cudaSuccess &&
        cudaLibraryGetKernel(&loaded->mma_sync, loaded->library, "tessera_tile_mma_sync") != cudaSuccess) {
        status = cudaErrorNoKernelImageForDevice;
        cudaLibraryUnload(loaded->library);
        loaded->library = nullptr;
    }
    if (status != cudaSuccess) {
        tessera::detail::forget(cudaGetLastError());
        check(load(code.ptx), "cudaLibraryLoadData", operation, caller);
        check(cudaLibraryGetKernel(&loaded->mma_sync, loaded->library, "tessera_tile_mma_sync"), "cudaLibraryGetKernel",
              operation, caller);
    }
    const auto find = [&](cudaKernel_t& kernel, const char* name) {
        if (cudaLibraryGetKernel(&kernel, loaded->library, name) != cudaSuccess) {
            tessera::detail::forget(cudaGetLastError());
            kernel = nullptr;
        }
    };
    find(loaded->by_tma, "tessera_tile_by_tma");
    find(loaded->wgmma, "tessera_tile_wgmma");
    find(loaded->clusters, "tessera_tile_clusters");
    if (program->notes.tcgen05) {
        find(loaded->tcgen05, "tessera_tile_tcgen05");
        find(loaded->pairs, "tessera_tile_pairs");
        find(loaded->clusters_of_pairs, "tessera_tile_clusters_of_pairs");
    }
    return loaded;
}

}  // namespace

LoadedProgram::~LoadedProgram()
{
    if (library != nullptr) {
        tessera::detail::drop(cudaLibraryUnload(library), "cudaLibraryUnload");
    }
}

}  // namespace detail

Program Program::from_source(std::string source, ProgramOptions options)
{
    auto state = std::make_shared<detail::ProgramState>();
    state->source = std::move(source);
    state->options = std::move(options);
    return Program(std::move(state));
}

Program Program::from_file(const std::string& path, ProgramOptions options, std::source_location caller)
{
    const std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file || !text) {
        tessera::detail::raise(ErrorCode::invalid_argument, "tile::Program::from_file", caller,
                               fmt::format("the source {} cannot be read", path), "the path of a file with text");
    }
    if (options.name == ProgramOptions().name) {
        options.name = path;
    }
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    options.include_folders.push_back(folder.empty() ? "." : folder.string());
    return from_source(text.str(), std::move(options));
}

CompiledProgram Program::compile(std::string_view type, ComputeCapability target, std::source_location caller) const
{
    return detail::compiled(*state_, std::string(type), 10 * target.major + target.minor, caller)->code;
}

Kernel Program::kernel(std::string_view type, std::source_location caller) const
{
    const Device device = Device::current(caller);
    const std::string name(type);
    {
        const std::scoped_lock lock(state_->mutex);
        const auto found = state_->loaded.find({name, device.ordinal()});
        if (found != state_->loaded.end()) {
            return Kernel(found->second);
        }
    }
    const auto program = detail::compiled(*state_, name, device.properties().compute_capability(), caller);
    auto loaded = detail::load(program, name, device.ordinal(), caller);
    const std::scoped_lock lock(state_->mutex);
    return Kernel(state_->loaded.emplace(std::pair(name, device.ordinal()), std::move(loaded)).first->second);
}

const CompiledProgram& Kernel::code() const noexcept { return program_->program->code; }
const std::string& Kernel::type() const noexcept { return program_->type; }

}  // namespace tessera::tile
