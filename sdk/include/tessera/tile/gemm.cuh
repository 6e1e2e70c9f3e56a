#pragma once

/// @file
/// @ingroup tile_gemm
/// @brief `Gemm::launch` with an epilogue of your own: a function of each value of the product, compiled into the kernel.
///
/// The kernel is a tile program. Its tile is chosen by the size of D.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tessera/gemm.hpp"
#include "tessera/tile.cuh"
#include "tessera/tile/beside.cuh"
#include "tessera/tile/epilogue_operands.hpp"

namespace tessera::tile {

namespace detail {

/// An operand of an epilogue, as a program loads it: vectors are matrices of one row or one column.
template <class Operand, int M, int N>
struct OperandInput;
template <class T, int M, int N>
struct OperandInput<PerColumn<T>, M, N> {
    using Type = Input<T, 1, N>;
};
template <class T, int M, int N>
struct OperandInput<PerRow<T>, M, N> {
    using Type = Input<T, M, 1, ColumnMajor>;
};
template <class T, class Order, int M, int N>
struct OperandInput<PerElement<T, Order>, M, N> {
    using Type = Input<T, M, N, Order>;
};

/// A float for each operand.
template <class Operand>
struct float_for {
    using type = float;
};

/// Calls an operation with a value, where it is, and the operands beside it.
template <class Op, class... Operands>
TESSERA_TILE float operated(const Op& op, float value, int row, int column, const Operands&... operands)
{
    constexpr bool of_values = std::is_invocable_v<const Op&, float, typename float_for<Operands>::type...>;
    constexpr bool of_places = std::is_invocable_v<const Op&, float, int, int, typename float_for<Operands>::type...>;
    static_assert(
        of_values || of_places,
        "tessera: an epilogue's function takes the value, or the value, its row and its column, and then a float "
        "for each operand: float operator()(float value, float bias) const, marked TESSERA_TILE");
    if constexpr (of_values) {
        return op(value, static_cast<float>(operands)...);
    } else {
        return op(value, row, column, static_cast<float>(operands)...);
    }
}

/// d = op(a * b, operands ...).
template <class A, class B, class D, class OrderA, class OrderB, class OrderD, int M, int N, int K, int Warpgroups,
          class Op, class... Operands>
struct EpilogueGemm {
    using Extra = Inputs<std::index_sequence_for<Operands...>, typename OperandInput<Operands, M, N>::Type...>;
    Input<A, M, K, OrderA> a;
    Input<B, K, N, OrderB> b;
    Output<D, M, N, OrderD> d;
    Op op;
    Extra operands;
    static constexpr Hints hints{.warpgroups = Warpgroups, .warps_m = Warpgroups == 1 ? 2 : 4};

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = zeros<float, M, N>(cta);
            const auto extras =
                operands.all([&](const auto&... inputs) { return prepared_beside<decltype(sum)>(at, inputs...); });
            for (auto [left, right] : stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            const Op& function = op;
            d.store(at, finished_beside<D>(
                            [&](float value, int row, int column, const auto&... others) {
                                return operated(function, value, row, column, others...);
                            },
                            sum, at, extras));
        }
    }
};

}  // namespace detail

/// A function of each value of a product, with its operands. Made by `epilogue`; `Gemm::launch` takes it.
template <class Op, class... Operands>
class ElementEpilogue {
public:
    static constexpr bool is_user_epilogue = true;  ///< for the library

    /// For the library.
    ElementEpilogue(const Op& op, const Operands&... operands) : op_(op), operands_(operands...) {}

    /// For the library: checks the operands, chooses a tile, and launches.
    template <class A, class B, class D>
    void launch(StreamRef stream, const A& a, const B& b, const D& d, const std::source_location& caller) const
    {
        static_assert(
            detail::is_typed_view<A> && detail::is_typed_view<B> && detail::is_typed_view<D>,
            "tessera: with an epilogue of your own, A, B and D are MatrixViews or BatchViews: their types are "
            "compiled into the kernel");
        if constexpr (detail::is_typed_view<A> && detail::is_typed_view<B> && detail::is_typed_view<D>) {
            launch_batches(stream, detail::as_batch(a), detail::as_batch(b), detail::as_batch(d), caller);
        }
    }

private:
    template <class A, class OrderA, class B, class OrderB, class D, class OrderD>
    void launch_batches(StreamRef stream, const BatchView<A, OrderA>& a, const BatchView<B, OrderB>& b,
                        const BatchView<D, OrderD>& d, const std::source_location& caller) const
    {
        std::apply([&](const auto&... operand) { (operand.require_shape(d, caller), ...); }, operands_);
        switch (detail::choose_gemm_tile(stream, d.first().rows(), d.first().columns(), d.total_count(), caller)) {
            case detail::GemmTile::wide: return run<128, 256, 2>(stream, a, b, d, caller);
            case detail::GemmTile::square: return run<128, 128, 2>(stream, a, b, d, caller);
            case detail::GemmTile::small: return run<64, 128, 1>(stream, a, b, d, caller);
        }
    }

    template <int M, int N, int Warpgroups, class A, class OrderA, class B, class OrderB, class D, class OrderD>
    void run(StreamRef stream, const BatchView<A, OrderA>& a, const BatchView<B, OrderB>& b,
             const BatchView<D, OrderD>& d, const std::source_location& caller) const
    {
        using ElementA = std::remove_const_t<A>;
        using ElementB = std::remove_const_t<B>;
        constexpr int k = 128 / static_cast<int>(sizeof(ElementA));
        using Program =
            detail::EpilogueGemm<ElementA, ElementB, D, OrderA, OrderB, OrderD, M, N, k, Warpgroups, Op, Operands...>;
        const auto launch_with = [&](const auto&... operand) {
            tile::launch(stream, Program{{a, caller}, {b, caller}, {d, caller}, op_, {{{operand.view(), caller}}...}},
                         caller);
        };
        std::apply(launch_with, operands_);
    }

    Op op_;
    std::tuple<Operands...> operands_;
};

/// Returns an epilogue for `Gemm::launch`: d = function(a * b, operands ...), element by element. It replaces alpha, beta, bias and
/// activation; what it returns is rounded to D's type.
///
/// @code{.cpp}
/// struct LeakyRelu {
///     float slope;
///     TESSERA_TILE float operator()(float value, float bias) const
///     {
///         value += bias;
///         return value > 0 ? value : slope * value;
///     }
/// };
/// void layer(StreamRef stream, MatrixView<const bf16> x, MatrixView<const bf16> w, DeviceSpan<const float> bias,
///            MatrixView<bf16> y)
/// {
///     Gemm::launch(stream, x, w, y, tile::epilogue(LeakyRelu{0.01F}, tile::per_column(bias)));
/// }
/// @endcode
///
/// @param function  called by many threads at once with a value and a float for each operand, or with a value, its row, its column and
///                  the operands; copied to the GPU
/// @param operands  `per_column`, `per_row` and `per_element`: what else the function gets of a value's place
template <class Op, class... Operands>
    requires(!std::is_convertible_v<const Op&, std::string_view>)
ElementEpilogue<Op, Operands...> epilogue(const Op& function, const Operands&... operands)
{
    static_assert(std::is_trivially_copyable_v<Op>,
                  "tessera: an epilogue's function is copied to the GPU: its members are plain values");
    static_assert((detail::is_epilogue_operand<Operands> && ...),
                  "tessera: an epilogue's operands are per_column(span), per_row(span) and per_element(matrix)");
    return {function, operands...};
}

}  // namespace tessera::tile
