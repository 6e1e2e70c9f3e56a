#include "machine/tile_provenance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "base/windows.hpp"
#include "checks/shared_shadow.hpp"

namespace tessera::emulator {
namespace {

constexpr std::size_t known_tiles = 256;
constexpr std::uint32_t chunk_bytes = OperandTile::chunk_bytes;

std::string_view name_of(TensorElement element) noexcept
{
    switch (element) {
        case TensorElement::u8: return "u8";
        case TensorElement::u16: return "u16";
        case TensorElement::u32: return "u32";
        case TensorElement::s32: return "s32";
        case TensorElement::u64: return "u64";
        case TensorElement::s64: return "s64";
        case TensorElement::f16: return "f16";
        case TensorElement::f32: return "f32";
        case TensorElement::f64: return "f64";
        case TensorElement::bf16: return "bf16";
        case TensorElement::f32_ftz: return "f32.ftz";
        case TensorElement::tf32: return "tf32";
        case TensorElement::tf32_ftz: return "tf32.ftz";
        case TensorElement::u4_align8: return "packed 4-bit elements";
        case TensorElement::u4_align16: return "4-bit elements with padding";
        case TensorElement::u6_align16: return "6-bit elements with padding";
    }
    return "";
}

/// What a copy's type says about its elements. The types u8 to s64 and f64 only give a width, and no tensor core reads
/// them as such: programs use them for anything.
bool agrees(TensorElement element, const TileUse& use) noexcept
{
    const std::string_view type = use.type;
    const bool four = element == TensorElement::u4_align8 || element == TensorElement::u4_align16;
    const bool small = four || element == TensorElement::u6_align16;
    if (type == "f16" || type == "bf16" || type == "tf32") {
        switch (element) {
            case TensorElement::f16: return type == "f16";
            case TensorElement::bf16: return type == "bf16";
            case TensorElement::f32:
            case TensorElement::f32_ftz:
            case TensorElement::tf32:
            case TensorElement::tf32_ftz: return type == "tf32";
            default: return !small;
        }
    }
    if (type == "e2m1") {
        return !small || element == (use.padded ? TensorElement::u4_align16 : TensorElement::u4_align8);
    }
    if (type == "e2m3" || type == "e3m2") {
        return !small || element == TensorElement::u6_align16;
    }
    // 8 bits, or any type: bytes without padding.
    return type.empty() || !small || element == TensorElement::u4_align8;
}

std::size_t hash_of(const OperandTile& tile) noexcept
{
    const MatrixDescriptor& d = tile.descriptor;
    std::uint64_t hash = d.start;
    for (const std::uint64_t field :
         {std::uint64_t{d.leading}, std::uint64_t{d.stride}, std::uint64_t{tile.lines}, std::uint64_t{tile.line_bytes},
          static_cast<std::uint64_t>(d.swizzle) << 1 | static_cast<std::uint64_t>(tile.major)}) {
        hash = (hash ^ field) * 0x9E37'79B9'7F4A'7C15;
        hash ^= hash >> 29;
    }
    return hash % known_tiles;
}

}  // namespace

struct TileProvenance::Step {
    bool along_line = false;            ///< else to the next line
    std::uint32_t line = 0, chunk = 0;  ///< of `to`
    Place from, to;
};

TileProvenance::Box TileProvenance::box_of(const TensorMap& map, std::uint32_t bytes)
{
    Box box{.element = map.element, .swizzle = map.swizzle, .rank = static_cast<std::uint8_t>(map.rank)};
    const bool im2col = map.mode == TensorMapMode::im2col;
    const std::uint32_t row = (im2col ? map.channels_per_pixel : map.box[0]) * shared_bits(map.element) / 8;
    const std::uint32_t span = std::max<std::uint32_t>(swizzle_span(map.swizzle), 1);
    box.pitch = (row + span - 1) / span * span;
    const std::uint32_t rows = box.pitch == 0 ? 0 : bytes / box.pitch;
    box.counts = {row, 1, 1, 1, 1};
    std::uint32_t counted = 1;
    for (unsigned i = 1; i < map.rank; ++i) {
        box.counts[i] = map.copied(i);
        counted *= box.counts[i];
    }
    if (im2col || counted != rows) {  // pixels, or the rows of a gather
        box.counts = {row, rows, 1, 1, 1};
        box.rank = 2;
    }
    box.flat = map.rank == 1 || (!im2col && map.strides[0] == std::uint64_t{map.box[0]} * global_bits(map.element) / 8);
    return box;
}

void TileProvenance::loaded(const TensorMap& map, std::uint32_t address, std::uint32_t bytes, std::uint32_t line)
{
    Stamp stamp{address, address + bytes, line, box_of(map, bytes), map.address};
    // The first that ends behind the new one's begin.
    auto at = std::ranges::upper_bound(stamps_, stamp.begin, {}, &Stamp::end);
    if (at != stamps_.end() && at->begin == stamp.begin && at->end == stamp.end && at->box == stamp.box) {
        at->line = line;
        at->tensor = map.address;
        return;
    }
    auto last = at;
    while (last != stamps_.end() && last->begin < stamp.end) {
        ++last;
    }
    stamps_.insert(stamps_.erase(at, last), stamp);
    ++version_;
}

const TileProvenance::Stamp* TileProvenance::stamp_at(std::uint32_t address) const
{
    const auto at = std::ranges::upper_bound(stamps_, address, {}, &Stamp::end);
    return at == stamps_.end() || at->begin > address ? nullptr : &*at;
}

TileProvenance::Place TileProvenance::place_of(std::uint32_t address) const
{
    Place place;
    place.address = address;
    const Stamp* const at = stamp_at(address);
    if (at == nullptr) {
        return place;
    }
    // Swizzles are their own inverse.
    const std::uint32_t linear = swizzle(at->box.swizzle, address) - at->begin;
    place.byte = linear % at->box.pitch;
    place.row = linear / at->box.pitch;
    if (linear >= at->end - at->begin || place.byte >= at->box.counts[0]) {
        return place;  // moved out of the box, or padding after a narrow row
    }
    place.stamp = at;
    std::uint32_t rest = place.row;
    for (unsigned i = 1; i < at->box.rank; ++i) {
        place.outer[i - 1] = rest % at->box.counts[i];
        rest /= at->box.counts[i];
    }
    return place;
}

bool TileProvenance::fits(const Step& step, const OperandTile& tile)
{
    const Place &from = step.from, &to = step.to;
    if (from.stamp == nullptr || to.stamp == nullptr) {
        return true;
    }
    const Box& box = from.stamp->box;
    const TensorSwizzle read_as = tile.descriptor.swizzle;
    if (box.swizzle == TensorSwizzle::span_128_atom_32_flip_8 || box.rank == 1) {
        return true;
    }
    if (box.swizzle == TensorSwizzle::none && box.flat && !is_floating(box.element)) {
        return true;  // bytes that the host may have swizzled
    }
    const bool swizzled = box.swizzle != TensorSwizzle::none || read_as != TensorSwizzle::none;
    if (!swizzled && (box.counts[0] != chunk_bytes || box.flat)) {
        return true;
    }
    const bool same_box = from.stamp == to.stamp;
    const bool same_row = from.outer[0] == to.outer[0];
    const bool only_rows = std::equal(from.outer.begin() + 1, from.outer.end(), to.outer.begin() + 1);
    if (!step.along_line) {
        // To the next row, or along another dimension: the box may be wider than a group of lines, or higher.
        return !same_box || (from.byte == to.byte && (!only_rows || to.outer[0] == from.outer[0] + 1));
    }
    const bool next_bytes = same_box && same_row && only_rows && to.byte == from.byte + chunk_bytes;
    const bool within_span =
        swizzled && read_as != TensorSwizzle::none && step.chunk * chunk_bytes % row_span(read_as) != 0;
    if (next_bytes || (!same_box && (within_span || !(box == to.stamp->box)))) {
        return true;
    }
    // To the next block of the line: the same row of another box, or of another part of this one.
    return !within_span && same_row && (!same_box || !only_rows);
}

std::optional<TileProvenance::Step> TileProvenance::first_wrong_step(const OperandTile& tile) const
{
    const std::uint32_t chunks = tile.chunks_per_line();
    std::vector<Place> above(chunks);
    for (std::uint32_t line = 0; line < tile.lines; ++line) {
        Place left;
        for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
            const Place here = place_of(tile.chunk_address(line, chunk));
            if (const Step step{true, line, chunk, left, here}; chunk != 0 && !fits(step, tile)) {
                return step;
            }
            if (const Step step{false, line, chunk, above[chunk], here}; line != 0 && !fits(step, tile)) {
                return step;
            }
            left = above[chunk] = here;
        }
    }
    return std::nullopt;
}

