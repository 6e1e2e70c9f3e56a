#pragma once

/// The devices and problems of the tests of the chooser.

#include <cstdint>

#include "tessera/device.hpp"
#include "tessera/gemm.hpp"

namespace tessera::test {

inline DeviceProperties device_of(int major, int minor)
{
    return DeviceProperties::of_compute_capability(major, minor);
}

inline GemmProblem problem_of(std::int64_t m, std::int64_t n, std::int64_t k)
{
    GemmProblem problem;
    problem.m = m;
    problem.n = n;
    problem.k = k;
    return problem;
}

}  // namespace tessera::test
