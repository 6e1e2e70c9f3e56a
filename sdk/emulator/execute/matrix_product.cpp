#include "execute/matrix_product.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "numerics/float_ops.hpp"

namespace tessera::emulator {
namespace {

using numerics::CodeView;
using numerics::Format;

constexpr std::array<std::pair<std::string_view, Element>, 11> element_names{{{"f16", Element::f16},
                                                                              {"bf16", Element::bf16},
                                                                              {"tf32", Element::tf32},
                                                                              {"e4m3", Element::e4m3},
                                                                              {"e5m2", Element::e5m2},
                                                                              {"s8", Element::s8},
                                                                              {"u8", Element::u8},
                                                                              {"s4", Element::s4},
                                                                              {"u4", Element::u4},
                                                                              {"b1", Element::b1},
                                                                              {"f64", Element::f64}}};

Format format_of(Element element) noexcept
{
    switch (element) {
        case Element::bf16: return Format::bf16;
        case Element::tf32: return Format::tf32;
        case Element::e4m3: return Format::e4m3;
        case Element::e5m2: return Format::e5m2;
        default: return Format::f16;
    }
}

CodeView view_of(Element element, const OperandBlock& block, bool negate)
{
    const auto cells = static_cast<std::ptrdiff_t>(block.line_bytes / (bits_of(element) / 8));
    return {.format = format_of(element),
            .codes = block.bytes,
            .outer_stride = block.mn_major ? 1 : cells,
            .k_stride = block.mn_major ? cells : 1,
            .negate = negate};
}

numerics::SumModel model_of(const Product& product)
{
    // Structured sparsity halves the sum: one instruction adds k/2 products.
    const std::size_t summed = product.instruction_k != 0     ? product.instruction_k
                               : product.positions == nullptr ? product.k
                                                              : product.k / 2;
    return numerics::sum_model(product.unit, format_of(product.a),
                               product.sum == SumType::f16 ? numerics::Accumulator::f16 : numerics::Accumulator::f32,
                               summed);
}

/// The codes of a decoded operand. The four warps of a wgmma read the same B one after the other, and so do
/// neighbouring CTAs: comparing codes is much cheaper than decoding again.
struct Decoded {
    Element element = Element::f16;
    bool negate = false, mn_major = false;
    unsigned outer = 0, k = 0;
    std::vector<std::byte> codes;

