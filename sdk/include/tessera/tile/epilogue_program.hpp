#pragma once

/// @file
/// @ingroup tile_gemm
/// @brief `Gemm::launch` with an epilogue in a text, which is compiled at run time. For any C++20 compiler.

#include "tessera/detail/language.hpp"

#include <array>
#include <cstddef>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tessera/gemm.hpp"
#include "tessera/tile/epilogue_operands.hpp"
#include "tessera/tile/program.hpp"

namespace tessera::tile {

namespace detail {

/// How an operand of an epilogue meets the tiles of D.
enum class OperandShape : std::uint8_t { row, column, tile, value };

/// An operand of an epilogue in a text.
struct EpilogueArgument {
    OperandShape shape = OperandShape::value;
    ProgramArgument argument{};
};

template <class T>
EpilogueArgument epilogue_argument(const PerColumn<T>& operand, const std::source_location& caller)
{
    return {OperandShape::row, ProgramArgumentOf<MatrixView<const T>>::from(operand.view(), caller)};
}
template <class T>
EpilogueArgument epilogue_argument(const PerRow<T>& operand, const std::source_location& caller)
{
    return {OperandShape::column, ProgramArgumentOf<MatrixView<const T, ColumnMajor>>::from(operand.view(), caller)};
}
template <class T, class Order>
EpilogueArgument epilogue_argument(const PerElement<T, Order>& operand, const std::source_location& caller)
{
    return {OperandShape::tile, ProgramArgumentOf<BatchView<const T, Order>>::from(operand.view(), caller)};
}
inline EpilogueArgument epilogue_argument(const float& value, const std::source_location& caller)
{
    return {OperandShape::value, ProgramArgumentOf<float>::from(value, caller)};
}

/// Compiles and launches d = expression(a * b, operands ...).
void launch_epilogue_program(const std::string& expression, StreamRef stream, GemmTile tile, const ProgramArgument& a,
                             const ProgramArgument& b, const ProgramArgument& d, const EpilogueArgument* operands,
                             std::size_t count, const std::source_location& caller);

}  // namespace detail

/// An epilogue in a text, with its operands. Made by `epilogue`; `Gemm::launch` takes it.
template <class... Operands>
class SourceEpilogue {
public:
    static constexpr bool is_user_epilogue = true;  ///< for the library

    /// For the library.
    SourceEpilogue(std::string_view expression, const Operands&... operands)
        : expression_(expression), operands_(operands...)
    {}

    /// For the library: checks the operands, chooses a tile, compiles and launches.
    template <class A, class B, class D>
    void launch(StreamRef stream, const A& a, const B& b, const D& d, const std::source_location& caller) const
    {
        static_assert(
            detail::is_typed_view<A> && detail::is_typed_view<B> && detail::is_typed_view<D>,
            "tessera: with an epilogue of your own, A, B and D are MatrixViews or BatchViews: their types are "
            "compiled into the kernel");
        const auto matrices = detail::as_batch(d);
        const detail::GemmTile tile = detail::choose_gemm_tile(
            stream, matrices.first().rows(), matrices.first().columns(), matrices.total_count(), caller);
        const auto launch_with = [&](const auto&... operand) {
            (require_shape(operand, matrices, caller), ...);
            const std::array<detail::EpilogueArgument, sizeof...(Operands) + 1> arguments{
                detail::epilogue_argument(operand, caller)...};
            detail::launch_epilogue_program(expression_, stream, tile, detail::ProgramArgumentOf<A>::from(a, caller),
                                            detail::ProgramArgumentOf<B>::from(b, caller),
                                            detail::ProgramArgumentOf<D>::from(d, caller), arguments.data(),
                                            sizeof...(Operands), caller);
        };
        std::apply(launch_with, operands_);
    }

private:
    template <class Operand, class D>
    static void require_shape(const Operand& operand, const D& d, const std::source_location& caller)
    {
        if constexpr (!std::is_same_v<Operand, float>) {
            operand.require_shape(d, caller);
        }
    }

    std::string expression_;
    std::tuple<Operands...> operands_;
};

/// Returns an epilogue for `Gemm::launch`: d = expression, element by element. It replaces alpha, beta, bias and activation; its value
/// is rounded to D's type. The first launch compiles it, for each set of types, storage orders and tile: see `Program`.
///
/// @code{.cpp}
/// const auto leaky = tile::epilogue("fmaxf(value + x0, x1 * (value + x0))", tile::per_column(bias.span()), 0.01F);
/// Gemm::launch(stream, x, w, y, leaky);
/// @endcode
///
/// @param expression  an expression of CUDA C++ of `value`, the element of A*B, `row` and `column`, where it is, and `x0`, `x1` ..., the
///                    operands, as floats
/// @param operands    `per_column`, `per_row`, `per_element`, and float values: at most 8
template <class... Operands>
SourceEpilogue<Operands...> epilogue(std::string_view expression, const Operands&... operands)
{
    static_assert(
        ((detail::is_epilogue_operand<Operands> || std::is_same_v<Operands, float>) && ...),
        "tessera: an epilogue's operands are per_column(span), per_row(span), per_element(matrix) and floats");
    static_assert(sizeof...(Operands) <= 8, "tessera: an epilogue in a text has at most 8 operands");
    return {expression, operands...};
}

}  // namespace tessera::tile
