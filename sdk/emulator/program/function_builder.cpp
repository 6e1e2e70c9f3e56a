#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <deque>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "base/rounding.hpp"
#include "program/builder.hpp"

namespace tessera::emulator {

using ptx::StateSpace;
using ptx::Type;

namespace {

struct KnownInstruction {
    Decode decode;
    ValueFlow flow;  ///< unless the decoder says something else
};

[[nodiscard]] const std::unordered_map<std::string_view, KnownInstruction>& decoders()
{
    static const auto table = [] {
        std::unordered_map<std::string_view, KnownInstruction> result;
        for (const auto& family : {integer_instructions(), floating_instructions(), conversion_instructions()}) {
            for (const InstructionEntry& entry : family) {
                result.emplace(entry.opcode, KnownInstruction{entry.decode, ValueFlow::passed_on});
            }
        }
        for (const auto& family : {control_instructions(), memory_instructions(), barrier_instructions(),
                                   warp_instructions(), matrix_instructions(), copy_instructions(),
                                   wgmma_instructions(), tcgen05_instructions(), launch_control_instructions()}) {
            for (const InstructionEntry& entry : family) {
                result.emplace(entry.opcode, KnownInstruction{entry.decode, ValueFlow::used});
            }
        }
        return result;
    }();
    return table;
}

}  // namespace

FunctionBuilder::FunctionBuilder(ProgramBuilder& program_, const ptx::Function& function, std::uint32_t index_)
    : program(program_), source(function), index(index_)
{}

Ref FunctionBuilder::new_row(unsigned bytes)
{
    if (surveys_) {
        return RegisterRows::temporary;
    }
    const std::uint32_t size = bytes == 0 ? 4 : bytes * warp_size;
    std::uint32_t& end = code().register_bytes;
    end = static_cast<std::uint32_t>(round_up(end, bytes == 0 ? 4 : 64));
    const Ref row = end;
    end += size;
    if (end >= in_constants) {
        throw DecodeError("the function has too many registers");
    }
    code().rows.push_back({row, bytes});
    return row;
}

const Symbol* FunctionBuilder::find(std::string_view name) const
{
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
        const auto found = scope->names.find(name);
        if (found != scope->names.end()) {
            return &found->second;
        }
        // A parameterized name: the longest prefix without digits at the end.
        std::size_t digits = name.size();
        while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1])) != 0) {
            --digits;
        }
        for (std::size_t cut = digits; cut < name.size(); ++cut) {
            const auto range = scope->ranges.find(name.substr(0, cut));
            if (range == scope->ranges.end() || name.size() - cut > 9 || (name[cut] == '0' && name.size() - cut > 1)) {
                continue;
            }
            std::uint32_t number = 0;
            std::from_chars(name.data() + cut, name.data() + name.size(), number);
            if (number < *range->second->count) {
                std::deque<Symbol>& symbols = range_symbols_[range->second];
                symbols.resize(std::max<std::size_t>(symbols.size(), number + 1));
                Symbol& symbol = symbols[number];
                symbol.kind = Symbol::Kind::reg;
                symbol.type = range->second->type;
                symbol.row = surveys_ ? rows_.number_of(*range->second, number) : rows_.row(*range->second, number);
                return &symbol;
            }
        }
    }
    const Symbol* symbol = program.find(name);
    if (symbol != nullptr && symbol->kind == Symbol::Kind::shared_variable) {
        program.uses[index].module_shared = true;
    }
    return symbol;
}

const ptx::TargetList* FunctionBuilder::target_list(std::string_view label) const
{
    const auto found = targets_.find(label);
    return found == targets_.end() ? nullptr : &found->second;
}

