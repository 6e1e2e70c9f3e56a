// What SharedShadow is told and asked about words besides accesses: initialized, a barrier, written by an asynchronous copy.

#include <algorithm>
#include <cstdint>

#include "checks/shared_shadow.hpp"
#include "checks/word_bits.hpp"

namespace tessera::emulator {

/// Calls `update(bits, word)` for words from `begin_word` to before `end_word`.
template <typename Update>
void SharedShadow::update_bits(std::uint32_t begin_word, std::uint32_t end_word, Update&& update)
{
    for (std::uint32_t word = begin_word; word < std::min(end_word, words_); ++word) {
        split(word);
        update(bits_[word], word);
    }
}

void SharedShadow::mark_barrier(std::uint32_t offset, bool is_one)
{
    update_bits(offset / 4, offset / 4 + 2, [&](std::uint16_t& bits, std::uint32_t) {
        bits = static_cast<std::uint16_t>((bits & ~unsigned{is_barrier}) | all_bytes | (is_one ? is_barrier : 0));
    });
    if (twin_) {
        twin_->mark_barrier(offset, is_one);
    }
}

bool SharedShadow::initialized(std::uint32_t offset, std::uint32_t size) const
{
    for (std::uint32_t byte = offset; byte < offset + size; ++byte) {
        const std::uint32_t word = byte / 4;
        if (word >= words_) {
            return false;
        }
        if ((current(word).bits >> (byte % 4) & 1) == 0) {
            return false;
        }
    }
    return true;
}

void SharedShadow::mark_initialized(std::uint32_t offset, std::uint32_t size)
{
    if (size != 0) {
        update_bits(offset / 4, (offset + size - 1) / 4 + 1, [&](std::uint16_t& bits, std::uint32_t word) {
            bits |= bytes_of_word(word, offset, offset + size);
        });
    }
    if (twin_) {
        twin_->mark_initialized(offset, size);
    }
}

std::uint32_t SharedShadow::async_writer_line(std::uint32_t offset) const noexcept
{
    const Mark writer = offset / 4 < words_ ? current(offset / 4).writer : 0;
    return is_async_proxy(writer) ? sites_[site_of(writer)].line : 0;
}

}  // namespace tessera::emulator
