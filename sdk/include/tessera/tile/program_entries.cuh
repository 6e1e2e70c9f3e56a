#pragma once

/// @file
/// @ingroup tile_programs
/// @brief The kernels of a program that is compiled at run time, and what the host must know of its members. Private to
/// tessera/tile.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "tessera/tile/kernel.cuh"
#include "tessera/tile/numbers.cuh"
#include "tessera/tile/program_members.hpp"
#include "tessera/tile/view.cuh"

namespace tessera::tile::detail {

/// Becomes a member of any type.
struct AnyMember {
    template <class T>
    operator T() const;
};

template <class Program, class... Members>
constexpr int count_members()
{
    if constexpr (requires { Program{std::declval<Members>()..., AnyMember{}}; }) {
        return count_members<Program, Members..., AnyMember>();
    } else {
        return static_cast<int>(sizeof...(Members));
    }
}

template <class... Members>
struct MemberTypes {};
template <class... Members>
constexpr MemberTypes<std::remove_cvref_t<Members>...> types_of(Members&...)
{
    return {};
}

/// Returns the types of a program's members.
template <int Count, class Program>
constexpr auto member_types(const Program& program)
{
    if constexpr (Count == 1) {
        auto& [a] = program;
        return types_of(a);
    } else if constexpr (Count == 2) {
        auto& [a, b] = program;
        return types_of(a, b);
    } else if constexpr (Count == 3) {
        auto& [a, b, c] = program;
        return types_of(a, b, c);
    } else if constexpr (Count == 4) {
        auto& [a, b, c, d] = program;
        return types_of(a, b, c, d);
    } else if constexpr (Count == 5) {
        auto& [a, b, c, d, e] = program;
        return types_of(a, b, c, d, e);
    } else if constexpr (Count == 6) {
        auto& [a, b, c, d, e, f] = program;
        return types_of(a, b, c, d, e, f);
    } else if constexpr (Count == 7) {
        auto& [a, b, c, d, e, f, g] = program;
        return types_of(a, b, c, d, e, f, g);
    } else if constexpr (Count == 8) {
        auto& [a, b, c, d, e, f, g, h] = program;
        return types_of(a, b, c, d, e, f, g, h);
    } else if constexpr (Count == 9) {
        auto& [a, b, c, d, e, f, g, h, i] = program;
        return types_of(a, b, c, d, e, f, g, h, i);
    } else if constexpr (Count == 10) {
        auto& [a, b, c, d, e, f, g, h, i, j] = program;
        return types_of(a, b, c, d, e, f, g, h, i, j);
    } else if constexpr (Count == 11) {
        auto& [a, b, c, d, e, f, g, h, i, j, k] = program;
        return types_of(a, b, c, d, e, f, g, h, i, j, k);
    } else {
        static_assert(Count == most_members);
        auto& [a, b, c, d, e, f, g, h, i, j, k, l] = program;
        return types_of(a, b, c, d, e, f, g, h, i, j, k, l);
    }
}

/// What the host must know of a member.
template <class T>
struct member_of {
    static constexpr Member value{.kind = MemberKind::value, .number = value_kind_of<T>};
};
template <class T, int Rows, int Columns, class Order, class E>
struct member_of<Input<T, Rows, Columns, Order, E>> {
    using Staged = StagedTile<T, Rows, Columns, Order>;
    using Halved = HalvedTile<Staged>;
    static constexpr Member value{.kind = MemberKind::input,
                                  .element = element_traits<T>::type,
                                  .row_major = std::is_same_v<Order, RowMajor>,
                                  .can_be_staged = Staged::exists,
                                  .swizzle = Staged::swizzle,
                                  .rows = Rows,
                                  .columns = Columns,
                                  .compiled_rows = E::rows,
                                  .compiled_columns = E::columns,
                                  .in_line = static_cast<std::uint32_t>(Staged::in_line),
                                  .box_lines = static_cast<std::uint32_t>(Staged::box_lines),
                                  .in_line_of_halves = static_cast<std::uint32_t>(Halved::in_line),
                                  .box_lines_of_halves = static_cast<std::uint32_t>(Halved::box_lines),
                                  .swizzle_of_halves = Halved::swizzle};
};
template <class T, int Rows, int Columns, class Order, class E>
struct member_of<Output<T, Rows, Columns, Order, E>> {
    static constexpr Member value{.kind = MemberKind::output,
                                  .element = element_traits<T>::type,
                                  .row_major = std::is_same_v<Order, RowMajor>,
                                  .rows = Rows,
                                  .columns = Columns,
                                  .compiled_rows = E::rows,
                                  .compiled_columns = E::columns};
};
template <class T>
struct member_of<Numbers<T>> {
    static constexpr Member value{.kind = MemberKind::numbers, .number = value_kind_of<T>, .number_bytes = sizeof(T)};
};

template <class T>
constexpr Member described()
{
    Member member = member_of<T>::value;
    member.bytes = sizeof(T);
    member.alignment = alignof(T);
    return member;
}

template <class... Members>
constexpr ProgramMembers members_in(MemberTypes<Members...>)
{
    return {.count = static_cast<std::uint32_t>(sizeof...(Members)), .of = {described<Members>()...}};
}

/// Describes a program to the host.
template <class Program>
constexpr ProgramMembers members_of()
{
    static_assert(std::is_aggregate_v<Program>,
                  "tessera: a program that is compiled at run time is a struct without constructors: its members are "
                  "inputs, outputs, numbers and plain values, in the order of the launch's arguments");
    static_assert(std::is_trivially_copyable_v<Program>,
                  "tessera: a tile program is copied to the GPU: its members are inputs, outputs and plain values");
    static_assert(std::is_invocable_v<const Program&, PlanningCta<Instructions::mma_sync, Program>>,
                  "tessera: a tile program has TESSERA_TILE void operator()(auto cta) const");
    constexpr int count = count_members<Program>();
    static_assert(
        count >= 1 && count <= most_members,
        "tessera: a program that is compiled at run time has 1 to 12 members; a struct of values counts as one");
    ProgramMembers members = members_in(decltype(member_types<count>(std::declval<const Program&>())){});
    members.bytes = sizeof(Program);
    members.threads_mma_sync = static_cast<std::uint32_t>(threads_of_kernel<Instructions::mma_sync, Program>());
    members.threads_wgmma = static_cast<std::uint32_t>(threads_of_kernel<Instructions::wgmma, Program>());
    members.threads_by_tma = static_cast<std::uint32_t>(threads_of_kernel_by_tma<Program>());
    members.threads_tcgen05 = static_cast<std::uint32_t>(threads_of_kernel<Instructions::tcgen05, Program>());
    members.cluster = static_cast<std::uint32_t>(program_hints<Program>.cluster);
    members.cluster_columns = static_cast<std::uint32_t>(program_hints<Program>.cluster_columns);
    members.pairs = program_hints<Program>.pairs;
    members.stages = static_cast<std::uint32_t>(program_hints<Program>.stages);
    return members;
}

}  // namespace tessera::tile::detail

