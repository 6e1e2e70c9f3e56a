#include "schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "tessera/distributed/sharded_matrix.hpp"

namespace tessera::distributed::detail {
namespace {

constexpr std::int64_t rows_of_unit = 128;   // chunks are whole tiles of the products
constexpr std::int64_t tiles_of_wave = 132;  // SMs of an H100 or H200; the same number on all ranks
constexpr std::array chunk_counts{1, 2, 3, 4, 6, 8, 12, 16};
// For which two streams are worth it. What events and further kernels cost varies by more than what small products could gain.
constexpr double least_share_gained = 0.03;
constexpr double least_seconds_gained = 15e-6;

/// Rows that chunk `index` has of `rows`.
Share chunk_of(std::int64_t rows, int chunks, int index)
{
    const std::int64_t unit = rows >= rows_of_unit * chunks ? rows_of_unit : 1;
    const Share units = Share::of((rows + unit - 1) / unit, chunks, index);
    const std::int64_t begin = std::min(units.begin * unit, rows);
    return {begin, std::min((units.begin + units.size) * unit, rows) - begin};
}

class Builder {
public:
    explicit Builder(Schedule& schedule)
        : schedule_(schedule), shape_(schedule.shape), gather_(shape_.gather), sum_(shape_.sum)
    {}

    /// All communication first, then the product; or the reverse. By blocks, the product is between two of them.
    void build_in_turn()
    {
        switch (shape_.kind) {
            case ShardedKind::local: add({.rows = shape_.m}); return;
            case ShardedKind::all_gather:
            case ShardedKind::reduce_scatter:
            case ShardedKind::blocks: sum_in_turn(gather_in_turn()); return;
            case ShardedKind::all_reduce:
                add({.rows = shape_.m});
                add({.kind = Step::Kind::all_reduce, .rows = shape_.m});
                return;
        }
    }

    void build_beside()
    {
        switch (shape_.kind) {
            case ShardedKind::local: build_in_turn(); return;
            case ShardedKind::all_gather:
                schedule_.uses_copies = shape_.uses_copies && has_equal_parts(gather_);
                schedule_.uses_copies ? build_gathered_chunks() : build_received_pieces();
                return;
            case ShardedKind::reduce_scatter:
                if (shape_.uses_copies && has_equal_parts(sum_) && sum_.ranks == 2) {
                    schedule_.uses_copies = true;
                    build_exchange();
                } else {
                    build_ring(Place::given, schedule_.chunks, true);
                }
                return;
            case ShardedKind::all_reduce: build_reduced_chunks(); return;
            case ShardedKind::blocks: build_ring(gather_pieces(), schedule_.chunks, true); return;
        }
    }

private:
    int add(const Step& step)
    {
        if (step.waits_for >= 0) {
            schedule_.steps[static_cast<std::size_t>(step.waits_for)].is_awaited = true;
        }
        schedule_.steps.push_back(step);
        return static_cast<int>(schedule_.steps.size()) - 1;
    }
    static int neighbour(const Line& line, int distance) { return (line.rank + distance + line.ranks) % line.ranks; }
    bool has_equal_parts(const Line& line) const { return shape_.m % line.ranks == 0; }
    Share rows_of(const Line& line, int place) const { return Share::of(shape_.m, line.ranks, place); }

    /// Returns where all rows of A are then.
    Place gather_in_turn()
    {
        if (gather_.ranks == 1) {
            return Place::given;
        }
        schedule_.rows_gathered = shape_.m;
        const Share own = rows_of(gather_, gather_.rank);
        if (has_equal_parts(gather_)) {
            add({.kind = Step::Kind::all_gather, .rows = own.size, .d = Place::gathered});
            return Place::gathered;
        }
        // Each rank's own part travels to itself, too: the product then reads all of A in one place.
        for (int distance = 0; distance < gather_.ranks; ++distance) {
            add_receive(distance, own, rows_of(gather_, neighbour(gather_, distance)), false);
        }
        return Place::gathered;
    }

    void sum_in_turn(Place a)
    {
        if (sum_.ranks == 1) {
            add({.rows = shape_.m, .a = a});
            return;
        }
        if (!shape_.may_reduce_at_once || !has_equal_parts(sum_)) {
            build_ring(a, 1, false);
            return;
        }
        schedule_.rows_summed = shape_.m;
        add({.rows = shape_.m, .a = a, .d = Place::summed});
        add({.kind = Step::Kind::reduce_scatter,
             .block = sum_.rank,
             .rows = rows_of(sum_, sum_.rank).size,
             .a = Place::summed,
             .d = Place::given});
    }

