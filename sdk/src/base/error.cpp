#include "tessera/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <utility>

namespace tessera {
namespace {

struct CodeName {
    ErrorCode code;
    std::string_view name;
};

constexpr std::array code_names{
    CodeName{ErrorCode::shape_mismatch, "shape_mismatch"},
    CodeName{ErrorCode::out_of_range, "out_of_range"},
    CodeName{ErrorCode::size_overflow, "size_overflow"},
    CodeName{ErrorCode::invalid_argument, "invalid_argument"},
    CodeName{ErrorCode::misaligned, "misaligned"},
    CodeName{ErrorCode::aliasing, "aliasing"},
    CodeName{ErrorCode::device_mismatch, "device_mismatch"},
    CodeName{ErrorCode::empty_handle, "empty_handle"},
    CodeName{ErrorCode::wrong_memory, "wrong_memory"},
    CodeName{ErrorCode::variant_refused, "variant_refused"},
    CodeName{ErrorCode::unsupported_device, "unsupported_device"},
    CodeName{ErrorCode::out_of_memory, "out_of_memory"},
    CodeName{ErrorCode::no_device, "no_device"},
    CodeName{ErrorCode::capture_violation, "capture_violation"},
    CodeName{ErrorCode::launch_refused, "launch_refused"},
    CodeName{ErrorCode::cuda_failure, "cuda_failure"},
    CodeName{ErrorCode::context_lost, "context_lost"},
    CodeName{ErrorCode::tensor_map_refused, "tensor_map_refused"},
    CodeName{ErrorCode::compilation_failed, "compilation_failed"},
    CodeName{ErrorCode::communication_failed, "communication_failed"},
};

constexpr std::string_view cure_mark = "\n  try: ";

std::string first_line(ErrorCode code, std::string_view operation, const std::source_location& caller)
{
    return fmt::format("tessera: {} in {}, called at {}:{}\n  ", to_string(code), operation, caller.file_name(),
                       caller.line());
}

std::string indented(std::string_view text)
{
    std::string result;
    result.reserve(text.size());
    for (const char c : text) {
        result += c;
        if (c == '\n') {
            result += "  ";
        }
    }
    return result;
}

struct Diagnosis {
    ErrorCode code;
    std::string cure;
};

Diagnosis diagnose(cudaError_t status, std::string_view call)
{
    if (is_sticky(status)) {
        return {ErrorCode::context_lost,
                "an earlier kernel or copy on this device failed while it ran, and this call only reports it. Run the "
                "program under compute-sanitizer to find it, then restart the process"};
    }
    switch (status) {
        case cudaErrorMemoryAllocation: {
            if (call == "cudaHostAlloc") {
                return {ErrorCode::out_of_memory, "free pinned memory or use less: the host cannot page-lock any more"};
            }
            std::size_t free = 0;
            std::size_t total = 0;
            if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
                cudaGetLastError();
                return {ErrorCode::out_of_memory, "free memory or use a smaller problem"};
            }
            return {
                ErrorCode::out_of_memory,
                fmt::format("the device has {} of {} bytes free: free memory or use a smaller problem", free, total)};
        }
        case cudaErrorNoDevice:
        case cudaErrorInsufficientDriver:
        case cudaErrorStubLibrary:
        case cudaErrorDevicesUnavailable:
        case cudaErrorSystemDriverMismatch:
        case cudaErrorSystemNotReady:
        case cudaErrorCompatNotSupportedOnDevice:
            return {ErrorCode::no_device,
                    "check with nvidia-smi that a GPU and a driver for CUDA 13 or later are installed"};
        case cudaErrorStreamCaptureUnsupported:
        case cudaErrorStreamCaptureInvalidated:
        case cudaErrorStreamCaptureMerge:
        case cudaErrorStreamCaptureUnmatched:
        case cudaErrorStreamCaptureUnjoined:
        case cudaErrorStreamCaptureIsolation:
        case cudaErrorStreamCaptureImplicit:
        case cudaErrorStreamCaptureWrongThread:
            return {
                ErrorCode::capture_violation,
                "the stream is being captured: move this call out of the captured work, and fork and join every other "
                "stream with events"};
        case cudaErrorNoKernelImageForDevice:
            return {ErrorCode::unsupported_device,
                    "the program has no code for this device: add its architecture to CMAKE_CUDA_ARCHITECTURES"};
        case cudaErrorLaunchOutOfResources:
        case cudaErrorInvalidConfiguration:
        case cudaErrorInvalidClusterSize:
        case cudaErrorInvalidDeviceFunction:
        case cudaErrorCooperativeLaunchTooLarge: return {ErrorCode::launch_refused, ""};
        default: return {ErrorCode::cuda_failure, ""};
    }
}

/// Never destroyed: static owners may still drop errors while the process exits.
struct DroppedErrors {
    static constexpr std::size_t capacity = 64;
    std::mutex mutex;
    std::deque<std::string> texts;

