#include "execute/element_codes.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tessera::emulator {
namespace {

/// Buffers that the next product of this CPU thread reuses.
struct Scratch {
    std::vector<float> values_a, values_b;
    numerics::ExactA exact_a;
    numerics::ExactB exact_b;
};

void sum_exactly(const CodedProduct& product, Scratch& scratch, float* d, std::size_t ldd)
{
    if (is_four_bit(product.kind)) {
        numerics::multiply_exact_mxf4(product.m, product.n, product.k,
                                      static_cast<const std::uint8_t*>(product.a.codes),
                                      static_cast<const std::uint8_t*>(product.b.codes), product.scales, d, ldd,
                                      product.how.accumulate, product.a.negate != product.b.negate);
        return;
    }
    const numerics::SumModel model = numerics::sum_model(numerics::TensorUnit::blackwell, product.a.format,
                                                         product.accumulator, product.instruction_k);
    scratch.exact_a.assign(product.a, product.m, product.k);
    scratch.exact_b.assign(product.b, product.n, product.k);
    if (product.scales.per_row != 0) {
        numerics::multiply_exact_mxf8(model, scratch.exact_a, scratch.exact_b, product.scales.a, product.scales.b, d,
                                      ldd, product.how);
    } else {
        numerics::multiply_exact(model, scratch.exact_a, scratch.exact_b, d, ldd, product.how);
    }
}

void sum_fast(const CodedProduct& product, Scratch& scratch, float* d, std::size_t ldd)
{
    const std::size_t m = product.m, n = product.n, k = product.k;
    scratch.values_a.resize(m * k);
    scratch.values_b.resize(n * k);
    numerics::decode_tile(product.a, m, k, scratch.values_a.data(), k, 1);
    numerics::decode_tile(product.b, n, k, scratch.values_b.data(), 1, n);
    if (const numerics::BlockScales& scales = product.scales; scales.per_row != 0) {
        numerics::scale_tile(scratch.values_a.data(), m, k, k, 1, scales.format, scales.a, scales.per_row);
        numerics::scale_tile(scratch.values_b.data(), n, k, 1, n, scales.format, scales.b, scales.per_row);
    }
    if (product.how.accumulate && product.how.scale_shift != 0) {
        numerics::scale_accumulator(m, n, d, ldd, product.how.scale_shift);
    }
    numerics::multiply_fast(m, n, k, scratch.values_a.data(), k, scratch.values_b.data(), n, d, ldd,
                            product.how.accumulate);
    if (product.accumulator == numerics::Accumulator::f16) {
        numerics::round_tile_to_f16(m, n, d, ldd);
    }
}

}  // namespace

void unpack_nibbles(const std::byte* packed, std::size_t bytes, std::byte* codes)
{
    for (std::size_t i = 0; i < bytes; ++i) {
        codes[2 * i] = packed[i] & std::byte{0xF};
        codes[2 * i + 1] = packed[i] >> 4;
    }
}

void unpack_containers(std::byte* codes, std::size_t count, MmaElement element)
{
    const int shift = element == MmaElement::e2m1 ? 2 : 0;
    const std::byte mask{static_cast<std::uint8_t>((1U << bits_of(element)) - 1)};
    std::transform(codes, codes + count, codes, [&](std::byte container) { return (container >> shift) & mask; });
}

Sparsity sparsity_of(MmaKind kind) noexcept
{
    switch (kind) {
        case MmaKind::tf32: return {2, 1, 1};
        case MmaKind::mxf4:
        case MmaKind::mxf4nvf4: return {8, 4, 2};
        default: return {4, 2, 1};
    }
}

bool place_chunk(const Sparsity& sparsity, unsigned metadata, const std::byte* stored, unsigned cell, std::byte* dense)
{
    const unsigned first = metadata & 3, second = metadata >> 2;
    const bool one_of_two = sparsity.chunk == 2;
    for (unsigned i = 0; i < sparsity.stored; ++i) {
        const unsigned index = one_of_two ? first / 2 : (i / sparsity.run == 0 ? first : second);
        std::memcpy(dense + std::size_t{index * sparsity.run + i % sparsity.run} * cell, stored + std::size_t{i} * cell,
                    cell);
    }
    const bool valid = one_of_two ? metadata == 0b0100 || metadata == 0b1110 : first < second;
    return valid || std::all_of(stored, stored + std::size_t{sparsity.stored} * cell,
                                [](std::byte byte) { return byte == std::byte{}; });
}

void add_product(const CodedProduct& product, Numerics numerics, float* d, std::size_t ldd)
{
    static thread_local Scratch scratch;
    if (numerics == Numerics::exact) {
        sum_exactly(product, scratch, d, ldd);
    } else {
        sum_fast(product, scratch, d, ldd);
    }
}

}  // namespace tessera::emulator
