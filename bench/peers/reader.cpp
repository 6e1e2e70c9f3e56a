#include "peers/reader.hpp"

#include <cstdint>
#include <memory>
#include <string>

#include "method/bandwidth.hpp"
#include "report/gemm_summary.hpp"
#include "tessera/device_buffer.hpp"

namespace tessera::bench {

GemmContender reader_contender()
{
    return {std::string(reader_name), [](const Task& task) -> Prepared {
                const std::size_t element = size_of(task.problem.input);
                const auto sink = std::make_shared<DeviceBuffer<std::uint32_t>>(task.stream, 1);
                return {.enqueue =
                            [sets = task.sets, a_bytes = task.problem.a_size() * element,
                             b_bytes = task.problem.b_size() * element, sm_count = task.device.properties().sm_count,
                             sink](StreamRef stream, std::size_t set) {
                                enqueue_read(stream, sm_count, {sets[set].a, a_bytes}, {sets[set].b, b_bytes},
                                             sink->data());
                            },
                        .remark = {},
                        .computes = false};
            }};
}

}  // namespace tessera::bench
