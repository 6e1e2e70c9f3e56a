// doctest and its main(), compiled once for all tests that need no main() of their own.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
