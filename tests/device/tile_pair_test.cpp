/// Tile programs whose tiles of B a pair of CTAs loads in other boxes than one CTA: results compared with exact integers, and what
/// the report says, on whatever device there is.

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/exact_product.hpp"
#include "support/test_main.hpp"
#include "tessera/tile/program.hpp"
#include "tessera/tile/tcgen05_plan.hpp"
#include "tile_pairs.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::int64_t tile_m = 128;

template <class T>
DeviceBuffer<T> on_device(StreamRef stream, const HostMatrix& matrix, bool is_column_major = false)
{
    std::vector<T> elements;
    for (std::int64_t i = 0; i < (is_column_major ? matrix.columns : matrix.rows); ++i) {
        for (std::int64_t j = 0; j < (is_column_major ? matrix.rows : matrix.columns); ++j) {
            elements.emplace_back(is_column_major ? matrix.at(j, i) : matrix.at(i, j));
        }
    }
    return DeviceBuffer<T>::from_host(stream, elements);
}

/// Counts the elements of d = a * b that are wrong, and those behind d that were written.
int wrong(const std::vector<float>& d, const HostMatrix& a, const HostMatrix& b)
{
    HostMatrix sums(a.rows, b.columns);
    add_product(sums, a, b);
    int count = 0;
    for (std::size_t i = 0; i < d.size(); ++i) {
        count += d[i] != (i < sums.values.size() ? sums.values[i] : 77.0F);
    }
    return count;
}

template <class T>
using Launch = std::function<tile::LaunchReport(StreamRef, const PairProduct<T>&)>;

template <class T>
void check(const PairProgram<T>& program, const Launch<T>& launch)
{
    CAPTURE(program.name);
    const bool has_tensor_memory = Device::current().properties().has_tensor_memory;
    const std::int64_t vector = 16 / static_cast<std::int64_t>(sizeof(T));
    const std::int64_t down = 4;  // rows of tiles: those of the largest cluster
    // A pair and a place outside of D; more pairs, with tiles that are not full; steps that are not full, and one only.
    using Extents = std::array<std::int64_t, 3>;
    for (const auto& [m, n, k] :
         {Extents{(down + 1) * tile_m, 2 * program.n, 136},
          Extents{down * tile_m - 8, 3 * program.n - program.n / 2, 400}, Extents{down * tile_m, 4 * program.n, 16}}) {
        const std::int64_t columns = (n + vector - 1) / vector * vector;  // so that TMA can address B
        CAPTURE(m);
        CAPTURE(columns);
        CAPTURE(k);
        const Stream stream;
        const std::int64_t steps = (k + vector - 1) / vector * vector;
        const HostMatrix a = small_integers(m, steps, 3);
        const HostMatrix b = small_integers(steps, columns, 1);
        const auto device_a = on_device<T>(stream, a);
        const auto device_b = on_device<T>(stream, b, program.b_is_column_major);
        const auto size = static_cast<std::size_t>(m * columns);
        const auto behind = static_cast<std::size_t>(tile_m * columns);
        auto d = DeviceBuffer<float>::from_host(stream, std::vector<float>(size + behind, 77.0F));
        PairProduct<T> product{.a = device_a.matrix(m, steps), .b = {}, .bt = {}, .d = d.matrix(m, columns)};
        if (program.b_is_column_major) {
            product.bt = device_b.matrix(columns, steps).transposed();
        } else {
            product.b = device_b.matrix(steps, columns);
        }
        const tile::LaunchReport report = launch(stream, product);
        CAPTURE(report.reason);
        CAPTURE(report.cluster_reason);
        CHECK(wrong(d.to_vector(), a, b) == 0);
        CHECK(report.pairs == has_tensor_memory);
        if (has_tensor_memory) {
            CHECK(report.instructions == tile::Instructions::tcgen05);
            CHECK(report.cluster == program.cluster);
        }
    }
}

/// The programs are compiled for 8-bit elements, too.
bool can_run()
{
    const bool can = Device::current().properties().compute_capability() >= 89;
    if (!can) {
        MESSAGE("skipped: the programs need compute capability 8.9");
    }
    return can;
}

template <class T>
void check_ahead_of_time()
{
    if (!can_run()) {
        return;
    }
    for (const PairProgram<T>& program : pair_programs<T>()) {
        check<T>(program, program.launch);
    }
}

}  // namespace

TEST_CASE("pairs are right for every width of B's tiles and in both of its orders") { check_ahead_of_time<f16>(); }
TEST_CASE("so are they for 8-bit elements") { check_ahead_of_time<f8e4m3>(); }
TEST_CASE("so are they for tf32") { check_ahead_of_time<tf32>(); }

TEST_CASE("so are programs that are compiled at run time")
{
    if (!can_run()) {
        return;
    }
    const auto source = tile::Program::from_file(TESSERA_PAIR_PROGRAMS);
    // One of each kind: each is compiled for some seconds.
    for (const char* name : {"f16, 192 columns, B RowMajor, cluster 0,1", "f16, 64 columns, B ColumnMajor, cluster 0,1",
                             "f16, 192 columns, B RowMajor, cluster 4,1"}) {
        int found = 0;
        for (const PairProgram<f16>& program : pair_programs<f16>()) {
            if (program.name == name) {
                ++found;
                const tile::Kernel kernel = source.kernel(program.type);
                check<f16>(program, [&](StreamRef stream, const PairProduct<f16>& p) {
                    return program.b_is_column_major ? kernel.launch(stream, p.a, p.bt, p.d)
                                                     : kernel.launch(stream, p.a, p.b, p.d);
                });
            }
        }
        CHECK(found == 1);
    }
}

TEST_CASE("a map of halves is refused for an input with another use, or that is no member, or one too many")
{
    using namespace tile::detail;
    Tcgen05Plan plan;
    const auto note = [&](std::size_t offset, bool is_halved) {
        plan.note_map_of_pair({.offset = offset, .is_halved = is_halved});
    };
    for (std::size_t i = 0; i < most_pair_maps; ++i) {
        note(256 * i, true);
        note(256 * i, true);  // known
    }
    CHECK(plan.pair_refusal == PairRefusal::none);
    CHECK(plan.map_count == most_pair_maps);
    note(256 * most_pair_maps, true);
    CHECK(plan.pair_refusal == PairRefusal::map);

    plan = {};
    note(0, false);
    note(0, true);
    CHECK(plan.pair_refusal == PairRefusal::map);

    const std::array<char, 64> program{};
    const char elsewhere = 0;
    for (const auto& [map, is_member] : {std::pair{program.data(), true},
                                         {program.data() + 63, true},
                                         {program.data() + 64, false},
                                         {&elsewhere, false}}) {
        Tcgen05Planning planning{{}, program.data(), program.size()};
        planning.note_map_of_pair(map, true, {}, {});
        CHECK((planning.plan.pair_refusal == PairRefusal::none) == is_member);
        CHECK(planning.plan.map_count == (is_member ? 1 : 0));
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
