#include "machine/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/source_place.hpp"
#include "checks/report_json.hpp"
#include "machine/cluster.hpp"
#include "machine/launch.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

namespace {

// Tracks of a CTA, by the number of the thread: warps first.
constexpr std::uint32_t first_copies = 1'000, first_mmas = 20'000, first_others = 40'000, first_mbarriers = 100'000;

/// A part of a track that is busy. Slices of a track do not overlap.
struct Slice {
    std::uint32_t rank = 0, track = 0;
    std::uint64_t begin = 0, end = 0;
    std::string name, arguments;
};

/// From the arrival that completed a phase of an mbarrier, over the phase, to a warp that waited for it.
struct Arrow {
    std::uint32_t from_rank = 0, from_track = 0, mbarrier_rank = 0, mbarrier_track = 0, to_rank = 0, to_track = 0;
    std::uint64_t from = 0, phase = 0, to = 0;
};

[[nodiscard]] std::string_view reason_of(const Split& split)
{
    switch (split.wait.kind) {
        case Wait::Kind::none: return "waits for diverged lanes";
        case Wait::Kind::lanes: return "waits for lanes of its warp";
        case Wait::Kind::named_barrier: return "waits at a barrier";
        case Wait::Kind::cluster_barrier: return "waits at the cluster's barrier";
        case Wait::Kind::mbarrier: return "waits for an mbarrier";
        case Wait::Kind::async_group: return "waits for its copies";
        case Wait::Kind::tensor_memory: return "waits for tensor memory";
        case Wait::Kind::launch_control: return "waits for launch control";
        case Wait::Kind::registers: return "waits for registers";
    }
    return "waits";
}

/// "cp.async.bulk.tensor.2d", without the rest of the instruction.
[[nodiscard]] std::string short_text(const Operation& operation)
{
    if (operation.source == nullptr) {
        return "asynchronous work";
    }
    std::string name = operation.source->opcode;
    for (std::size_t i = 0; i < operation.source->modifiers.size() && i < 3; ++i) {
        name += "." + operation.source->modifiers[i];
    }
    return name;
}

}  // namespace

/// One launch: it collects what its clusters have written.
class TracedLaunch final : public LaunchMonitor {
public:
    TracedLaunch(Trace& trace, std::string name, std::string shape, std::uint64_t begin)
        : trace_(trace), name_(std::move(name)), shape_(std::move(shape)), begin_(begin)
    {}
    [[nodiscard]] std::unique_ptr<ClusterMonitor> start(const Cluster& cluster) override;
    void end(const LaunchResult& result) override
    {
        trace_.end(name_, begin_, steps_,
                   fmt::format("\"shape\": {}, \"scheduler_steps\": {}, \"ctas\": {}, \"barrier_waits\": {}, "
                               "\"error\": {}",
                               json_string(shape_), result.statistics.scheduler_steps, result.statistics.ctas,
                               result.statistics.barrier_waits, result.code),
                   std::move(events_));
    }
    /// A cluster has ended after `steps`, with these slices and arrows.
    void add(const Cluster& cluster, const std::vector<Slice>& slices, const std::vector<Arrow>& arrows, bool was_cut);

private:
    void add_event(std::string_view event)
    {
        events_ += events_.empty() ? "" : ",\n";
        events_ += event;
        ++trace_.events_;
    }

    Trace& trace_;
    std::string name_, shape_, events_;
    std::uint64_t begin_, steps_ = 1;
};

namespace {

class TracedCluster final : public ClusterMonitor {
public:
    TracedCluster(TracedLaunch& launch, const Cluster& cluster, std::uint64_t most)
        : launch_(launch), cluster_(cluster), most_(most), warps_(cluster.ctas.size())
    {}
    ~TracedCluster() override
    {
        for (const auto& [number, work] : works_) {  // not complete, because a cluster failed
            finish(work, "not complete");
        }
        for (std::uint32_t rank = 0; rank < warps_.size(); ++rank) {
            for (auto& [index, warp] : warps_[rank]) {
                close_wait(rank, index, warp, cluster_.steps());
            }
        }
        launch_.add(cluster_, slices_, arrows_, was_cut_);
    }

