#pragma once

/// @file
/// @ingroup tile_products
/// @brief Products on tcgen05: which ones it has, and how they are issued. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <cstdint>
#include <type_traits>

#include "tessera/device/instruction_descriptor.hpp"
#include "tessera/device/mma.cuh"
#include "tessera/device/smem_descriptor.hpp"
#include "tessera/tile/tcgen05_stages.cuh"
#include "tessera/tile/tensor_sums.cuh"

namespace tessera::tile::detail {

template <class T>
TESSERA_DETAIL_HOST_DEVICE constexpr OperandType operand_type()
{
    if constexpr (std::is_same_v<T, f8e4m3>) {
        return OperandType::e4m3;
    } else if constexpr (std::is_same_v<T, f8e5m2>) {
        return OperandType::e5m2;
    } else if constexpr (std::is_same_v<T, tf32>) {
        return OperandType::tf32;
    } else if constexpr (std::is_same_v<T, bf16>) {
        return OperandType::bf16;
    } else {
        return OperandType::f16;
    }
}

/// A tile in shared memory as an operand: A has rows along M, B along N. Of B, each CTA of a pair has a half.
template <class Whole, bool IsA, int Ctas>
struct TileOperand {
    using Geometry = std::conditional_t<IsA || Ctas == 1, Whole, HalvedTile<Whole>>;
    static constexpr bool k_major = Geometry::row_major == IsA;
    static constexpr int extent = k_major ? Geometry::lines : Geometry::contiguous;
    static constexpr int k = k_major ? Geometry::contiguous : Geometry::lines;
    static constexpr int rows = IsA ? extent : extent / Ctas;
    static constexpr TileLayout layout{k_major ? Major::k : Major::mn, Geometry::swizzle,
                                       static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(k),
                                       static_cast<std::uint32_t>(Geometry::bytes_of_element)};
    /// True if the tensor core reads what a CTA has of the tile.
    static constexpr bool exists = Geometry::exists && rows % 8 == 0 && tcgen05_can_read(layout);
};

/// A product of (M, K) and (K, N) tiles: each 128 rows have an instruction, or 256 in a pair of CTAs.
template <int M, int N, int Ctas, class A, class B, Major MajorA, Major MajorB, MmaForm Form>
struct Tcgen05Product {
    static constexpr int block_rows = M < 128 ? M : 128;
    static constexpr int blocks = M / block_rows;
    static constexpr MmaSpec spec{.kind = tessera::detail::plain_kind(operand_type<A>()),
                                  .group = Ctas == 2 ? CtaGroup::pair : CtaGroup::one,
                                  .form = Form,
                                  .m = static_cast<std::uint32_t>(block_rows * Ctas),
                                  .n = static_cast<std::uint32_t>(N),
                                  .a = operand_type<A>(),
                                  .b = operand_type<B>(),
                                  .a_major = MajorA,
                                  .b_major = MajorB};
    static constexpr bool has_sums = has_lanes(M) && N % 16 == 0 && N <= 256 && blocks * N <= 512;
    static constexpr bool exists = has_sums && find_fault(spec) == MmaFault::none && (Ctas == 1 || M >= 128);
    static constexpr int k_of_instruction = 32 / static_cast<int>(sizeof(A));
};

/// The product of two tiles in shared memory.
template <class Machine, int Ctas, int M, int N, class A, class B>
struct SharedProduct {
    using OperandA = TileOperand<typename A::Geometry, true, Ctas>;
    using OperandB = TileOperand<typename B::Geometry, false, Ctas>;
    using Product = Tcgen05Product<M, N, Ctas, typename A::element_type, typename B::element_type,
                                   OperandA::layout.major, OperandB::layout.major, MmaForm::shared>;
    static constexpr bool exists =
        Product::exists && OperandA::exists && OperandB::exists && lane_layout<Machine, M, N>::is_tile;
};

/// Says which instructions a product needs, for the plan.
template <class Machine, int M, int N, class A, class B>
TESSERA_TILE void plan_product([[maybe_unused]] const A& a, [[maybe_unused]] const B& b)
{
    using Single = SharedProduct<Machine, 1, M, N, A, B>;
    if constexpr (!Single::Product::has_sums || !lane_layout<Machine, M, N>::is_tile) {
        note_refusal<Tcgen05Refusal::sums>();
    } else if constexpr (!Single::exists) {
        note_refusal<Tcgen05Refusal::operand>();
    }
    if constexpr (!SharedProduct<Machine, 2, M, N, A, B>::exists) {
        note_refusal<PairRefusal::product>();
    }
    if (a.kind() != BandKind::of_place_rows || b.kind() != BandKind::of_place_columns) {
        note_refusal<PairRefusal::bands>();
    }
    note_product();
}

/// Issues a product: begins, and does not wait.
template <class Machine, int M, int N, class A, class B>
__device__ __forceinline__ void issue_product(const Sums<Machine, M, N>& sums, const A& a, const B& b, bool adds)
{
    using Shared = SharedProduct<Machine, Machine::multiplying_ctas, M, N, A, B>;
    using Product = typename Shared::Product;
    constexpr TileLayout layout_a = Shared::OperandA::layout;
    constexpr TileLayout layout_b = Shared::OperandB::layout;
    using LayoutA = SharedLayout<layout_a.major, layout_a.swizzle, layout_a.rows, layout_a.k, layout_a.element_bytes>;
    using LayoutB = SharedLayout<layout_b.major, layout_b.swizzle, layout_b.rows, layout_b.k, layout_b.element_bytes>;
    constexpr MmaInstruction<Product::spec> instruction{};
    const auto& state = sums.state();
    const std::uint32_t first = first_column<columns_of_slot(M, N)>(state, sums.slot());
    const auto tile_a = tcgen05_descriptor<LayoutA>(a.address());
    const auto tile_b = tcgen05_descriptor<LayoutB>(b.address());
    if (elect_one()) {
#pragma unroll
        for (int k = 0; k < A::columns; k += Product::k_of_instruction) {
            const auto from = static_cast<std::uint32_t>(k);
#pragma unroll
            for (int block = 0; block < Product::blocks; ++block) {
                constexpr std::uint32_t block_bytes = LayoutA::offset(Product::block_rows * (Product::blocks > 1), 0);
                const auto block_number = static_cast<std::uint32_t>(block);
                mma(state.memory->template columns_from<N>(first + block_number * N),
                    tile_a.advanced(LayoutA::k_offset(from) + block_number * block_bytes), tile_b.from_k(from),
                    instruction, adds || k > 0 ? Accumulate::add : Accumulate::overwrite);
            }
        }
    }
    __syncwarp();
}

/// The product of a tile in tensor memory.
template <class Machine, int Ctas, int M, int N, int K, class T, class B>
struct RegisterProduct {
    using OperandB = TileOperand<typename B::Geometry, false, Ctas>;
    using Product = Tcgen05Product<M, N, Ctas, T, T, Major::k, OperandB::layout.major, MmaForm::tensor_memory_a>;
    static constexpr int steps = K / Product::k_of_instruction;
    static constexpr int block_columns = K / 2;  // of tensor memory: two elements each
    static constexpr bool exists = Product::exists && OperandB::exists && lane_layout<Machine, M, N>::is_tile &&
                                   lane_layout<Machine, M, K>::is_tile && Product::blocks * block_columns <= 512;
};

/// Issues a product whose A is in tensor memory: begins, and does not wait.
template <class Machine, int M, int N, int K, class T, class B>
__device__ __forceinline__ void issue_product_of_slot(const Sums<Machine, M, N>& sums, int slot, const B& b, bool adds)
{
    using Registers = RegisterProduct<Machine, Machine::multiplying_ctas, M, N, K, T, B>;
    using Product = typename Registers::Product;
    constexpr TileLayout layout_b = Registers::OperandB::layout;
    using LayoutB = SharedLayout<layout_b.major, layout_b.swizzle, layout_b.rows, layout_b.k, layout_b.element_bytes>;
    constexpr MmaInstruction<Product::spec> instruction{};
    const auto& state = sums.state();
    const std::uint32_t first = first_column<columns_of_slot(M, N)>(state, sums.slot());
    const std::uint32_t first_of_a = first_column<columns_of_slot(M, K / 2)>(state, slot);
    const auto tile_b = tcgen05_descriptor<LayoutB>(b.address());
    if (elect_one()) {
#pragma unroll
        for (std::uint32_t step = 0; step < Registers::steps; ++step) {
#pragma unroll
            for (std::uint32_t block = 0; block < Product::blocks; ++block) {
                mma(state.memory->template columns_from<N>(first + block * N),
                    state.memory->template operand_from<Registers::steps>(first_of_a +
                                                                          block * Registers::block_columns),
                    step, tile_b.from_k(step * Product::k_of_instruction), instruction,
                    adds || step > 0 ? Accumulate::add : Accumulate::overwrite);
            }
        }
    }
    __syncwarp();
}

/// Adds a product of a tile in registers: it goes to tensor memory.
template <class Machine, int M, int N, int K, class T, class Layout, class B>
TESSERA_TILE void multiply_tcgen05(Sums<Machine, M, N>& sums, const Tile<T, M, K, Layout>& a, const B& b)
{
    constexpr bool plans = Machine::role == Role::plan;
    if constexpr (plans) {
        if constexpr (!RegisterProduct<Machine, 1, M, N, K, T, B>::exists) {
            note_refusal<Tcgen05Refusal::register_operand>();
        }
        note_refusal<PairRefusal::register_operand>();
        note_product();
    }
    if constexpr (plans || (Machine::multiplying_ctas == 1 && RegisterProduct<Machine, 1, M, N, K, T, B>::exists)) {
        if constexpr (Machine::role != Role::load) {
            auto& state = sums.state();
            const int slot = take_slot<Machine>(state, columns_of_slot(M, K / 2));
            await_free_slot<Machine>(state, slot);
            write_slot<Machine>(state, slot, [&](std::uint32_t address) {
                if constexpr (Machine::computes) {
                    store_operand(a, address);
                }
            });
            const bool adds = sums.begin();
            if constexpr (Machine::role == Role::multiply) {
                issue_product_of_slot<Machine, M, N, K, T>(sums, slot, b, adds);
            }
            give_up_slot<Machine>(state, slot, true);
        }
    } else {
        refuse_branch();
    }
}

/// Adds a product of tiles in shared memory, as far as the calling role has to do with it.
template <class Machine, int M, int N, class A, class B>
TESSERA_TILE void multiply_tcgen05(Sums<Machine, M, N>& sums, const A& a, const B& b)
{
    if constexpr (Machine::role == Role::plan) {
        plan_product<Machine, M, N>(a, b);
        sums.begin();
    } else if constexpr (SharedProduct<Machine, Machine::multiplying_ctas, M, N, A, B>::exists) {
        const bool adds = sums.begin();
        if constexpr (Machine::role == Role::multiply) {
            issue_product(sums, a, b, adds);
        }
    } else {
        refuse_branch();
    }
}

}  // namespace tessera::tile::detail
