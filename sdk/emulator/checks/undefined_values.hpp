#pragma once

// Registers without a defined value. There are two kinds.
// - Values read from memory that was never written. Compilers load ahead and then drop the value, so the load is no
//   fault. It becomes one when the value is used, and is then reported with the place of the load.
// - Values that a wgmma is still computing. Compilers move them, because nothing in the PTX text says that a register is
//   in flight. Any other use before the wgmma was waited for is a fault. After the wait, the value is defined.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/lanes.hpp"
#include "base/registers.hpp"
#include "checks/report.hpp"

namespace tessera::emulator {

struct Frame;
struct Operation;

/// The undefined registers of one warp. Usually there are none, and then this costs nothing.
class UndefinedValues {
public:
    using OriginId = std::uint32_t;

    /// The instruction that read memory that was never written, or that is in flight.
    struct Origin {
        const Operation* operation;
        FindingKind kind;
        FindingText text;  ///< of its first such read
    };

    /// The undefined lanes of a register, and the instruction that the first of them comes from.
    struct Lanes {
        LaneMask mask = 0;
        OriginId origin = 0;
        std::uint64_t until = 0;  ///< in flight: defined once so many wgmmas of the warp were waited for
        bool masked = false;      ///< some of the bits are defined: `and` cleared them, or `bfi` wrote them
    };

    [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
    [[nodiscard]] Lanes of(const Frame* frame, Ref row) const noexcept;
    /// Of the register's lanes in `written`, those in `undefined` have no value from now on, and the others have one.
    void write(const Frame* frame, Ref row, LaneMask written, Lanes undefined);
    /// So many wgmmas of the warp were waited for.
    void waited(std::uint64_t wgmmas);
    /// Lanes of `from` continue in `to`, a frame of the same function.
    void move(const Frame* from, const Frame* to, LaneMask lanes);
    /// The registers of the frame no longer exist.
    void forget(const Frame* frame);

    /// The origin for an instruction. `message()` is called if it is new.
    template <typename Message>
    [[nodiscard]] OriginId origin(const Operation& operation, FindingKind kind, Message&& message)
    {
        for (std::size_t i = 0; i < origins_.size(); ++i) {
            if (origins_[i].operation == &operation && origins_[i].kind == kind) {
                return static_cast<OriginId>(i);
            }
        }
        origins_.push_back({&operation, kind, message()});
        return static_cast<OriginId>(origins_.size() - 1);
    }
    [[nodiscard]] const Origin& origin(OriginId id) const noexcept { return origins_[id]; }

private:
    struct Row {
        const Frame* frame;
        Ref row;
        Lanes lanes;
    };
    std::vector<Row> rows_;        // few, in no order
    std::vector<Origin> origins_;  // at most one per instruction and kind
};

}  // namespace tessera::emulator
