#include "machine/tensor_box.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "machine/swizzle.hpp"

namespace tessera::emulator {

namespace {

bool is_padded(TensorElement element)
{
    return element == TensorElement::u4_align16 || element == TensorElement::u6_align16;
}

std::uint32_t shared_bytes_of(const TensorMap& map, std::uint32_t elements)
{
    return elements * shared_bits(map.element) / 8;
}

std::uint64_t global_bytes_of(const TensorMap& map, std::uint64_t elements)
{
    return elements * global_bits(map.element) / 8;
}

/// With a swizzle, a row of the box begins at a multiple of the swizzle's span, even if the box is narrower. An H200
/// leaves the rest of the span unchanged and does not count it in the completed bytes.
std::uint32_t padded_row(const TensorMap& map, std::uint32_t bytes)
{
    const std::uint32_t span = map.interleave == TensorInterleave::none ? swizzle_span(map.swizzle) : 0;
    return span == 0 ? bytes : (bytes + span - 1) / span * span;
}

class Runs {
public:
    explicit Runs(const TensorMap& map) : map_(map) {}

    /// Adds `count` elements of dimension 0 from coordinate `first` on. `row` is the address of coordinate 0; `inside`
    /// is true if the other coordinates are within the tensor.
    void add_row(std::uint64_t row, bool inside, std::int64_t first, std::uint32_t count)
    {
        const auto extent = static_cast<std::int64_t>(map_.extents[0]);
        const std::int64_t end = first + count;
        const std::int64_t valid_first = inside ? std::clamp<std::int64_t>(0, first, end) : end;
        const std::int64_t valid_end = inside ? std::clamp(extent, valid_first, end) : end;
        add(row, first, valid_first, false);
        add(row, valid_first, valid_end, true);
        if (valid_first < valid_end && valid_end < end) {
            runs_.back().overrun_bytes = overrun(end);
        }
        add(row, valid_end, end, false);
        linear_ = padded_row(map_, linear_);
    }

    std::vector<BoxRun> take() { return std::move(runs_); }

private:
    void add(std::uint64_t row, std::int64_t first, std::int64_t end, bool inside)
    {
        // Padded elements come in groups of 16, each with its padding.
        const std::int64_t step = is_padded(map_.element) ? 16 : std::max<std::int64_t>(end - first, 1);
        for (std::int64_t at = first; at < end; at += step) {
            const auto elements = static_cast<std::uint32_t>(std::min(step, end - at));
            BoxRun run;
            run.linear = linear_;
            run.shared_bytes = shared_bytes_of(map_, elements);
            run.inside = inside;
            if (inside) {
                run.global = row + global_bytes_of(map_, static_cast<std::uint64_t>(at));
                run.global_bytes = static_cast<std::uint32_t>(global_bytes_of(map_, elements));
            }
            linear_ += run.shared_bytes;
            runs_.push_back(run);
        }
    }

    /// Bytes from the end of a row to the end of its last chunk, as far as the box, which ends at element `end`, covers
    /// them.
    [[nodiscard]] std::uint32_t overrun(std::int64_t end) const
    {
        constexpr std::uint64_t chunk = 16;
        const std::uint64_t row_end = global_bytes_of(map_, map_.extents[0]);
        const std::uint64_t chunk_end = (row_end + chunk - 1) / chunk * chunk;
        return static_cast<std::uint32_t>(std::min(chunk_end, global_bytes_of(map_, static_cast<std::uint64_t>(end))) -
                                          row_end);
    }

