#pragma once

// The order of products and communication of one rank, and a model of how long it takes. Knows no memory, no device and no NCCL.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "line.hpp"

namespace tessera::distributed::detail {

enum class ShardedKind : std::uint8_t { local, all_gather, reduce_scatter, all_reduce, blocks };
std::string_view to_string(ShardedKind kind) noexcept;

/// What decides a schedule.
struct ShardedShape {
    ShardedKind kind = ShardedKind::local;
    Line gather{};                   ///< whose rows of A are gathered
    Line sum{};                      ///< whose products are summed
    std::int64_t m = 0;              ///< of the whole product
    std::int64_t n = 0;              ///< columns of this rank's products
    std::int64_t k = 0;              ///< of this rank's products
    std::size_t a_bytes = 0;         ///< of an element of A
    std::size_t d_bytes = 0;         ///< of an element of D
    bool uses_copies = false;        ///< copy engines move data, if all parts are equal
    bool may_reduce_at_once = true;  ///< NCCL's reduce-scatter can store D
};

/// Where an operand of a step is.
enum class Place : std::uint8_t {
    none,
    given,     ///< the matrix of the launch
    gathered,  ///< the plan's memory for all rows of A
    summed,    ///< the plan's memory for partial sums of D
};

struct Step {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order in which it is read
    enum class Kind : std::uint8_t {
        product,         ///< rows of A times B
        copy,            ///< of this rank's rows of A to where they are gathered
        send_receive,    ///< to one rank and from one rank
        all_gather,      ///< the same number of rows of each rank
        reduce_scatter,  ///< of all of D
        all_reduce,      ///< of rows of D
    };
    Kind kind = Kind::product;
    int waits_for = -1;  ///< an earlier step of the other stream
    bool is_awaited = false;
    bool beside = false;  ///< on the stream of communication
    int block = 0;        ///< whose rows these are, of the ranks that gather or sum
    std::int64_t rows = 0;

    // A product: D[d_row..] = A[a_row..] * B + C[c_row..]; rows of the place that they are in.
    Place a = Place::given;
    std::int64_t a_row = 0;
    Place d = Place::given;
    std::int64_t d_row = 0;
    Place c = Place::none;
    std::int64_t c_row = 0;
    bool is_last = true;  ///< of the sum: bias and activation are applied

    // Communication: rows that are sent and received, from a_row and to d_row of their places.
    int to = 0;
    int from = 0;
    std::int64_t rows_received = 0;

    /// Returns true if communication moves rows of A, and false if it moves rows of D.
    bool moves_a() const noexcept { return d == Place::gathered; }
};

struct Schedule {
    ShardedShape shape;
    int chunks = 1;
    bool overlaps = false;           ///< two streams
    bool uses_copies = false;        ///< of the communication beside products
    std::int64_t rows_gathered = 0;  ///< rows of the plan's memory for A
    std::int64_t rows_summed = 0;    ///< rows of the plan's memory for D
    std::vector<Step> steps;

    /// Returns the ranks that a step of communication is one of.
    const Line& line_of(const Step& step) const noexcept { return step.moves_a() ? shape.gather : shape.sum; }

    static Schedule of(const ShardedShape& shape, int chunks, bool overlaps);
};

/// How fast data travel.
struct LinkRates {
    double bytes = 0;    ///< per second, that a device sends and receives at the same time
    double latency = 0;  ///< seconds, of each operation
};

/// What the model counts with.
struct ModelRates {
    double flops = 0;  ///< per second, of one device
    int sms = 132;
    int sms_of_communication = 0;  ///< while kernels of NCCL's run
    LinkRates kernels{};
    LinkRates copies{};
    double launch = 0;           ///< seconds between products
    double memory_bytes = 2e12;  ///< per second, of a copy on one device
};

struct StepTimes {
    double begin;
    double end;
};

/// Returns when each step begins and ends.
std::vector<StepTimes> times_of(const Schedule& schedule, const ModelRates& rates);
double seconds_of(const Schedule& schedule, const ModelRates& rates);

/// Returns the schedule that the model takes for the fastest, or the given number of chunks if that is above 0.
Schedule choose_schedule(const ShardedShape& shape, const ModelRates& rates, int chunks);

/// Returns the steps as lines for people.
std::string describe(const Schedule& schedule, const ModelRates& rates);

}  // namespace tessera::distributed::detail