const TileProvenance::Stamp* TileProvenance::wrong_type(const OperandTile& tile, const TileUse& use) const
{
    for (const OperandTile::Range& range : tile.cover()) {
        for (auto at = std::ranges::upper_bound(stamps_, range.begin, {}, &Stamp::end);
             at != stamps_.end() && at->begin < range.end; ++at) {
            if (!agrees(at->box.element, use)) {
                return &*at;
            }
        }
    }
    return nullptr;
}

bool TileProvenance::still_has(const Stamp& stamp, std::uint32_t address, const SharedShadow& shadow)
{
    for (std::uint32_t at = address; at < address + chunk_bytes; at += 4) {
        if (shadow.async_writer_line(at - shared_base) != stamp.line) {
            return false;
        }
    }
    return true;
}

void TileProvenance::forget(const Stamp& stamp)
{
    stamps_.erase(stamps_.begin() + (&stamp - stamps_.data()));
    ++version_;
}

std::optional<std::string> TileProvenance::check(const OperandTile& tile, const TileUse& use,
                                                 const SharedShadow& shadow, bool known)
{
    if (stamps_.empty() || tile.descriptor.base_offset != 0) {
        return std::nullopt;
    }
    known_.resize(known_tiles);
    Known& cached = known_[hash_of(tile)];
    if (cached.version == version_ && cached.tile == tile && cached.type == use.type) {
        return std::nullopt;
    }
    // Boxes that something else has overwritten are found only here, and then forgotten.
    while (const std::optional<Step> step = first_wrong_step(tile)) {
        if (!still_has(*step->from.stamp, step->from.address, shadow)) {
            forget(*step->from.stamp);
        } else if (!still_has(*step->to.stamp, step->to.address, shadow)) {
            forget(*step->to.stamp);
        } else {
            return known ? std::string() : describe(*step, tile, use);
        }
    }
    while (const Stamp* const stamp = wrong_type(tile, use)) {
        const std::uint32_t row = std::max(stamp->begin, tile.chunk_address(0, 0));
        if (still_has(*stamp, row < stamp->end ? row : stamp->begin, shadow)) {
            return known ? std::string()
                         : fmt::format(
                               "{} takes {} as {}, but it is {}: let the type of the tensor map and that of the "
                               "instruction agree",
                               use.what, use.operand, use.type, describe(*stamp));
        }
        forget(*stamp);
    }
    cached = {tile, use.type, version_};
    return std::nullopt;
}

