#pragma once

/// @file
/// @ingroup host_errors
/// @brief Errors: one exception type, a stable code for programs, and a text for people.

#include "tessera/detail/language.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What went wrong, for programs to decide on. Numbers and names are stable; docs/errors has a page for each.
enum class ErrorCode : std::uint8_t {
    /// Two operands do not fit together: sizes that must be equal are not.
    shape_mismatch = 1,
    /// A range, tile or matrix reaches outside of its memory.
    out_of_range = 2,
    /// A count times a size does not fit into 63 bits, or into what CUDA takes.
    size_overflow = 3,
    /// One argument is impossible by itself: a negative extent, a leading dimension smaller than a row.
    invalid_argument = 4,
    /// An address or stride is not a multiple of the bytes that the operation needs.
    misaligned = 5,
    /// The output overlaps an input that is still being read.
    aliasing = 6,
    /// Memory, stream and event belong to different devices.
    device_mismatch = 7,
    /// The object was moved from, released, or never given anything.
    empty_handle = 8,
    /// Host memory where device memory is needed, or the reverse.
    wrong_memory = 9,
    /// The requested variant cannot compute this problem correctly, or not on this device.
    variant_refused = 10,
    /// The device lacks a feature (clusters, memory pools, tensor maps). Another variant will not help.
    unsupported_device = 11,
    /// The device or the host has too little free memory for the request.
    out_of_memory = 12,
    /// There is no usable CUDA device or driver.
    no_device = 13,
    /// The stream is being captured into a graph and the call cannot be captured, or the capture failed.
    capture_violation = 14,
    /// A kernel launch breaks a limit of the kernel or the device: CTA, cluster or shared memory.
    launch_refused = 15,
    /// A CUDA call failed for a reason that has no code of its own. The Error has CUDA's name and text.
    cuda_failure = 16,
    /// An earlier asynchronous operation destroyed the device's context. This call only found it; nothing works on this
    /// device until the process ends.
    context_lost = 17,
    /// A tensor map breaks a rule of the encoder (rank, box, stride, swizzle).
    tensor_map_refused = 18,
    /// A program that is compiled at run time has an error, or there is no compiler.
    compilation_failed = 19,
    /// Another GPU's rank failed or does not answer, or NCCL is missing, too old, or failed.
    communication_failed = 20,
};

/// Returns the code's name as in the enumeration, for example "shape_mismatch".
std::string_view to_string(ErrorCode code) noexcept;

/// Returns all codes in order, for tables and tests.
std::vector<ErrorCode> all_error_codes();

/// The exception that every failing call of the SDK throws. Its text has the values that broke the rule, and often a
/// cure:
///
/// @code{.unparsed}
/// tessera: shape_mismatch in Gemm::launch, called at solver.cpp:42
///   A is 512x640 and B is 1024x640: A*B needs A's columns (640) equal to B's rows (1024)
///   try: B looks transposed: pass b.transposed()
/// @endcode
///
/// @code{.cpp}
/// try {
///     Gemm::launch(stream, a16, b16, d16, {}, Variant::hopper);
/// } catch (const Error& error) {
///     if (error.code() != ErrorCode::variant_refused) throw;
///     Gemm::launch(stream, a16, b16, d16);
/// }
/// @endcode
///
/// @par Guarantees
/// Every public function that can fail throws `Error` and no other exception of its own. `std::bad_alloc` of the
/// standard library passes through, and so does what a memory resource of yours throws. When a function throws, nothing
/// was enqueued or leaked unless its comment says otherwise. Destructors never throw: see `dropped_errors()`.
///
/// @par The parameter `caller`
/// The last parameter of most functions is the place that an Error names. Its default is the line of the call. A
/// function of yours that wraps the SDK can pass its own caller on, so that errors name that.
///
/// @par Thread safety
/// A value. All functions of this header may be called from several threads at the same time.
class Error : public std::runtime_error {
public:
    /// Composes the text of what().
    /// @param code         what went wrong
    /// @param operation    the public function that the caller called, for example "Gemm::launch"
    /// @param caller       where it was called
    /// @param message      what is wrong, with the offending values, as one or more lines
    /// @param cure         what would satisfy, or empty
    /// @param cuda_status  the status of the CUDA call that failed, if there was one
    Error(ErrorCode code, std::string_view operation, std::source_location caller, const std::string& message,
          const std::string& cure = {}, cudaError_t cuda_status = cudaSuccess);

    /// Returns what went wrong, for programs.
    ErrorCode code() const noexcept { return code_; }
    /// Returns where the SDK was called.
    const std::source_location& caller() const noexcept { return caller_; }
    /// Returns the status of the CUDA call that failed, or cudaSuccess if the SDK refused before it called CUDA.
    cudaError_t cuda_status() const noexcept { return cuda_status_; }
    /// Returns the sentence with the values: the part of what() between the first line and "try:".
    std::string_view message() const noexcept;
    /// Returns what to try, or an empty text.
    std::string_view cure() const noexcept;

private:
    ErrorCode code_;
    std::source_location caller_;
    cudaError_t cuda_status_;
    std::size_t message_begin_;
    std::size_t message_size_;
    std::size_t cure_begin_;
};

/// Returns true if `status` means that the device's context is gone: every later call on that device fails with it.
bool is_sticky(cudaError_t status) noexcept;

/// Returns what failed in destructors since the last call of this function, oldest first: one text per failure, at most
/// the latest 64. A free that fails is recorded here; its memory counts as lost. Thread-safe. May throw std::bad_alloc.
///
/// @code{.cpp}
/// for (const std::string& text : dropped_errors()) {
///     std::fprintf(stderr, "%s\n", text.c_str());
/// }
/// @endcode
std::vector<std::string> dropped_errors();

namespace detail {

[[noreturn]] void raise(ErrorCode code, std::string_view operation, const std::source_location& caller,
                        const std::string& message, const std::string& cure = {});

/// Turns a failed CUDA call into an Error: chooses the code, keeps CUDA's name and text, and clears the runtime's
/// last-error slot so that no later call reports it.
[[noreturn]] void raise_cuda(cudaError_t status, const char* call, std::string_view operation,
                             const std::source_location& caller, const std::string& subject = {});

inline void check(cudaError_t status, const char* call, std::string_view operation, const std::source_location& caller)
{
    if (status != cudaSuccess) [[unlikely]] {
        raise_cuda(status, call, operation, caller);
    }
}

/// Clears `status`, an answer that is no failure, from the runtime's last-error slot. Another status stays.
void forget(cudaError_t status) noexcept;

/// Records a failure that a destructor cannot report. The unloading of CUDA at process exit is not a failure.
void drop(cudaError_t status, const char* call) noexcept;
/// Records what `who` threw where no exception may leave.
void drop(const char* who, const char* what) noexcept;

}  // namespace detail
}  // namespace tessera
