#pragma once

/// Helpers for tests of the host SDK on a real device.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "kernels.hpp"
#include "support/test_main.hpp"
#include "tessera/tessera.hpp"

namespace tessera::test {

/// Returns the code of the Error that `call` throws; fails if it throws none.
template <class Call>
ErrorCode code_of(const Call& call)
{
    try {
        call();
    } catch (const Error& error) {
        return error.code();
    }
    FAIL("no error was thrown");
    return {};
}

/// 0, 1, 2, ...
inline std::vector<int> counted(std::size_t size)
{
    std::vector<int> numbers(size);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

/// Holds a stream until it is opened, for a few seconds at most. Work enqueued after the gate has certainly not run
/// before.
class Gate {
public:
    Gate() : flags_(2) {}
    ~Gate() { open(); }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    /// Returns false, with a message, in quick runs: sanitizers may make launches blocking, and a gate would never
    /// open.
    static bool can_be_used()
    {
        if (quick()) {
            MESSAGE("skipped by --quick: this test needs launches that do not block");
        }
        return !quick();
    }

    /// Work enqueued on `stream` from now on waits for open().
    void close(StreamRef stream)
    {
        flags_.data()[0] = 0;
        launch(gate_kernel(), LaunchConfig(stream, {1}, {1}), static_cast<const volatile int*>(flags_.data()),
               flags_.data() + 1, limit_nanoseconds);
        flags_.used_on(stream);
    }
    void open() { std::atomic_ref(flags_.data()[0]).store(1); }
    bool was_opened() { return std::atomic_ref(flags_.data()[0]).load() != 0; }
    /// Returns true if the gate opened by timeout, which makes the test worthless.
    bool timed_out() { return std::atomic_ref(flags_.data()[1]).load() != 0; }

private:
    static constexpr std::uint64_t limit_nanoseconds = 10'000'000'000;

    PinnedBuffer<int> flags_;  // opened; timed out
};

}  // namespace tessera::test
