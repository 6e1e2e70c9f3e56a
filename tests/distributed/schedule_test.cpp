// The schedules of all ranks, carried out on rows that are plain numbers: every row of D is the sum that it should be, and whatever
// a step reads was written by a step that it is ordered after.

#include "schedule.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "tessera/distributed/sharded_matrix.hpp"

using namespace tessera::distributed;
using namespace tessera::distributed::detail;

namespace {

/// A row of a matrix: for A, its number; for D, how often each rank has added its product.
using Row = std::map<int, int>;

constexpr int of_a = -1;  // a row of A has its number under this key

struct Memory {
    std::vector<Row> rows;
    std::vector<int> writer;  // step, -1: none

    explicit Memory(std::int64_t size) : rows(static_cast<std::size_t>(size)), writer(rows.size(), -1) {}
};

/// One rank of the simulation.
class Rank {
public:
    Rank(const ShardedShape& shape, int chunks, bool overlaps)
        : schedule_(Schedule::of(shape, chunks, overlaps)),
          own_(Share::of(shape.m, shape.gather.ranks, shape.gather.rank)),
          gathered_(schedule_.rows_gathered),
          summed_(schedule_.rows_summed),
          d_(shape.kind == ShardedKind::all_reduce ? shape.m : Share::of(shape.m, shape.sum.ranks, shape.sum.rank).size)
    {}

    const Schedule& schedule() const { return schedule_; }
    const Memory& d() const { return d_; }

    /// Rows of A that this rank has: all, if A is divided by columns.
    std::int64_t number_of(std::int64_t row) const { return own_.begin + row; }

    void multiply(int index)
    {
        const Step& step = at(index);
        for (std::int64_t i = 0; i < step.rows; ++i) {
            const std::int64_t number =
                step.a == Place::gathered ? read(gathered_, step.a_row + i, index).at(of_a) : number_of(step.a_row + i);
            Row row = step.c == Place::none ? Row{} : read(summed_, step.c_row + i, index);
            if (!row.empty()) {
                REQUIRE(row.at(of_a) == number);
            }
            row[of_a] = static_cast<int>(number);
            ++row[schedule_.shape.sum.rank];
            write(memory_at(step.d), step.d_row + i, row, index);
        }
    }
    std::vector<Row> sent(int index, std::int64_t first, std::int64_t count)
    {
        const Step& step = at(index);
        std::vector<Row> rows;
        for (std::int64_t i = 0; i < count; ++i) {
            if (step.kind == Step::Kind::all_reduce) {
                rows.push_back(read(d_, step.d_row + first + i, index));
            } else if (step.a != Place::given) {
                rows.push_back(read(memory_at(step.a), step.a_row + first + i, index));
            } else {
                rows.push_back({{of_a, static_cast<int>(number_of(step.a_row + first + i))}});
            }
        }
        return rows;
    }
    void received(int index, std::int64_t first, const std::vector<Row>& rows)
    {
        const Step& step = at(index);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            write(memory_at(step.d), step.d_row + first + static_cast<std::int64_t>(i), rows[i], index);
        }
    }
    const Step& at(int index) const { return schedule_.steps[static_cast<std::size_t>(index)]; }

private:
    Memory& memory_at(Place place)
    {
        return place == Place::gathered ? gathered_ : place == Place::summed ? summed_ : d_;
    }
    /// True if step `later` begins after step `earlier` has ended.
    bool is_after(int later, int earlier) const
    {
        for (int i = later; i >= 0; --i) {
            if (at(i).beside != at(later).beside) {
                continue;
            }
            if (i == earlier && i != later) {
                return true;
            }
            if (at(i).waits_for >= 0 && (at(i).waits_for == earlier || is_after(at(i).waits_for, earlier))) {
                return true;
            }
        }
        return false;
    }
    const Row& read(const Memory& memory, std::int64_t row, int index) const
    {
        const int writer = memory.writer.at(static_cast<std::size_t>(row));
        REQUIRE_MESSAGE(writer >= 0, "step " << index << " reads row " << row << ", which nothing has written");
        REQUIRE_MESSAGE(is_after(index, writer), "step " << index << " reads row " << row << " of step " << writer);
        return memory.rows[static_cast<std::size_t>(row)];
    }
    void write(Memory& memory, std::int64_t row, const Row& value, int index)
    {
        const int writer = memory.writer.at(static_cast<std::size_t>(row));
        REQUIRE((writer < 0 || is_after(index, writer)));
        memory.rows[static_cast<std::size_t>(row)] = value;
        memory.writer[static_cast<std::size_t>(row)] = index;
    }

