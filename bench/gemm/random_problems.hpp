#pragma once

/// Random problems, to see how a choice generalizes beyond lists that people wrote.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "problem/problem.hpp"

namespace tessera::bench {

/// Returns `count` different problems in bf16 and f16, in all four orders of A and B, with log-uniform extents: M from 1
/// to 16384, N and K from 16 to 32768, at most 2^42 multiply-adds (about 11 ms at 800 TFLOP/s) and 2^28 elements in D.
/// In one of eight, matrices have gaps that TMA cannot address; in the others, rows are multiples of 16 bytes. A longer
/// list begins with the shorter one. Equal seeds give equal lists with every compiler and standard library.
std::vector<Problem> random_problems(std::uint64_t seed, std::size_t count);

}  // namespace tessera::bench
