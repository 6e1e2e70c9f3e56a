#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "program.hpp"

/// --seeds N: seeds of each schedule for the programs that must be clean.
int main(int argc, char** argv)
{
    for (int i = 1; i + 1 < argc; ++i) {
        if (std::string(argv[i]) == "--seeds") {
            tessera::emulator::test::set_clean_seeds(static_cast<unsigned>(std::atoi(argv[i + 1])));
        }
    }
    return doctest::Context(argc, argv).run();
}
