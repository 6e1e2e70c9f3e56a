#include "method/clock_sampler.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "method/statistics.hpp"

namespace tessera::bench {

ClockSummary summarize_clocks(const std::vector<DeviceReading>& readings)
{
    ClockSummary summary;
    std::vector<double> clocks;
    for (const DeviceReading& reading : readings) {
        clocks.push_back(reading.sm_mhz);
        summary.watts = std::max(summary.watts, reading.watts);
        summary.throttle |= reading.throttle;
    }
    summary.readings = clocks.size();
    summary.sm_mhz = summarize(std::move(clocks)).median;
    return summary;
}

ClockSampler::ClockSampler(Read read, std::chrono::milliseconds interval)
    : read_(std::move(read)), interval_(interval), thread_([this] { run(); })
{}

ClockSampler::~ClockSampler()
{
    {
        const std::lock_guard lock(mutex_);
        leaves_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void ClockSampler::restart(std::size_t contenders)
{
    const std::lock_guard lock(mutex_);
    readings_.assign(contenders, {});
    samples_sm_mhz_.assign(contenders, {});
}

void ClockSampler::begin(std::size_t contender)
{
    {
        const std::lock_guard lock(mutex_);
        contender_ = contender;
        ++turn_;
    }
    changed_.notify_all();
}

void ClockSampler::end(double sm_mhz)
{
    {
        const std::lock_guard lock(mutex_);
        samples_sm_mhz_[contender_.value()].push_back(sm_mhz);
        contender_.reset();
    }
    changed_.notify_all();
}

std::vector<ClockSummary> ClockSampler::summaries() const
{
    const std::lock_guard lock(mutex_);
    std::vector<ClockSummary> summaries;
    for (std::size_t contender = 0; contender < readings_.size(); ++contender) {
        summaries.push_back(summarize_clocks(readings_[contender]));
        summaries.back().samples_sm_mhz = samples_sm_mhz_[contender];
    }
    return summaries;
}

void ClockSampler::run()
{
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return leaves_ || contender_.has_value(); });
        if (leaves_) {
            return;
        }
        const std::size_t turn = turn_;
        lock.unlock();
        DeviceReading reading;
        try {
            reading = read_();
        } catch (const std::runtime_error&) {
            return;
        }
        lock.lock();
        if (contender_ && turn == turn_) {
            readings_[*contender_].push_back(reading);
        }
        changed_.wait_for(lock, interval_, [&] { return leaves_ || turn != turn_; });
    }
}

}  // namespace tessera::bench