    void ran(const Warp& warp, std::uint64_t start) override
    {
        const std::uint64_t end = cluster_.steps();
        WarpTrack& track = warps_[warp.cta.rank][warp.index];
        const bool is_stopped = !warp.finished() && !warp.runnable();
        if (end > start) {
            close_wait(warp.cta.rank, warp.index, track, start);
            if (track.last && slices_[*track.last].end == start) {
                slices_[*track.last].end = end;
            } else {
                track.last = add({warp.cta.rank, warp.index, start, end, "runs", {}});
            }
        }
        if (is_stopped && track.reason.empty()) {
            const Split& split = *warp.splits().front();
            track.reason = reason_of(split);
            track.object = split.wait.kind == Wait::Kind::mbarrier || split.wait.kind == Wait::Kind::named_barrier
                               ? fmt::format("{:#x}", split.wait.object)
                               : std::string();
            track.since = end;
        }
    }

    void exited(const Cta&) override {}

    void submitted(const AsyncOperation& work) override
    {
        const std::uint32_t first = work.kind == AsyncOperation::Kind::load || work.kind == AsyncOperation::Kind::store
                                        ? first_copies
                                    : work.kind == AsyncOperation::Kind::mma ? first_mmas
                                                                             : first_others;
        std::uint32_t track = first;
        while (busy_until(work.cta_rank, track) > cluster_.steps()) {
            ++track;
        }
        busy_[{work.cta_rank, track}] = ~std::uint64_t{0};
        works_.emplace(work.number, Work{work.cta_rank, track, cluster_.steps(), 0, 0, short_text(*work.operation),
                                         line_of(work.operation), work.warp});
    }

    void stepped(const AsyncOperation& work, bool is_complete) override
    {
        const auto found = works_.find(work.number);
        if (found == works_.end()) {
            return;
        }
        Work& known = found->second;
        known.first_step = known.steps == 0 ? cluster_.steps() : known.first_step;
        ++known.steps;
        if (is_complete) {
            finish(known, {});
            works_.erase(found);
        }
    }

    void arrived(const Warp& warp, const Cta& at, std::uint32_t address, std::uint64_t phase) override
    {
        arrived(warp.cta.rank, warp.index, cluster_.steps(), at, address, phase);
    }
    void arrived(const AsyncOperation& work, const Cta& at, std::uint32_t address, std::uint64_t phase) override
    {
        if (const auto found = works_.find(work.number); found != works_.end()) {
            // In its step, which may be the last.
            arrived(found->second.rank, found->second.track, cluster_.steps() - 1, at, address, phase);
        }
    }
    void passed(const Warp& warp, const Cta& at, std::uint32_t address, std::uint64_t phase) override
    {
        const auto found = mbarriers_.find({at.rank, address});
        if (found == mbarriers_.end() || phase == 0 || found->second.phase < phase ||
            found->second.arrow.from_track == none) {
            return;
        }
        Arrow arrow = found->second.arrow;
        arrow.to_rank = warp.cta.rank;
        arrow.to_track = warp.index;
        arrow.to = cluster_.steps();
        if (slices_.size() < most_) {
            arrows_.push_back(arrow);
        }
    }

private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    struct WarpTrack {
        std::optional<std::size_t> last;  // its latest slice of running
        std::string reason, object;       // it waits
        std::uint64_t since = 0;
    };
    struct Work {
        std::uint32_t rank = 0, track = 0;
        std::uint64_t begin = 0, first_step = 0, steps = 0;
        std::string name;
        std::uint32_t line = 0, warp = 0;
    };
    struct MbarrierTrack {
        std::uint32_t track = 0;
        std::uint64_t phase = 0, begin = 0;
        Arrow arrow{.from_track = none};  // of the latest complete phase
    };

