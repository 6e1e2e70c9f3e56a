#include "runtime/host_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/state.hpp"
#include "runtime/work.hpp"

namespace tessera::emulator {

namespace {

std::uint64_t mix(std::uint64_t sum, std::uint64_t word) noexcept
{
    sum = (sum ^ word) * 0x9E37'79B9'7F4A'7C15ull;
    return sum ^ sum >> 32;
}

/// Four sums side by side, so that the processor need not wait for each product.
std::uint64_t mix_row(std::uint64_t sum, const std::byte* bytes, std::uint64_t size) noexcept
{
    std::uint64_t sums[4] = {sum, sum + 1, sum + 2, sum + 3};
    std::uint64_t at = 0;
    for (; at + 32 <= size; at += 32) {
        std::uint64_t words[4];
        std::memcpy(words, bytes + at, sizeof words);
        for (int i = 0; i < 4; ++i) {
            sums[i] = mix(sums[i], words[i]);
        }
    }
    for (; at < size; ++at) {
        sums[0] = mix(sums[0], std::to_integer<std::uint64_t>(bytes[at]));
    }
    return mix(mix(mix(sums[0], sums[1]), sums[2]), sums[3]);
}

std::uint64_t span_of_source(const CopyWork& copy)
{
    return span_of(copy.width, copy.height, copy.depth, copy.from_pitch, copy.from_slice);
}

}  // namespace

std::uint64_t HostWatches::sum_of(const CopyWork& copy) noexcept
{
    std::uint64_t sum = 0;
    for (std::uint64_t z = 0; z < copy.depth; ++z) {
        for (std::uint64_t y = 0; y < copy.height; ++y) {
            sum = mix_row(sum, copy.from + z * copy.from_slice + y * copy.from_pitch, copy.width);
        }
    }
    return sum;
}

void HostWatches::take_kernel_writes()
{
    if (Allocation::host_memory_written.exchange(false, std::memory_order_relaxed)) {
        for (Watch& watch : watches_) {
            watch.shared = true;
        }
    }
}

void HostWatches::open(const char* name, const CopyWork& copy, const Position& position, std::uint64_t sum)
{
    const std::scoped_lock lock(mutex_);
    take_kernel_writes();
    watches_.push_back({name, copy, position, sum, HostStack::here()});
    any_ = true;
}

template <typename Test>
void HostWatches::settle_if(Test&& test)
{
    if (!any_.load(std::memory_order_relaxed)) {
        return;
    }
    std::vector<Finding> findings;
    {
        const std::scoped_lock lock(mutex_);
        take_kernel_writes();
        std::erase_if(watches_, [&](const Watch& watch) {
            if (!test(watch)) {
                return false;
            }
            if (!watch.shared && sum_of(watch.copy) != watch.sum) {
                Finding finding;
                finding.kind = FindingKind::host_memory_changed;
                finding.message = fmt::format(
                    "the {} bytes of pinned host memory at {} that {} copies were changed before the program knew that "
                    "the "
                    "copy was complete: the device may get the old bytes, the new ones or some of each; wait for the "
                    "stream or an event first",
                    watch.copy.width * watch.copy.height * watch.copy.depth, static_cast<const void*>(watch.copy.from),
                    watch.name);
                finding.host = watch.caller.frames({});
                findings.push_back(std::move(finding));
            }
            return true;
        });
        any_ = !watches_.empty();
    }
    for (Finding& finding : findings) {
        // Occurrences of one line of the program are one finding, whatever the address.
        finding.cause = finding.host.empty()
                            ? finding.message
                            : fmt::format("{}:{}", finding.host.front().file, finding.host.front().line);
        Runtime::get().report.add(std::move(finding));
    }
}

void HostWatches::settle()
{
    settle_if([](const Watch& watch) { return watch.position.is_reached(); });
}

void HostWatches::close(const void* address, std::uint64_t bytes)
{
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    settle_if([&](const Watch& watch) {
        const auto from = reinterpret_cast<std::uintptr_t>(watch.copy.from);
        return from < begin + bytes && begin < from + span_of_source(watch.copy);
    });
}

}  // namespace tessera::emulator
