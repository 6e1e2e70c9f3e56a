#include "program/vector_registers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::emulator {

namespace {

constexpr std::string_view members = "xyzw", colours = "rgba";
constexpr std::size_t largest_vector = 16;  // bytes

bool can_expand(const ptx::Variable& variable)
{
    const std::size_t bytes = ptx::size_of(variable.type) * variable.vector_width;
    return variable.space == ptx::StateSpace::reg && variable.vector_width > 1 &&
           variable.vector_width <= members.size() && bytes != 0 && bytes <= largest_vector;
}

bool declares_vector(const ptx::Block& block)
{
    return std::ranges::any_of(block.statements, [](const ptx::Statement& statement) {
        if (const auto* variable = std::get_if<ptx::Variable>(&statement.value)) {
            return can_expand(*variable);
        }
        const auto* inner = std::get_if<ptx::Block>(&statement.value);
        return inner != nullptr && declares_vector(*inner);
    });
}

class Expander {
public:
    void expand(ptx::Block& block)
    {
        scopes_.emplace_back();
        std::vector<ptx::Statement> statements;
        statements.reserve(block.statements.size());
        for (ptx::Statement& statement : block.statements) {
            if (auto* variable = std::get_if<ptx::Variable>(&statement.value)) {
                declare(*variable, statements);
                continue;
            }
            if (auto* inner = std::get_if<ptx::Block>(&statement.value)) {
                expand(*inner);
            } else if (auto* instruction = std::get_if<ptx::Instruction>(&statement.value)) {
                for (ptx::Operand& operand : instruction->operands) {
                    replace(operand);
                }
            }
            statements.push_back(std::move(statement));
        }
        block.statements = std::move(statements);
        scopes_.pop_back();
    }

private:
    struct Declared {
        std::uint32_t vector_width = 1;  // 1: a scalar, or no register
        std::optional<std::uint32_t> count;
    };
    /// A vector register in an operand: `prefix` and `number` are "%v" and "3" of %v3 if it is one of %v<4>, and "v" and
    /// "" of v.
    struct Found {
        std::string_view prefix, number;
        std::uint32_t vector_width;
    };

    void declare(ptx::Variable& variable, std::vector<ptx::Statement>& statements)
    {
        const bool expands = can_expand(variable);
        scopes_.back()[variable.name] = {expands ? variable.vector_width : 1, variable.count};
        if (!expands) {
            statements.push_back({std::move(variable)});
            return;
        }
        for (std::uint32_t i = 0; i < variable.vector_width; ++i) {
            ptx::Variable scalar = variable;
            scalar.vector_width = 1;
            scalar.name = variable.name + '.' + members[i];
            statements.push_back({std::move(scalar)});
        }
    }

    /// By the same rules as FunctionBuilder::find.
    [[nodiscard]] std::optional<Found> find(std::string_view name) const
    {
        std::size_t digits = name.size();
        while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1])) != 0) {
            --digits;
        }
        const auto vector = [&](const Declared& declared, std::size_t cut) -> std::optional<Found> {
            return declared.vector_width == 1
                       ? std::nullopt
                       : std::optional(Found{name.substr(0, cut), name.substr(cut), declared.vector_width});
        };
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
            if (const auto whole = scope->find(name); whole != scope->end() && !whole->second.count) {
                return vector(whole->second, name.size());
            }
            for (std::size_t cut = digits; cut < name.size(); ++cut) {
                const auto range = scope->find(name.substr(0, cut));
                if (range == scope->end() || !range->second.count || name.size() - cut > 9 ||
                    (name[cut] == '0' && name.size() - cut > 1)) {
                    continue;
                }
                if (std::stoul(std::string(name.substr(cut))) < *range->second.count) {
                    return vector(range->second, cut);
                }
            }
        }
        return std::nullopt;
    }

    static std::string scalar_name(const Found& vector, std::size_t member)
    {
        return std::string(vector.prefix) + '.' + members[member] + std::string(vector.number);
    }

    void replace(ptx::Operand& operand) const
    {
        for (ptx::Operand& element : operand.elements) {
            replace(element);
        }
        if (operand.kind != ptx::Operand::Kind::identifier) {
            return;
        }
        const std::optional<Found> vector = find(operand.name);
        if (!vector) {
            return;
        }
        if (!operand.component.empty()) {
            std::size_t member = std::string_view::npos;
            if (operand.component.size() == 1) {
                member = std::min(members.find(operand.component[0]), colours.find(operand.component[0]));
            }
            if (member < vector->vector_width) {
                operand.name = scalar_name(*vector, member);
                operand.component.clear();
            }
            return;
        }
        if (operand.negated || !operand.second.empty() || operand.integer != 0) {
            return;  // not a vector's operand: refused where it is lowered
        }
        ptx::Operand whole;
        whole.kind = ptx::Operand::Kind::vector;
        for (std::size_t i = 0; i < vector->vector_width; ++i) {
            ptx::Operand element;
            element.kind = ptx::Operand::Kind::identifier;
            element.name = scalar_name(*vector, i);
            whole.elements.push_back(std::move(element));
        }
        operand = std::move(whole);
    }

    std::vector<std::map<std::string, Declared, std::less<>>> scopes_;
};

}  // namespace

void expand_vector_registers(ptx::Block& body)
{
    if (declares_vector(body)) {
        Expander().expand(body);
    }
}

}  // namespace tessera::emulator