    std::optional<std::size_t> add(Slice slice)
    {
        if (slices_.size() >= most_) {
            was_cut_ = true;
            return std::nullopt;
        }
        slices_.push_back(std::move(slice));
        return slices_.size() - 1;
    }
    std::uint64_t busy_until(std::uint32_t rank, std::uint32_t track)
    {
        const auto found = busy_.find({rank, track});
        return found == busy_.end() ? 0 : found->second;
    }
    void close_wait(std::uint32_t rank, std::uint32_t index, WarpTrack& track, std::uint64_t now)
    {
        if (track.reason.empty()) {
            return;
        }
        if (now > track.since) {
            add({rank, index, track.since, now, std::exchange(track.reason, {}),
                 track.object.empty() ? std::string() : fmt::format("\"object\": {}", json_string(track.object))});
        }
        track.reason.clear();
    }
    void finish(const Work& work, std::string_view note)
    {
        const std::uint64_t end = std::max(cluster_.steps(), work.begin + 1);
        busy_[{work.rank, work.track}] = end;
        add({work.rank, work.track, work.begin, end, work.name,
             fmt::format("\"steps\": {}, \"waited\": {}, \"PTX line\": {}, \"warp\": {}{}", work.steps,
                         work.steps == 0 ? end - work.begin : work.first_step - work.begin, work.line, work.warp,
                         note.empty() ? std::string() : fmt::format(", \"state\": {}", json_string(note)))});
    }
    void arrived(std::uint32_t rank, std::uint32_t track, std::uint64_t from, const Cta& at, std::uint32_t address,
                 std::uint64_t phase)
    {
        const auto [found, is_new] = mbarriers_.try_emplace({at.rank, address});
        MbarrierTrack& barrier = found->second;
        if (is_new) {
            barrier.track = first_mbarriers + address / 8;
        }
        if (phase < barrier.phase) {  // initialized again
            barrier.phase = 0;
        }
        if (phase == barrier.phase) {
            return;
        }
        barrier.phase = phase;
        const std::uint64_t now = cluster_.steps();
        const std::uint64_t end = std::max(now, barrier.begin + 1);
        // Without its slices, an arrow would end nowhere.
        const bool is_there =
            add({at.rank, barrier.track, barrier.begin, end, fmt::format("phase {}", phase - 1), {}}).has_value();
        barrier.arrow = {};
        barrier.arrow.from_track = is_there ? track : none;
        barrier.arrow.from_rank = rank;
        barrier.arrow.from = from;
        barrier.arrow.mbarrier_rank = at.rank;
        barrier.arrow.mbarrier_track = barrier.track;
        barrier.arrow.phase = end - 1;
        barrier.begin = end;
    }

    TracedLaunch& launch_;
    const Cluster& cluster_;
    const std::uint64_t most_;
    std::vector<Slice> slices_;
    std::vector<Arrow> arrows_;
    std::vector<std::map<std::uint32_t, WarpTrack>> warps_;                  // by rank, and index in the CTA
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> busy_;  // end of the last slice, by rank and track
    std::unordered_map<std::uint32_t, Work> works_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, MbarrierTrack> mbarriers_;  // by rank and address
    bool was_cut_ = false;
};

[[nodiscard]] std::string track_name(std::uint32_t track)
{
    if (track >= first_mbarriers) {
        return fmt::format("mbarrier {:#x}", (track - first_mbarriers) * 8);
    }
    return track >= first_others   ? fmt::format("commits and others {}", track - first_others)
           : track >= first_mmas   ? fmt::format("MMAs {}", track - first_mmas)
           : track >= first_copies ? fmt::format("copies {}", track - first_copies)
                                   : fmt::format("warp {}", track);
}

}  // namespace

std::unique_ptr<ClusterMonitor> TracedLaunch::start(const Cluster& cluster)
{
    const std::scoped_lock lock(trace_.mutex_);
    if (trace_.events_ >= trace_.most_events_) {
        ++trace_.cut_;
        return nullptr;
    }
    return std::make_unique<TracedCluster>(*this, cluster, trace_.most_events_);
}

