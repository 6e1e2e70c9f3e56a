// SharedShadow, fast and plain, against the rules written down for each word (word_shadow.hpp): random accesses,
// barriers and asynchronous operations, with few places and much of each kind of order, so that every finding occurs.

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "execute/lane_addresses.hpp"
#include "word_shadow.hpp"

namespace tessera::emulator::test {

namespace {

constexpr unsigned warps = 6;
constexpr std::uint32_t shared_bytes = 1024 + 4 * 7;

struct Values final : StoredBytes {
    std::uint32_t pattern = 0;
    [[nodiscard]] bool unchanged(std::uint32_t offset, std::uint8_t bytes) const override
    {
        return ((pattern >> (offset / 4 % 32)) & 1) != 0 || (pattern % 7 == 0 && bytes != 0xF);
    }
};

struct Access {
    Agent agent = 0;
    bool writes = false, atomic = false;
    std::uint32_t size = 4;
    const char* what = "ld";
    std::uint32_t line = 0;
};

class Walk {
public:
    Walk(std::uint64_t seed, bool same_values, bool tidy)
        : random_(seed),
          tidy_(tidy),
          fast_(shared_bytes, clocks_, same_values),
          plain_(shared_bytes, clocks_, same_values, Paths::plain),
          both_(shared_bytes, clocks_, same_values, Paths::both),
          words_(shared_bytes, clocks_, same_values)
    {}

    void step()
    {
        switch (choose(tidy_ ? 40 : 14)) {
            case 0:
            case 1: barrier(); break;
            case 2: pass_on(); break;
            case 3: begin_async(); break;
            case 4: end_async(); break;
            case 5: clocks_.proxy_fence(warp(), choose(3) == 0 ? all_lanes : random_mask()); break;
            case 6: mark_barrier(); break;
            case 7: clocks_.sync_lanes(warp(), random_mask() | random_mask(), all_lanes); break;
            case 8:
            case 9: access_range(); break;
            case 10: clocks_.sync_lanes(warp(), all_lanes, all_lanes); break;
            default: access_lanes(); break;
        }
    }

    void compare_initialized()
    {
        for (std::uint32_t byte = 0; byte < shared_bytes; ++byte) {
            REQUIRE(fast_.initialized(byte, 1) == words_.initialized(byte));
            REQUIRE(plain_.initialized(byte, 1) == words_.initialized(byte));
        }
    }

    std::map<FindingKind, unsigned> kinds;
    unsigned clean = 0, lane_races = 0, lanes_unknown = 0, lanes_unreleased = 0, lane_reads = 0, early = 0;

private:
    unsigned choose(unsigned below) { return static_cast<unsigned>(random_() % below); }
    Agent warp() { return static_cast<Agent>(choose(warps)); }
    LaneMask random_mask() { return static_cast<LaneMask>(random_()) | 1U << choose(32); }

    void expect(std::optional<ShadowFinding> fast, std::optional<ShadowFinding> plain,
                std::optional<ShadowFinding> both, std::optional<ShadowFinding> words)
    {
        const auto text = [](const std::optional<ShadowFinding>& found) {
            return found ? std::string{name_of(found->kind)} + ": " + found->message : std::string{"nothing"};
        };
        REQUIRE(text(fast) == text(words));
        REQUIRE(text(plain) == text(words));
        REQUIRE(text(both) == text(words));
        if (words) {
            ++kinds[words->kind];
            const auto says = [&](std::string_view part) { return words->message.find(part) != std::string::npos; };
            lane_races += says("of the same warp") ? 1 : 0;
            lanes_unknown += says("have waited for it") ? 1 : 0;
            lanes_unreleased += says("has not synchronized since") ? 1 : 0;
            lane_reads += says("of the same warp") && says("read it") ? 1 : 0;
        } else {
            ++clean;
        }
    }

    void barrier()
    {
        SyncPoint point;
        const Agent first = warp();
        for (unsigned i = 0; i < warps; ++i) {
            clocks_.release(static_cast<Agent>((first + i) % warps), point);
        }
        const unsigned some = choose(4) == 0 ? choose(warps) : warps;
        for (unsigned i = 0; i < some; ++i) {
            clocks_.acquire(static_cast<Agent>((first + i) % warps), point);
        }
        if (some == warps && choose(4) != 0) {
            clocks_.begin_interval(point);
        }
    }