void FunctionBuilder::declare_parameters()
{
    const auto place = [&](const ptx::Variable& parameter, std::uint64_t& offset) {
        offset = round_up(offset, alignment_of(parameter));
        const std::uint64_t at = offset;
        offset += parameter.size();
        return at;
    };
    Scope& scope = scopes_.emplace_back();
    if (source.kernel) {
        std::uint64_t offset = 0;
        for (const ptx::Variable& parameter : source.parameters) {
            Symbol symbol;
            symbol.kind = Symbol::Kind::kernel_parameter;
            symbol.offset = place(parameter, offset);
            symbol.size = parameter.size();
            scope.names[parameter.name] = symbol;
        }
        if (offset > max_parameter_bytes) {
            throw DecodeError(
                fmt::format("the kernel's parameters have {} bytes; the most is {}", offset, max_parameter_bytes));
        }
        return;
    }
    std::uint64_t offset = code().parameter_bytes;
    for (const auto& [list, formal] :
         {std::pair{&source.results, &code().results}, std::pair{&source.parameters, &code().parameters}}) {
        for (const ptx::Variable& parameter : *list) {
            const std::uint64_t at = place(parameter, offset);
            formal->push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(parameter.size())});
            Symbol symbol;
            symbol.offset = at;
            symbol.size = parameter.size();
            symbol.kind = Symbol::Kind::frame_parameter;
            if (parameter.space == StateSpace::reg) {
                throw DecodeError(
                    fmt::format("{}: register parameters of functions are not supported: use .param", parameter.name));
            }
            scope.names[parameter.name] = symbol;
        }
    }
    code().parameter_bytes = static_cast<std::uint32_t>(round_up(offset, 16));
}

void FunctionBuilder::declare(const ptx::Variable& variable)
{
    Scope& scope = scopes_.back();
    Symbol symbol;
    symbol.size = variable.size();
    switch (variable.space) {
        case StateSpace::reg: {
            if (variable.vector_width != 1) {
                throw DecodeError(fmt::format(
                    "{}: a vector register has .v2 or .v4, no predicates, and at most 16 bytes", variable.name));
            }
            if (variable.count) {
                scope.ranges[variable.name] = &variable;
                return;
            }
            symbol.kind = Symbol::Kind::reg;
            symbol.type = variable.type;
            symbol.row = surveys_ ? rows_.number_of(variable, 0) : rows_.row(variable, 0);
            break;
        }
        case StateSpace::param: {
            symbol.kind = Symbol::Kind::frame_parameter;
            std::uint32_t& end = code().parameter_bytes;
            symbol.offset = round_up(end, alignment_of(variable));
            end = static_cast<std::uint32_t>(round_up(symbol.offset + symbol.size, 16));
            break;
        }
        case StateSpace::local: {
            symbol.kind = Symbol::Kind::frame_local;
            std::uint32_t& end = code().local_bytes;
            symbol.offset = round_up(end, std::max<std::uint64_t>(alignment_of(variable), 4));
            end = static_cast<std::uint32_t>(symbol.offset + symbol.size);
            break;
        }
        case StateSpace::shared: {
            if (variable.external) {
                symbol.kind = Symbol::Kind::dynamic_shared;
                symbol.offset = alignment_of(variable);
                break;
            }
            symbol.kind = Symbol::Kind::shared_variable;
            // A kernel's own variables come after the module's, because it may call functions that use those. A
            // function's variables are the module's.
            std::uint32_t& end = source.kernel ? shared_bytes : program.module_shared_bytes;
            if (source.kernel && shared_bytes == 0) {
                shared_bytes = program.module_shared_bytes;
            }
            symbol.offset = round_up(end, alignment_of(variable));
            end = static_cast<std::uint32_t>(symbol.offset + symbol.size);
            if (!source.kernel) {
                program.uses[index].module_shared = true;
            }
            break;
        }
        default:
            throw DecodeError(
                fmt::format("{}: variables of this state space cannot be declared in a function", variable.name));
    }
    scope.names[variable.name] = symbol;
}