void TracedLaunch::add(const Cluster& cluster, const std::vector<Slice>& slices, const std::vector<Arrow>& arrows,
                       bool was_cut)
{
    const std::scoped_lock lock(trace_.mutex_);
    trace_.cut_ += was_cut ? 1 : 0;
    steps_ = std::max(steps_, cluster.steps());
    const std::uint64_t first = trace_.processes_ + 1;
    trace_.processes_ += cluster.ctas.size();
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> tracks;  // end of the last slice
    for (const Slice& slice : slices) {
        std::uint64_t& end = tracks[{slice.rank, slice.track}];
        end = std::max(end, slice.end);
        steps_ = std::max(steps_, slice.end);
        add_event(fmt::format(R"({{"ph": "X", "pid": {}, "tid": {}, "ts": {}, "dur": {}, "name": {}, "args": {{{}}}}})",
                              first + slice.rank, slice.track, begin_ + slice.begin, slice.end - slice.begin,
                              json_string(slice.name), slice.arguments));
    }
    for (const auto& cta : cluster.ctas) {
        add_event(fmt::format(
            R"({{"ph": "M", "pid": {}, "name": "process_name", "args": {{"name": {}}}}})", first + cta->rank,
            json_string(fmt::format(
                "CTA ({}, {}, {}){} of {}", cta->id.x, cta->id.y, cta->id.z,
                cluster.ctas.size() == 1 ? std::string() : fmt::format(", {} of cluster {}", cta->rank, cluster.index),
                name_))));
        add_event(fmt::format(R"({{"ph": "M", "pid": {}, "name": "process_sort_index", "args": {{"sort_index": {}}}}})",
                              first + cta->rank, first + cta->rank));
    }
    for (const auto& [track, end] : tracks) {
        add_event(fmt::format(R"({{"ph": "M", "pid": {}, "tid": {}, "name": "thread_name", "args": {{"name": {}}}}})",
                              first + track.first, track.second, json_string(track_name(track.second))));
        add_event(fmt::format(
            R"({{"ph": "M", "pid": {}, "tid": {}, "name": "thread_sort_index", "args": {{"sort_index": {}}}}})",
            first + track.first, track.second, track.second));
    }
    for (const Arrow& arrow : arrows) {
        // All three ends must be inside of slices that were kept.
        const auto from = tracks.find({arrow.from_rank, arrow.from_track});
        const auto to = tracks.find({arrow.to_rank, arrow.to_track});
        if (from == tracks.end() || to == tracks.end() || to->second <= arrow.to) {
            continue;
        }
        const std::uint64_t start = std::min(arrow.from, from->second - 1);
        const std::uint64_t number = ++trace_.arrows_;
        const auto event = [&](char what, std::uint64_t pid, std::uint32_t track, std::uint64_t at) {
            add_event(fmt::format(
                R"({{"ph": "{}", "pid": {}, "tid": {}, "ts": {}, "id": {}, "name": "mbarrier", "cat": "mbarrier"{}}})",
                what, first + pid, track, begin_ + at, number, what == 'f' ? R"(, "bp": "e")" : ""));
        };
        event('s', arrow.from_rank, arrow.from_track, start);
        event('t', arrow.mbarrier_rank, arrow.mbarrier_track, arrow.phase);
        event('f', arrow.to_rank, arrow.to_track, arrow.to);
    }
}

Trace::Trace(Write write, std::uint64_t most_events) : write_(std::move(write)), most_events_(most_events) {}
Trace::~Trace() = default;

std::unique_ptr<LaunchMonitor> Trace::start(const std::string& kernel, const LaunchRequest& request)
{
    const std::scoped_lock lock(mutex_);
    return std::make_unique<TracedLaunch>(
        *this, shown_kernel(kernel),
        fmt::format("<<<({}, {}, {}), ({}, {}, {})>>>", request.grid.x, request.grid.y, request.grid.z, request.block.x,
                    request.block.y, request.block.z),
        end_);
}

std::uint64_t Trace::clusters_cut() const
{
    const std::scoped_lock lock(mutex_);
    return cut_;
}

void Trace::end(const std::string& name, std::uint64_t begin, std::uint64_t steps, const std::string& arguments,
                std::string events)
{
    const std::scoped_lock lock(mutex_);
    auto track = std::ranges::find_if(launches_until_, [&](std::uint64_t until) { return until <= begin; });
    std::string text;
    if (track == launches_until_.end()) {
        if (launches_until_.empty()) {
            text += R"({"ph": "M", "pid": 0, "name": "process_name", "args": {"name": "launches"}},)"
                    "\n";
        }
        launches_until_.push_back(0);
        track = launches_until_.end() - 1;
    }
    *track = begin + steps;
    end_ = std::max(end_, begin + steps);
    text += fmt::format(R"({{"ph": "X", "pid": 0, "tid": {}, "ts": {}, "dur": {}, "name": {}, "args": {{{}{}}}}})",
                        track - launches_until_.begin(), begin, steps, json_string(name), arguments,
                        cut_ == 0 ? std::string() : fmt::format(R"(, "clusters left out so far": {})", cut_));
    text += events.empty() ? "" : ",\n" + events;
    write_(text);
}

}  // namespace tessera::emulator