    /// Sends `sent` of the own rows against the ring, and receives rows of the rank at `distance`.
    int add_receive(int distance, const Share& sent, const Share& received, bool beside)
    {
        return add({.kind = Step::Kind::send_receive,
                    .beside = beside,
                    .block = neighbour(gather_, distance),
                    .rows = sent.size,
                    .a_row = sent.begin - rows_of(gather_, gather_.rank).begin,
                    .d = Place::gathered,
                    .d_row = received.begin,
                    .to = neighbour(gather_, -distance),
                    .from = neighbour(gather_, distance),
                    .rows_received = received.size});
    }

    /// The same for one chunk of the rows, beside products. Returns the step, and the rows that come.
    std::pair<int, Share> add_piece(int distance, int chunk)
    {
        const Share own = rows_of(gather_, gather_.rank);
        const Share theirs = rows_of(gather_, neighbour(gather_, distance));
        Share sent = chunk_of(own.size, schedule_.chunks, chunk);
        Share received = chunk_of(theirs.size, schedule_.chunks, chunk);
        sent.begin += own.begin;
        received.begin += theirs.begin;
        return {add_receive(distance, sent, received, true), received};
    }

    /// All-gather by kernels: pieces of the other ranks arrive while the own rows are multiplied, the next rank's first.
    void build_received_pieces()
    {
        schedule_.rows_gathered = shape_.m;
        const Share own = rows_of(gather_, gather_.rank);
        std::vector<Step> products;
        bool has_own = false;
        const auto add_own = [&] {
            if (!std::exchange(has_own, true)) {
                add({.block = gather_.rank, .rows = own.size, .d_row = own.begin});
            }
        };
        for (int distance = 1; distance < gather_.ranks; ++distance) {
            for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
                const auto [arrival, received] = add_piece(distance, chunk);
                add_own();
                add_waiting(products);
                products.push_back({.waits_for = arrival,
                                    .block = neighbour(gather_, distance),
                                    .rows = received.size,
                                    .a = Place::gathered,
                                    .a_row = received.begin,
                                    .d_row = received.begin});
            }
        }
        add_own();
        add_waiting(products);
    }

    /// Enqueues products whose communication was enqueued before the latest one, so that neither stream runs dry.
    void add_waiting(std::vector<Step>& products)
    {
        for (const Step& product : products) {
            add(product);
        }
        products.clear();
    }

    /// All-gather by kernels for products whose rows are those of sums: pieces of the other ranks arrive beside whatever does not need
    /// them. The own rows are copied, so that a product reads rows of several ranks in one place. Returns that place.
    Place gather_pieces()
    {
        if (gather_.ranks == 1) {
            return Place::given;
        }
        schedule_.rows_gathered = shape_.m;
        const Share own = rows_of(gather_, gather_.rank);
        add({.kind = Step::Kind::copy,
             .block = gather_.rank,
             .rows = own.size,
             .d = Place::gathered,
             .d_row = own.begin});
        for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
            for (int distance = 1; distance < gather_.ranks; ++distance) {
                pieces_.push_back(add_piece(distance, chunk));
            }
        }
        return Place::gathered;
    }

    /// Returns the latest step that brings one of these rows of A, or -1.
    int arrival_of(const Share& rows) const
    {
        int latest = -1;
        for (const auto& [step, brought] : pieces_) {
            if (brought.begin < rows.begin + rows.size && rows.begin < brought.begin + brought.size) {
                latest = step;
            }
        }
        return latest;
    }