void FunctionBuilder::collect_targets(const ptx::Block& block)
{
    for (const ptx::Statement& statement : block.statements) {
        if (const auto* list = std::get_if<ptx::TargetList>(&statement.value)) {
            targets_[list->label] = *list;
        } else if (const auto* inner = std::get_if<ptx::Block>(&statement.value)) {
            collect_targets(*inner);
        }
    }
}

void FunctionBuilder::when_placed(const std::string& label, std::function<void(std::uint32_t)> use)
{
    label_uses_.push_back({open_blocks_, label, std::move(use), current_, rows_.position()});
}

void FunctionBuilder::append(const Operation& operation, const Effects& effects, const OperandRoles& roles)
{
    if (surveys_) {
        return;
    }
    Program& to = program.program();
    to.effects.add(static_cast<std::uint32_t>(to.operations.size()), effects, roles);
    to.operations.push_back(operation);
    ProgramBuilder::Uses& uses = program.uses[index];
    uses.synchronizes_clusters = uses.synchronizes_clusters || effects.depends_on_clusters;
    uses.uses_launch_control = uses.uses_launch_control || effects.unit == AsyncUnit::launch_control;
    uses.uses_bulk_copies = uses.uses_bulk_copies || std::ranges::any_of(effects.memory_effects(), [](const auto& m) {
                                return m.space == Space::global && m.proxy == Proxy::async;
                            });
}

void FunctionBuilder::mark_names_of_late_registers()
{
    std::vector<Operation>& operations = program.program().operations;
    const EffectsTable& effects = program.program().effects;
    const auto for_each_role = [&](std::uint32_t operation, const auto& use) {
        const OperandRoles roles = effects.roles(operation);
        for (const std::span<const OperandRole> some : {roles.addresses, roles.reads, roles.writes}) {
            std::ranges::for_each(some, use);
        }
    };
    std::unordered_set<Ref> late;
    std::unordered_set<std::uint32_t> users;
    for (std::uint32_t i = code().entry; i < operations.size(); ++i) {
        for_each_role(i, [&](const OperandRole& role) {
            if (role.later) {
                late.insert(role.row);
                users.insert(i);
            }
        });
    }
    // What is packed into such a register: whether it was written before wgmma.fence decides, see execute/wgmma_accumulator.cpp.
    for (std::uint32_t i = code().entry; !late.empty() && i < operations.size(); ++i) {
        const OperandRoles roles = effects.roles(i);
        if (effects.of(i).flow == ValueFlow::moved && roles.reads.size() > 1 &&
            std::ranges::any_of(roles.writes, [&](const OperandRole& role) { return late.contains(role.row); })) {
            std::ranges::for_each(roles.reads, [&](const OperandRole& role) { late.insert(role.row); });
        }
    }
    for (std::uint32_t i = code().entry; !late.empty() && i < operations.size(); ++i) {
        for_each_role(i, [&](const OperandRole& role) {
            operations[i].names_late_registers =
                operations[i].names_late_registers || (late.contains(role.row) && !users.contains(i));
        });
    }
}

void FunctionBuilder::lower(const ptx::Block& block)
{
    scopes_.emplace_back();
    open_blocks_.push_back(next_block_++);
    for (const ptx::Statement& statement : block.statements) {
        if (const auto* instruction = std::get_if<ptx::Instruction>(&statement.value)) {
            lower(*instruction);
        } else if (const auto* variable = std::get_if<ptx::Variable>(&statement.value)) {
            declare(*variable);
        } else if (const auto* label = std::get_if<ptx::Label>(&statement.value)) {
            placed_[{open_blocks_.back(), label->name}] =
                surveys_ ? rows_.note_label() : static_cast<std::uint32_t>(program.program().operations.size());
        } else if (const auto* inner = std::get_if<ptx::Block>(&statement.value)) {
            lower(*inner);
        }
    }
    open_blocks_.pop_back();
    scopes_.pop_back();
}

