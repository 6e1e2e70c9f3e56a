/// The Blackwell ladder's statistics beside what each rung needs on paper: a table, and the CSV file that the chart and
/// the tables of docs/blackwell-ladder.md are made from:
///
///     tessera-emu --device b200 --numerics fast --statistics json:FILE -- blackwell_ladder 4096 2560 1024
///     blackwell_statistics FILE 4096 2560 1024 bench/results/emulated-b200/ladder.csv
///
/// Fails if a rung loads a byte, issues an instruction or waits at a barrier more or less often than its tile needs.

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "rungs.hpp"

using namespace tessera;
using namespace tessera::kernels;

namespace {

struct Problem {
    std::uint64_t m, n, k;
};

constexpr std::uint64_t instruction_k_bytes = 32;  // of each row, whatever the type
constexpr std::uint64_t element_bytes = 2;         // bf16
constexpr std::uint64_t output_bytes = 4;          // f32

constexpr std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

/// What a rung must do for a problem, in whole tiles: there is no way with less and this tile.
struct Paper {
    std::uint64_t read;    ///< bytes by TMA: each cluster tile its rows of A and columns of B, once
    std::uint64_t loaded;  ///< bytes in shared memory: B in each CTA of a cluster that does not share it as a pair
    std::uint64_t stored;  ///< bytes of D
    std::uint64_t products;
    std::uint64_t waits;  ///< for a stage: to fill it and to multiply it; for an accumulator: to fill it, to store it
    std::uint64_t other_waits;  ///< not for data: for the next tile's number, and before a CTA exits
};

Paper on_paper(const BlackwellConfig& config, const Problem& problem, std::uint64_t ctas)
{
    const std::uint64_t units = divide_up(problem.m, config.cluster_m()) * divide_up(problem.n, config.block_n);
    const std::uint64_t steps = divide_up(problem.k * element_bytes, BlackwellConfig::stage_row_bytes);
    const std::uint64_t multiplying = config.cluster / config.group_size();  // CTAs of a cluster
    const std::uint64_t row_bytes = units * steps * BlackwellConfig::stage_row_bytes;
    const std::uint64_t in_stage = config.m_tiles * BlackwellConfig::stage_row_bytes / instruction_k_bytes;

    Paper paper{};
    paper.read = row_bytes * (config.cluster_m() + config.block_n);
    paper.loaded = row_bytes * (config.cluster_m() + config.block_n * multiplying);
    paper.stored = problem.m * problem.n * output_bytes;
    paper.products = units * steps * in_stage * multiplying;
    const std::uint64_t stage_waits = steps * (config.cluster + multiplying);
    const std::uint64_t accumulator_waits = config.m_tiles * (multiplying + epilogue_warps * config.cluster);
    paper.waits = units * (stage_waits + accumulator_waits);
    paper.other_waits = ctas * config.stages;  // until all of a CTA's stages are free
    if (config.scheduling == Scheduling::launch_control) {
        // To say that loading has begun and to hear of it, to ask for the next tile, and to know whether to go on.
        constexpr std::uint64_t asking = 4;
        paper.other_waits += units * (config.cluster * (1 + config.all_epilogue_warps()) + multiplying + asking);
    }
    return paper;
}

/// The count with this name in a line of statistics.
std::uint64_t figure(std::string_view line, std::string_view name)
{
    const std::string key = fmt::format("\"{}\": ", name);
    const auto at = line.find(key);
    return at == std::string_view::npos ? 0 : std::strtoull(line.data() + at + key.size(), nullptr, 10);
}

/// The sum of the counts whose names begin like this, in the object with this name.
template <class Predicate>
std::uint64_t sum(std::string_view line, std::string_view object, Predicate counts)
{
    const std::string key = fmt::format("\"{}\": {{", object);
    std::string_view rest = line.substr(line.find(key) + key.size());
    rest = rest.substr(0, rest.find('}'));
    std::uint64_t total = 0;
    while (!rest.empty()) {
        const auto colon = rest.find(": ");
        const std::string_view name = rest.substr(0, colon);
        rest.remove_prefix(colon + 2);
        total += counts(name) ? std::strtoull(rest.data(), nullptr, 10) : 0;
        const auto comma = rest.find(", ");
        rest = comma == std::string_view::npos ? "" : rest.substr(comma + 2);
    }
    return total;
}

/// The share of the scheduler's steps with any work in flight in which both MMAs and `other` were in flight.
double part_in_flight(std::string_view line, std::string_view other)
{
    const auto busy = sum(line, "overlap_steps", [](std::string_view name) { return name != "\"idle\""; });
    const auto both = sum(line, "overlap_steps", [&](std::string_view name) {
        return name.find("mmas") != name.npos && name.find(other) != name.npos;
    });
    return static_cast<double>(both) / static_cast<double>(busy);
}

std::string mebibytes(std::uint64_t counted, std::uint64_t least)
{
    constexpr double mebibyte = 1024.0 * 1024.0;
    return fmt::format("{:.4g} ({:.4g})", static_cast<double>(counted) / mebibyte,
                       static_cast<double>(least) / mebibyte);
}

/// What a rung's launch was counted to do.
struct Counts {
    std::string_view name;
    const BlackwellConfig* config;
    std::uint64_t ctas, read, loaded, stored, products, waits, stalls, instructions;
    double loads_and_products;     ///< in flight together, see part_in_flight
    double epilogue_and_products;  ///< likewise
    Paper paper;