    void pass_on()
    {
        SyncPoint& point = points_[choose(2)];
        const LanesOfWarp lanes{choose(2) == 0 ? all_lanes : random_mask(), all_lanes};
        if (choose(2) == 0) {
            clocks_.release(warp(), point, lanes);
        } else {
            clocks_.acquire(warp(), point, lanes);
        }
    }

    void begin_async()
    {
        if (async_.size() >= 6) {
            return;
        }
        const Agent agent = clocks_.begin_async(warp(), {choose(2) == 0 ? all_lanes : random_mask(), all_lanes});
        async_.push_back(agent);
        if (choose(3) == 0) {
            begin_lanes(agent);
        }
        for (unsigned i = choose(3); i > 0; --i) {
            const std::uint32_t offset = choose(shared_bytes / 4 + 2) * 4, size = choose(80) * 4;
            const bool writes = choose(2) == 0;
            for (SharedShadow* shadow : {&fast_, &plain_, &both_}) {
                shadow->begin(agent, offset, size, writes, "copy", agent);
            }
            words_.begin(agent, offset, size, writes, "copy", agent);
        }
    }

    /// A copy of single lanes: rows, columns, or anywhere.
    void begin_lanes(Agent agent)
    {
        const std::uint32_t size = 4U << choose(3);
        const std::uint32_t places = shared_bytes / size, first = choose(places), stride = choose(4) * choose(9);
        const bool anywhere = choose(4) == 0;
        const LaneMask lanes = choose(2) == 0 ? all_lanes : random_mask();
        std::array<std::uint32_t, warp_size> offsets{};
        std::set<std::uint32_t> places_used;
        for_each_lane(lanes, [&](unsigned lane) {
            const std::uint32_t place = anywhere ? choose(places) : (first + lane * stride) % places;
            offsets[lane] = place * size;
            places_used.insert(place);
        });
        for (SharedShadow* shadow : {&fast_, &plain_, &both_}) {
            shadow->begin_lanes(agent, offsets.data(), lanes, size, "lanes' copy", agent);
        }
        while (!places_used.empty()) {
            const std::uint32_t begin = *places_used.begin();
            std::uint32_t end = begin;
            while (places_used.erase(end) != 0) {
                ++end;
            }
            words_.begin(agent, begin * size, (end - begin) * size, true, "lanes' copy", agent);
        }
    }

    void end_async()
    {
        if (async_.empty()) {
            return;
        }
        const auto place = async_.begin() + choose(static_cast<unsigned>(async_.size()));
        const Agent agent = *place;
        async_.erase(place);
        for (SharedShadow* shadow : {&fast_, &plain_, &both_}) {
            shadow->end(agent);
        }
        words_.end(agent);
        SyncPoint done;
        clocks_.complete_async(agent, done);
        clocks_.end_async(agent);
        if (const unsigned how = choose(4); how == 1) {
            const Agent by = warp();
            clocks_.acquire_own(by, done, agent, choose(2) == 0 ? all_lanes : random_mask(), all_lanes);
        } else if (how != 0) {
            clocks_.acquire(warp(), done, {how == 2 ? all_lanes : random_mask(), all_lanes});
        }
    }

    void mark_barrier()
    {
        const std::uint32_t offset = choose(8) * 128;
        const bool is_barrier = choose(3) == 0;
        for (SharedShadow* shadow : {&fast_, &plain_, &both_}) {
            shadow->mark_barrier(offset, is_barrier);
        }
        words_.mark_barrier(offset, is_barrier);
    }

    Access random_access()
    {
        Access access;
        access.agent = warp();
        access.writes = choose(3) == 0;
        access.atomic = choose(8) == 0;
        access.size = 1U << choose(5);
        access.what = access.writes ? "st" : "ld";
        access.line = choose(3);
        return access;
    }

