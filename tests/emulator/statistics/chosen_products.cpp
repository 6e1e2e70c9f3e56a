/// What the automatic choice for a B200 does, counted by the emulated device, against what it must do on paper:
///
///     tessera-emu --device b200 --numerics fast --statistics json:FILE -- chosen_products run
///     chosen_products check FILE
///
/// `run` launches D = A * B for nine shapes, of ones, so that each element of D is K. `check` prints a table, and fails if a
/// launch reads a byte of A and B more or less often than its tiles need, brings more than 2 % of zeros to shared memory without
/// a reason, issues another number of MMAs, or runs on fewer CTAs than the choice says.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "figures.hpp"
#include "gemm/blackwell/blackwell_chooser.hpp"
#include "gemm/blackwell/blackwell_launch.hpp"
#include "tessera/tessera.hpp"

using namespace tessera;
using kernels::BlackwellConfig;

namespace {

struct Shape {
    std::int64_t m, n, k;
    bool zeros;  // the edge tiles of this shape are not full, and load zeros
};
constexpr std::array shapes{
    Shape{4096, 4096, 4096, false}, Shape{2048, 2048, 2048, false}, Shape{1024, 1024, 1024, false},
    Shape{384, 5120, 5120, false},  Shape{64, 4096, 4096, false},   Shape{16, 14336, 4096, false},
    Shape{8, 8192, 14336, false},   Shape{256, 256, 65536, false},  Shape{1000, 1000, 1000, true}};

constexpr std::int64_t element_bytes = 2;

GemmProblem problem_of(const Shape& shape)
{
    GemmProblem problem{
        .m = shape.m, .n = shape.n, .k = shape.k, .input = ElementType::bf16, .output = ElementType::bf16};
    problem.b.row_major = false;
    return detail::resolved(problem);
}

int run()
{
    const Stream stream;
    bool right = true;
    for (const Shape& shape : shapes) {
        const auto ones = [&](std::int64_t rows) {
            return DeviceBuffer<bf16>::from_host(
                stream, std::vector<bf16>(static_cast<std::size_t>(rows * shape.k), bf16(1.0F)));
        };
        const auto a = ones(shape.m);
        const auto b = ones(shape.n);
        DeviceBuffer<bf16> d(stream, static_cast<std::size_t>(shape.m * shape.n));
        Gemm::launch(stream, a.matrix(shape.m, shape.k), b.matrix(shape.n, shape.k).transposed(),
                     d.matrix(shape.m, shape.n));
        for (const bf16 element : d.to_vector()) {
            right = right && static_cast<float>(element) == static_cast<float>(bf16(static_cast<float>(shape.k)));
        }
    }
    if (!right) {
        fmt::print(stderr, "chosen_products: a result is wrong\n");
    }
    return right ? 0 : 1;
}

struct Paper {
    std::int64_t read;    // bytes of A and B: each tile its rows, once
    std::int64_t loaded;  // the same in shared memory, in whole stages
    std::int64_t mmas;
    std::int64_t ctas;
};

Paper on_paper(const BlackwellConfig& config, const detail::BlackwellShape& shape, const GemmProblem& problem,
               const detail::KernelChoice& choice, const DeviceProperties& device)
{
    const std::int64_t down = divide_up(shape.m, config.cluster_m());
    const std::int64_t across = divide_up(shape.n, config.block_n);
    const std::int64_t stages = detail::blackwell_stages(problem);
    const std::int64_t units = down * across * shape.batches;
    constexpr std::int64_t row_bytes = BlackwellConfig::stage_row_bytes;
    const std::int64_t slots = device.sm_count / std::int64_t{config.cluster};
    return {.read = (shape.m * across + shape.n * down) * shape.k * element_bytes,
            .loaded = (shape.m * across + shape.n * down) * stages * row_bytes,
            .mmas = units * stages * 4 * config.m_tiles * (config.cluster / config.group_size()),
            .ctas = (choice.stream_k ? choice.clusters : std::min(units, slots)) * config.cluster};
}

int check(const char* path)
{
    std::ifstream file(path);
    const DeviceProperties device = DeviceProperties::of_compute_capability(10, 0);
    fmt::print(
        "| MxNxK | choice | bytes read (least) | bytes in shared memory, of that zeros | MMAs | CTAs | busy |\n"
        "|---|---|---|---|---|---|---|\n");
    bool right = true;
    for (const Shape& shape : shapes) {
        std::string line;
        std::getline(file, line);
        const GemmProblem problem = problem_of(shape);
        const detail::KernelChoice choice = detail::choose_blackwell(problem, device, detail::unlimited_workspace);
        const BlackwellConfig& config = *kernels::blackwell_kernels(element_bytes)[choice.config].config;
        const Paper paper = on_paper(config, detail::blackwell_shape(problem, choice.swapped), problem, choice, device);
        const std::int64_t read = figure(line, "tma_global_read_bytes");
        const std::int64_t loaded = figure(line, "tma_load_bytes");
        const std::int64_t mmas = figure(line, "mma_issued");
        const std::int64_t ctas = figure(line, "ctas");
        const double zeros = 1 - static_cast<double>(paper.loaded) / static_cast<double>(loaded);
        fmt::print("| {}x{}x{} | {} | {} ({}) | {}, {:.1f} % | {} | {} | {:.1f} % |\n", shape.m, shape.n, shape.k,
                   detail::describe_blackwell(problem, choice), read, paper.read, loaded, 100 * zeros, mmas, ctas,
                   100 * detail::busy_share_of_blackwell(problem, device, choice));
        constexpr double most_zeros = 0.02;
        const bool as_on_paper = read == paper.read && mmas == paper.mmas && ctas == paper.ctas &&
                                 loaded >= paper.loaded && (shape.zeros || zeros <= most_zeros);
        if (!as_on_paper) {
            fmt::print(stderr, "chosen_products: {}x{}x{} does not do what it needs on paper\n", shape.m, shape.n,
                       shape.k);
        }
        right = right && as_on_paper;
    }
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "run" && argc == 2) {
        return run();
    }
    if (mode == "check" && argc == 3) {
        return check(argv[2]);
    }
    fmt::print(stderr, "usage: chosen_products run | check FILE\n");
    return 2;
}