std::optional<std::string> TileProvenance::check_extents(const OperandTile& a, const OperandTile& b, const char* what,
                                                         const SharedShadow& shadow) const
{
    if (stamps_.size() < 2) {
        return std::nullopt;
    }
    const std::vector<OperandTile::Range> a_ranges = a.cover(), b_ranges = b.cover();
    for (const OperandTile::Range& of_a : a_ranges) {
        const auto of_b = std::ranges::find_if(b_ranges, [&](const OperandTile::Range& range) {
            return range.begin < of_a.end && of_a.begin < range.end;
        });
        if (of_b == b_ranges.end()) {
            continue;
        }
        const std::uint32_t shared = std::max(of_a.begin, of_b->begin), a_start = a.chunk_address(0, 0),
                            b_start = b.chunk_address(0, 0);
        const Stamp *const both = stamp_at(shared), *const at_a = stamp_at(a_start), *const at_b = stamp_at(b_start);
        if (both == nullptr || at_a == nullptr || at_b == nullptr || at_a->tensor == at_b->tensor ||
            !still_has(*both, shared, shadow) || !still_has(*at_a, a_start, shadow) ||
            !still_has(*at_b, b_start, shadow)) {
            return std::nullopt;
        }
        const bool a_is_longer = both->tensor == at_b->tensor;
        if (!a_is_longer && both->tensor != at_a->tensor) {
            return std::nullopt;
        }
        const Stamp& own = a_is_longer ? *at_a : *at_b;
        return fmt::format(
            "{} reads {} beyond its tile, from shared {:#x} on, where {} is: {} of the instruction is too "
            "large, or a descriptor is wrong; the tile is {}",
            what, a_is_longer ? "A" : "B", shared, a_is_longer ? "B" : "A", a_is_longer ? "M" : "N", describe(own));
    }
    return std::nullopt;
}

