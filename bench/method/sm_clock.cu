#include "method/sm_clock.hpp"

#include <cuda_runtime.h>

#include <cuda/ptx>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "method/statistics.hpp"

namespace tessera::bench {
namespace {

// Room for SMs whose number is higher than the count: a device may have some switched off.
constexpr unsigned most_sms = 1024;

__global__ void read_counters(SmClock::Reading* readings)
{
    const std::uint32_t sm = cuda::ptx::get_sreg_smid();
    if (sm < most_sms) {
        readings[sm] = {clock64(), static_cast<std::int64_t>(cuda::ptx::get_sreg_globaltimer())};
    }
}

}  // namespace

SmClock::SmClock(const Device& device) : sms_(device.properties().sm_count)
{
    const Stream stream(device);
    readings_ = DeviceBuffer<Reading>(stream, std::size_t{2} * most_sms);
}

void SmClock::read(StreamRef stream, int slot) const
{
    read_counters<<<static_cast<unsigned>(sms_), 1, 0, stream.get()>>>(readings_.data() + slot * most_sms);
    if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) {
        throw std::runtime_error(std::string("the kernel that reads the SM clock: ") + cudaGetErrorString(status));
    }
}

void SmClock::begin(StreamRef stream) const
{
    readings_.fill(stream, Reading{0, 0});
    read(stream, 0);
}

void SmClock::end(StreamRef stream) const { read(stream, 1); }

double SmClock::mhz(StreamRef stream) const
{
    stream.synchronize();
    std::vector<Reading> readings(readings_.size());
    readings_.copy_to(readings);
    std::vector<double> clocks;
    for (std::size_t sm = 0; sm < most_sms; ++sm) {
        const Reading& first = readings[sm];
        const Reading& last = readings[most_sms + sm];
        if (first.nanoseconds != 0 && last.nanoseconds > first.nanoseconds) {
            clocks.push_back(1e3 * static_cast<double>(last.cycles - first.cycles) /
                             static_cast<double>(last.nanoseconds - first.nanoseconds));
        }
    }
    return clocks.empty() ? 0 : summarize(std::move(clocks)).median;
}

}  // namespace tessera::bench