void FunctionBuilder::lower(const ptx::Instruction& instruction)
{
    current_ = &instruction;
    const auto decode = decoders().find(instruction.opcode);
    if (decode == decoders().end()) {
        throw DecodeError(fmt::format("unknown instruction '{}'", instruction.opcode));
    }
    Operation operation;
    operation.source = &instruction;
    Decoder decoder(*this, instruction, operation);
    decoder.effects().flow = decode->second.flow;
    decode->second.decode(decoder, operation);
    decoder.finish();
    operation.visible = decoder.effects().is_visible();
    if (!instruction.guard.empty()) {
        const Symbol* guard = find(instruction.guard);
        if (guard == nullptr || guard->kind != Symbol::Kind::reg || guard->type != Type::pred) {
            throw DecodeError(fmt::format("the guard '{}' is not a predicate", instruction.guard));
        }
        operation.guard = guard->row;
        operation.guard_negated = instruction.guard_negated;
    }
    if (surveys_) {
        rows_.note(decoder.roles(), operation.guard, decoder.effects().control);
    }
    append(operation, decoder.effects(), decoder.roles());
}

std::optional<std::uint32_t> FunctionBuilder::place_of(const Use& use) const
{
    for (auto block = use.scope.rbegin(); block != use.scope.rend(); ++block) {
        const auto found = placed_.find({*block, use.label});
        if (found != placed_.end()) {
            return found->second;
        }
    }
    return std::nullopt;
}

/// Decodes everything once to learn where each register is used, and assigns the rows.
void FunctionBuilder::survey()
{
    const FunctionCode before = code();
    const std::uint32_t module_shared = program.module_shared_bytes;
    std::vector<std::unique_ptr<Payload>>& payloads = program.program().payloads;
    const std::size_t kept = payloads.size();
    surveys_ = true;
    declare_parameters();
    lower(source.body);
    surveys_ = false;
    for (const Use& use : label_uses_) {
        if (const std::optional<std::uint32_t> place = place_of(use); place && *place <= use.position) {
            rows_.note_loop(*place, use.position);
        }
    }
    rows_.assign();
    scopes_.clear();
    label_uses_.clear();
    placed_.clear();
    next_block_ = 0;
    payloads.resize(kept);
    code() = before;
    shared_bytes = 0;
    program.module_shared_bytes = module_shared;
}

void FunctionBuilder::connect()
{
    for (const Use& use : label_uses_) {
        const std::optional<std::uint32_t> place = place_of(use);
        if (!place) {
            current_ = use.instruction;
            throw DecodeError(fmt::format("the label '{}' is not defined", use.label));
        }
        use.use(*place);
    }
}

void FunctionBuilder::build()
{
    std::vector<Operation>& operations = program.program().operations;
    code().entry = static_cast<std::uint32_t>(operations.size());
    try {
        collect_targets(source.body);
        survey();
        code().register_bytes = rows_.bytes();
        code().rows = rows_.layout();
        program.uses[index].registers = rows_.peak();
        declare_parameters();
        lower(source.body);
        Operation end;  // the end of the body returns
        end.execute = end_of_function_operation();
        end.kind = InstructionClass::control;
        append(end, {.control = Flow::leave}, {});
        connect();
        mark_names_of_late_registers();
        find_joins(program.program(), code().entry, static_cast<std::uint32_t>(operations.size()));
        mark_untested_waits(program.program(), code().entry, static_cast<std::uint32_t>(operations.size()));
        mark_known_bases(program.program(), code().entry, static_cast<std::uint32_t>(operations.size()));
        for (Operation& operation : std::span(operations).subspan(code().entry)) {
            operation.straight = operation.guard == no_row && !operation.join && !operation.names_late_registers;
        }
    } catch (const DecodeError& error) {
        std::string place = fmt::format("in {}", source.name);
        if (current_ != nullptr) {
            place = fmt::format("PTX line {}: {}: in {}", current_->location.line, current_->text, source.name);
        }
        program.uses[index].error = fmt::format("{}: {}", place, error.what());
    }
    code().end = static_cast<std::uint32_t>(operations.size());
}

}  // namespace tessera::emulator