std::string TileProvenance::describe(const Stamp& stamp)
{
    const Box& box = stamp.box;
    std::vector<std::uint32_t> counts(box.counts.begin(), box.counts.begin() + box.rank);
    counts[0] = counts[0] * 8 / shared_bits(box.element);
    return fmt::format("{} with {}, which the tensor copy of PTX line {} wrote as a box of {{{}}} at shared {:#x}",
                       name_of(box.element), swizzle_name(box.swizzle), stamp.line, fmt::join(counts, ", "),
                       stamp.begin);
}

std::string TileProvenance::describe(const Step& step, const OperandTile& tile, const TileUse& use) const
{
    const MatrixDescriptor& d = tile.descriptor;
    const bool k_major = tile.major == Major::k;
    const auto place = [](const Place& at) {
        std::string text = fmt::format("byte {} of row {}", at.byte, at.outer[0]);
        for (unsigned i = 2; i < at.stamp->box.rank; ++i) {
            text += fmt::format(", {}", at.outer[i - 1]);
        }
        return text;
    };
    const Box& box = step.from.stamp->box;
    // Without a swizzle, the strides have exchanged roles in an MN-major tile.
    const bool stride_steps_lines = d.swizzle != TensorSwizzle::none || k_major;
    std::string cure;
    if (box.swizzle != d.swizzle) {
        cure = "use the same swizzle in the tensor map and in the descriptor";
    } else if (step.along_line) {
        cure = fmt::format("correct the {} byte offset, which has to lead to the same row of the next {} bytes",
                           stride_steps_lines ? "leading" : "stride", row_span(d.swizzle));
    } else {
        const std::uint32_t group = d.swizzle == TensorSwizzle::span_128_atom_32 ? 4 : 8;
        cure = fmt::format("the {} byte offset from one group of {} lines to the next would be {} in this box",
                           stride_steps_lines ? "stride" : "leading", group, group * box.pitch);
    }
    return fmt::format(
        "{} reads {} {}-major with {} (leading byte offset {}, stride byte offset {}), and takes {} of a "
        "box as {} after {}; the tile is {}: {}",
        use.what, use.operand, k_major ? "K" : "MN", swizzle_name(d.swizzle), d.leading, d.stride, place(step.to),
        step.along_line ? fmt::format("bytes {} to {} of line {}", step.chunk * chunk_bytes,
                                      step.chunk * chunk_bytes + chunk_bytes - 1, step.line)
                        : fmt::format("line {}", step.line),
        place(step.from), describe(*step.from.stamp), cure);
}

}  // namespace tessera::emulator
