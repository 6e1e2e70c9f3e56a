#include "program/register_rows.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace tessera::emulator {

namespace {

/// Bytes of a register's row: a multiple of a cache line, except for predicates.
[[nodiscard]] std::uint32_t row_size(ptx::Type type)
{
    return type == ptx::Type::pred
               ? 4
               : std::max<std::uint32_t>(static_cast<std::uint32_t>(ptx::size_of(type)) * warp_size, 64);
}

/// Bytes of a lane's value; 0 for predicates.
[[nodiscard]] unsigned value_bytes(ptx::Type type)
{
    return type == ptx::Type::pred ? 0 : static_cast<unsigned>(ptx::size_of(type));
}

/// Instructions whose first operand is read although it is a plain register.
[[nodiscard]] bool reads_first_operand(std::string_view opcode)
{
    static constexpr std::array<std::string_view, 8> names{"bar",          "barrier", "nanosleep", "brx",
                                                           "stackrestore", "pmevent", "st",        "red"};
    return std::ranges::find(names, opcode) != names.end();
}

/// Asynchronous instructions read and write registers later than at their own place.
[[nodiscard]] bool uses_registers_later(std::string_view opcode) { return opcode == "wgmma" || opcode == "tcgen05"; }

}  // namespace

/// Walks a body and records where each register is named.
class RegisterRows::Collector {
public:
    explicit Collector(RegisterRows& rows) : rows_(rows) {}

    void walk(const ptx::Block& block)
    {
        scopes_.emplace_back();
        blocks_.push_back(next_block_id_++);
        for (const ptx::Statement& statement : block.statements) {
            if (const auto* instruction = std::get_if<ptx::Instruction>(&statement.value)) {
                visit(*instruction);
            } else if (const auto* variable = std::get_if<ptx::Variable>(&statement.value)) {
                if (variable->space == ptx::StateSpace::reg) {
                    scopes_.back()[variable->name] = variable;
                }
            } else if (const auto* label = std::get_if<ptx::Label>(&statement.value)) {
                labels_[{blocks_.back(), label->name}] = position_;
                ++piece_;
            } else if (const auto* inner = std::get_if<ptx::Block>(&statement.value)) {
                walk(*inner);
            } else if (const auto* list = std::get_if<ptx::TargetList>(&statement.value)) {
                lists_[list->label] = list;
            }
        }
        scopes_.pop_back();
        blocks_.pop_back();
    }

    /// Every backward jump, as the range of instructions that it may repeat.
    [[nodiscard]] std::vector<Loop> loops() const
    {
        std::vector<Loop> result;
        const auto add = [&](const Jump& jump, const std::string& name) {
            for (auto block = jump.blocks.rbegin(); block != jump.blocks.rend(); ++block) {
                const auto found = labels_.find({*block, name});
                if (found != labels_.end()) {
                    if (found->second <= jump.position) {
                        result.push_back({found->second, jump.position});
                    }
                    return;
                }
            }
        };
        for (const Jump& jump : jumps_) {
            const auto list = lists_.find(jump.label);
            if (jump.indexed && list != lists_.end()) {
                for (const std::string& name : list->second->names) {
                    add(jump, name);
                }
            } else {
                add(jump, jump.label);
            }
        }
        return result;
    }

private:
    struct Jump {
        std::uint32_t position;
        std::vector<std::uint32_t> blocks;
        std::string label;
        bool indexed;
    };

    void visit(const ptx::Instruction& instruction)
    {
        pinned_ = uses_registers_later(instruction.opcode);
        if (!instruction.guard.empty()) {
            name(instruction.guard, false);
        }
        // Sources before destinations: a register that is both was defined before.
        for (std::size_t i = instruction.operands.size(); i-- > 0;) {
            const bool destination = i == 0 && instruction.guard.empty() && !reads_first_operand(instruction.opcode);
            operand(instruction.operands[i], destination);
        }
        if (instruction.opcode == "bra" && !instruction.operands.empty()) {
            jumps_.push_back({position_, blocks_, instruction.operands[0].name, false});
        } else if (instruction.opcode == "brx" && instruction.operands.size() > 1) {
            jumps_.push_back({position_, blocks_, instruction.operands[1].name, true});
        }
        if (instruction.opcode == "bra" || instruction.opcode == "brx" || instruction.opcode == "call" ||
            instruction.opcode == "ret" || instruction.opcode == "exit") {
            ++piece_;
        }
        ++position_;
    }

    void operand(const ptx::Operand& operand_, bool destination)
    {
        if (!operand_.second.empty()) {  // of p|q, or _|q
            name(operand_.second, destination);
        }
        switch (operand_.kind) {
            case ptx::Operand::Kind::identifier: name(operand_.name, destination); break;
            case ptx::Operand::Kind::address:
                if (!operand_.name.empty()) {
                    name(operand_.name, false);
                }
                break;
            case ptx::Operand::Kind::vector:
                for (const ptx::Operand& element : operand_.elements) {
                    operand(element, destination);
                }
                break;
            case ptx::Operand::Kind::bracket:
                for (const ptx::Operand& element : operand_.elements) {
                    operand(element, false);
                }
                break;
            default: break;
        }
    }

