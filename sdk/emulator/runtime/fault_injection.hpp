#pragma once

// Calls that fail on purpose: the n-th CUDA call, or the n-th call of a name.

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::emulator {

/// Counts calls and decides which of them fail. Thread-safe.
class FaultInjection {
public:
    /// Adds planned faults: "cudaMalloc:3=cudaErrorMemoryAllocation" (the third call of cudaMalloc from now on), or
    /// "17=cudaErrorUnknown" (the 17th call of any name), several separated by commas. Codes may be numbers.
    /// @throws std::invalid_argument with a sentence
    void plan(std::string_view text);

    /// The n-th call of `name` from now on (empty: of any name) fails with `code`; n counts from 1.
    void fail(std::string name, unsigned n, int code);

    /// Counts one call. Returns the error code that it must fail with, or 0.
    [[nodiscard]] int next(std::string_view name);

    void clear();
    /// Number of counted calls.
    [[nodiscard]] unsigned long calls() const;

private:
    struct Fault {
        std::string name;  // empty: any
        unsigned left;
        int code;
    };
    mutable std::mutex mutex_;
    std::vector<Fault> faults_;
    unsigned long calls_ = 0;
};

}  // namespace tessera::emulator