    /// All-gather by copy engines, in place: a copy on the same device would be a kernel, which waits for SMs while the product has
    /// them all. So the own rows are copied before the product.
    void build_gathered_chunks()
    {
        schedule_.rows_gathered = shape_.m;
        const Share own = rows_of(gather_, gather_.rank);
        std::vector<int> copies(static_cast<std::size_t>(schedule_.chunks), -1);
        for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
            const Share part = chunk_of(own.size, schedule_.chunks, chunk);
            copies[static_cast<std::size_t>(chunk)] =
                add({.kind = Step::Kind::copy,
                     .block = gather_.rank,
                     .rows = part.size,
                     .a_row = part.begin,
                     .d = Place::gathered,
                     .d_row = part.begin * gather_.ranks + gather_.rank * part.size});
        }
        std::vector<Step> products;
        for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
            const Share part = chunk_of(own.size, schedule_.chunks, chunk);
            const std::int64_t first = part.begin * gather_.ranks;
            const int arrival = add({.kind = Step::Kind::all_gather,
                                     .waits_for = copies[static_cast<std::size_t>(chunk)],
                                     .beside = true,
                                     .rows = part.size,
                                     .a = Place::gathered,
                                     .a_row = first + gather_.rank * part.size,
                                     .d = Place::gathered,
                                     .d_row = first});
            if (chunk == 0) {
                add({.block = gather_.rank, .rows = own.size, .d_row = own.begin});
            }
            add_waiting(products);
            for (int distance = 1; distance < gather_.ranks; ++distance) {
                const int block = neighbour(gather_, distance);
                products.push_back({.waits_for = distance == 1 ? arrival : -1,
                                    .block = block,
                                    .rows = part.size,
                                    .a = Place::gathered,
                                    .a_row = first + block * part.size,
                                    .d_row = rows_of(gather_, block).begin + part.begin});
            }
        }
        add_waiting(products);
    }

    /// Reduce-scatter in a ring: the sum of a block comes from the rank before, this rank's product is added, and the sum goes on to
    /// the rank after; the last to add is the block's own rank. The product adds the sum that came as its C.
    void build_ring(Place a, int chunks, bool beside)
    {
        schedule_.rows_summed = sum_.ranks > 1 ? shape_.m : 0;
        std::vector<int> arrivals(static_cast<std::size_t>(chunks), -1);
        for (int turn = 0; turn < sum_.ranks; ++turn) {
            const int block = neighbour(sum_, -1 - turn);
            const int next_block = neighbour(sum_, -2 - turn);
            const bool is_last = turn == sum_.ranks - 1;
            const Share all = rows_of(sum_, block);
            const Share next = rows_of(sum_, next_block);
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const Share part = chunk_of(all.size, chunks, chunk);
                const Share next_part = chunk_of(next.size, chunks, chunk);
                const std::int64_t first = all.begin + part.begin;
                int& arrival = arrivals[static_cast<std::size_t>(chunk)];
                const int needed = std::max(arrival, arrival_of({first, part.size}));  // both of the same stream
                const int product = add({.waits_for = beside ? needed : -1,
                                         .block = block,
                                         .rows = part.size,
                                         .a = a,
                                         .a_row = first,
                                         .d = is_last ? Place::given : Place::summed,
                                         .d_row = (is_last ? 0 : all.begin) + part.begin,
                                         .c = turn == 0 ? Place::none : Place::summed,
                                         .c_row = first,
                                         .is_last = is_last});
                if (!is_last) {
                    arrival = add({.kind = Step::Kind::send_receive,
                                   .waits_for = beside ? product : -1,
                                   .beside = beside,
                                   .block = next_block,
                                   .rows = part.size,
                                   .a = Place::summed,
                                   .a_row = first,
                                   .d = Place::summed,
                                   .d_row = next.begin + next_part.begin,
                                   .to = neighbour(sum_, 1),
                                   .from = neighbour(sum_, -1),
                                   .rows_received = next_part.size});
                }
            }
        }
    }

    /// Reduce-scatter of two ranks by copy engines: a gather in place of what each has for the other.
    void build_exchange()
    {
        schedule_.rows_summed = shape_.m;
        const int other = 1 - sum_.rank;
        const Share own = rows_of(sum_, sum_.rank);
        const Share theirs = rows_of(sum_, other);
        std::vector<int> arrivals;
        for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
            const Share part = exchanged_part(own.size, chunk);
            const std::int64_t first = 2 * part.begin;
            const int product = add({.block = other,
                                     .rows = part.size,
                                     .a_row = theirs.begin + part.begin,
                                     .d = Place::summed,
                                     .d_row = first + sum_.rank * part.size,
                                     .is_last = false});
            arrivals.push_back(add({.kind = Step::Kind::all_gather,
                                    .waits_for = product,
                                    .beside = true,
                                    .block = sum_.rank,
                                    .rows = part.size,
                                    .a = Place::summed,
                                    .a_row = first + sum_.rank * part.size,
                                    .d = Place::summed,
                                    .d_row = first}));
        }
        for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
            const Share part = exchanged_part(own.size, chunk);
            add({.waits_for = arrivals[static_cast<std::size_t>(chunk)],
                 .block = sum_.rank,
                 .rows = part.size,
                 .a_row = own.begin + part.begin,
                 .d_row = part.begin,
                 .c = Place::summed,
                 .c_row = 2 * part.begin + other * part.size});
        }
    }

    /// A chunk of an exchange. Of two, the first is as long as makes both together the fewest waves of tiles.
    Share exchanged_part(std::int64_t rows, int chunk) const
    {
        const std::int64_t units = rows / rows_of_unit;
        if (schedule_.chunks != 2 || rows % rows_of_unit != 0 || units < 4) {
            return chunk_of(rows, schedule_.chunks, chunk);
        }
        const std::int64_t across = (shape_.n + 255) / 256;
        const auto waves = [&](std::int64_t first) {
            const auto of = [&](std::int64_t part) { return (part * across + tiles_of_wave - 1) / tiles_of_wave; };
            return of(first) + of(units - first);
        };
        std::int64_t best = units - units / 2;
        for (std::int64_t away = 0; away <= units / 8; ++away) {
            for (const std::int64_t first : {units / 2 - away, units / 2 + away}) {
                best = waves(first) < waves(best) ? first : best;
            }
        }
        return chunk == 0 ? Share{0, best * rows_of_unit} : Share{best * rows_of_unit, rows - best * rows_of_unit};
    }

    void build_reduced_chunks()
    {
        for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
            const Share part = chunk_of(shape_.m, schedule_.chunks, chunk);
            const int product = add({.rows = part.size, .a_row = part.begin, .d_row = part.begin});
            add({.kind = Step::Kind::all_reduce,
                 .waits_for = product,
                 .beside = true,
                 .rows = part.size,
                 .a_row = part.begin,
                 .d_row = part.begin});
        }
    }

    Schedule& schedule_;
    const ShardedShape& shape_;
    const Line& gather_;
    const Line& sum_;
    std::vector<std::pair<int, Share>> pieces_;  // steps that bring rows of A, and which
};

