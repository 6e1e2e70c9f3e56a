#include "scenarios/recorder.hpp"

#include <algorithm>
#include <nvtx3/nvtx3.hpp>

#include "method/statistics.hpp"

namespace tessera::scenarios {
namespace {

struct Domain {
    static constexpr const char* name{"tessera-scenarios"};
};

}  // namespace

double median_of(const EntryTimes& times) { return bench::summarize(times.seconds).median; }

Range::Range(bool wanted, std::string_view name) : wanted_(wanted)
{
    if (wanted_) {
        const std::string text(name);
        const nvtx3::event_attributes attributes{nvtx3::message{text}};
        nvtxDomainRangePushEx(nvtx3::domain::get<Domain>(), attributes.get());
    }
}

Range::~Range()
{
    if (wanted_) {
        nvtxDomainRangePop(nvtx3::domain::get<Domain>());
    }
}

std::size_t Recorder::place_of(std::string_view name)
{
    const auto found =
        std::find_if(phases_.begin(), phases_.end(), [&](const Phase& phase) { return phase.name == name; });
    if (found != phases_.end()) {
        return static_cast<std::size_t>(found - phases_.begin());
    }
    phases_.push_back({.name = std::string(name)});
    return phases_.size() - 1;
}

Recorder::Pair& Recorder::next_pair(std::size_t phase, StreamRef stream)
{
    if (used_ == pairs_.size() || pairs_[used_].start.device() != stream.device()) {
        const Device device(stream.device());
        pairs_.insert(pairs_.begin() + static_cast<std::ptrdiff_t>(used_),
                      Pair{Event(device, EventKind::timing), Event(device, EventKind::timing)});
    }
    Pair& pair = pairs_[used_++];
    pair.phase = phase;
    return pair;
}

std::vector<Phase> Recorder::take()
{
    for (std::size_t i = 0; i < used_; ++i) {
        pairs_[i].stop.synchronize();  // a blocking copy ends before the event that follows it
        phases_[pairs_[i].phase].device_seconds += pairs_[i].stop.seconds_since(pairs_[i].start);
    }
    used_ = 0;
    return std::exchange(phases_, {});
}

std::vector<Phase> medians_of(const std::vector<std::vector<Phase>>& runs)
{
    std::vector<Phase> medians = runs.front();
    for (std::size_t i = 0; i < medians.size(); ++i) {
        std::vector<double> host, device;
        for (const std::vector<Phase>& run : runs) {
            host.push_back(run.at(i).host_seconds);
            device.push_back(run.at(i).device_seconds);
        }
        medians[i].host_seconds = bench::summarize(std::move(host)).median;
        medians[i].device_seconds = bench::summarize(std::move(device)).median;
    }
    return medians;
}

}  // namespace tessera::scenarios