    const TensorMap& map_;
    std::uint32_t linear_ = 0;
    std::vector<BoxRun> runs_;
};

/// Returns true if `coordinate` is within dimension i, and adds its part of the address.
bool locate(const TensorMap& map, unsigned i, std::int64_t coordinate, std::uint64_t& address)
{
    if (coordinate < 0 || coordinate >= static_cast<std::int64_t>(map.extents[i])) {
        return false;
    }
    address += static_cast<std::uint64_t>(coordinate) * map.strides[i - 1];
    return true;
}

std::vector<BoxRun> tile_runs(const TensorMap& map, const BoxRequest& request)
{
    Runs runs(map);
    std::array<std::uint32_t, max_tensor_rank> index{};
    for (bool more = true; more;) {
        std::uint64_t row = map.address;
        bool inside = true;
        for (unsigned i = 1; i < map.rank; ++i) {
            const std::int64_t step = std::int64_t{index[i]} * std::max<std::uint32_t>(map.element_strides[i], 1);
            inside = locate(map, i, request.coordinates[i] + step, row) && inside;
        }
        runs.add_row(row, inside, request.coordinates[0], map.box[0]);
        more = false;
        for (unsigned i = 1; i < map.rank && !more; ++i) {
            more = ++index[i] < map.copied(i);
            index[i] = more ? index[i] : 0;
        }
    }
    return runs.take();
}

std::vector<BoxRun> four_rows_runs(const TensorMap& map, const BoxRequest& request)
{
    Runs runs(map);
    for (unsigned i = 1; i < max_tensor_rank; ++i) {
        std::uint64_t row = map.address;
        const bool inside = locate(map, 1, request.coordinates[i], row);
        runs.add_row(row, inside, request.coordinates[0], map.box[0]);
    }
    return runs.take();
}

/// The pixels of the bounding box from the given one on, W fastest, then H, D and the image. The filter's offsets are
/// added to each.
std::vector<BoxRun> im2col_runs(const TensorMap& map, const BoxRequest& request)
{
    Runs runs(map);
    const unsigned images = map.rank - 1;  // the dimension of the images
    std::array<std::int64_t, max_tensor_rank> pixel{};
    std::copy(request.coordinates.begin(), request.coordinates.end(), pixel.begin());
    for (std::uint32_t n = 0; n < map.pixels_per_column; ++n) {
        std::uint64_t row = map.address;
        bool inside = locate(map, images, pixel[images], row);
        for (unsigned i = 1; i < images; ++i) {
            inside = locate(map, i, pixel[i] + request.offsets[i - 1], row) && inside;
        }
        runs.add_row(row, inside, pixel[0], map.channels_per_pixel);
        for (unsigned i = 1; i <= images; ++i) {
            if (i == images) {
                ++pixel[i];
                break;
            }
            pixel[i] += std::max<std::uint32_t>(map.element_strides[i], 1);
            if (pixel[i] < static_cast<std::int64_t>(map.extents[i]) + map.upper_corner[i - 1]) {
                break;
            }
            pixel[i] = map.lower_corner[i - 1];
        }
    }
    return runs.take();
}

}  // namespace

std::string problem_of(const TensorMap& map, const BoxRequest& request, bool is_store)
{
    const bool im2col = request.mode == BoxMode::im2col;
    if ((map.mode == TensorMapMode::im2col) != im2col) {
        return im2col ? "the tensor map is tiled, but the copy is .im2col"
                      : "the tensor map is im2col, but the copy is not";
    }
    if (request.dimensions != map.rank) {
        return fmt::format("the copy is .{}d, but the tensor map has {} dimensions", request.dimensions, map.rank);
    }
    if (map.interleave != TensorInterleave::none) {
        return "interleaved tensors are not emulated";
    }
    if (request.mode == BoxMode::four_rows && (map.rank != 2 || map.box[1] != 1)) {
        return fmt::format(
            "gather4 and scatter4 need a matrix with a box of one row; this map has {} dimensions and a box of {} rows",
            map.rank, map.box[1]);
    }
    if (is_store && map.element == TensorElement::u4_align16) {
        return "elements of 4 bits with padding can be loaded, not stored";
    }
    const std::int64_t bits = std::int64_t{request.coordinates[0]} * global_bits(map.element);
    if (bits % 128 != 0) {
        return fmt::format("the innermost coordinate is {}, which is {} bytes; it must be a multiple of 16 bytes",
                           request.coordinates[0], bits / 8);
    }
    if (is_padded(map.element) && request.coordinates[0] % 128 != 0) {
        return fmt::format("the innermost coordinate is {}; with padded elements it must be a multiple of 128",
                           request.coordinates[0]);
    }
    return {};
}

std::uint32_t box_bytes(const TensorMap& map, const BoxRequest& request) noexcept
{
    const std::uint32_t row =
        shared_bytes_of(map, map.mode == TensorMapMode::im2col ? map.channels_per_pixel : map.box[0]);
    const std::uint32_t rows = request.mode == BoxMode::four_rows ? 4
                               : row == 0                         ? 0
                                                                  : static_cast<std::uint32_t>(map.box_bytes()) / row;
    return rows * padded_row(map, row);
}

std::vector<BoxRun> box_runs(const TensorMap& map, const BoxRequest& request)
{
    switch (request.mode) {
        case BoxMode::four_rows: return four_rows_runs(map, request);
        case BoxMode::im2col: return im2col_runs(map, request);
        case BoxMode::tile: break;
    }
    return tile_runs(map, request);
}

std::array<std::byte, 8> fill_pattern(const TensorMap& map) noexcept
{
    // An H200 writes this halfword for every element type: a NaN of every floating-point type.
    const std::uint64_t bits = map.fill == TensorFill::nan ? 0x7FF7'7FF7'7FF7'7FF7 : 0;
    std::array<std::byte, 8> pattern{};
    std::memcpy(pattern.data(), &bits, sizeof bits);
    return pattern;
}

bool converts_elements(TensorElement element) noexcept
{
    return element == TensorElement::tf32 || element == TensorElement::tf32_ftz;
}

void convert_loaded(const TensorMap& map, std::byte* bytes, std::size_t size) noexcept
{
    if (!converts_elements(map.element)) {
        return;
    }
    // Rounds to nearest even for every exponent, with one NaN, like an H200 for both types.
    constexpr std::uint32_t infinity = 0x7F80'0000, sign = 0x8000'0000, nan = 0x7FFF'E000;
    constexpr unsigned dropped_bits = 13;
    constexpr std::uint32_t dropped = (1U << dropped_bits) - 1;
    for (std::size_t at = 0; at + sizeof(std::uint32_t) <= size; at += sizeof(std::uint32_t)) {
        std::uint32_t word = 0;
        std::memcpy(&word, bytes + at, sizeof word);
        const std::uint32_t odd = word >> dropped_bits & 1U;
        word = (word & ~sign) > infinity ? nan : (word + dropped / 2 + odd) & ~dropped;
        std::memcpy(bytes + at, &word, sizeof word);
    }
}

}  // namespace tessera::emulator
