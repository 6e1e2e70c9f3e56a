#include "program/effects.hpp"

#include <algorithm>

namespace tessera::emulator {

bool Effects::is_visible() const noexcept
{
    return sync.object != SyncObject::none || unit != AsyncUnit::none ||
           std::ranges::any_of(memory_effects(), [](const MemoryEffect& memory) {
               return memory.atomic || memory.order.strong() || memory.proxy != Proxy::generic ||
                      memory.space == Space::tensor;
           });
}

void EffectsTable::add(std::uint32_t operation, const Effects& effects, const OperandRoles& roles)
{
    entries_.resize(operation + 1);
    entries_[operation] = {
        effects, static_cast<std::uint32_t>(roles_.size()), static_cast<std::uint16_t>(roles.addresses.size()),
        static_cast<std::uint16_t>(roles.reads.size()), static_cast<std::uint16_t>(roles.writes.size())};
    for (const std::span<const OperandRole> some : {roles.addresses, roles.reads, roles.writes}) {
        roles_.insert(roles_.end(), some.begin(), some.end());
    }
}

OperandRoles EffectsTable::roles(std::uint32_t operation) const noexcept
{
    const Entry& entry = entries_[operation];
    const std::span<const OperandRole> all{roles_.data() + entry.first,
                                           std::size_t{entry.addresses} + entry.reads + entry.writes};
    return {all.first(entry.addresses), all.subspan(entry.addresses, entry.reads), all.last(entry.writes)};
}

}  // namespace tessera::emulator
