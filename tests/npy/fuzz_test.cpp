// Random damage to headers: the reader throws npy::Error or returns a consistent array. It never crashes, never throws
// anything else (a huge allocation would be std::bad_alloc), and never reads beyond the file.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

#include "npy_bytes.hpp"

namespace {

constexpr int rounds = 200000;

/// Returns the seed from the environment variable NPY_FUZZ_SEED, to repeat a failure, or a fresh one.
std::uint64_t choose_seed()
{
    const char* given = std::getenv("NPY_FUZZ_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

class Mutator {
public:
    explicit Mutator(std::uint64_t seed) : random_(seed) {}

    std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

    /// Makes one to four changes, mostly in the header.
    void damage(std::string& bytes)
    {
        static constexpr std::string_view fragments[] = {"{",
                                                         "}",
                                                         "(",
                                                         ")",
                                                         ",",
                                                         "'",
                                                         "\"",
                                                         ":",
                                                         "True",
                                                         "False",
                                                         "descr",
                                                         "shape",
                                                         "fortran_order",
                                                         "<f4",
                                                         ">f8",
                                                         "|u1",
                                                         "<i8",
                                                         "|O",
                                                         "0",
                                                         "1,",
                                                         "[",
                                                         "]",
                                                         "\\",
                                                         "\n",
                                                         " ",
                                                         "-1",
                                                         "18446744073709551616",
                                                         "9223372036854775807",
                                                         "4294967296, 4294967296"};
        for (std::size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
            const std::size_t position = below(bytes.size());
            const std::string_view fragment = fragments[below(std::size(fragments))];
            switch (below(6)) {
                case 0: bytes[position] = static_cast<char>(below(256)); break;
                case 1: bytes[position] = static_cast<char>(bytes[position] ^ (1 << below(8))); break;
                case 2: bytes.erase(position, 1 + below(8)); break;
                case 3: bytes.insert(position, fragment); break;
                case 4: bytes.replace(position, fragment.size(), fragment); break;
                case 5: bytes.resize(below(bytes.size() + 16)); break;
                default: break;
            }
        }
    }

private:
    std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("damaged files are refused or consistent")
{
    const std::uint64_t seed = choose_seed();
    MESSAGE("NPY_FUZZ_SEED=", seed);
    Mutator mutator(seed);
    int taken = 0;
    int refused = 0;
    for (int round = 0; round < rounds; ++round) {
        const std::size_t rows = 1 + mutator.below(4);
        const std::size_t columns = 1 + mutator.below(4);
        std::string shape("(");
        shape.append(std::to_string(rows)).append(", ").append(std::to_string(columns)).append(")");
        std::string bytes = npy_test::header(npy_test::dictionary(mutator.below(2) == 0 ? "'<f4'" : "'>u4'", shape,
                                                                  mutator.below(2) == 0 ? "True" : "False"),
                                             1 + static_cast<int>(mutator.below(3)));
        bytes.append(4 * rows * columns, 'x');
        mutator.damage(bytes);
        try {
            const auto array = npy_test::read_as_float(bytes);
            std::size_t expected = 1;
            for (const std::int64_t extent : array.shape) {
                REQUIRE(extent >= 1);
                expected *= static_cast<std::size_t>(extent);
            }
            REQUIRE(array.shape.size() >= 1);
            REQUIRE(array.shape.size() <= 2);
            REQUIRE(array.elements.size() == expected);
            REQUIRE(array.elements.size() <= bytes.size());
            ++taken;
        } catch (const npy::Error& error) {
            const std::string_view message = error.what();
            REQUIRE(message.starts_with("test.npy: "));
            REQUIRE(message.find("\n  try: ") != std::string_view::npos);
            ++refused;
        }
    }
    // Both must happen often; otherwise the mutator is too weak or too strong.
    CHECK(taken > rounds / 100);
    CHECK(refused > rounds / 2);
    MESSAGE(taken, " accepted, ", refused, " refused");
}