    bool renew(Element new_element, const OperandBlock& block, bool new_negate, unsigned new_outer, unsigned new_k)
    {
        const std::size_t bytes = block.line_bytes * (block.mn_major ? new_k : new_outer);
        if (element == new_element && negate == new_negate && mn_major == block.mn_major && outer == new_outer &&
            k == new_k && codes.size() == bytes && std::memcmp(codes.data(), block.bytes, bytes) == 0) {
            return false;
        }
        element = new_element;
        negate = new_negate;
        mn_major = block.mn_major;
        outer = new_outer;
        k = new_k;
        codes.assign(block.bytes, block.bytes + bytes);
        return true;
    }
};

/// Decoded operands of this thread's last product: their memory is reused, and B if it is the same again.
struct Workspace {
    numerics::ExactA exact_a;
    numerics::ExactB exact_b;
    Decoded exact_b_codes, fast_b_codes, integer_b_codes;
    std::vector<float> fast_a, fast_b;
    std::vector<std::int16_t> integer_a, integer_b;
    std::vector<std::byte> selected_b;
    std::vector<std::uint32_t> words_a, words_b;
};

Workspace& workspace()
{
    thread_local Workspace instance;
    return instance;
}

void multiply_exact(const Product& product, const OperandBlock& a, const OperandBlock& b, float* d, bool accumulate)
{
    Workspace& work = workspace();
    work.exact_a.assign(view_of(product.a, a, product.negate_a), product.m, product.k);
    if (work.exact_b_codes.renew(product.b, b, product.negate_b, product.n, product.k)) {
        work.exact_b.assign(view_of(product.b, b, product.negate_b), product.n, product.k);
    }
    numerics::multiply_exact(model_of(product), work.exact_a, work.exact_b, d, product.n, {.accumulate = accumulate});
}

void multiply_fast(const Product& product, const OperandBlock& a, const OperandBlock& b, float* d, bool accumulate)
{
    Workspace& work = workspace();
    work.fast_a.resize(std::size_t{product.m} * product.k);
    numerics::decode_tile(view_of(product.a, a, product.negate_a), product.m, product.k, work.fast_a.data(), product.k,
                          1);
    if (work.fast_b_codes.renew(product.b, b, product.negate_b, product.n, product.k)) {
        work.fast_b.resize(std::size_t{product.n} * product.k);
        numerics::decode_tile(view_of(product.b, b, product.negate_b), product.n, product.k, work.fast_b.data(), 1,
                              product.n);
    }
    numerics::multiply_fast(product.m, product.n, product.k, work.fast_a.data(), product.k, work.fast_b.data(),
                            product.n, d, product.n, accumulate);
    if (product.sum == SumType::f16) {
        numerics::round_tile_to_f16(product.m, product.n, d, product.n);
    }
}

/// Widens integer elements to 16 bits.
void widen(Element element, const OperandBlock& block, unsigned outer, unsigned k, std::int16_t* values,
           std::size_t outer_stride, std::size_t k_stride)
{
    for (std::size_t o = 0; o < outer; ++o) {
        const auto* line = reinterpret_cast<const std::uint8_t*>(block.bytes) + o * block.line_bytes;
        std::int16_t* row = values + o * outer_stride;
        switch (element) {
            case Element::s8:
                for (std::size_t i = 0; i < k; ++i) {
                    row[i * k_stride] = static_cast<std::int8_t>(line[i]);
                }
                break;
            case Element::u8:
                for (std::size_t i = 0; i < k; ++i) {
                    row[i * k_stride] = line[i];
                }
                break;
            default:
                for (std::size_t i = 0; i < k; ++i) {
                    const unsigned nibble = (line[i / 2] >> (4 * (i % 2))) & 0xFU;
                    const bool negative = element == Element::s4 && nibble >= 8;
                    row[i * k_stride] = static_cast<std::int16_t>(static_cast<int>(nibble) - (negative ? 16 : 0));
                }
                break;
        }
    }
}

void multiply_integers(const Product& product, const OperandBlock& a, const OperandBlock& b, std::int32_t* d,
                       bool accumulate)
{
    Workspace& work = workspace();
    work.integer_a.resize(std::size_t{product.m} * product.k);
    widen(product.a, a, product.m, product.k, work.integer_a.data(), product.k, 1);
    if (work.integer_b_codes.renew(product.b, b, false, product.n, product.k)) {
        work.integer_b.resize(std::size_t{product.n} * product.k);
        widen(product.b, b, product.n, product.k, work.integer_b.data(), 1, product.n);
    }
    numerics::multiply_integer(product.m, product.n, product.k, work.integer_a.data(), work.integer_b.data(), d,
                               product.n, accumulate, product.saturate);
}

void multiply_bits(const Product& product, const OperandBlock& a, const OperandBlock& b, std::int32_t* d,
                   bool accumulate)
{
    Workspace& work = workspace();
    const std::size_t words = product.k / 32;
    const auto load = [words](const OperandBlock& block, unsigned outer, std::vector<std::uint32_t>& into) {
        into.resize(outer * words);
        for (std::size_t o = 0; o < outer; ++o) {
            std::memcpy(into.data() + o * words, block.bytes + o * block.line_bytes, words * 4);
        }
    };
    load(a, product.m, work.words_a);
    load(b, product.n, work.words_b);
    numerics::multiply_bits(product.m, product.n, words, work.words_a.data(), work.words_b.data(), product.bits, d,
                            product.n, accumulate);
}

/// Calls `dense(product, a, b, row)` for each row of A, with the columns' elements that match the row's stored
/// elements.
template <typename Dense>
void for_each_sparse_row(const Product& product, const OperandBlock& a, const OperandBlock& b, Dense&& dense)
{
    const unsigned stored = product.k / 2;
    const unsigned bits = bits_of(product.b);
    const std::size_t cell = bits < 8 ? 1 : bits / 8;
    Product one = product;
    one.m = 1;
    one.k = stored;
    one.positions = nullptr;
    if (product.b == Element::s4 || product.b == Element::u4) {
        one.b = product.b == Element::s4 ? Element::s8 : Element::u8;  // a selected element needs a byte
    }
    std::vector<std::byte>& selected = workspace().selected_b;
    selected.resize(product.n * stored * cell);
    for (unsigned row = 0; row < product.m; ++row) {
        const std::uint16_t* positions = product.positions + std::size_t{row} * stored;
        for (std::size_t column = 0; column < product.n; ++column) {
            for (std::size_t i = 0; i < stored; ++i) {
                std::byte* to = selected.data() + (column * stored + i) * cell;
                if (bits < 8) {
                    const unsigned byte = std::to_integer<unsigned>(b.bytes[column * b.line_bytes + positions[i] / 2U]);
                    const unsigned nibble = (byte >> (4U * (positions[i] % 2U))) & 0xFU;
                    const bool negative = product.b == Element::s4 && nibble >= 8;
                    *to = static_cast<std::byte>(negative ? nibble | 0xF0U : nibble);
                } else {
                    const std::size_t line = b.mn_major ? positions[i] : column;
                    const std::size_t place = b.mn_major ? column : positions[i];
                    std::memcpy(to, b.bytes + line * b.line_bytes + place * cell, cell);
                }
            }
        }
        // In an MN-major A, each line has one element of the row.
        const std::size_t offset = a.mn_major ? row * (bits_of(product.a) / 8U) : row * a.line_bytes;
        dense(one, OperandBlock{a.bytes + offset, a.line_bytes, a.mn_major},
              OperandBlock{selected.data(), stored * cell, false}, row);
    }
}

template <typename Value>
bool multiply_sparse(const Product& product, const OperandBlock& a, const OperandBlock& b, Value* d, bool accumulate)
{
    if (product.positions == nullptr) {
        return false;
    }
    for_each_sparse_row(product, a, b,
                        [&](const Product& one, const OperandBlock& row_a, const OperandBlock& row_b, unsigned row) {
                            multiply(one, row_a, row_b, d + std::size_t{row} * product.n, accumulate);
                        });
    return true;
}

}  // namespace

std::optional<Element> element_named(std::string_view name) noexcept
{
    for (const auto& [known, element] : element_names) {
        if (known == name) {
            return element;
        }
    }
    return std::nullopt;
}

std::optional<SumType> sum_type_named(std::string_view name) noexcept
{
    constexpr std::array<std::pair<std::string_view, SumType>, 4> names{
        {{"f32", SumType::f32}, {"f16", SumType::f16}, {"s32", SumType::s32}, {"f64", SumType::f64}}};
    for (const auto& [known, type] : names) {
        if (known == name) {
            return type;
        }
    }
    return std::nullopt;
}

std::string_view name_of(Element element) noexcept { return element_names[static_cast<std::size_t>(element)].first; }

void multiply(const Product& product, const OperandBlock& a, const OperandBlock& b, float* d, bool accumulate)
{
    if (multiply_sparse(product, a, b, d, accumulate)) {
        return;
    }
    if (product.numerics == Numerics::exact) {
        multiply_exact(product, a, b, d, accumulate);
    } else {
        multiply_fast(product, a, b, d, accumulate);
    }
}

void multiply(const Product& product, const OperandBlock& a, const OperandBlock& b, std::int32_t* d, bool accumulate)
{
    if (multiply_sparse(product, a, b, d, accumulate)) {
        return;
    }
    if (product.a == Element::b1) {
        multiply_bits(product, a, b, d, accumulate);
    } else {
        multiply_integers(product, a, b, d, accumulate);
    }
}

void multiply(const Product& product, const OperandBlock& a, const OperandBlock& b, double* d, bool accumulate)
{
    // f64 MMAs are chains of fused multiply-adds; they have rounding modes and are small.
    for (std::size_t row = 0; row < product.m; ++row) {
        for (std::size_t column = 0; column < product.n; ++column) {
            double sum = accumulate ? d[row * product.n + column] : 0.0;
            for (std::size_t k = 0; k < product.k; ++k) {
                double x = 0, y = 0;
                std::memcpy(&x, a.bytes + row * a.line_bytes + k * 8, 8);
                std::memcpy(&y, b.bytes + column * b.line_bytes + k * 8, 8);
                sum = product.rounding == numerics::Rounding::nearest_even ? numerics::fma_rn(x, y, sum)
                                                                           : numerics::fma(x, y, sum, product.rounding);
            }
            d[row * product.n + column] = sum;
        }
    }
}

numerics::TensorUnit warp_tensor_unit(const DeviceModel& device) noexcept
{
    const unsigned capability = device.capability();
    if (capability < 75) {
        return numerics::TensorUnit::volta_mma;
    }
    if (capability < 80) {
        return numerics::TensorUnit::turing_mma;
    }
    if (capability < 89) {
        return numerics::TensorUnit::ampere_mma;
    }
    if (capability < 90) {
        return numerics::TensorUnit::ada_mma;
    }
    return capability < 100 ? numerics::TensorUnit::hopper_mma : numerics::TensorUnit::blackwell;
}

}  // namespace tessera::emulator