    void name(const std::string& text, bool destination)
    {
        std::size_t digits = text.size();
        while (digits > 0 && std::isdigit(static_cast<unsigned char>(text[digits - 1])) != 0) {
            --digits;
        }
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
            const auto whole = scope->find(text);
            if (whole != scope->end() && !whole->second->count) {
                note({whole->second, 0}, destination);
                return;
            }
            for (std::size_t cut = digits; cut < text.size(); ++cut) {
                if (text.size() - cut > 9 || (text[cut] == '0' && text.size() - cut > 1)) {
                    continue;
                }
                const auto range = scope->find(text.substr(0, cut));
                if (range != scope->end() && range->second->count) {
                    const auto number = static_cast<std::uint32_t>(std::stoul(text.substr(cut)));
                    if (number < *range->second->count) {
                        note({range->second, number}, destination);
                        return;
                    }
                }
            }
        }
    }

    void note(Key key, bool destination)
    {
        const auto [place, fresh] = known_.try_emplace(key, rows_.lives_.size());
        if (fresh) {
            rows_.lives_.push_back({key, position_, position_, piece_, true, destination, false});
        }
        Life& life = rows_.lives_[place->second];
        life.defined_first = life.defined_first && (destination || life.first != position_);
        life.last = position_;
        life.one_block = life.one_block && life.block == piece_;
        life.pinned = life.pinned || pinned_;
    }

    RegisterRows& rows_;
    std::unordered_map<Key, std::size_t, Hash> known_;
    std::vector<std::map<std::string, const ptx::Variable*, std::less<>>> scopes_;
    std::vector<std::uint32_t> blocks_;
    std::uint32_t next_block_id_ = 0, position_ = 0, piece_ = 0;
    std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> labels_;
    std::map<std::string, const ptx::TargetList*> lists_;
    std::vector<Jump> jumps_;
    bool pinned_ = false;
};

std::size_t RegisterRows::Hash::operator()(const Key& key) const noexcept
{
    return std::hash<const void*>{}(key.declaration) ^ (std::size_t{key.number} * 0x9E3779B97F4A7C15);
}

RegisterRows::RegisterRows(const ptx::Function& function)
{
    Collector collector(*this);
    collector.walk(function.body);
    extend_over_loops(collector.loops());
    assign();
}

void RegisterRows::extend_over_loops(const std::vector<Loop>& loops)
{
    // For each instruction, the widest range that jumps can repeat, so that one look-up replaces a search through all
    // loops.
    std::vector<Loop> sorted = loops;
    std::ranges::sort(sorted, [](const Loop& a, const Loop& b) { return a.first < b.first; });
    for (Life& life : lives_) {
        if (life.pinned) {
            life.first = 0;
            life.last = 0xFFFFFFFE;
            continue;
        }
        if (life.one_block && life.defined_first) {
            continue;  // a temporary: not live across iterations
        }
        for (bool changed = true; changed;) {
            changed = false;
            for (const Loop& loop : sorted) {
                if (loop.first > life.last) {
                    break;
                }
                if (loop.last >= life.first && (loop.first < life.first || loop.last > life.last)) {
                    // Live in the loop and not only in one straight piece of it: treat it as live in the whole loop.
                    life.first = std::min(life.first, loop.first);
                    life.last = std::max(life.last, loop.last);
                    changed = true;
                }
            }
        }
    }
}

void RegisterRows::assign()
{
    std::vector<std::uint32_t> by_first(lives_.size()), by_last(lives_.size());
    for (std::uint32_t i = 0; i < lives_.size(); ++i) {
        by_first[i] = by_last[i] = i;
    }
    std::ranges::sort(by_first, {}, [&](std::uint32_t i) { return std::pair{lives_[i].first, i}; });
    std::ranges::sort(by_last, {}, [&](std::uint32_t i) { return std::pair{lives_[i].last, i}; });
    std::map<unsigned, std::vector<Ref>> free;  // by size of a value: a row always holds values of the same size
    std::uint32_t words = 0;
    std::size_t over = 0;
    for (const std::uint32_t i : by_first) {
        while (lives_[by_last[over]].last < lives_[i].first) {  // ends before this one begins
            const Life& ended = lives_[by_last[over++]];
            const std::uint32_t size = row_size(ended.key.declaration->type);
            free[value_bytes(ended.key.declaration->type)].push_back(rows_[ended.key]);
            words -= size == 4 ? 0 : (size + 127) / 128;
        }
        const ptx::Type type = lives_[i].key.declaration->type;
        const std::uint32_t size = row_size(type);
        std::vector<Ref>& spare = free[value_bytes(type)];
        if (spare.empty()) {
            const std::uint32_t alignment = size == 4 ? 4 : 64;
            bytes_ = (bytes_ + alignment - 1) / alignment * alignment;
            rows_[lives_[i].key] = bytes_;
            layout_.push_back({bytes_, value_bytes(type)});
            bytes_ += size;
        } else {
            rows_[lives_[i].key] = spare.back();
            spare.pop_back();
        }
        if (size != 4) {  // predicates have their own registers
            words += (size + 127) / 128;
            peak_ = std::max(peak_, words);
        }
    }
}

Ref RegisterRows::row(const ptx::Variable& declaration, std::uint32_t number) const
{
    const auto found = rows_.find({&declaration, number});
    return found == rows_.end() ? no_row : found->second;
}

}  // namespace tessera::emulator