    Schedule schedule_;
    Share own_;
    Memory gathered_;
    Memory summed_;
    Memory d_;
};

Row sum(const std::vector<Row>& rows)
{
    Row total;
    for (const Row& row : rows) {
        for (const auto& [key, value] : row) {
            total[key] = key == of_a ? value : total[key] + value;
        }
    }
    return total;
}

/// Carries out a step of communication of the ranks of a line.
void communicate(const std::vector<Rank*>& ranks, int index)
{
    const auto size = static_cast<int>(ranks.size());
    const auto at = [&](int place) -> const Step& { return ranks[static_cast<std::size_t>(place)]->at(index); };
    const Step::Kind kind = at(0).kind;
    std::vector<std::vector<Row>> messages;
    for (Rank* const rank : ranks) {
        messages.push_back(
            rank->sent(index, 0, rank->at(index).rows * (kind == Step::Kind::reduce_scatter ? size : 1)));
    }
    for (int r = 0; r < size; ++r) {
        Rank& rank = *ranks[static_cast<std::size_t>(r)];
        const Step& step = at(r);
        if (kind == Step::Kind::send_receive) {
            const Step& theirs = at(step.from);
            REQUIRE(theirs.to == r);
            REQUIRE(theirs.rows == step.rows_received);
            rank.received(index, 0, messages[static_cast<std::size_t>(step.from)]);
            continue;
        }
        for (int other = 0; other < size && kind == Step::Kind::all_gather; ++other) {
            REQUIRE(at(other).rows == step.rows);
            if (other != r || step.a == Place::given) {
                rank.received(index, other * step.rows, messages[static_cast<std::size_t>(other)]);
            }
        }
        const std::int64_t first = kind == Step::Kind::reduce_scatter ? r * step.rows : 0;
        for (std::int64_t i = 0; i < step.rows && kind != Step::Kind::all_gather; ++i) {
            std::vector<Row> rows;
            for (const auto& message : messages) {
                rows.push_back(message[static_cast<std::size_t>(first + i)]);
            }
            rank.received(index, i, {sum(rows)});
        }
    }
}

/// Carries out step `index` of all ranks.
void carry_out(std::vector<Rank>& ranks, int index)
{
    for (Rank& rank : ranks) {
        const Step& step = rank.at(index);
        if (step.kind == Step::Kind::copy) {
            rank.received(index, 0, rank.sent(index, 0, step.rows));
        } else if (step.kind == Step::Kind::product) {
            rank.multiply(index);
        } else if (const Line& line = rank.schedule().line_of(step); line.rank == 0) {
            std::vector<Rank*> members;
            for (int place = 0; place < line.ranks; ++place) {
                members.push_back(&ranks[static_cast<std::size_t>(line.number_of(place))]);
                REQUIRE(members.back()->schedule().line_of(members.back()->at(index)).rank == place);
            }
            communicate(members, index);
        }
    }
}

/// The ranks of a grid: those of a column gather rows of A, those of a row sum D; one of both may be a single rank.
void require_right(ShardedShape shape, int grid_rows, int grid_columns, int chunks, bool overlaps)
{
    std::vector<Rank> ranks;
    for (int rank = 0; rank < grid_rows * grid_columns; ++rank) {
        const int row = rank / grid_columns;
        const int column = rank % grid_columns;
        shape.gather = {.ranks = grid_rows, .rank = row, .first = column, .stride = grid_columns};
        shape.sum = {.ranks = grid_columns, .rank = column, .first = row * grid_columns, .stride = 1};
        ranks.emplace_back(shape, chunks, overlaps);
    }
    const std::size_t steps = ranks[0].schedule().steps.size();
    for (std::size_t index = 0; index < steps; ++index) {
        for (Rank& rank : ranks) {
            REQUIRE(rank.schedule().steps.size() == steps);
            REQUIRE(rank.at(static_cast<int>(index)).kind == ranks[0].at(static_cast<int>(index)).kind);
        }
        carry_out(ranks, static_cast<int>(index));
    }
    for (const Rank& rank : ranks) {
        const Line& line = rank.schedule().shape.sum;
        const bool has_all = shape.kind == ShardedKind::all_reduce;
        const Share own = has_all ? Share{0, shape.m} : Share::of(shape.m, line.ranks, line.rank);
        REQUIRE(rank.d().rows.size() == static_cast<std::size_t>(own.size));
        for (std::size_t row = 0; row < rank.d().rows.size(); ++row) {
            Row expected{{of_a, static_cast<int>(own.begin) + static_cast<int>(row)}};
            for (int other = 0; other < line.ranks; ++other) {
                expected[other] = 1;
            }
            REQUIRE(rank.d().rows[row] == expected);
        }
    }
}

