#include "program/builder.hpp"
#include "base/rounding.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "program/vector_registers.hpp"

namespace tessera::emulator {

using ptx::StateSpace;

namespace {

/// The inlined function's mangled name; empty if the PTX does not say.
std::string function_name(const ptx::Module& module, const ptx::InlinedCall& call)
{
    const auto bytes = module.debug_strings.find(call.function);
    if (bytes == module.debug_strings.end() || call.offset >= bytes->second.size()) {
        return {};
    }
    return bytes->second.c_str() + call.offset;  // ends with a 0, or where the bytes end
}

/// Bytes of memory that this machine has.
std::uint64_t host_memory()
{
    return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::uint64_t alignment_of(const ptx::Variable& variable)
{
    const std::uint64_t natural = std::max<std::uint64_t>(ptx::size_of(variable.type), 1) * variable.vector_width;
    return std::max<std::uint64_t>(variable.alignment, variable.alignment == 0 ? natural : 1);
}

const std::vector<Operation>& Program::operations_with(Handlers set) const
{
    const std::scoped_lock lock(mutex_);
    std::vector<Operation>& result = operations_with_[static_cast<std::size_t>(set)];
    if (result.empty()) {
        result = operations;
        for (Operation& operation : result) {
            const Execute handler = operation.payload == nullptr ? nullptr : operation.payload->handler(set);
            operation.execute = handler == nullptr ? operation.execute : handler;
        }
    }
    return result;
}

std::vector<SourceFrame> Program::frames_of(const ptx::Location& location) const
{
    const auto frame = [&](std::uint32_t file, std::uint32_t line) {
        const auto name = module.files.find(file);
        return SourceFrame{name == module.files.end() ? std::string() : name->second, line, {}};
    };
    std::vector<SourceFrame> frames;
    if (location.source_line == 0 || !module.files.contains(location.source_file)) {
        return frames;
    }
    frames.push_back(frame(location.source_file, location.source_line));
    for (std::uint32_t number = location.inlined; number != 0;) {
        const ptx::InlinedCall& call = module.inlined[number - 1];
        frames.back().function = function_name(module, call);
        frames.push_back(frame(call.source_file, call.source_line));
        number = call.inlined;
    }
    return frames;
}

ProgramBuilder::ProgramBuilder(ptx::Module module, const DeviceModel& device_, int device_index, AddressSpace& memory)
    : device(device_), device_index_(device_index), memory_(memory), program_(std::make_unique<Program>())
{
    program_->module = std::move(module);
    for (ptx::Function& function : program_->module.functions) {
        expand_vector_registers(function.body);
    }
}

Ref ProgramBuilder::constant_row(std::uint64_t bits, unsigned bytes)
{
    const auto [place, fresh] = constant_rows_.try_emplace({bits, bytes}, 0);
    if (fresh) {
        std::vector<std::byte>& rows = program_->constants;
        const std::size_t offset = round_up(rows.size(), 64);
        const unsigned width = bytes == 0 ? 4 : bytes;
        const unsigned count = bytes == 0 ? 1 : warp_size;
        rows.resize(offset + std::max<std::size_t>(std::size_t{width} * count, 64));
        for (unsigned i = 0; i < count; ++i) {
            std::memset(rows.data() + offset + std::size_t{i} * width, 0, width);
            std::memcpy(rows.data() + offset + std::size_t{i} * width, &bits, std::min(width, 8U));
        }
        place->second = static_cast<Ref>(offset) | in_constants;
    }
    return place->second;
}

Ref ProgramBuilder::warp_constant(WarpConstant what, unsigned bytes, std::uint32_t offset)
{
    for (const WarpConstantRow& row : program_->warp_constants) {
        if (row.what == what && row.bytes == bytes && row.offset == offset) {
            return row.row;
        }
    }
    const Ref row = program_->warp_constant_bytes | in_warp;
    program_->warp_constants.push_back({what, offset, bytes, row});
    program_->warp_constant_bytes += static_cast<std::uint32_t>(round_up(std::uint64_t{bytes} * warp_size, 64));
    return row;
}

const Symbol* ProgramBuilder::find(std::string_view name) const
{
    const auto found = symbols_.find(name);
    if (found != symbols_.end()) {
        return &found->second;
    }
    const auto alias = program_->module.aliases.find(std::string(name));
    return alias == program_->module.aliases.end() ? nullptr : find(alias->second);
}

std::optional<std::uint32_t> ProgramBuilder::function_index(std::string_view name) const
{
    const Symbol* symbol = find(name);
    if (symbol == nullptr || symbol->kind != Symbol::Kind::function) {
        return std::nullopt;
    }
    return static_cast<std::uint32_t>(symbol->offset - function_base);
}

void ProgramBuilder::place_variables()
{
    std::uint64_t shared = 0;
    // All of it is written now, as variables are initially zero.
    std::uint64_t left = host_memory() / 2;
    for (const ptx::Variable& variable : program_->module.variables) {
        Symbol symbol;
        symbol.size = variable.size();
        switch (variable.space) {
            case StateSpace::global:
            case StateSpace::constant: {
                if (variable.external) {
                    continue;  // defined in another module, or unused
                }
                symbol.kind = Symbol::Kind::memory_variable;
                const std::uint64_t size = std::max<std::uint64_t>(symbol.size, 1);
                const bool fits = size <= left;
                const MemoryKind kind = variable.managed ? MemoryKind::managed : MemoryKind::module;
                symbol.offset = fits ? memory_.allocate(size, kind, device_index_, variable.name) : std::uint64_t{0};
                left -= fits ? size : 0;
                if (symbol.offset == 0) {
                    throw std::runtime_error(
                        fmt::format("out of memory for the variable {} of {} bytes", variable.name, size));
                }
                memory_.find(symbol.offset)->constant = variable.space == StateSpace::constant;
                program_->variables[variable.name] = {symbol.offset, size, variable.space == StateSpace::constant};
                break;
            }
            case StateSpace::shared:
                if (variable.external) {
                    symbol.kind = Symbol::Kind::dynamic_shared;
                    symbol.offset = alignment_of(variable);
                } else {
                    symbol.kind = Symbol::Kind::shared_variable;
                    shared = round_up(shared, alignment_of(variable));
                    symbol.offset = shared;
                    shared += symbol.size;
                }
                break;
            default: continue;  // .tex and others: an error where they are used
        }
        symbols_[variable.name] = symbol;
    }
    module_shared_bytes = static_cast<std::uint32_t>(shared);
    for (std::size_t i = 0; i < program_->module.functions.size(); ++i) {
        const ptx::Function& function = program_->module.functions[i];
        const auto known = symbols_.find(function.name);
        if (known != symbols_.end() && !function.defined) {
            continue;  // a declaration after the definition
        }
        Symbol symbol;
        symbol.kind = Symbol::Kind::function;
        symbol.offset = function_base + i;
        symbols_[function.name] = symbol;
    }
    for (const ptx::Variable& variable : program_->module.variables) {  // when all addresses are known
        const auto placed = program_->variables.find(variable.name);
        if (placed != program_->variables.end()) {
            initialize(variable, placed->second.address);
        }
    }
}

void ProgramBuilder::initialize(const ptx::Variable& variable, std::uint64_t address)
{
    Allocation* allocation = memory_.find(address);
    std::memset(allocation->bytes, 0, allocation->size);  // PTX ISA "Initializers": zero unless given
    allocation->mark_initialized(0, allocation->size);
    const std::size_t width = std::max<std::size_t>(ptx::size_of(variable.type), 1);
    std::size_t offset = 0;
    for (const ptx::Variable::InitialValue& value : variable.initial) {
        std::uint64_t bits = value.bits;
        if (!value.symbol.empty()) {
            const Symbol* symbol = find(value.symbol);
            if (symbol == nullptr) {
                throw std::runtime_error(
                    fmt::format("'{}', used to initialize {}, is not defined in this module: link all "
                                "device code into one module",
                                value.symbol, variable.name));
            }
            bits += symbol->offset;
            if (value.masked) {
                bits = bits >> value.mask_shift & 0xFF;
            }
        }
        if (offset + width > allocation->size) {
            throw std::runtime_error(fmt::format("{} has more initial values than elements", variable.name));
        }
        std::memcpy(allocation->bytes + offset, &bits, std::min<std::size_t>(width, 8));
        offset += width;
    }
}

std::unique_ptr<Program> ProgramBuilder::build()
{
    // A module that cannot be loaded gives the memory of its variables back. One that can has left program_.
    const struct Unfinished {
        const std::unique_ptr<Program>& program;
        AddressSpace& memory;
        ~Unfinished()
        {
            if (program != nullptr) {
                for (const auto& [name, variable] : program->variables) {
                    memory.free(variable.address);
                }
            }
        }
    } unfinished{program_, memory_};
    place_variables();
    Program& program = *program_;
    const std::size_t count = program.module.functions.size();
    program.functions.resize(count);
    uses.resize(count);
    std::vector<std::uint32_t> own_shared(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        const ptx::Function& function = program.module.functions[i];
        FunctionCode& code = program.functions[i];
        code.name = function.name;
        code.kernel = function.kernel;
        code.source = &function;
        if (function.defined) {
            FunctionBuilder builder(*this, function, i);
            builder.build();
            own_shared[i] = builder.shared_bytes;
        }
    }
    describe_kernels();
    for (auto& [name, kernel] : program.kernels) {
        const std::uint32_t index = program.kernel_functions[name];
        kernel.static_shared =
            static_cast<std::uint32_t>(std::max<std::uint64_t>(kernel.static_shared, own_shared[index]));
    }
    return std::move(program_);
}

void ProgramBuilder::describe_kernels()
{
    Program& program = *program_;
    for (std::uint32_t i = 0; i < program.functions.size(); ++i) {
        const ptx::Function& function = *program.functions[i].source;
        if (!function.kernel || !function.defined) {
            continue;
        }
        KernelInfo kernel;
        kernel.name = function.name;
        std::uint64_t offset = 0;
        for (const ptx::Variable& parameter : function.parameters) {
            offset = round_up(offset, alignment_of(parameter));
            kernel.parameters.push_back(
                {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(parameter.size())});
            offset += parameter.size();
        }
        if (offset > max_parameter_bytes) {
            kernel.parameters.clear();  // it cannot be launched
            offset = 0;
        }
        kernel.parameter_bytes = static_cast<std::uint32_t>(offset);
        // What the kernel reaches: shared memory, depth of local memory, accesses that synchronize clusters, and whether
        // all of it could be lowered.
        std::set<std::uint32_t> reached{i};
        std::vector<std::uint32_t> open{i};
        bool module_shared = false;
        while (!open.empty()) {
            const std::uint32_t at = open.back();
            open.pop_back();
            module_shared = module_shared || uses[at].module_shared;
            kernel.synchronizes_clusters = kernel.synchronizes_clusters || uses[at].synchronizes_clusters;
            kernel.uses_bulk_copies = kernel.uses_bulk_copies || uses[at].uses_bulk_copies;
            kernel.uses_launch_control = kernel.uses_launch_control || uses[at].uses_launch_control;
            kernel.uses_printf = kernel.uses_printf || uses[at].uses_printf;
            kernel.uses_malloc = kernel.uses_malloc || uses[at].uses_malloc;
            kernel.local_bytes += program.functions[at].local_bytes;
            if (kernel.load_error.empty()) {
                kernel.load_error = uses[at].error;
            }
            for (const std::uint32_t next : uses[at].calls) {
                if (reached.insert(next).second) {
                    open.push_back(next);
                }
            }
        }
        kernel.static_shared = module_shared ? module_shared_bytes : 0;
        const auto& threads = function.required_threads ? function.required_threads : function.max_threads;
        if (threads) {
            std::uint64_t product = 1;
            for (const std::uint32_t extent : *threads) {
                product *= extent;
            }
            kernel.max_threads = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(product, 1, 1024));
        }
        if (function.required_cluster) {
            const auto& extents = *function.required_cluster;
            const auto extent = [&](std::size_t d) { return d < extents.size() ? extents[d] : 1; };
            kernel.required_cluster = {extent(0), extent(1), extent(2)};
        }
        kernel.explicit_cluster = function.explicit_cluster;
        // An estimate that never exceeds launch bounds that the real compiler would meet.
        const std::uint32_t limit =
            std::min(255U, device.registers_per_multiprocessor / std::max(kernel.max_threads, 32U) / 8 * 8);
        kernel.registers =
            std::clamp(uses[i].registers, 16U, std::clamp(function.max_registers.value_or(255), 16U, limit));
        program.kernel_functions[kernel.name] = i;
        program.kernels[kernel.name] = std::move(kernel);
    }
}

}  // namespace tessera::emulator
