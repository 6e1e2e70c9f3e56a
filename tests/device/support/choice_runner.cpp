#include "choice_runner.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <source_location>
#include <vector>

#include "gemm/gemm_operands.hpp"
#include "test_main.hpp"

namespace tessera::test {

void check_choice(StreamRef stream, const GemmCase& gemm, const Reference& reference, DeviceOperands& operands,
                  const std::string& name, const detail::WorkspaceNeed& need, const Summation& summation,
                  Launches launches, const LaunchChoice& launch)
{
    trace(name);
    const auto fail = [&](const std::string& what) { report_failure(gemm.size(), name, what); };
    auto partials =
        DeviceBuffer<std::byte>::from_host(stream, std::vector<std::byte>(need.partial_bytes, std::byte{0xFF}));
    const std::vector<std::uint32_t> zeros(need.counters, 0);
    auto counters = DeviceBuffer<std::uint32_t>::from_host(stream, zeros);
    DeviceBuffer<std::byte> copies(stream, need.copy_bytes);
    const auto enqueue = [&](const detail::GemmOperands& given, const Epilogue& epilogue) {
        detail::require_operands(stream, given, epilogue, "check_choice", std::source_location::current());
        const detail::CallStatus ended =
            launch(detail::problem_of(given, epilogue), detail::arguments_of(given, epilogue),
                   {.partials = reinterpret_cast<float*>(partials.data()),
                    .arrivals = counters.data(),
                    .copies = copies.data()});
        if (ended.status != cudaSuccess) {
            fail(fmt::format("the launch failed: {}: {}", ended.call, cudaGetErrorString(ended.status)));
        }
    };
    try {
        const HostArray result = operands.launch(enqueue);
        if (const auto wrong = reference.find_wrong_element(result, summation)) {
            fail(*wrong);
        }
        if (gemm.pre_activation) {
            if (const auto wrong = reference.find_wrong_pre_activation(operands.download_pre_activation(), summation)) {
                fail(*wrong);
            }
        }
        if (launches == Launches::twice && operands.launch(enqueue).bytes() != result.bytes()) {
            fail("the second launch gave other bits");
        }
        std::vector<std::uint32_t> after(need.counters);
        counters.copy_to(after);
        if (after != zeros) {
            fail("counters of the workspace are not zero after the launch");
        }
    } catch (const Error& error) {
        fail(error.what());
    }
}

}  // namespace tessera::test