constexpr ModelRates h200{.flops = 726e12,
                          .sms = 132,
                          .sms_of_communication = 24,
                          .kernels = {.bytes = 220e9, .latency = 10e-6},
                          .copies = {.bytes = 380e9, .latency = 20e-6},
                          .launch = 4e-6};

ShardedShape tensor_parallel(ShardedKind kind, std::int64_t m, std::int64_t n, std::int64_t k, bool copies)
{
    const bool gathers = kind == ShardedKind::all_gather;
    return {.kind = kind,
            .gather = {.ranks = gathers ? 2 : 1},
            .sum = {.ranks = gathers ? 1 : 2},
            .m = m,
            .n = gathers ? n / 2 : n,
            .k = gathers ? k : k / 2,
            .a_bytes = 2,
            .d_bytes = 2,
            .uses_copies = copies};
}

}  // namespace

TEST_CASE("every row of D is the whole sum, on any number of ranks and in any number of chunks")
{
    struct Grid {
        ShardedKind kind;
        int rows;
        int columns;
    };
    std::vector<Grid> grids;
    for (int ranks = 1; ranks <= 5; ++ranks) {
        grids.push_back({ShardedKind::all_gather, ranks, 1});
        grids.push_back({ShardedKind::reduce_scatter, 1, ranks});
        grids.push_back({ShardedKind::all_reduce, 1, ranks});
        for (int columns = 1; columns <= 3; ++columns) {
            grids.push_back({ShardedKind::blocks, ranks, columns});
        }
    }
    for (const Grid& grid : grids) {
        for (const std::int64_t m : {0, 1, 7, 60, 1300}) {
            for (const int chunks : {1, 2, 3, 8}) {
                for (int flags = 0; flags < 8; ++flags) {
                    CAPTURE(to_string(grid.kind));
                    CAPTURE(grid.rows);
                    CAPTURE(grid.columns);
                    CAPTURE(m);
                    CAPTURE(chunks);
                    CAPTURE(flags);
                    require_right({.kind = grid.kind,
                                   .m = m,
                                   .n = 256,
                                   .k = 64,
                                   .a_bytes = 2,
                                   .d_bytes = 2,
                                   .uses_copies = (flags & 1) != 0,
                                   .may_reduce_at_once = (flags & 2) != 0},
                                  grid.rows, grid.columns, chunks, (flags & 4) != 0);
                }
            }
        }
    }
}

TEST_CASE("by blocks, a product begins before all rows of A have come, and other rows come beside it")
{
    const Schedule schedule = Schedule::of({.kind = ShardedKind::blocks,
                                            .gather = {.ranks = 2, .rank = 0, .first = 0, .stride = 2},
                                            .sum = {.ranks = 2, .rank = 0},
                                            .m = 1024,
                                            .n = 256,
                                            .k = 64,
                                            .a_bytes = 2,
                                            .d_bytes = 2,
                                            .uses_copies = false},
                                           2, true);
    std::vector<int> waits;
    for (const Step& step : schedule.steps) {
        if (step.kind == Step::Kind::product) {
            waits.push_back(step.waits_for);
        }
    }
    // 0: a copy; 1 and 2: rows 512 to 767 and 768 to 1023 of A come; 3: their product; 4: its sum goes, and that of rows 0 to 255 comes
    CHECK(waits == std::vector{1, 2, 4, 6});
    CHECK(schedule.steps[4].to == 1);
    CHECK_FALSE(schedule.steps[4].moves_a());
    const std::string text = describe(schedule, h200);
    CHECK(text.find("send 256 rows of A to rank 2, receive 256 from rank 2") != std::string::npos);
    CHECK(text.find("send 256 rows of D to rank 1, receive 256 from rank 1") != std::string::npos);
}