#ifdef TESSERA_TILE_PROGRAM
// The entries of a program. Their names are the host's to know: they have no C++ linkage.
extern "C" {
/// Never launched: its comments say what the program needs.
__global__ void tessera_tile_plan(const __grid_constant__ TESSERA_TILE_PROGRAM program)
{
    tessera::tile::detail::plan_program(program);
}
__global__ void __launch_bounds__(
    tessera::tile::detail::threads_of_kernel<tessera::tile::Instructions::mma_sync, TESSERA_TILE_PROGRAM>())
    tessera_tile_mma_sync(const __grid_constant__ TESSERA_TILE_PROGRAM program,
                          const tessera::tile::detail::SharedMemory memory)
{
    tessera::tile::detail::run_program<tessera::tile::Instructions::mma_sync>(program, memory);
}
#if __CUDA_ARCH__ >= 1200
__global__ void __launch_bounds__(tessera::tile::detail::threads_of_kernel_by_tma<TESSERA_TILE_PROGRAM>())
    tessera_tile_by_tma(const __grid_constant__ TESSERA_TILE_PROGRAM program,
                        const tessera::tile::detail::SharedMemory memory)
{
    tessera::tile::detail::run_program_by_tma(program, memory);
}
#endif
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
__global__ void __launch_bounds__(
    tessera::tile::detail::threads_of_kernel<tessera::tile::Instructions::wgmma, TESSERA_TILE_PROGRAM>())
    tessera_tile_wgmma(const __grid_constant__ TESSERA_TILE_PROGRAM program,
                       const tessera::tile::detail::SharedMemory memory)
{
    tessera::tile::detail::run_program<tessera::tile::Instructions::wgmma>(program, memory);
}
/// Empty if the program's hints want no clusters.
__global__ void __launch_bounds__(
    tessera::tile::detail::threads_of_kernel<tessera::tile::Instructions::wgmma, TESSERA_TILE_PROGRAM>())
    tessera_tile_clusters(const __grid_constant__ TESSERA_TILE_PROGRAM program,
                          const tessera::tile::detail::SharedMemory memory,
                          const __grid_constant__ tessera::TileRaster groups)
{
    tessera::tile::detail::run_program_in_clusters(program, memory, groups);
}
#endif
#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && \
    (__CUDA_ARCH_FAMILY_SPECIFIC__ / 100 == 10 || __CUDA_ARCH_FAMILY_SPECIFIC__ / 100 == 11)
/// Never launched, as tessera_tile_plan.
__global__ void tessera_tile_plan_tcgen05(const __grid_constant__ TESSERA_TILE_PROGRAM program)
{
    tessera::tile::detail::plan_program_for_tcgen05(program);
}
__global__ void __launch_bounds__(
    tessera::tile::detail::threads_of_kernel<tessera::tile::Instructions::tcgen05, TESSERA_TILE_PROGRAM>(), 1)
    tessera_tile_tcgen05(const __grid_constant__ TESSERA_TILE_PROGRAM program,
                         const tessera::tile::detail::SharedMemory memory,
                         const __grid_constant__ tessera::tile::detail::TensorMemory tensor_memory)
{
    tessera::tile::detail::run_program_on_tcgen05<1>(program, memory, tensor_memory);
}
__global__ void __launch_bounds__(
    tessera::tile::detail::threads_of_kernel<tessera::tile::Instructions::tcgen05, TESSERA_TILE_PROGRAM>(), 1)
    tessera_tile_pairs(const __grid_constant__ TESSERA_TILE_PROGRAM program,
                       const tessera::tile::detail::SharedMemory memory,
                       const __grid_constant__ tessera::tile::detail::TensorMemory tensor_memory)
{
    tessera::tile::detail::run_program_on_tcgen05<2>(program, memory, tensor_memory);
}
/// Empty if the program's hints want no clusters of pairs.
__global__ void __launch_bounds__(
    tessera::tile::detail::threads_of_kernel<tessera::tile::Instructions::tcgen05, TESSERA_TILE_PROGRAM>(), 1)
    tessera_tile_clusters_of_pairs(const __grid_constant__ TESSERA_TILE_PROGRAM program,
                                   const tessera::tile::detail::SharedMemory memory,
                                   const __grid_constant__ tessera::tile::detail::TensorMemory tensor_memory)
{
    tessera::tile::detail::run_program_in_pairs(program, memory, tensor_memory);
}
#endif
__device__ const tessera::tile::detail::ProgramMembers tessera_tile_members =
    tessera::tile::detail::members_of<TESSERA_TILE_PROGRAM>();
}
#endif  // TESSERA_TILE_PROGRAM
