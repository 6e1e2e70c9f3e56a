// Whole instructions, from PTX text to memory, against checksums of a real H200.

#include <map>
#include <string_view>

#include "../hardware/scalar_inputs.hpp"
#include "one_instruction.hpp"

namespace {

using namespace tessera::emulator::test;
using tessera::probe::Operands;

struct Row {
    const char* name;
    const char* operands;
    const char* d_type;
    const char* s_type;
};

#define TESSERA_PTX_ROW(NAME, OPERANDS, DT, DW, DC, ST, SW, SC) {NAME, OPERANDS, DT, ST},
constexpr Row rows[] = {TESSERA_SCALAR_CASES(TESSERA_PTX_ROW)};
#undef TESSERA_PTX_ROW

const std::map<std::string_view, std::uint64_t> recorded{
#include "../numerics/h200_scalar_checksums.inc"
};

template <typename S>
std::uint64_t checksum_of(const Row& row, std::size_t result_bits, const std::vector<Operands>& cases)
{
    std::vector<std::tuple<S, S, S>> operands;
    for (const Operands& one : cases) {
        operands.emplace_back(static_cast<S>(one.a), static_cast<S>(one.b), static_cast<S>(one.c));
    }
    // Like the probe: the operands enter as bits, in registers of the instruction's types.
    const std::string s_bits = std::to_string(8 * sizeof(S));
    const std::string d_bits = std::to_string(result_bits);
    Surroundings around{.target = "sm_90", .device = "h200"};
    around.before = ".reg ." + std::string(row.d_type) + " result; .reg ." + row.s_type + " x, y, z; mov.b" + s_bits +
                    " x, a; mov.b" + s_bits + " y, b; mov.b" + s_bits + " z, c;";
    std::string names(row.operands);
    for (char& letter : names) {
        letter = letter == 'a' ? 'x' : letter == 'b' ? 'y' : letter == 'c' ? 'z' : letter;
    }
    names.replace(names.find('d'), 1, "result");
    around.after = "mov.b" + d_bits + " d, result;";
    std::vector<std::uint64_t> cells;
    const auto run = [&](auto result) {
        using D = decltype(result);
        for (const D value : results_of<D, S, S, S>(std::string(row.name) + " " + names + ";", operands, around)) {
            cells.push_back(value);
        }
    };
    result_bits == 16 ? run(std::uint16_t{}) : result_bits == 32 ? run(std::uint32_t{}) : run(std::uint64_t{});
    return tessera::probe::fnv1a(cells.data(), cells.size() * sizeof(std::uint64_t));
}

}  // namespace

TEST_CASE("scalar instructions have the bits of an H200")
{
    std::size_t compared = 0;
    for (const Row& row : rows) {
        const auto expected = recorded.find(row.name);
        if (expected == recorded.end()) {
            continue;
        }
        for (const tessera::probe::ScalarCase& test : tessera::probe::scalar_cases) {
            if (std::string_view(test.name) != row.name) {
                continue;
            }
            const auto cases = tessera::probe::scalar_operands(test);
            const auto result_bits = static_cast<std::size_t>(test.result_bits);
            const std::uint64_t checksum = test.source_bits == 16 ? checksum_of<std::uint16_t>(row, result_bits, cases)
                                           : test.source_bits == 32
                                               ? checksum_of<std::uint32_t>(row, result_bits, cases)
                                               : checksum_of<std::uint64_t>(row, result_bits, cases);
            INFO(std::string(row.name));
            CHECK(checksum == expected->second);
            ++compared;
        }
    }
    CHECK(compared >= 150);
}