/// Seconds of one product: whole waves of tiles, and what the last wave wastes counts half, because kernels can share tiles.
double product_seconds(const Schedule& schedule, const Step& step, const ModelRates& rates)
{
    const ShardedShape& shape = schedule.shape;
    if (step.rows == 0 || shape.n == 0) {
        return 0;
    }
    const bool is_short_of_sms = schedule.overlaps && !schedule.uses_copies;
    const double sms = std::max(rates.sms - (is_short_of_sms ? rates.sms_of_communication : 0), 1);
    constexpr double tile_rows = 128;
    constexpr double tile_columns = 256;
    const double tiles =
        std::ceil(static_cast<double>(step.rows) / tile_rows) * std::ceil(static_cast<double>(shape.n) / tile_columns);
    const double tile_seconds = 2 * tile_rows * tile_columns * static_cast<double>(std::max<std::int64_t>(shape.k, 1)) /
                                (rates.flops / rates.sms);
    const double whole = std::ceil(tiles / sms);
    return rates.launch + tile_seconds * (whole + tiles / sms) / 2;
}

double communication_seconds(const Schedule& schedule, const Step& step, const ModelRates& rates)
{
    const ShardedShape& shape = schedule.shape;
    const double row_bytes = static_cast<double>(step.moves_a() ? shape.k : shape.n) *
                             static_cast<double>(step.moves_a() ? shape.a_bytes : shape.d_bytes);
    const int ranks = schedule.line_of(step).ranks;
    const double others = ranks - 1;
    double rows = 0;
    switch (step.kind) {
        case Step::Kind::product: break;
        case Step::Kind::copy: return row_bytes * static_cast<double>(step.rows) / rates.memory_bytes;
        case Step::Kind::send_receive: rows = static_cast<double>(std::max(step.rows, step.rows_received)); break;
        case Step::Kind::all_gather:
        case Step::Kind::reduce_scatter: rows = others * static_cast<double>(step.rows); break;
        case Step::Kind::all_reduce: rows = 2 * others / ranks * static_cast<double>(step.rows); break;
    }
    const LinkRates& link = schedule.uses_copies ? rates.copies : rates.kernels;
    return link.latency + rows * row_bytes / link.bytes;
}

/// Kernels of NCCL's slow the product down by more than their SMs. Measured on two H200, they pay beside the product only for an
/// all-gather that takes less than half of its time, in two chunks.
bool may_pay(const Schedule& schedule, const ModelRates& rates)
{
    const ShardedShape& shape = schedule.shape;
    if (schedule.uses_copies) {
        return true;
    }
    if (shape.kind != ShardedKind::all_gather || schedule.chunks != 2) {
        return false;
    }
    const Step all_rows{.rows = shape.m};
    const Step gathered{.kind = Step::Kind::all_gather, .rows = shape.m / shape.gather.ranks, .d = Place::gathered};
    const Schedule in_turn = Schedule::of(shape, 1, false);
    return product_seconds(in_turn, all_rows, rates) > 2 * communication_seconds(in_turn, gathered, rates);
}

}  // namespace

