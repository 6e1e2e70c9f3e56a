#include "method/timer.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

namespace tessera::bench {

BatchShape BatchShape::for_product_time(std::size_t sets, double seconds, double shortest)
{
    const double wanted = std::ceil(shortest / (seconds * static_cast<double>(sets)));
    const auto most = static_cast<double>(std::max<std::size_t>(max_graph_launches / sets, 1));
    return {sets, static_cast<std::size_t>(std::clamp(wanted, 1.0, most)), seconds < graph_below_seconds};
}

Batch::Batch(StreamRef stream, const Contender& contender, BatchShape shape) : contender_(&contender), shape_(shape)
{
    if (shape.graph_replay) {
        graph_ = Graph::capture(stream, [&](StreamRef captured) {
            for (std::size_t launch = 0; launch < shape.launches(); ++launch) {
                contender.launch(captured, launch % shape.sets);
            }
        });
    }
}

void Batch::enqueue(StreamRef stream) const
{
    if (graph_) {
        graph_->launch(stream);
        return;
    }
    for (std::size_t launch = 0; launch < shape_.launches(); ++launch) {
        contender_->launch(stream, launch % shape_.sets);
    }
}

double DeviceTimer::seconds_per_product(StreamRef stream, const Batch& batch,
                                        const std::function<void()>& on_begin) const
{
    batch.enqueue(stream);  // the lead-in
    if (on_begin) {
        sm_clock_.begin(stream);
    }
    start_.record(stream);
    batch.enqueue(stream);
    stop_.record(stream);
    if (on_begin) {
        sm_clock_.end(stream);
        start_.synchronize();
        on_begin();
    }
    stop_.synchronize();
    return stop_.seconds_since(start_) / static_cast<double>(batch.shape().launches());
}

std::vector<std::vector<double>> time_in_rounds(const DeviceTimer& timer, StreamRef stream,
                                                const std::vector<Batch>& batches, const Rounds& rounds,
                                                const std::function<void(std::size_t)>& on_round)
{
    std::vector<std::vector<double>> samples(batches.size());
    constexpr std::size_t fewest_rounds = 3;
    if (rounds.clocks != nullptr) {
        rounds.clocks->restart(batches.size());
    }
    for (std::size_t round = 0; round < rounds.count; ++round) {
        if (round >= fewest_rounds && std::chrono::steady_clock::now() > rounds.deadline) {
            break;
        }
        on_round(round);
        for (std::size_t position = 0; position < batches.size(); ++position) {
            // Forwards and backwards in turn, so that none always follows the same one.
            const std::size_t step = round % 2 == 0 ? position : batches.size() - position;
            const std::size_t i = (round + step) % batches.size();
            if (rounds.pause.count() > 0) {
                std::this_thread::sleep_for(rounds.pause);
            }
            samples[i].push_back(rounds.clocks == nullptr
                                     ? timer.seconds_per_product(stream, batches[i])
                                     : timer.seconds_per_product(stream, batches[i], [&] { rounds.clocks->begin(i); }));
            if (rounds.clocks != nullptr) {
                rounds.clocks->end(timer.sm_mhz(stream));
            }
        }
    }
    return samples;
}

}  // namespace tessera::bench
