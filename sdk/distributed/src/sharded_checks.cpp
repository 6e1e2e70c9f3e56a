#include "sharded_checks.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "tessera/error.hpp"

namespace tessera::distributed::detail {
namespace {

using tessera::detail::raise;

constexpr std::array<std::string_view, Agreement::fields> form_names{"M",
                                                                     "N",
                                                                     "K",
                                                                     "the product",
                                                                     "A's type",
                                                                     "B's type",
                                                                     "D's type",
                                                                     "the ranks that A's rows are divided among",
                                                                     "the distance between these ranks",
                                                                     "the chunks",
                                                                     "the overlap",
                                                                     "the copy engines",
                                                                     "the storage of D",
                                                                     "the activation",
                                                                     "the bias",
                                                                     "the gating",
                                                                     "refusal"};

bool is_packed(const MatrixOperand& matrix)
{
    return matrix.row_major && (matrix.leading_dimension == matrix.columns || matrix.rows <= 1);
}

/// Returns true if D and B are divided as A is, with rows and columns exchanged.
bool are_crosswise(const ShardedMatrix& a, const ShardedMatrix& b, const ShardedMatrix& d)
{
    const auto is_crosswise = [&](const ShardedMatrix& other) {
        const bool is_line = a.grid_rows == 1 || a.grid_columns == 1;  // the order makes no difference then
        return other.grid_rows == a.grid_columns && other.grid_columns == a.grid_rows &&
               (is_line || other.grid_order != a.grid_order);
    };
    return is_crosswise(b) && is_crosswise(d);
}

ShardedKind kind_of(const ShardedMatrix& a, const ShardedMatrix& b, const ShardedMatrix& d, std::string_view operation,
                    const std::source_location& caller)
{
    const auto is = [&](Sharding of_a, Sharding of_b, Sharding of_d) {
        return a.sharding == of_a && b.sharding == of_b && d.sharding == of_d;
    };
    using enum Sharding;
    if (is(by_rows, by_columns, by_columns)) {
        return ShardedKind::all_gather;
    }
    if (is(by_columns, by_rows, by_rows)) {
        return ShardedKind::reduce_scatter;
    }
    if (is(by_columns, by_rows, replicated)) {
        return ShardedKind::all_reduce;
    }
    if (is(replicated, by_columns, by_columns) || is(by_rows, replicated, by_rows) ||
        is(replicated, replicated, replicated)) {
        return ShardedKind::local;
    }
    if (is(by_blocks, by_blocks, by_blocks)) {
        if (are_crosswise(a, b, d)) {
            return ShardedKind::blocks;
        }
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("there is no product of A {}, B {} and D {}", a.describe(), b.describe(), d.describe()),
              "for A by blocks of R x C ranks along rows, B and D by blocks of C x R ranks along columns; or the "
              "reverse");
    }
    raise(
        ErrorCode::invalid_argument, operation, caller,
        fmt::format("there is no product of A {}, B {} and D {}", to_string(a.sharding), to_string(b.sharding),
                    to_string(d.sharding)),
        "(A, B, D) as (by_rows, by_columns, by_columns), (by_columns, by_rows, by_rows or replicated), all by_blocks, "
        "or without communication");
}

bool sums(ShardedKind kind)
{
    return kind == ShardedKind::reduce_scatter || kind == ShardedKind::all_reduce || kind == ShardedKind::blocks;
}

/// Sets whose rows of A are gathered, and whose products are summed.
void set_lines(ShardedShape& shape, const CommunicatorState& state, const ShardedMatrix& a)
{
    const Line all{.ranks = state.size(), .rank = state.rank()};
    switch (shape.kind) {
        case ShardedKind::local: return;
        case ShardedKind::all_gather: shape.gather = all; return;
        case ShardedKind::reduce_scatter:
        case ShardedKind::all_reduce: shape.sum = all; return;
        case ShardedKind::blocks: break;
    }
    const bool along_rows = a.grid_order == GridOrder::along_rows;
    const int row = a.grid_row_of(state.rank());
    const int column = a.grid_column_of(state.rank());
    const int row_stride = along_rows ? a.grid_columns : 1;
    const int column_stride = along_rows ? 1 : a.grid_rows;
    shape.gather = {.ranks = a.grid_rows, .rank = row, .first = column * column_stride, .stride = row_stride};
    shape.sum = {.ranks = a.grid_columns, .rank = column, .first = row * row_stride, .stride = column_stride};
}

void require_epilogue(ShardedKind kind, const Epilogue& epilogue, std::string_view operation,
                      const std::source_location& caller)
{
    const auto refuse = [&](std::string_view what, std::string_view cure) {
        raise(ErrorCode::invalid_argument, operation, caller, fmt::format("{} is not supported here", what),
              std::string(cure));
    };
    if (epilogue.c.present || epilogue.beta) {
        refuse("C", "add it in the next product");
    }
    if (epilogue.pre_activation.present) {
        refuse("a pre-activation", "apply the activation by itself");
    }
    if (epilogue.bias.axis == BiasAxis::per_row || epilogue.scale_a.size() > 1) {
        refuse("a bias or scale for each row", "one for each column, or for the whole matrix");
    }
    const bool is_summed = sums(kind);
    if (is_summed && epilogue.gating != Gating::none) {
        refuse("gating of a sum over ranks", "gate the product whose columns are divided");
    }
    if (is_summed && !(epilogue.scale_d.empty() && epilogue.amax_d.empty())) {
        refuse("a D of 8 bits that is summed over ranks", "a D of f32, f16 or bf16");
    }
    if (kind == ShardedKind::all_reduce &&
        (epilogue.bias.axis != BiasAxis::none || epilogue.activation != Activation::none)) {
        refuse("a bias or activation of a sum that is all-reduced", "a D by rows, or a step of its own");
    }
}

}  // namespace