std::string_view to_string(ShardedKind kind) noexcept
{
    switch (kind) {
        case ShardedKind::local: return "a product without communication";
        case ShardedKind::all_gather: return "all-gather of A, and the product";
        case ShardedKind::reduce_scatter: return "the product, and reduce-scatter of D";
        case ShardedKind::all_reduce: return "the product, and all-reduce of D";
        case ShardedKind::blocks: return "all-gather of A, the product, and reduce-scatter of D";
    }
    return "unknown";
}

Schedule Schedule::of(const ShardedShape& shape, int chunks, bool overlaps)
{
    Schedule schedule;
    schedule.shape = shape;
    schedule.overlaps = overlaps && shape.kind != ShardedKind::local && (shape.gather.ranks > 1 || shape.sum.ranks > 1);
    schedule.chunks = schedule.overlaps ? chunks : 1;
    Builder builder(schedule);
    if (schedule.overlaps) {
        builder.build_beside();
    } else {
        builder.build_in_turn();
    }
    return schedule;
}

std::vector<StepTimes> times_of(const Schedule& schedule, const ModelRates& rates)
{
    std::vector<StepTimes> times;
    double product_free = 0;
    double link_free = 0;
    for (const Step& step : schedule.steps) {
        double& free = step.beside ? link_free : product_free;
        const double begin =
            std::max(free, step.waits_for < 0 ? 0.0 : times[static_cast<std::size_t>(step.waits_for)].end);
        free = begin + (step.kind == Step::Kind::product ? product_seconds(schedule, step, rates)
                                                         : communication_seconds(schedule, step, rates));
        times.push_back({begin, free});
    }
    return times;
}

double seconds_of(const Schedule& schedule, const ModelRates& rates)
{
    double end = 0;
    for (const StepTimes& each : times_of(schedule, rates)) {
        end = std::max(end, each.end);
    }
    return end;
}

Schedule choose_schedule(const ShardedShape& shape, const ModelRates& rates, int chunks)
{
    if (chunks > 0) {
        return Schedule::of(shape, chunks, chunks > 1);
    }
    Schedule best = Schedule::of(shape, 1, false);
    double least = seconds_of(best, rates) * (1 - least_share_gained) - least_seconds_gained;
    for (const int count : chunk_counts) {
        Schedule candidate = Schedule::of(shape, count, true);
        if (!may_pay(candidate, rates)) {
            continue;
        }
        if (const double seconds = seconds_of(candidate, rates); candidate.overlaps && seconds < least) {
            least = seconds;
            best = std::move(candidate);
        }
    }
    return best;
}

std::string describe(const Schedule& schedule, const ModelRates& rates)
{
    const std::vector<StepTimes> times = times_of(schedule, rates);
    const bool by_blocks = schedule.shape.kind == ShardedKind::blocks;
    std::string text;
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
        const Step& step = schedule.steps[i];
        const Line& line = schedule.line_of(step);
        std::string what;
        switch (step.kind) {
            case Step::Kind::product:
                what = fmt::format("multiply {} rows of block {}{}", step.rows, step.block,
                                   step.c == Place::none ? "" : ", and add the sum that came");
                break;
            case Step::Kind::copy: what = fmt::format("copy {} own rows to where they are gathered", step.rows); break;
            case Step::Kind::send_receive:
                what = fmt::format("send {} rows{} to rank {}, receive {} from rank {}", step.rows,
                                   by_blocks ? step.moves_a() ? " of A" : " of D" : "", line.number_of(step.to),
                                   step.rows_received, line.number_of(step.from));
                break;
            case Step::Kind::all_gather: what = fmt::format("gather {} rows of each rank", step.rows); break;
            case Step::Kind::reduce_scatter:
                what = fmt::format("reduce-scatter {} rows for each rank", step.rows);
                break;
            case Step::Kind::all_reduce: what = fmt::format("all-reduce {} rows", step.rows); break;
        }
        text += fmt::format("  {:>3}  {:<13} {:>8.1f} to {:>8.1f} us  {}{}\n", i,
                            step.beside ? "communication" : "product", times[i].begin * 1e6, times[i].end * 1e6, what,
                            step.waits_for < 0 ? "" : fmt::format(", after {}", step.waits_for));
    }
    return text;
}

}  // namespace tessera::distributed::detail
