#pragma once

// Findings that an instruction has reported before. A loop may report one a million times: then it is only counted.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/lanes.hpp"
#include "checks/report.hpp"

namespace tessera::emulator {

/// Of one cluster. Not thread-safe.
class RepeatedFindings {
public:
    struct Key {
        const void* instruction;
        std::uint64_t detail;  ///< what tells findings of this kind and instruction apart, besides the CTA
        std::uint32_t cta;
        FindingKind kind;
        friend bool operator==(const Key&, const Key&) = default;
    };

    [[nodiscard]] bool contains(const Key& key) const { return known_.contains(key); }
    /// Counts a finding. Returns false, and does nothing, if it has not been added.
    bool count(const Key& key, LaneMask lanes)
    {
        const auto found = known_.find(key);
        if (found == known_.end()) {
            return false;
        }
        ++found->second.count;
        found->second.accesses += static_cast<unsigned>(std::max(std::popcount(lanes), 1));
        return true;
    }
    void add(const Key& key, Report::Known finding) { known_[key] = {finding}; }
    /// Adds the counts to the report's.
    void move_to(Report& report)
    {
        for (const auto& [key, repeated] : known_) {
            if (repeated.count != 0) {
                report.count(repeated.finding, repeated.count, repeated.accesses);
            }
        }
        known_.clear();
    }

private:
    struct Repeated {
        Report::Known finding;
        std::uint64_t count = 0, accesses = 0;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const noexcept
        {
            const auto address = reinterpret_cast<std::uintptr_t>(key.instruction);
            const std::uint64_t mixed = (address ^ key.detail * 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9;
            return mixed ^ (mixed >> 31) ^ (std::uint64_t{key.cta} << 8) ^ static_cast<std::uint64_t>(key.kind);
        }
    };
    std::unordered_map<Key, Repeated, Hash> known_;
};

}  // namespace tessera::emulator
