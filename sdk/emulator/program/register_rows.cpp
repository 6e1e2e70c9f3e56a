#include "program/register_rows.hpp"

#include <algorithm>
#include <functional>
#include <map>

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

}  // namespace

std::size_t RegisterRows::Hash::operator()(const Key& key) const noexcept
{
    return std::hash<const void*>{}(key.declaration) ^ (std::size_t{key.number} * 0x9E3779B97F4A7C15);
}

Ref RegisterRows::number_of(const ptx::Variable& declaration, std::uint32_t number)
{
    const auto [place, fresh] = numbers_.try_emplace({&declaration, number}, static_cast<Ref>(lives_.size()));
    if (fresh) {
        lives_.push_back({.type = declaration.type});
    }
    return place->second;
}

void RegisterRows::note(Ref register_number, bool defines, bool later)
{
    if (register_number >= lives_.size()) {
        return;  // a constant, or a temporary value
    }
    Life& life = lives_[register_number];
    if (!life.used) {
        life.used = true;
        life.first = position_;
        life.piece = piece_;
        life.defined_first = defines;
    }
    life.defined_first = life.defined_first && (defines || life.first != position_);
    life.last = position_;
    life.one_piece = life.one_piece && life.piece == piece_;
    life.pinned = life.pinned || later;
}

void RegisterRows::note(const OperandRoles& roles, Ref guard, Flow control)
{
    // Sources before destinations: a register that is both was defined before.
    note(guard, false, false);
    for (const std::span<const OperandRole> sources : {roles.addresses, roles.reads}) {
        for (const OperandRole& role : sources) {
            note(role.row, false, role.later);
        }
    }
    for (const OperandRole& role : roles.writes) {
        note(role.row, guard == no_row, role.later);
    }
    ++position_;
    piece_ += control == Flow::next ? 0 : 1;
}

std::uint32_t RegisterRows::note_label()
{
    ++piece_;
    return position_;
}

void RegisterRows::extend_over_loops()
{
    std::ranges::sort(loops_, [](const Loop& a, const Loop& b) { return a.first < b.first; });
    for (Life& life : lives_) {
        if (life.pinned) {
            life.first = 0;
            life.last = 0xFFFFFFFE;
            continue;
        }
        if (life.one_piece && life.defined_first) {
            continue;  // a temporary: not live across iterations
        }
        for (bool changed = true; changed;) {
            changed = false;
            for (const Loop& loop : loops_) {
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
    extend_over_loops();
    std::vector<std::uint32_t> by_first;
    for (std::uint32_t i = 0; i < lives_.size(); ++i) {
        if (lives_[i].used) {
            by_first.push_back(i);
        }
    }
    std::vector<std::uint32_t> by_last = by_first;
    std::ranges::sort(by_first, {}, [&](std::uint32_t i) { return std::pair{lives_[i].first, i}; });
    std::ranges::sort(by_last, {}, [&](std::uint32_t i) { return std::pair{lives_[i].last, i}; });
    std::map<unsigned, std::vector<Ref>> free;  // by size of a value: a row always holds values of the same size
    std::uint32_t words = 0;
    std::size_t over = 0;
    for (const std::uint32_t i : by_first) {
        Life& life = lives_[i];
        while (lives_[by_last[over]].last < life.first) {  // ends before this one begins
            const Life& ended = lives_[by_last[over++]];
            const std::uint32_t size = row_size(ended.type);
            free[value_bytes(ended.type)].push_back(ended.row);
            words -= size == 4 ? 0 : (size + 127) / 128;
        }
        const std::uint32_t size = row_size(life.type);
        std::vector<Ref>& spare = free[value_bytes(life.type)];
        if (spare.empty()) {
            const std::uint32_t alignment = size == 4 ? 4 : 64;
            bytes_ = (bytes_ + alignment - 1) / alignment * alignment;
            life.row = bytes_;
            layout_.push_back({bytes_, value_bytes(life.type)});
            bytes_ += size;
        } else {
            life.row = spare.back();
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
    const auto found = numbers_.find({&declaration, number});
    return found == numbers_.end() ? no_row : lives_[found->second].row;
}

}  // namespace tessera::emulator
