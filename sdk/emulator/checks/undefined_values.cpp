#include "checks/undefined_values.hpp"

#include <algorithm>

namespace tessera::emulator {

UndefinedValues::Lanes UndefinedValues::of(const Frame* frame, Ref row) const noexcept
{
    for (const Row& known : rows_) {
        if (known.row == row && known.frame == frame) {
            return known.lanes;
        }
    }
    return {};
}

void UndefinedValues::write(const Frame* frame, Ref row, LaneMask written, Lanes undefined)
{
    undefined.mask &= written;
    const auto known =
        std::ranges::find_if(rows_, [&](const Row& other) { return other.row == row && other.frame == frame; });
    if (known == rows_.end()) {
        if (undefined.mask != 0) {
            rows_.push_back({frame, row, undefined});
        }
        return;
    }
    const LaneMask kept = known->lanes.mask & ~written;
    const std::uint64_t until = std::max(kept != 0 ? known->lanes.until : 0, undefined.until);
    const bool masked = (kept == 0 || known->lanes.masked) && (undefined.mask == 0 || undefined.masked);
    known->lanes = {kept | undefined.mask, undefined.mask != 0 ? undefined.origin : known->lanes.origin, until, masked};
    if (known->lanes.mask == 0) {
        *known = rows_.back();
        rows_.pop_back();
    }
}

void UndefinedValues::waited(std::uint64_t wgmmas)
{
    std::erase_if(rows_, [&](const Row& row) { return row.lanes.until != 0 && row.lanes.until <= wgmmas; });
}

void UndefinedValues::move(const Frame* from, const Frame* to, LaneMask lanes)
{
    const std::vector<Row> before = rows_;
    for (const Row& row : before) {
        if (row.frame == to) {
            write(to, row.row, lanes, {});
        }
    }
    for (const Row& row : before) {
        if (row.frame == from) {
            write(to, row.row, lanes, row.lanes);
        }
    }
}

void UndefinedValues::forget(const Frame* frame)
{
    std::erase_if(rows_, [&](const Row& row) { return row.frame == frame; });
}

}  // namespace tessera::emulator