ShardedShape shape_of(const CommunicatorState& state, const ShardedMatrix& a, const ShardedMatrix& b,
                      const ShardedMatrix& d, const Epilogue& epilogue, std::string_view operation,
                      const std::source_location& caller)
{
    for (const auto& [name, matrix] : {std::pair{'A', &a}, std::pair{'B', &b}, std::pair{'D', &d}}) {
        const bool is_whole = matrix->sharding == Sharding::replicated;
        if (!matrix->local.present ||
            (!is_whole && (matrix->grid_rows * matrix->grid_columns != state.size() || matrix->rank != state.rank()))) {
            raise(ErrorCode::invalid_argument, operation, caller,
                  matrix->local.present
                      ? fmt::format("{} is rank {} of {}, but the communicator's rank is {} of {}", name, matrix->rank,
                                    matrix->grid_rows * matrix->grid_columns, state.rank(), state.size())
                      : fmt::format("there is no {}", name),
                  "make A, B and D with this communicator");
        }
        tessera::detail::require_same_device(operation, caller, "the communicator", state.device().ordinal(),
                                             std::string_view(&name, 1), matrix->local.device);
    }
    const ShardedKind kind = kind_of(a, b, d, operation, caller);
    require_epilogue(kind, epilogue, operation, caller);
    const std::int64_t pairs = epilogue.gating == Gating::none ? 1 : 2;
    if (a.columns != b.rows || a.rows != d.rows || b.columns != d.columns * pairs ||
        b.local.columns != d.local.columns * pairs) {
        raise(ErrorCode::shape_mismatch, operation, caller,
              fmt::format("rank {}: A is {}, B is {}, D is {}", state.rank(), a.describe(), b.describe(), d.describe()),
              "A's columns equal B's rows, and D has A's rows and B's columns");
    }
    const bool is_summed = sums(kind);
    const ElementType d_type = d.local.type;
    if (is_summed && d_type != ElementType::f32 && d_type != ElementType::f16 && d_type != ElementType::bf16) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("rank {}: D is {}, which is not summed over ranks", state.rank(), to_string(d_type)),
              "a D of f32, f16 or bf16");
    }
    if ((kind == ShardedKind::all_gather || kind == ShardedKind::blocks) && !is_packed(a.local)) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format(
                  "rank {}: the rows of A are gathered, but A is {} with a leading dimension of {} and {} columns",
                  state.rank(), a.local.row_major ? "row-major" : "column-major", a.local.leading_dimension,
                  a.local.columns),
              "store it row-major without gaps");
    }
    if (kind == ShardedKind::all_reduce && !is_packed(d.local)) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("rank {}: D is all-reduced, but is {} with a leading dimension of {} and {} columns",
                          state.rank(), d.local.row_major ? "row-major" : "column-major", d.local.leading_dimension,
                          d.local.columns),
              "store it row-major without gaps");
    }
    const bool has_nothing_after = epilogue.bias.axis == BiasAxis::none && epilogue.activation == Activation::none;
    ShardedShape shape{.kind = kind,
                       .m = kind == ShardedKind::local ? a.local.rows : a.rows,
                       .n = b.local.columns,
                       .k = a.local.columns,
                       .a_bytes = size_of(a.local.type),
                       .d_bytes = size_of(d_type),
                       .uses_copies = state.uses_copies(),
                       .may_reduce_at_once = has_nothing_after && is_packed(d.local)};
    set_lines(shape, state, a);
    return shape;
}