    void access_range()
    {
        Access a = random_access();
        const bool async = choose(3) != 0 && !async_.empty();
        if (async) {
            a.agent = async_[choose(static_cast<unsigned>(async_.size()))];
        }
        const std::uint32_t unit = choose(3) == 0 ? 1 : choose(2) == 0 ? 4 : 128;
        const std::uint32_t offset = choose(shared_bytes / unit + 1) * unit, size = (1 + choose(600 / unit + 1)) * unit;
        const Proxy proxy = async ? Proxy::async : Proxy::generic;
        const unsigned lane = choose(2) == 0 ? choose(32) : unsigned{Clocks::any_lane};
        const auto one = [&](SharedShadow& shadow) {
            return a.writes ? shadow.write(a.agent, offset, size, proxy, a.what, a.line, a.atomic, lane)
                            : shadow.read(a.agent, offset, size, proxy, a.what, a.line, a.atomic, nullptr, lane);
        };
        expect(one(fast_), one(plain_), one(both_),
               words_.touch(a.agent, a.writes, offset, size, proxy, a.what, a.line, a.atomic, lane));
    }

    std::array<std::uint32_t, warp_size> random_offsets(std::uint32_t size)
    {
        std::array<std::uint32_t, warp_size> offsets{};
        const std::uint32_t room = shared_bytes / size;
        const auto at = [&](std::uint32_t element) { return element % room * size; };
        const unsigned shape = choose(8);
        const std::uint32_t first = choose(2) == 0 ? choose(room) : choose(8) * 128 / size, width = 1U << choose(6);
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            switch (shape) {
                case 0:
                case 1: offsets[lane] = at(first + lane); break;                        // a row
                case 2: offsets[lane] = at(first); break;                               // a broadcast
                case 3: offsets[lane] = at(first + lane % width); break;                // rows that repeat
                case 4: offsets[lane] = at(first + lane / width); break;                // few, each for several lanes
                case 5: offsets[lane] = at(first + lane * width); break;                // a stride
                case 6: offsets[lane] = at(first + (lane + width) % warp_size); break;  // rotated
                default: offsets[lane] = at(choose(room)); break;
            }
        }
        return offsets;
    }

    static bool read_early(SharedShadow& shadow, const Access& a, const std::array<std::uint32_t, warp_size>& offsets,
                           LaneMask lanes)
    {
        LaneAddresses<std::uint32_t> found;
        add_offset(found.at, offsets.data(), 0U, lanes);
        find_shape(found, lanes, a.size);
        static const std::array<ReadSite, 3> sites{{{"ld", 0}, {"ld", 1}, {"ld", 2}}};  // as in random_access()
        return shadow.read_early(a.agent, {found.at.data(), found.low, found.high, found.stride, found.shape}, lanes,
                                 a.size, sites.at(a.line));
    }

    void access_lanes()
    {
        Access a = random_access();
        if (a.writes && !async_.empty() && choose(6) == 0) {  // cp.async
            a.agent = async_[choose(static_cast<unsigned>(async_.size()))];
            a.atomic = false;
        }
        const auto offsets = random_offsets(a.size);
        const LaneMask lanes = choose(3) != 0 ? all_lanes : random_mask();
        Values values;
        values.pattern = choose(2) == 0 ? ~0U : static_cast<std::uint32_t>(random_());
        const StoredBytes* const stored = choose(2) == 0 ? &values : nullptr;
        const auto one = [&](SharedShadow& shadow) {
            if (a.writes) {
                return shadow.write_lanes(a.agent, offsets.data(), lanes, a.size, a.what, a.line, a.atomic, stored);
            }
            if (!a.atomic && read_early(shadow, a, offsets, lanes)) {
                ++early;
                return std::optional<ShadowFinding>();
            }
            return shadow.read_lanes(a.agent, offsets.data(), lanes, a.size, a.what, a.line, a.atomic);
        };
        expect(one(fast_), one(plain_), one(both_),
               words_.touch_lanes(a.agent, a.writes, offsets.data(), lanes, a.size, a.what, a.line, a.atomic,
                                  a.writes ? stored : nullptr));
    }

    std::mt19937_64 random_;
    bool tidy_;
    Clocks clocks_{warps};
    SharedShadow fast_, plain_, both_;
    WordShadow words_;
    std::array<SyncPoint, 2> points_;
    std::vector<Agent> async_;
};

}  // namespace

