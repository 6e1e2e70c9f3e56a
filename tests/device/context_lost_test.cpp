/// A kernel that reads out of range is stopped, and the next call reports `context_lost` and that it is not the cause.
/// The device's context is lost afterwards, so this is a separate program. It succeeds if the right errors arrive, and
/// returns from main with owners whose context is lost.

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "kernels.hpp"
#include "tessera/tessera.hpp"

using namespace tessera;

namespace {

constexpr int exit_no_device = 77;

constexpr std::string_view whole_cure =
    "an earlier kernel or copy on this device failed while it ran, and this call only reports it. Run the program "
    "under compute-sanitizer to find it, then restart the process";

/// Returns true if `call` throws context_lost with a text that names the CUDA call and its status, does not blame the
/// call, and says what to do.
template <class Call>
bool is_context_lost(const char* name, const Call& call)
{
    try {
        call();
        std::printf("FAILED: %s succeeded\n", name);
        return false;
    } catch (const Error& error) {
        const std::string returned = std::string(" returned ") + cudaGetErrorName(error.cuda_status()) + " (" +
                                     std::to_string(error.cuda_status()) +
                                     "): " + cudaGetErrorString(error.cuda_status());
        const std::string first_line = std::string("tessera: context_lost in ") + name + ", called at ";
        const bool right = error.code() == ErrorCode::context_lost && is_sticky(error.cuda_status()) &&
                           error.message().find(returned) != std::string_view::npos && error.cure() == whole_cure &&
                           std::string_view(error.what()).starts_with(first_line);
        std::printf("%s: %s\n%s\n", right ? "as expected" : "FAILED", name, error.what());
        return right;
    }
}

}  // namespace

int main()
{
    if (Device::count() == 0) {
        std::printf("skipped: this test needs a CUDA device\n");
        return exit_no_device;
    }
    const Stream stream;
    DeviceBuffer<float> out(stream, 1);
    const auto memory = DeviceBuffer<float>::from_host(stream, std::vector<float>{1, 2, 3});
    launch(test::read_kernel(), LaunchConfig(stream, {1}, {1}), out.span(), memory.span(), std::uint64_t{2});
    if (out.to_vector()[0] != 3) {
        std::printf("FAILED: the last element was not read\n");
        return 1;
    }
    launch(test::read_kernel(), LaunchConfig(stream, {1}, {1}), out.span(), memory.span(), std::uint64_t{3});
    bool right = is_context_lost("Stream::synchronize", [&] { stream.synchronize(); });
    right &= is_context_lost("DeviceBuffer::fill", [&] { out.fill(stream, 1.5F); });
    right &= is_context_lost("Gemm::launch",
                             [&] { Gemm::launch(stream, memory.matrix(1, 1), memory.matrix(1, 1), out.matrix(1, 1)); });
    right &= is_context_lost("DeviceBuffer", [&] { const DeviceBuffer<float> more(stream, 10); });
    return right ? 0 : 1;
}