Agreement agreement_of(const Schedule& schedule, const ShardedMatrix& a, const ShardedMatrix& b, const ShardedMatrix& d,
                       const Epilogue& epilogue)
{
    Agreement own;
    const auto set = [&](Agreement::Field field, auto value) {
        own.values[static_cast<std::size_t>(field)] = static_cast<std::int64_t>(value);
    };
    set(Agreement::m, a.rows);
    set(Agreement::n, b.columns);
    set(Agreement::k, a.columns);
    set(Agreement::kind, schedule.shape.kind);
    set(Agreement::a_type, a.local.type);
    set(Agreement::b_type, b.local.type);
    set(Agreement::d_type, d.local.type);
    set(Agreement::gathering, schedule.shape.gather.ranks);
    set(Agreement::stride, schedule.shape.gather.stride);
    set(Agreement::chunks, schedule.chunks);
    set(Agreement::overlaps, schedule.overlaps);
    set(Agreement::copies, schedule.uses_copies);
    set(Agreement::at_once, schedule.shape.may_reduce_at_once);
    set(Agreement::activation, epilogue.activation);
    set(Agreement::bias, epilogue.bias.axis);
    set(Agreement::gating, epilogue.gating);
    return own;
}

void require_agreement(CommunicatorState& state, const Agreement& own, std::string_view operation,
                       const std::source_location& caller)
{
    constexpr std::size_t words = std::tuple_size_v<decltype(Agreement::values)>;
    static_assert(sizeof(Agreement::values) == CommunicatorState::exchange_bytes);
    const auto ranks = static_cast<std::size_t>(state.size());
    state.begin_operation(operation, caller);
    const tessera::detail::CurrentDevice current(state.device().ordinal(), operation, caller);
    auto* const all = static_cast<std::int64_t*>(state.exchange_memory());
    std::vector<std::int64_t> values(words * ranks);
    std::int64_t* const mine = all + words * static_cast<std::size_t>(state.rank());
    tessera::detail::check(
        cudaMemcpyAsync(mine, own.values.data(), sizeof(own.values), cudaMemcpyHostToDevice, state.stream().get()),
        "cudaMemcpyAsync", operation, caller);
    state.require(
        state.nccl().all_gather(mine, all, sizeof(own.values), NcclType::uint8, state.comm(), state.stream().get()),
        "ncclAllGather", operation, caller);
    state.synchronize(state.stream(), operation, caller);
    tessera::detail::check(cudaMemcpyAsync(values.data(), all, values.size() * sizeof(std::int64_t),
                                           cudaMemcpyDeviceToHost, state.stream().get()),
                           "cudaMemcpyAsync", operation, caller);
    state.synchronize(state.stream(), operation, caller);
    if (own.values[Agreement::is_refused] != 0) {
        return;  // this rank has an error of its own
    }
    const auto value = [&](std::size_t rank, std::size_t field) { return values[rank * words + field]; };
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (value(rank, Agreement::is_refused) != 0) {
            raise(ErrorCode::shape_mismatch, operation, caller, fmt::format("rank {} refused its matrices", rank),
                  "see the error of that rank");
        }
    }
    for (std::size_t rank = 1; rank < ranks; ++rank) {
        for (std::size_t field = 0; field < Agreement::is_refused; ++field) {
            if (value(rank, field) != value(0, field)) {
                raise(ErrorCode::shape_mismatch, operation, caller,
                      fmt::format("{}: rank {} has {}, but rank 0 has {}", form_names[field], rank, value(rank, field),
                                  value(0, field)),
                      "prepare the same product, with the same options, on all ranks");
            }
        }
    }
}

void require_same_form(char name, const ShardedMatrix& planned, const ShardedMatrix& given, std::string_view operation,
                       const std::source_location& caller)
{
    const auto form = [](const ShardedMatrix& matrix) {
        return fmt::format("{}, {} of {}x{}, {} with a leading dimension of {}", matrix.describe(),
                           to_string(matrix.local.type), matrix.local.rows, matrix.local.columns,
                           matrix.local.row_major ? "row-major" : "column-major", matrix.local.leading_dimension);
    };
    if (!given.local.present || form(planned) != form(given)) {
        raise(ErrorCode::shape_mismatch, operation, caller,
              fmt::format("{} is {}, but the plan was prepared for {}", name, form(given), form(planned)),
              "prepare another plan on all ranks");
    }
}

}  // namespace tessera::distributed::detail
