#include "execute/warp_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "machine/cluster.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {
namespace {

/// Large enough for every shape: 32 rows of 16 bytes of K, or 16 rows of 16 f64.
constexpr std::size_t operand_bytes = 4096;
constexpr std::size_t sum_elements = 512;

/// Metadata bits of one chunk: which two of the four elements (or pairs of 4-bit elements) of the chunk are stored; for
/// tf32 one of two.
struct SparseChunk {
    unsigned stored = 2;     ///< elements of A
    unsigned per_place = 1;  ///< elements per index of the metadata
};

SparseChunk sparse_chunk(Element element)
{
    switch (element) {
        case Element::tf32: return {.stored = 1, .per_place = 2};
        case Element::s4:
        case Element::u4: return {.stored = 4, .per_place = 2};
        default: return {};
    }
}

/// .satfinite of floating-point results: NaN becomes +0, infinities the largest finite value.
void make_finite(float* values, std::size_t count, SumType type)
{
    const float largest = type == SumType::f16 ? 65504.0F : std::numeric_limits<float>::max();
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = std::isnan(values[i])   ? 0.0F
                    : std::isinf(values[i]) ? std::copysign(largest, values[i])
                                            : values[i];
    }
}

template <typename Value>
void run(Warp& warp, const FragmentProduct& payload, const Product& product, const OperandBlock& a,
         const OperandBlock& b, LaneMask active)
{
    alignas(64) std::array<Value, sum_elements> sums;
    const auto c_row = [&](unsigned index) { return warp.row<Value>(payload.c_registers[index]); };
    const auto d_row = [&](unsigned index) { return warp.row<Value>(payload.d_registers[index]); };
    if constexpr (std::is_same_v<Value, float>) {
        if (payload.c_type == SumType::f16) {
            payload.c.gather_f16([&](unsigned index) { return warp.row<std::uint32_t>(payload.c_registers[index]); },
                                 sums.data());
        } else {
            payload.c.gather(c_row, sums.data());
        }
    } else {
        payload.c.gather(c_row, sums.data());
    }
    multiply(product, a, b, sums.data(), true);
    if constexpr (std::is_same_v<Value, float>) {
        if (product.saturate) {
            make_finite(sums.data(), std::size_t{product.m} * product.n, product.sum);
        }
        if (product.sum == SumType::f16) {
            payload.d.scatter_f16([&](unsigned index) { return warp.row<std::uint32_t>(payload.d_registers[index]); },
                                  sums.data(), active);
            return;
        }
    }
    payload.d.scatter(d_row, sums.data(), active);
}

}  // namespace

std::string MmaShape::name() const { return fmt::format(".m{}n{}k{}", m, n, k); }

MmaShape take_mma_shape(Decoder& decoder)
{
    const std::optional<std::string> text = decoder.take_prefixed("m");
    MmaShape shape;
    if (text) {
        const char* at = text->data();
        const char* const end = at + text->size();
        const auto number = [&](unsigned& value, char separator) {
            const auto [next, error] = std::from_chars(at, end, value);
            if (error != std::errc{} || (separator != 0 ? next == end || *next != separator : next != end)) {
                decoder.fail(fmt::format("'.m{}' is not a shape; expected .m<M>n<N>k<K>", *text));
            }
            at = next + 1;
        };
        number(shape.m, 'n');
        number(shape.n, 'k');
        number(shape.k, 0);
        return shape;
    }
    decoder.fail("needs a shape .m<M>n<N>k<K>");
}

std::vector<std::string> take_matrix_types(Decoder& decoder)
{
    std::vector<std::string> types;
    for (const std::string& modifier : decoder.remaining()) {
        if (element_named(modifier) || sum_type_named(modifier)) {
            types.push_back(modifier);
            decoder.take(modifier);
        }
    }
    return types;
}

unsigned metadata_nibble(const std::uint32_t* metadata, unsigned selector, Element element, unsigned chunks,
                         unsigned row, unsigned chunk) noexcept
{
    const unsigned quad = 4 * (row % 8);
    const unsigned half = row / 8;
    if (chunks == 4) {  // one lane of four
        return metadata[quad + selector] >> (16 * half + 4 * chunk) & 0xFU;
    }
    if (chunks == 8) {  // two lanes of four
        const bool wide = bits_of(element) >= 16;
        return wide ? metadata[quad + 2 * selector + chunk / 4] >> (16 * half + 4 * (chunk % 4)) & 0xFU
                    : metadata[quad + 2 * selector + half] >> (4 * chunk) & 0xFU;
    }
    return metadata[quad + 2 * (chunk / 8) + half] >> (4 * (chunk % 8)) & 0xFU;  // all four lanes
}

bool sparse_positions(const Product& product, const std::uint32_t* metadata, unsigned selector,
                      std::uint16_t* positions)
{
    const SparseChunk chunk_shape = sparse_chunk(product.a);
    const unsigned chunks = product.k / (2 * chunk_shape.stored);
    bool valid = true;
    for (unsigned row = 0; row < product.m; ++row) {
        for (unsigned chunk = 0; chunk < chunks; ++chunk) {
            const unsigned nibble = metadata_nibble(metadata, selector, product.a, chunks, row, chunk);
            const unsigned base = chunk * 2 * chunk_shape.stored;
            std::uint16_t* to = positions + row * (product.k / 2) + chunk * chunk_shape.stored;
            const unsigned first = nibble & 3U, second = nibble >> 2U;
            if (product.a == Element::tf32) {
                valid = valid && (nibble == 0b1110 || nibble == 0b0100);
                to[0] = static_cast<std::uint16_t>(base + first / 2);
            } else {
                for (unsigned i = 0; i < chunk_shape.stored; ++i) {
                    const unsigned place = i < chunk_shape.per_place ? first : second;
                    to[i] =
                        static_cast<std::uint16_t>(base + place * chunk_shape.per_place + i % chunk_shape.per_place);
                }
            }
        }
    }
    return valid;
}