    static DroppedErrors& get()
    {
        static auto* const instance = new DroppedErrors;
        return *instance;
    }

    template <class... Arguments>
    static void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept
    {
        try {
            auto& dropped = get();
            const std::scoped_lock lock(dropped.mutex);
            if (dropped.texts.size() == capacity) {
                dropped.texts.pop_front();
            }
            dropped.texts.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
        } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the text, and a destructor must not throw
        }
    }
};

}  // namespace

std::string_view to_string(ErrorCode code) noexcept
{
    const auto* found =
        std::find_if(code_names.begin(), code_names.end(), [&](const CodeName& c) { return c.code == code; });
    return found == code_names.end() ? "unknown" : found->name;
}

std::vector<ErrorCode> all_error_codes()
{
    std::vector<ErrorCode> codes;
    for (const CodeName& entry : code_names) {
        codes.push_back(entry.code);
    }
    return codes;
}

Error::Error(ErrorCode code, std::string_view operation, std::source_location caller, const std::string& message,
             const std::string& cure, cudaError_t cuda_status)
    : std::runtime_error(first_line(code, operation, caller) + indented(message) +
                         (cure.empty() ? std::string() : std::string(cure_mark) + indented(cure))),
      code_(code),
      caller_(caller),
      cuda_status_(cuda_status),
      message_begin_(first_line(code, operation, caller).size()),
      message_size_(indented(message).size()),
      cure_begin_(cure.empty() ? std::string_view(what()).size() : message_begin_ + message_size_ + cure_mark.size())
{}

std::string_view Error::message() const noexcept
{
    return std::string_view(what()).substr(message_begin_, message_size_);
}

std::string_view Error::cure() const noexcept { return std::string_view(what()).substr(cure_begin_); }

bool is_sticky(cudaError_t status) noexcept
{
    switch (status) {
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchTimeout:
        case cudaErrorAssert:
        case cudaErrorHardwareStackError:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorLaunchFailure:
        case cudaErrorTensorMemoryLeak:
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorContained:
        case cudaErrorExternalDevice: return true;
        default: return false;
    }
}

std::vector<std::string> dropped_errors()
{
    auto& dropped = DroppedErrors::get();
    const std::scoped_lock lock(dropped.mutex);
    std::vector<std::string> texts(dropped.texts.begin(), dropped.texts.end());
    dropped.texts.clear();
    return texts;
}

namespace detail {

void raise(ErrorCode code, std::string_view operation, const std::source_location& caller, const std::string& message,
           const std::string& cure)
{
    throw Error(code, operation, caller, message, cure);
}

void raise_cuda(cudaError_t status, const char* call, std::string_view operation, const std::source_location& caller,
                const std::string& subject)
{
    Diagnosis diagnosis = diagnose(status, call);
    // The failed call left its status in the runtime's last-error slot. Clear it, or the next cudaGetLastError() of
    // unrelated code would find it there. A sticky error cannot be cleared.
    cudaGetLastError();
    throw Error(diagnosis.code, operation, caller,
                fmt::format("{} returned {} ({}): {}{}{}", call, cudaGetErrorName(status), static_cast<int>(status),
                            cudaGetErrorString(status), subject.empty() ? "" : "\n", subject),
                diagnosis.cure, status);
}

void forget(cudaError_t status) noexcept
{
    if (cudaPeekAtLastError() == status) {
        cudaGetLastError();
    }
}

void drop(cudaError_t status, const char* call) noexcept
{
    // Static owners outlive the runtime, which has freed everything already.
    if (status == cudaSuccess || status == cudaErrorCudartUnloading || status == cudaErrorContextIsDestroyed) {
        return;
    }
    cudaGetLastError();
    DroppedErrors::add("{} returned {} ({}): {}", call, cudaGetErrorName(status), static_cast<int>(status),
                       cudaGetErrorString(status));
}

void drop(const char* who, const char* what) noexcept { DroppedErrors::add("{} threw {}", who, what); }

}  // namespace detail
}  // namespace tessera
