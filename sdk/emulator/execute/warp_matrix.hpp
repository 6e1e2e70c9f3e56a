#pragma once

// What mma.sync and wmma share: reading their text, and multiplying fragments.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/fragment.hpp"
#include "execute/matrix_product.hpp"
#include "program/decoder.hpp"

namespace tessera::emulator {

/// mma: execute/mma_sync.cpp.
void decode_mma(Decoder& decoder, Operation& operation);
/// mma with .kind: execute/mma_kinds.cpp.
void decode_mma_kind(Decoder& decoder, Operation& operation, std::string_view kind, bool sparse);
/// Returns true if the module is for one architecture or its family: sm_120a, sm_120f.
[[nodiscard]] bool has_specific_target(const Decoder& decoder);
/// wmma: execute/wmma.cpp.
void decode_wmma(Decoder& decoder, Operation& operation);

struct MmaShape {
    unsigned m = 0, n = 0, k = 0;
    [[nodiscard]] std::string name() const;
    friend bool operator==(const MmaShape&, const MmaShape&) = default;
};
/// Takes .m<M>n<N>k<K>. @throws DecodeError if there is none
[[nodiscard]] MmaShape take_mma_shape(Decoder& decoder);
/// Takes the types, in the order of the text. s4, u4 and b1 are not register types, so they are not ptx::Type.
[[nodiscard]] std::vector<std::string> take_matrix_types(Decoder& decoder);

/// D = A * B + C on fragments.
struct FragmentProduct final : Payload {
    Product product;
    OperandFragment a, b;
    AccumulatorFragment c, d;
    SumType c_type = SumType::f32;
    std::vector<Ref> a_registers, b_registers, c_registers, d_registers;
    /// Sparse A: the row of metadata, the selector, and the layout of the metadata.
    Ref metadata = no_row;
    unsigned selector = 0;
};

/// Sets the fragments' layouts from `product`'s shape and types, and checks the operands' vectors.
/// @throws DecodeError if a vector has the wrong number of registers
void read_fragments(Decoder& decoder, FragmentProduct& payload);
/// K positions of the stored elements of a sparse A of 16 rows, [row][k/2], from the metadata registers of a warp (PTX
/// ISA "Sparse matrix storage"). Returns false if the metadata has an undefined value.
bool sparse_positions(const Product& product, const std::uint32_t* metadata, unsigned selector,
                      std::uint16_t* positions);
/// Returns true if two elements of a chunk of a sparse `product` have the same position. Chunks of zeros are exempt:
/// CUTLASS's compressor writes 0b0000 there.
[[nodiscard]] bool names_a_place_twice(const Product& product, const OperandBlock& a);
inline constexpr const char* sparse_problem =
    "the sparsity metadata selects the same element of a chunk twice (or, for tf32, is neither 0b1110 nor 0b0100); "
    "every four bits must select two different elements";
/// The four bits of metadata of chunk `chunk` of row `row`, of `chunks` in a row (PTX ISA "Matrix fragments for sparse mma",
/// figures of the metadata).
[[nodiscard]] unsigned metadata_nibble(const std::uint32_t* metadata, unsigned selector, Element element,
                                       unsigned chunks, unsigned row, unsigned chunk) noexcept;
/// Number of values that the sparsity selector may have.
[[nodiscard]] unsigned sparse_selectors(Element element, unsigned k) noexcept;

/// Executes a FragmentProduct.
Step execute_fragment_product(Warp& warp, const Operation& operation, LaneMask active);

}  // namespace tessera::emulator