    bool as_on_paper() const
    {
        return read == paper.read && loaded == paper.loaded && stored == paper.stored && products == paper.products &&
               waits == paper.waits + paper.other_waits;
    }
};

Counts counts_of(const BlackwellConfig& config, std::string_view line, const Problem& problem)
{
    Counts counts{};
    counts.name = config.name;
    counts.config = &config;
    counts.ctas = figure(line, "ctas");
    counts.read = figure(line, "tma_global_read_bytes");
    counts.loaded = figure(line, "tma_load_bytes");
    counts.stored = figure(line, "tma_store_bytes");
    counts.products = figure(line, "mma_issued");
    counts.waits = figure(line, "barrier_waits");
    counts.stalls = figure(line, "barrier_stalls");
    counts.instructions = sum(line, "warp_instructions", [](std::string_view) { return true; });
    counts.loads_and_products = part_in_flight(line, "loads");
    counts.epilogue_and_products = part_in_flight(line, "epilogue");
    counts.paper = on_paper(*counts.config, problem, counts.ctas);
    return counts;
}

void print_row(const Counts& counts)
{
    const Paper& paper = counts.paper;
    fmt::print("| `{}` | {}x{} | {} | {} | {} | {} | {} | {} ({}) | {} ({}) | {} | {} | {:.0f} % | {:.0f} % |\n",
               counts.name, counts.config->cluster_m(), counts.config->block_n, counts.config->stages, counts.ctas,
               mebibytes(counts.read, paper.read), mebibytes(counts.loaded, paper.loaded),
               mebibytes(counts.stored, paper.stored), counts.products, paper.products, counts.waits, paper.waits,
               counts.stalls, counts.instructions, 100.0 * counts.loads_and_products,
               100.0 * counts.epilogue_and_products);
}

/// The same as a file. Figures that end in `_least` are those on paper.
std::string csv_of(const std::vector<Counts>& ladder, const Problem& problem)
{
    std::string text = fmt::format(
        "# command: tessera-emu --device b200 --numerics fast --statistics json:counts.json -- blackwell_ladder {0} "
        "{1} {2} "
        "&& blackwell_statistics counts.json {0} {1} {2} ladder.csv\n"
        "m,n,k,name,tile_m,tile_n,stages,ctas,tma_read_bytes,tma_read_bytes_least,shared_bytes,shared_bytes_least,"
        "tma_store_bytes,tma_store_bytes_least,mmas,mmas_least,barrier_waits,barrier_waits_least,stalls,"
        "warp_instructions,loads_and_mmas,epilogue_and_mmas\n",
        problem.m, problem.n, problem.k);
    for (const Counts& counts : ladder) {
        const Paper& paper = counts.paper;
        text +=
            fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:.4f},{:.4f}\n", problem.m,
                        problem.n, problem.k, counts.name, counts.config->cluster_m(), counts.config->block_n,
                        counts.config->stages, counts.ctas, counts.read, paper.read, counts.loaded, paper.loaded,
                        counts.stored, paper.stored, counts.products, paper.products, counts.waits, paper.waits,
                        counts.stalls, counts.instructions, counts.loads_and_products, counts.epilogue_and_products);
    }
    return text;
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc != 5 && argc != 6) {
        fmt::print(stderr, "usage: blackwell_statistics FILE m n k [CSV]\n");
        return 2;
    }
    std::ifstream file(argv[1]);
    const Problem problem{std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10),
                          std::strtoull(argv[4], nullptr, 10)};
    fmt::print(
        "| Configuration | Tile of a cluster | Stages | CTAs that ran | MiB read by TMA | MiB brought to shared memory "
        "| "
        "MiB stored by TMA | MMAs | Barrier waits | Stalls | Warp instructions | Loads and MMAs in flight | Epilogue "
        "and "
        "MMAs in flight |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    std::vector<Counts> ladder;
    std::vector<std::string_view> wrong;
    for (const BlackwellKernel& rung : blackwell_ladder::rungs()) {
        std::string line;
        std::getline(file, line);  // one launch each, in their order
        if (line.find("blackwell_gemm") == std::string::npos) {
            wrong.push_back(rung.name());
            continue;
        }
        ladder.push_back(counts_of(*rung.config, line, problem));
        print_row(ladder.back());
        if (!ladder.back().as_on_paper()) {
            wrong.push_back(rung.name());
        }
    }
    for (const std::string_view rung : wrong) {
        fmt::print(stderr, "blackwell_statistics: rung {} does not do what it needs on paper\n", rung);
    }
    if (argc == 6) {
        std::ofstream(argv[5]) << csv_of(ladder, problem);
    }
    return wrong.empty() ? 0 : 1;
}