TEST_CASE("a chunk is a whole number of tiles where there are enough rows")
{
    const Schedule schedule =
        Schedule::of(tensor_parallel(ShardedKind::reduce_scatter, 8192, 4096, 4096, true), 4, true);
    for (const Step& step : schedule.steps) {
        CHECK(step.rows % 128 == 0);
    }
}

TEST_CASE("large products are cut where copy engines move the data, and small ones never")
{
    for (const ShardedKind kind : {ShardedKind::all_gather, ShardedKind::reduce_scatter}) {
        {
            CAPTURE(to_string(kind));
            const auto chosen = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
                return choose_schedule(tensor_parallel(kind, m, n, k, true), h200, 0);
            };
            for (const auto& [m, n, k] : {std::array{16384, 8192, 8192}, std::array{8192, 8192, 8192},
                                          std::array{4096, 14336, 4096}, std::array{8192, 4096, 4096}}) {
                CHECK(chosen(m, n, k).overlaps);
            }
            CHECK_FALSE(chosen(512, 8192, 8192).overlaps);
            CHECK_FALSE(chosen(64, 8192, 8192).overlaps);
        }
    }
}

TEST_CASE("kernels run beside the product for an all-gather that is much shorter alone")
{
    const auto overlaps = [](ShardedKind kind, std::int64_t m, std::int64_t n, std::int64_t k) {
        return choose_schedule(tensor_parallel(kind, m, n, k, false), h200, 0).overlaps;
    };
    CHECK(overlaps(ShardedKind::all_gather, 16384, 8192, 8192));
    CHECK(overlaps(ShardedKind::all_gather, 8192, 8192, 8192));
    CHECK_FALSE(overlaps(ShardedKind::all_gather, 8192, 4096, 4096));
    CHECK_FALSE(overlaps(ShardedKind::reduce_scatter, 16384, 8192, 8192));
    CHECK_FALSE(overlaps(ShardedKind::all_reduce, 16384, 8192, 8192));
}

TEST_CASE("two chunks of an exchange are cut where the waves of tiles end")
{
    const Schedule schedule =
        Schedule::of(tensor_parallel(ShardedKind::reduce_scatter, 4096, 14336, 4096, true), 2, true);
    CHECK(schedule.steps[0].rows == 7 * 128);  // 7 and 9 rows of 56 tiles are 3 and 4 waves; 8 and 8 are 4 and 4
    CHECK(schedule.steps[2].rows == 9 * 128);
}

TEST_CASE("the model's times: a stream does one thing at a time, and waits for what it reads")
{
    const Schedule schedule = Schedule::of(tensor_parallel(ShardedKind::all_gather, 8192, 8192, 8192, true), 4, true);
    const std::vector<StepTimes> times = times_of(schedule, h200);
    double product_end = 0;
    double link_end = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
        const Step& step = schedule.steps[i];
        double& end = step.beside ? link_end : product_end;
        CHECK(times[i].begin >= end);
        CHECK(times[i].end > times[i].begin);
        if (step.waits_for >= 0) {
            CHECK(times[i].begin >= times[static_cast<std::size_t>(step.waits_for)].end);
        }
        end = times[i].end;
    }
    CHECK(seconds_of(schedule, h200) == doctest::Approx(std::max(product_end, link_end)));
    CHECK(seconds_of(schedule, h200) < seconds_of(Schedule::of(schedule.shape, 1, false), h200));
}

TEST_CASE("a requested number of chunks is taken")
{
    const ShardedShape shape = tensor_parallel(ShardedKind::all_gather, 64, 64, 64, false);
    CHECK(choose_schedule(shape, h200, 3).chunks == 3);
    CHECK(choose_schedule(shape, h200, 3).overlaps);
    CHECK_FALSE(choose_schedule(shape, h200, 1).overlaps);
    const std::string text = describe(choose_schedule(shape, h200, 2), h200);
    CHECK(text.find("send 16 rows to rank 1, receive 16 from rank 1") != std::string::npos);
}

TEST_CASE("shares differ by at most one, and cover everything once")
{
    for (std::int64_t extent = 0; extent < 20; ++extent) {
        for (int parts = 1; parts < 7; ++parts) {
            std::int64_t next = 0;
            for (int index = 0; index < parts; ++index) {
                const Share share = Share::of(extent, parts, index);
                CHECK(share.begin == next);
                CHECK(share.size >= extent / parts);
                CHECK(share.size <= extent / parts + 1);
                next += share.size;
            }
            CHECK(next == extent);
        }
    }
}
