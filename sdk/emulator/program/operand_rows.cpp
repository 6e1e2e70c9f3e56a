#include "program/operand_rows.hpp"

#include <algorithm>

namespace tessera::emulator {

void OperandRows::add(std::uint32_t operation, std::span<const Ref> addresses, std::span<const Ref> reads,
                      std::span<const Ref> writes, ValueFlow flow)
{
    places_.resize(operation + 1);
    places_[operation] = {static_cast<std::uint32_t>(rows_.size()), static_cast<std::uint16_t>(addresses.size()),
                          static_cast<std::uint16_t>(reads.size()), static_cast<std::uint16_t>(writes.size()), flow};
    for (const std::span<const Ref> rows : {addresses, reads, writes}) {
        rows_.insert(rows_.end(), rows.begin(), rows.end());
    }
}

OperandRows::Of OperandRows::of(std::uint32_t operation) const noexcept
{
    if (operation >= places_.size()) {
        return {};
    }
    const Place& place = places_[operation];
    const std::span<const Ref> rows{rows_.data() + place.first,
                                    std::size_t{place.addresses} + place.reads + place.writes};
    return {rows.first(place.addresses), rows.subspan(place.addresses, place.reads), rows.last(place.writes),
            place.flow};
}

ValueFlow value_flow(const ptx::Instruction& instruction, bool computes)
{
    const auto has = [&](std::string_view modifier) {
        return std::ranges::find(instruction.modifiers, modifier) != instruction.modifiers.end();
    };
    if (instruction.opcode == "st") {
        return has("async") || has("bulk") ? ValueFlow::used : ValueFlow::stored;
    }
    if (instruction.opcode == "shfl") {
        return ValueFlow::shuffled;
    }
    if (!computes) {
        return ValueFlow::used;
    }
    if (instruction.opcode == "mov" && (has("v2") || has("v4"))) {
        return ValueFlow::in_place;
    }
    return instruction.opcode == "mov"    ? ValueFlow::moved
           : instruction.opcode == "selp" ? ValueFlow::selected
           : instruction.opcode == "and"  ? ValueFlow::conjunction
           : instruction.opcode == "or"   ? ValueFlow::disjunction
                                          : ValueFlow::passed_on;
}

}  // namespace tessera::emulator
