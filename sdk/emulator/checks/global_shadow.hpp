#pragma once

// What one cluster has written to global memory in this launch, as far as its bulk copies are concerned.
//
// Two rules of the PTX ISA are checked here. "Async proxy": cp.async.bulk accesses memory through the async proxy, and a
// fence.proxy.async is needed between an ordinary write and a bulk copy that reads it; tensor maps are read through the
// tensormap proxy, and need a release and an acquire of fence.proxy.tensormap::generic. "cp.async.bulk.wait_group": the
// writes of a bulk store are visible to the executing thread after a wait for the whole group; .read only says that the
// source has been read.
//
// Order between clusters is not known here. So an ordinary write counts only if it is known to be ordered before the copy,
// and a bulk store only for threads of its own CTA (of its cluster, if the grid has no other).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "checks/clocks.hpp"
#include "checks/shared_shadow.hpp"

namespace tessera::emulator {

class GlobalShadow {
public:
    /// `warps_per_cta`: agents of each CTA. `alone`: the grid has no other cluster.
    GlobalShadow(const Clocks& clocks, unsigned warps_per_cta, bool alone);

    /// A lane accesses [address, address + size) through the generic proxy. `strong`: atomic, volatile, relaxed or
    /// stronger. `what` must outlive the shadow.
    /// `known` says which findings need no message.
    std::optional<ShadowFinding> read(Agent warp, std::uint64_t address, std::uint32_t size, bool strong,
                                      const char* what, const KnownFindings* known = nullptr) const;
    std::optional<ShadowFinding> write(Agent warp, unsigned lane, std::uint64_t address, std::uint32_t size,
                                       bool strong, const char* what, std::uint32_t ptx_line,
                                       const KnownFindings* known = nullptr);

    /// `issuer` starts a bulk copy that reads this range.
    std::optional<ShadowFinding> bulk_load(Agent issuer, std::uint64_t address, std::uint64_t size, const char* what,
                                           const KnownFindings* known = nullptr) const;
    /// `async`, issued by CTA `rank`, will write this range: the bytes of each 16 in `byte_mask`. Call when it is issued.
    void bulk_store(Agent async, std::uint32_t rank, std::uint64_t address, std::uint64_t size, std::uint16_t byte_mask,
                    const char* what, std::uint32_t ptx_line);

    /// fence.proxy.tensormap::generic.acquire of the map at `address`.
    void acquire_map(Agent warp, std::uint64_t address);
    /// A tensor copy that `warp` issues reads the map at `address`.
    std::optional<ShadowFinding> use_map(Agent warp, std::uint64_t address, const char* what,
                                         const KnownFindings* known = nullptr) const;

    /// Something was written; by a bulk store.
    [[nodiscard]] bool written() const noexcept { return !pages_.empty(); }
    [[nodiscard]] bool bulk_stored() const noexcept { return low_ < high_; }

private:
    static constexpr unsigned granule = 16, page_bytes = 4096;
    /// The last write to 16 bytes.
    struct Cell {
        std::uint32_t time = 0;
        Agent agent = 0;
        std::uint16_t bytes = 0;  // written by it, a bit for each
        std::uint16_t site = 0;
        std::uint8_t lane = 0;
        std::uint8_t rank = 0;  // of a bulk store: the CTA that issued it
        bool bulk = false;
    };
    using Page = std::array<Cell, page_bytes / granule>;
    struct Site {
        const char* what;
        std::uint32_t line;
    };
    /// A warp has acquired a map: what it contained then.
    struct Acquired {
        Epoch fence;
        std::array<Epoch, 8> writes;
    };

    [[nodiscard]] const Cell* find(std::uint64_t address) const;
    [[nodiscard]] Cell& cell(std::uint64_t address);
    /// Calls body(address of the granule, bits of its bytes) until it returns false.
    template <typename Body>
    static void for_each_granule(std::uint64_t address, std::uint64_t size, Body&& body);
    [[nodiscard]] std::uint16_t site(const char* what, std::uint32_t line);
    [[nodiscard]] bool in_flight(const Cell& cell, Agent warp) const;
    [[nodiscard]] std::string name(const Cell& cell) const;
    /// A conflict with the write of `cell`.
    template <typename Text>
    [[nodiscard]] ShadowFinding conflict(FindingKind kind, const Cell& cell, const KnownFindings* known,
                                         Text&& text) const
    {
        const std::uint32_t line = sites_[cell.site].line;
        return {kind, known != nullptr && known->knows(kind, line) ? std::string() : text(), line};
    }

    const Clocks& clocks_;
    unsigned warps_per_cta_;
    bool alone_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
    mutable std::uint64_t recent_number_ = ~std::uint64_t{0};
    mutable Page* recent_ = nullptr;
    std::uint64_t low_ = ~std::uint64_t{0}, high_ = 0;                  // of all bulk stores
    std::uint64_t written_low_ = ~std::uint64_t{0}, written_high_ = 0;  // of all ordinary writes
    std::vector<Site> sites_;
    std::uint16_t recent_site_ = 0;
    std::unordered_map<std::uint64_t, std::vector<Acquired>> acquired_;  // by the map's address
};

}  // namespace tessera::emulator