TEST_CASE("the shadow of shared memory finds what its rules for single words find, in the same words")
{
    std::map<FindingKind, unsigned> kinds;
    unsigned clean = 0, lane_races = 0, lanes_unknown = 0, lanes_unreleased = 0, lane_reads = 0, early = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        Walk walk(seed, seed % 3 == 0, seed % 2 == 0);
        for (unsigned i = 0; i < 400; ++i) {
            CAPTURE(i);
            walk.step();
        }
        walk.compare_initialized();
        for (const auto& [kind, count] : walk.kinds) {
            kinds[kind] += count;
        }
        clean += walk.clean;
        lane_races += walk.lane_races;
        lanes_unknown += walk.lanes_unknown;
        lanes_unreleased += walk.lanes_unreleased;
        lane_reads += walk.lane_reads;
        early += walk.early;
    }
    // The walks reach each rule, and the absence of a finding.
    for (const FindingKind kind :
         {FindingKind::shared_race, FindingKind::same_value_race, FindingKind::async_read_pending,
          FindingKind::stage_overwritten, FindingKind::missing_proxy_fence, FindingKind::barrier_misuse,
          FindingKind::uninitialized_shared}) {
        CAPTURE(name_of(kind));
        CHECK(kinds[kind] > 100);
    }
    CHECK(lane_races > 100);
    CHECK(lanes_unknown > 30);
    CHECK(lanes_unreleased > 30);
    CHECK(lane_reads > 100);
    CHECK(early > 500);
    CHECK(clean > 5000);
}

TEST_CASE("a load of what was written before the interval is only noted, also after stores to other lines")
{
    constexpr std::uint32_t line = 128;
    for (const bool all_wait : {true, false}) {
        CAPTURE(all_wait);
        Clocks clocks(2);
        SharedShadow shadow(4096, clocks);
        const auto store = [&](std::uint32_t offset) {
            std::array<std::uint32_t, warp_size> offsets{};
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                offsets[lane] = offset + 4 * lane;
            }
            CHECK_FALSE(shadow.write_lanes(0, offsets.data(), all_lanes, 4, "st", 1));
        };
        const auto is_noted = [&](std::uint32_t offset) {
            static const ReadSite load{"ld", 2};
            return shadow.read_early(0, {.low = offset, .high = offset + 124, .stride = 4}, all_lanes, 4, load);
        };
        store(0);
        store(line);
        SyncPoint point;
        clocks.release(0, point);
        clocks.release(1, point);
        clocks.begin_interval(point);
        // If the lanes do not wait together, one may not know what another has stored.
        clocks.acquire(0, point, {all_wait ? all_lanes : 0xFFFF, all_lanes});
        clocks.acquire(1, point);
        if (all_wait) {
            CHECK(is_noted(0));
        }
        store(2 * line);
        CHECK(clocks.lanes_differ(0));
        CHECK(is_noted(line) == all_wait);
        CHECK_FALSE(is_noted(2 * line));
        CHECK_FALSE(is_noted(3 * line));  // never written
    }
}

TEST_CASE("sets of readers that are dropped and collected keep their members")
{
    // More than ReaderSets keeps without collecting, with many readers of each word.
    Clocks clocks(32);
    SharedShadow fast(4096, clocks);
    WordShadow words(4096, clocks, false);
    std::mt19937_64 random(5);
    unsigned races = 0;
    for (unsigned i = 0; i < 60'000; ++i) {
        const auto agent = static_cast<Agent>(random() % 32);
        const auto offset = static_cast<std::uint32_t>(random() % 64 * 4);
        const auto line = static_cast<std::uint32_t>(random() % 5);
        const bool writes = random() % 64 == 0;
        if (random() % 40 == 0) {
            SyncPoint point;
            clocks.release(agent, point);
            clocks.acquire(static_cast<Agent>(random() % 32), point);
        }
        const auto one = writes ? fast.write(agent, offset, 4, Proxy::generic, "st", line)
                                : fast.read(agent, offset, 4, Proxy::generic, "ld", line);
        const auto two =
            words.touch(agent, writes, offset, 4, Proxy::generic, writes ? "st" : "ld", line, false, Clocks::any_lane);
        REQUIRE(one.has_value() == two.has_value());
        if (one) {
            ++races;
            REQUIRE(one->message == two->message);
        }
    }
    CHECK(races > 1000);
}

}  // namespace tessera::emulator::test
