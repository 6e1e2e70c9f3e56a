/// Watches how exit_test ends. Linked after exit_test.cpp, so that the objects here are created later and destroyed
/// earlier than its owners.

#include <cstdio>
#include <cstdlib>

#include "fake_runtime/fake_runtime.hpp"
#include "tessera/error.hpp"

namespace {

bool unloads() { return std::getenv("FAKE_CUDA_UNLOADS") != nullptr; }

struct UnloadsBeforeTheOwners {
    ~UnloadsBeforeTheOwners()
    {
        if (unloads()) {
            tessera::fake::begin_unloading();
        }
    }
} unloads_before_the_owners;

/// Runs after every static object has been destroyed.
[[gnu::destructor]] void judge()
{
    const bool given_back =
        unloads() ? tessera::fake::calls_while_unloading() > 0 : tessera::fake::live() == tessera::fake::Live{};
    const bool quiet = tessera::fake::misuses().empty() && tessera::dropped_errors().empty();
    if (!given_back || !quiet) {
        std::fputs("exit_test: the static owners did not end cleanly\n", stderr);
        std::_Exit(1);
    }
}

}  // namespace
