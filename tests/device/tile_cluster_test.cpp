/// Tile programs whose hints want clusters: results compared with exact integers, and what the report says, on whatever device
/// there is.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "device_fixture.hpp"
#include "support/exact_product.hpp"
#include "support/test_main.hpp"
#include "tessera/tile/program.hpp"
#include "tile_clusters.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

struct Counts {
    tile::LaunchReport report;
    int wrong = 0;        // elements of D
    int overwritten = 0;  // elements behind the rows of D, and behind D
};

using Launch = std::function<tile::LaunchReport(StreamRef, const ClusterProduct&)>;

/// Launches `program` by `launch`.
Counts run(const ClusterProgram& program, std::int64_t m, std::int64_t n, std::int64_t k, const Launch& launch)
{
    constexpr std::int64_t gap = 8;
    const Stream stream;
    const HostMatrix left = small_integers(m, k, 3);
    const HostMatrix right = small_integers(k, n, 1);
    const auto on_device = [&](const HostMatrix& matrix) {
        return DeviceBuffer<bf16>::from_host(stream, std::vector<bf16>(matrix.values.begin(), matrix.values.end()));
    };
    const auto device_a = on_device(left);
    const auto device_b = on_device(right);
    const std::int64_t stride = n + gap;
    auto d = DeviceBuffer<bf16>::from_host(
        stream, std::vector<bf16>(static_cast<std::size_t>((m + program.m) * stride), bf16(77.0F)));
    Counts counts;
    counts.report = launch(stream, {device_a.matrix(m, k), device_b.matrix(k, n), d.matrix(m, n, stride)});
    const auto result = d.to_vector();
    HostMatrix sums(m, n);
    add_product(sums, left, right);
    for (std::int64_t i = 0; i < m + program.m; ++i) {
        for (std::int64_t j = 0; j < stride; ++j) {
            const auto value = static_cast<float>(result[static_cast<std::size_t>(i * stride + j)]);
            if (i >= m || j >= n) {
                counts.overwritten += value != 77.0F;
            } else {
                counts.wrong += value != static_cast<float>(bf16(sums.at(i, j)));
            }
        }
    }
    return counts;
}

void check(const ClusterProgram& program, const Launch& launch)
{
    CAPTURE(program.name);
    const bool hopper = Device::current().properties().compute_capability_major == 9;
    // Pairs of CTAs multiply tiles of 128 rows, and clusters are of pairs.
    const bool has_tensor_memory = Device::current().properties().has_tensor_memory;
    const bool pairs = has_tensor_memory && program.m >= 128;
    const int rows = program.rows;
    const int columns = program.columns;
    // In tiles: whole clusters; clusters with places outside; more clusters than run at once.
    const int many = std::min(48, 4096 / program.n);
    for (const auto& [down, across] : {std::pair{rows, columns}, {rows + 1, columns + 1}, {2 * rows + 1, many}}) {
        const std::int64_t ragged = program.whole_tiles ? 0 : 8;
        const std::int64_t m = down * program.m - ragged;
        const std::int64_t n = across * program.n - ragged;
        const std::int64_t k = program.most_k > 0 ? 56 : program.whole_tiles ? 128 : 136;
        CAPTURE(down);
        CAPTURE(across);
        const Counts counts = run(program, m, n, k, launch);
        CAPTURE(counts.report.cluster_reason);
        CHECK(counts.wrong == 0);
        CHECK(counts.overwritten == 0);
        if (hopper) {
            CHECK(counts.report.instructions == tile::Instructions::wgmma);
            CHECK(counts.report.cluster == (program.is_refused ? 1 : rows * columns));
            CHECK(counts.report.cluster_reason.empty() == !program.is_refused);
            CHECK(counts.report.ctas % static_cast<unsigned>(counts.report.cluster) == 0);
        } else if (pairs) {
            CHECK(counts.report.instructions == tile::Instructions::tcgen05);
            CHECK(counts.report.pairs);
            CHECK(counts.report.cluster == (program.is_refused ? 2 : rows * columns));
            CHECK(counts.report.cluster_reason.empty() == !program.is_refused);
            CHECK(counts.report.ctas % static_cast<unsigned>(counts.report.cluster) == 0);
        } else {
            CHECK(counts.report.cluster_reason.empty() == (counts.report.cluster == rows * columns));
            if (has_tensor_memory && !program.takes_k) {  // the others give other reasons, too
                CHECK(counts.report.reason == "a pair's products have a multiple of 128 rows");
            }
        }
    }
}

}  // namespace

TEST_CASE("programs in clusters are right at every edge, and the report says whether there are clusters")
{
    for (int index = 0; index < cluster_program_count(); ++index) {
        const ClusterProgram& program = cluster_program(index);
        check(program, program.launch);
    }
}

TEST_CASE("so are those that are compiled at run time")
{
    const auto source = tile::Program::from_file(TESSERA_CLUSTER_PROGRAMS);
    // One of each kind: each is compiled for some seconds.
    for (const char* name :
         {"1x2", "2x2", "2x2 of whole tiles", "holds A", "cuts A's bands", "asks for a row", "shares nothing"}) {
        for (int index = 0; index < cluster_program_count(); ++index) {
            const ClusterProgram& program = cluster_program(index);
            if (program.name != name) {
                continue;
            }
            const tile::Kernel kernel = source.kernel(program.type);
            check(program, [&](StreamRef stream, const ClusterProduct& p) {
                return program.takes_k ? kernel.launch(stream, p.a, p.b, p.d, static_cast<int>(p.a.columns()))
                                       : kernel.launch(stream, p.a, p.b, p.d);
            });
        }
    }
}

TEST_CASE("an output that is smaller than a cluster is computed by single CTAs")
{
    const ClusterProgram& program = cluster_program(3);
    const Counts counts = run(program, 64, 128, 128, program.launch);
    CHECK(counts.wrong == 0);
    CHECK(counts.report.cluster == 1);
    CHECK(counts.report.cluster_reason.size() > 0);
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
