#pragma once

/// What the programs of this folder share: sizes on the command line, and the end of a check.

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "common/run_example.hpp"

namespace examples {

/// Runs `work` with the sizes of the command line, or with the default ones.
/// @param names  of the sizes, for a wrong command line
template <std::size_t Count, class Work>
int run_with_sizes(const char* program, const char* names, int argc, char** argv, std::array<std::int64_t, Count> sizes,
                   Work&& work)
{
    bool right = argc == 1 || argc == static_cast<int>(Count) + 1;
    for (int i = 1; right && i < argc; ++i) {
        char* end = nullptr;
        const std::int64_t size = std::strtoll(argv[i], &end, 10);
        right = *end == '\0' && size > 0 && size <= 1 << 24;
        sizes[static_cast<std::size_t>(i - 1)] = size;
    }
    if (!right) {
        std::fprintf(stderr, "usage: %s [%s], all from 1 to 2^24\n", program, names);
        return exit_usage;
    }
    return run_example(program, [&] { return std::apply(work, sizes); });
}

/// Prints how many elements are wrong.
inline int verdict(const char* what, std::size_t wrong, std::size_t elements)
{
    std::printf("%s: %zu of %zu elements are wrong\n", what, wrong, elements);
    return wrong == 0 ? exit_success : exit_failure;
}

}  // namespace examples
