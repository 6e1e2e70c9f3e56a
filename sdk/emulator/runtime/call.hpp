#pragma once

// The frame of every API call: planned faults, a lost context, the last error. No exception leaves it.

#include <exception>
#include <new>
#include <string>

#include "runtime/state.hpp"

namespace tessera::emulator {

/// Properties of a call apart from its body.
struct CallKind {
    bool needs_context = true;     ///< fails once the device's context is lost, and in host functions of streams
    bool performs_anyway = false;  ///< destroys or waits: does its work even if the context is lost, like CUDA's
};
inline constexpr CallKind context_call{};
inline constexpr CallKind query_call{.needs_context = false};
inline constexpr CallKind release_call{.needs_context = true, .performs_anyway = true};

/// What is decided before the body of a call runs.
struct Verdict {
    cudaError_t status = cudaSuccess;  ///< if not success: what the call returns
    bool performs = true;              ///< the body runs
};
[[nodiscard]] Verdict judge_call(const char* name, CallKind kind) noexcept;
/// cudaErrorNotPermitted, and a finding, on a thread that runs a host function of a stream or a graph; else success.
[[nodiscard]] cudaError_t forbid_in_host_function(const char* name);
/// Stores `status` as the thread's last error if it is an error ("not ready" is not).
cudaError_t remember(cudaError_t status) noexcept;
/// The same at the end of the API function `name`. With Options::failed_calls, reports the error.
cudaError_t end_call(const char* name, cudaError_t status) noexcept;
/// The error code of the current exception. Prints it to stderr.
[[nodiscard]] cudaError_t status_of_exception(const char* name) noexcept;

/// Runs `body`, which returns a cudaError_t, as the API function `name`.
template <class Body>
cudaError_t call(const char* name, CallKind kind, Body&& body) noexcept
{
    const Verdict verdict = judge_call(name, kind);
    if (!verdict.performs) {
        return end_call(name, verdict.status);
    }
    try {
        const cudaError_t status = body();
        return end_call(name, verdict.status != cudaSuccess ? verdict.status : status);
    } catch (...) {
        return end_call(name, status_of_exception(name));
    }
}

template <class Body>
cudaError_t call(const char* name, Body&& body) noexcept
{
    return call(name, context_call, static_cast<Body&&>(body));
}

}  // namespace tessera::emulator
