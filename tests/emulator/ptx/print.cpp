#include "print.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

namespace tessera::emulator::ptx {
namespace {

template <class Items, class Print>
std::string joined(const Items& items, const Print& print_item)
{
    std::string text;
    for (const auto& item : items) {
        text += text.empty() ? "" : ", ";
        text += print_item(item);
    }
    return text;
}

std::string print_elements(const std::vector<Operand>& elements)
{
    return joined(elements, [](const Operand& element) { return print(element); });
}

std::string with_offset(const std::string& name, std::int64_t offset)
{
    return offset == 0 ? name : fmt::format("{}+{}", name, offset);
}

std::string_view print(StateSpace space)
{
    switch (space) {
        case StateSpace::reg: return "reg";
        case StateSpace::sreg: return "sreg";
        case StateSpace::constant: return "const";
        case StateSpace::global: return "global";
        case StateSpace::local: return "local";
        case StateSpace::param: return "param";
        case StateSpace::shared: return "shared";
    }
    return "";
}

std::string print(const Variable::InitialValue& value, Type type)
{
    if (value.symbol.empty()) {
        switch (type) {
            case Type::f32: return fmt::format("0f{:08X}", value.bits);
            case Type::f64: return fmt::format("0d{:016X}", value.bits);
            default: return fmt::format("0x{:X}", value.bits);
        }
    }
    const std::string symbol = with_offset(value.generic ? fmt::format("generic({})", value.symbol) : value.symbol,
                                           static_cast<std::int64_t>(value.bits));
    return value.masked ? fmt::format("0x{:X}({})", std::uint64_t{0xFF} << value.mask_shift, symbol) : symbol;
}

/// Values in nested braces, as many levels as the array and a vector in it have.
std::string print_initial(const Variable& variable)
{
    std::vector<std::uint64_t> extents = variable.extents;
    if (variable.vector_width > 1) {
        extents.push_back(variable.vector_width);
    }
    std::size_t next = 0;
    const std::function<std::string(std::size_t)> level = [&](std::size_t depth) -> std::string {
        if (depth == extents.size()) {
            return print(variable.initial[next++], variable.type);
        }
        std::string text;
        for (std::uint64_t i = 0; i < extents[depth] && next < variable.initial.size(); ++i) {
            text += (i == 0 ? "" : ", ") + level(depth + 1);
        }
        return fmt::format("{{{}}}", text);
    };
    return level(0);
}

std::string print_parameters(const std::vector<Variable>& parameters)
{
    return fmt::format("({})", joined(parameters, [](const Variable& parameter) { return print(parameter); }));
}

void print_block(const Block& block, std::string& text);

void print_target_list(const TargetList& list, std::string& text)
{
    text += list.label;
    if (list.kind != TargetList::Kind::prototype) {
        const char* const directive = list.kind == TargetList::Kind::branch ? "branchtargets" : "calltargets";
        text += fmt::format(": .{} {};\n", directive, fmt::join(list.names, ", "));
        return;
    }
    text += fmt::format(": .callprototype {} _ {}{};\n", list.results.empty() ? "" : print_parameters(list.results),
                        print_parameters(list.parameters), list.no_return ? " .noreturn" : "");
}

void print_statement(const Statement& statement, std::string& text)
{
    if (const auto* const instruction = std::get_if<Instruction>(&statement.value)) {
        text += print(*instruction) + "\n";
    } else if (const auto* const variable = std::get_if<Variable>(&statement.value)) {
        text += print(*variable) + ";\n";
    } else if (const auto* const label = std::get_if<Label>(&statement.value)) {
        text += label->name + ":\n";
    } else if (const auto* const block = std::get_if<Block>(&statement.value)) {
        print_block(*block, text);
    } else {
        print_target_list(std::get<TargetList>(statement.value), text);
    }
}

void print_block(const Block& block, std::string& text)
{
    text += "{\n";
    for (const Statement& statement : block.statements) {
        print_statement(statement, text);
    }
    text += "}\n";
}

std::string print_linkage(bool external, bool visible, bool weak, bool common)
{
    return fmt::format("{}{}{}{}", external ? ".extern " : "", visible ? ".visible " : "", weak ? ".weak " : "",
                       common ? ".common " : "");
}

std::string print_tuning(const Function& function)
{
    std::string text;
    const auto extents = [&text](const char* name, const std::optional<std::vector<std::uint32_t>>& value) {
        text += value ? fmt::format(" .{} {}", name, fmt::join(*value, ", ")) : "";
    };
    const auto number = [&text](const char* name, const std::optional<std::uint32_t>& value) {
        text += value ? fmt::format(" .{} {}", name, *value) : "";
    };
    extents("maxntid", function.max_threads);
    extents("reqntid", function.required_threads);
    extents("reqnctapercluster", function.required_cluster);
    number("maxnreg", function.max_registers);
    number("minnctapersm", function.min_ctas_per_sm);
    number("maxclusterrank", function.max_cluster_rank);
    text += function.explicit_cluster ? " .explicitcluster" : "";
    text += function.blocks_are_clusters ? " .blocksareclusters" : "";
    text += function.no_return ? " .noreturn" : "";
    return text;
}

void print_function(const Function& function, std::string& text)
{
    text += print_linkage(function.external, function.visible, function.weak, false);
    text += fmt::format("{} {}{} {}{}\n", function.kernel ? ".entry" : ".func",
                        function.results.empty() ? "" : print_parameters(function.results) + " ", function.name,
                        print_parameters(function.parameters), print_tuning(function));
    if (function.defined) {
        print_block(function.body, text);
    } else {
        text += ";\n";
    }
}

std::string escaped(const std::string& path)
{
    std::string text;
    for (const char c : path) {
        text += c == '"' || c == '\\' ? "\\" : "";
        text += c;
    }
    return text;
}

}  // namespace

std::string print(const Operand& operand)
{
    std::string text = operand.negated ? "!" : "";
    switch (operand.kind) {
        case Operand::Kind::identifier: text += with_offset(operand.name, operand.integer); break;
        case Operand::Kind::integer: text += fmt::format("{}", operand.integer); break;
        case Operand::Kind::real:
            text += operand.real_type == Type::f32 ? fmt::format("0f{:08X}", operand.bits)
                                                   : fmt::format("0d{:016X}", operand.bits);
            break;
        case Operand::Kind::address:
            text += operand.name.empty() ? fmt::format("[{}]", operand.integer)
                                         : fmt::format("[{}]", with_offset(operand.name, operand.integer));
            break;
        case Operand::Kind::vector: text += fmt::format("{{{}}}", print_elements(operand.elements)); break;
        case Operand::Kind::bracket: text += fmt::format("[{}]", print_elements(operand.elements)); break;
        case Operand::Kind::sink: text += "_"; break;
    }
    text += operand.component.empty() ? "" : "." + operand.component;
    text += operand.second.empty() ? "" : "|" + operand.second;
    return text;
}

std::string print(const Instruction& instruction)
{
    std::string text;
    if (!instruction.guard.empty()) {
        text += fmt::format("@{}{} ", instruction.guard_negated ? "!" : "", instruction.guard);
    }
    text += instruction.opcode;
    for (const std::string& modifier : instruction.modifiers) {
        text += "." + modifier;
    }
    const bool is_call = instruction.opcode == "call";
    text += instruction.operands.empty() ? "" : " ";
    text += joined(instruction.operands, [is_call](const Operand& operand) {
        return is_call && operand.kind == Operand::Kind::vector ? fmt::format("({})", print_elements(operand.elements))
                                                                : print(operand);
    });
    return text + ";";
}

std::string print(const Variable& variable)
{
    std::string text = print_linkage(variable.external, variable.visible, variable.weak, variable.common);
    text += fmt::format(".{}", print(variable.space));
    text += variable.managed ? " .attribute(.managed)" : "";
    text += variable.alignment != 0 ? fmt::format(" .align {}", variable.alignment) : "";
    text += variable.vector_width > 1 ? fmt::format(" .v{}", variable.vector_width) : "";
    text += fmt::format(" .{}", name_of(variable.type));
    if (variable.pointer) {
        text += " .ptr";
        text += variable.pointee_space ? fmt::format(" .{}", print(*variable.pointee_space)) : "";
        text += variable.pointee_alignment != 0 ? fmt::format(" .align {}", variable.pointee_alignment) : "";
    }
    text += " " + variable.name;
    text += variable.count ? fmt::format("<{}>", *variable.count) : "";
    for (const std::uint64_t extent : variable.extents) {
        text += extent == 0 && &extent == &variable.extents.front() ? "[]" : fmt::format("[{}]", extent);
    }
    text += variable.initial.empty() ? "" : " = " + print_initial(variable);
    return text;
}

std::string print(const Module& module)
{
    std::string text = fmt::format(".version {}.{}\n.target {}{}{}\n.address_size {}\n", module.version_major,
                                   module.version_minor, module.target, module.target_options.empty() ? "" : ", ",
                                   fmt::join(module.target_options, ", "), module.address_size);
    for (const auto& [number, path] : module.files) {
        text += fmt::format(".file {} \"{}\"\n", number, escaped(path));
    }
    for (const Variable& variable : module.variables) {
        text += print(variable) + ";\n";
    }
    for (const Function& function : module.functions) {
        print_function(function, text);
    }
    for (const auto& [alias, aliasee] : module.aliases) {
        text += fmt::format(".alias {}, {};\n", alias, aliasee);
    }
    return text;
}

}  // namespace tessera::emulator::ptx