bool names_a_place_twice(const Product& product, const OperandBlock& a)
{
    const auto [chunk_stored, per_place] = sparse_chunk(product.a);
    const unsigned bits = bits_of(product.a), stored = product.k / 2;
    const auto is_zero = [&](unsigned row, unsigned i) {
        const std::byte* const at = a.mn_major ? a.bytes + i * a.line_bytes + row * bits / 8
                                               : a.bytes + row * a.line_bytes + std::size_t{i} * bits / 8;
        const std::byte mask = bits == 4 ? std::byte{0xF} << (4 * (i % 2)) : std::byte{0xFF};
        return std::all_of(at, at + std::max(bits / 8, 1U),
                           [&](std::byte byte) { return (byte & mask) == std::byte{}; });
    };
    for (unsigned row = 0; row < product.m; ++row) {
        for (unsigned first = 0; per_place < chunk_stored && first < stored; first += chunk_stored) {
            const std::uint16_t* const positions = product.positions + std::size_t{row} * stored + first;
            for (unsigned i = 0; positions[0] == positions[per_place] && i < chunk_stored; ++i) {
                if (!is_zero(row, first + i)) {
                    return true;
                }
            }
        }
    }
    return false;
}

unsigned sparse_selectors(Element element, unsigned k) noexcept
{
    // Each chunk has four bits of metadata, and each lane has 32 bits for two rows: the chunks of a row times the lanes
    // in a group of four is 16.
    return 16 / (k / (2 * sparse_chunk(element).stored));
}

void read_fragments(Decoder& decoder, FragmentProduct& payload)
{
    const Product& product = payload.product;
    const bool sparse = payload.metadata != no_row || product.positions != nullptr;
    const auto operand = [](Element element, unsigned rows, unsigned k, bool is_a) {
        const unsigned lane_bytes = element == Element::f64 ? 8 : 4;
        const unsigned chunk_bits = lane_bytes * 4 * 8;
        return OperandFragment{.rows = rows,
                               .chunks = k * bits_of(element) / chunk_bits,
                               .lane_bytes = lane_bytes,
                               .pair = is_a && rows >= 16 ? 2U : 1U};
    };
    payload.a = operand(product.a, product.m, sparse ? product.k / 2 : product.k, true);
    payload.b = operand(product.b, product.n, product.k, false);
    const auto accumulator = [&](SumType type) {
        return AccumulatorFragment{
            .rows = product.m, .columns = product.n, .pair = product.m >= 16 ? 2U : 1U, .packed = type == SumType::f16};
    };
    payload.c = accumulator(payload.c_type);
    payload.d = accumulator(product.sum);

    const auto register_type = [](SumType type) {
        switch (type) {
            case SumType::f32: return ptx::Type::f32;
            case SumType::f16: return ptx::Type::b32;
            case SumType::s32: return ptx::Type::s32;
            case SumType::f64: return ptx::Type::f64;
        }
        return ptx::Type::b32;
    };
    const ptx::Type element_type = product.a == Element::f64 ? ptx::Type::f64 : ptx::Type::b32;
    payload.d_registers = decoder.write_vector(0, register_type(product.sum));
    payload.a_registers = decoder.read_vector(1, element_type);
    payload.b_registers = decoder.read_vector(2, element_type);
    payload.c_registers = decoder.read_vector(3, register_type(payload.c_type));
    const auto require = [&](char name, std::size_t has, std::size_t needs) {
        if (has != needs) {
            decoder.fail(fmt::format("operand {} has {} registers; this shape and type need {}", name, has, needs));
        }
    };
    require('d', payload.d_registers.size(), payload.d.registers());
    require('c', payload.c_registers.size(), payload.c.registers());
}

Step execute_fragment_product(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    const auto& payload = operation.as<FragmentProduct>();
    Product product = payload.product;
    product.numerics = warp.cluster.options().numerics;

    alignas(64) std::array<std::byte, operand_bytes> a;
    alignas(64) std::array<std::byte, operand_bytes> b;
    payload.a.gather(warp, payload.a_registers, a.data());
    payload.b.gather(warp, payload.b_registers, b.data());
    const OperandBlock block_a{a.data(), payload.a.line_bytes(), false};
    std::array<std::uint16_t, 16 * 64> positions;  // 16 rows of at most 64 stored elements
    if (payload.metadata != no_row) {
        const bool valid =
            sparse_positions(product, warp.row<std::uint32_t>(payload.metadata), payload.selector, positions.data());
        product.positions = positions.data();
        if (warp.checks() && (!valid || names_a_place_twice(product, block_a))) {
            warp.report(operation, FindingKind::invalid_operand, active, sparse_problem);
        }
    }
    const OperandBlock block_b{b.data(), payload.b.line_bytes(), false};
    switch (product.sum) {
        case SumType::f32:
        case SumType::f16: run<float>(warp, payload, product, block_a, block_b, active); break;
        case SumType::s32: run<std::int32_t>(warp, payload, product, block_a, block_b, active); break;
        case SumType::f64: run<double>(warp, payload, product, block_a, block_b, active); break;
    }
    Statistics& statistics = warp.cluster.statistics;
    ++statistics.mma_issued;
    statistics.mma_flops += std::uint64_t{2} * product.m * product.n * product.k;
    return Step::next;
}

}  // namespace tessera::emulator
