#pragma once

/// What the examples' main functions share: an error becomes a message on stderr and an exit code.
///
///     0   success
///     1   the job failed: a wrong result, or an error
///     2   the command line is wrong
///     77  there is no CUDA device (what CTest calls "skipped")

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "tessera/device.hpp"

namespace examples {

inline constexpr int exit_success = 0;
inline constexpr int exit_failure = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_no_device = 77;

/// Returns true under tessera-emu, where results are real but times mean nothing.
inline bool is_emulated(const tessera::DeviceProperties& device)
{
    return device.name.find("(emulated)") != std::string::npos;
}

/// Runs `work`, which returns an exit code.
template <class Work>
int run_example(const char* name, Work&& work)
{
    try {
        return std::forward<Work>(work)();
    } catch (const tessera::Error& error) {
        if (error.code() == tessera::ErrorCode::no_device && tessera::Device::count() == 0) {
            std::fprintf(stderr, "%s: skipped, because this machine has no CUDA device (or no driver for it)\n", name);
            return exit_no_device;
        }
        std::fprintf(stderr, "%s\n", error.what());
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "%s: this computer has not enough free memory for the problem\n  try: a smaller one\n",
                     name);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", name, error.what());
    }
    return exit_failure;
}

}  // namespace examples
