#include "audit.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <unordered_map>

#include "machine/cluster.hpp"
#include "machine/grid.hpp"
#include "machine/warp.hpp"
#include "program/builder.hpp"

namespace tessera::emulator::test {

namespace {

std::mutex mutex;
std::set<std::string> problems;
std::unordered_map<const Operation*, Execute> originals;

void problem(const Operation& operation, const std::string& what)
{
    const std::lock_guard lock(mutex);
    problems.insert("\"" + (operation.source == nullptr ? "(inserted)" : operation.source->text) + "\" " + what);
}

/// What becomes visible of an execution, besides registers.
struct Visible {
    std::uint64_t shared_reads, shared_writes, global_reads, global_writes, mmas, pending, findings;

    explicit Visible(const Warp& warp)
        : shared_reads(warp.cluster.statistics.shared_read_bytes),
          shared_writes(warp.cluster.statistics.shared_write_bytes),
          global_reads(warp.cluster.statistics.global_read_bytes),
          global_writes(warp.cluster.statistics.global_write_bytes),
          mmas(warp.cluster.statistics.mma_issued),
          pending(0),
          findings(warp.cluster.grid.report.total())
    {
        (void)warp.cluster.any_pending([&](const AsyncOperation&) {
            ++pending;
            return false;
        });
    }
};

bool accesses(const Effects& effects, bool reads, std::initializer_list<Space> spaces)
{
    return std::ranges::any_of(effects.memory_effects(), [&](const MemoryEffect& memory) {
        return memory.direction != (reads ? Direction::write : Direction::read) &&
               std::ranges::find(spaces, memory.space) != spaces.end();
    });
}

void check_visible(const Operation& operation, const Effects& effects, const Visible& before, const Visible& after)
{
    const auto check = [&](bool happened, bool declared, const char* what) {
        if (happened && !declared) {
            problem(operation, std::string(what) + ", which its effects do not say");
        }
    };
    check(after.shared_reads > before.shared_reads, accesses(effects, true, {Space::shared, Space::generic}),
          "reads shared memory");
    check(after.shared_writes > before.shared_writes, accesses(effects, false, {Space::shared, Space::generic}),
          "writes shared memory");
    check(after.global_reads > before.global_reads,
          accesses(effects, true, {Space::global, Space::generic, Space::constant}), "reads global memory");
    check(after.global_writes > before.global_writes, accesses(effects, false, {Space::global, Space::generic}),
          "writes global memory");
    check(after.pending > before.pending, effects.unit != AsyncUnit::none, "starts asynchronous work");
    check(after.mmas > before.mmas, effects.unit == AsyncUnit::tensor || operation.kind == InstructionClass::tensor,
          "issues an MMA");
}

void check_step(const Operation& operation, const Effects& effects, Step step, Wait::Kind wait)
{
    const SyncObject object = effects.sync.object;
    const bool returns = effects.control == Flow::leave || effects.control == Flow::end;
    bool right = true;
    switch (step) {
        case Step::next:
        case Step::yield: break;
        case Step::jump: right = effects.control != Flow::next && effects.control != Flow::end; break;
        case Step::ended: right = returns; break;
        case Step::later: right = effects.meets_clusters; break;
        case Step::wait:
            right = effects.may_wait;
            switch (wait) {
                case Wait::Kind::none:  // lanes have joined
                case Wait::Kind::lanes: right = right && effects.lanes != Convergence::any; break;
                case Wait::Kind::named_barrier: right = right && object == SyncObject::named_barrier; break;
                case Wait::Kind::cluster_barrier: right = right && object == SyncObject::cluster_barrier; break;
                case Wait::Kind::mbarrier: right = right && object == SyncObject::mbarrier; break;
                case Wait::Kind::tensor_memory: right = right && object == SyncObject::tensor_memory; break;
                default: break;
            }
            right = right && (wait == Wait::Kind::none || wait == Wait::Kind::lanes || effects.sync.waits ||
                              effects.unit == AsyncUnit::tensor);
            break;
    }
    if (!right) {
        problem(operation, "ends with step " + std::to_string(static_cast<int>(step)) + ", wait " +
                               std::to_string(static_cast<int>(wait)) + ", which its effects do not say");
    }
}

/// The registers of a frame, with garbage where an operation may not look.
class Registers {
public:
    Registers(const Program& program, std::uint32_t operation, Frame& frame, LaneMask active)
        : frame_(frame), active_(active), before_(frame.function->register_bytes)
    {
        std::memcpy(before_.data(), frame.registers, before_.size());
        const OperandRoles roles = program.effects.roles(operation);
        for (const std::span<const OperandRole> sources : {roles.addresses, roles.reads}) {
            for (const OperandRole& role : sources) {
                reads_.insert(role.row);
            }
        }
        for (const OperandRole& role : roles.writes) {
            writes_.insert(role.row);
        }
        for (std::uint32_t i = frame.function->entry; i < frame.function->end; ++i) {
            const OperandRoles others = program.effects.roles(i);
            for (const std::span<const OperandRole> some : {others.reads, others.writes}) {
                for (const OperandRole& role : some) {
                    if (role.later) {
                        late_.insert(role.row);
                    }
                }
            }
        }
        for (const RegisterRow& row : frame.function->rows) {
            if (!reads_.contains(row.offset) && !late_.contains(row.offset)) {
                for_each_lane(active, [&](unsigned lane) { spoil(row, lane); });
            }
        }
    }

    /// Checks what the operation did to the registers and takes the garbage away again. `done`: it was executed.
    void check(const Operation& operation, bool done, bool faulty)
    {
        for (const RegisterRow& row : frame_.function->rows) {
            if (late_.contains(row.offset)) {
                continue;
            }
            const bool written = writes_.contains(row.offset), read = reads_.contains(row.offset);
            for_each_lane(active_, [&](unsigned lane) {
                const bool as_left = read ? same(row, lane) : spoiled(row, lane);
                if (!written && !as_left) {
                    problem(operation, "writes a register that it does not name as a destination");
                }
                if (written && !read && done && !faulty && row.bytes >= 4 && as_left) {
                    problem(operation, "does not write a destination in every lane");
                }
                // A written predicate, or a small value, may be equal to the garbage.
                const bool unknown = written && done && row.bytes < 4;
                if (!read && !unknown && (as_left || !done)) {
                    restore(row, lane);
                }
            });
            for_each_lane(done ? ~active_ : 0, [&](unsigned lane) {
                if (!same(row, lane) && !faulty) {
                    problem(operation, "changes a register in a lane that does not execute it");
                }
            });
        }
    }

private:
    [[nodiscard]] static std::byte garbage(std::uint32_t place) { return static_cast<std::byte>(place * 167 + 0x5B); }
    [[nodiscard]] LaneMask& predicate(const RegisterRow& row) const
    {
        return *reinterpret_cast<LaneMask*>(frame_.registers + row.offset);
    }
    [[nodiscard]] LaneMask predicate_before(const RegisterRow& row) const
    {
        LaneMask value = 0;
        std::memcpy(&value, before_.data() + row.offset, sizeof value);
        return value;
    }
    void spoil(const RegisterRow& row, unsigned lane)
    {
        if (row.bytes == 0) {
            predicate(row) ^= bit(lane);
        }
        for (std::uint32_t at = lane * row.bytes; at < (lane + 1) * row.bytes; ++at) {
            frame_.registers[row.offset + at] = garbage(row.offset + at);
        }
    }
    [[nodiscard]] bool spoiled(const RegisterRow& row, unsigned lane) const
    {
        bool result = row.bytes != 0 || ((predicate(row) ^ predicate_before(row)) & bit(lane)) != 0;
        for (std::uint32_t at = lane * row.bytes; at < (lane + 1) * row.bytes; ++at) {
            result = result && frame_.registers[row.offset + at] == garbage(row.offset + at);
        }
        return result;
    }
    [[nodiscard]] bool same(const RegisterRow& row, unsigned lane) const
    {
        if (row.bytes == 0) {
            return ((predicate(row) ^ predicate_before(row)) & bit(lane)) == 0;
        }
        const std::size_t at = row.offset + std::size_t{lane} * row.bytes;
        return std::memcmp(frame_.registers + at, before_.data() + at, row.bytes) == 0;
    }
    void restore(const RegisterRow& row, unsigned lane)
    {
        if (row.bytes == 0) {
            predicate(row) = (predicate(row) & ~bit(lane)) | (predicate_before(row) & bit(lane));
            return;
        }
        const std::size_t at = row.offset + std::size_t{lane} * row.bytes;
        std::memcpy(frame_.registers + at, before_.data() + at, row.bytes);
    }

    Frame& frame_;
    LaneMask active_;
    std::vector<std::byte> before_;
    std::set<Ref> reads_, writes_, late_;
};

Step execute_audited(Warp& warp, const Operation& operation, LaneMask active)
{
    const Program& program = warp.cluster.grid.program;
    const auto index = static_cast<std::uint32_t>(&operation - warp.cluster.grid.operations);
    const Effects& effects = program.effects.of(index);
    const Visible before(warp);
    Registers registers(program, index, *warp.split().frame, active);
    const Step step = originals.at(&operation)(warp, operation, active);
    const Visible after(warp);
    const bool done = step != Step::wait && step != Step::later;
    registers.check(operation, done, after.findings != before.findings);
    check_step(operation, effects, step, step == Step::wait ? warp.split().wait.kind : Wait::Kind::none);
    if (done) {
        check_visible(operation, effects, before, after);
    }
    return step;
}

}  // namespace

void audit(const LoadedModule& module)
{
    for (std::size_t set = 0; set < handler_sets; ++set) {
        // Of a test, and before its first launch.
        auto& operations =
            const_cast<std::vector<Operation>&>(module.program().operations_with(static_cast<Handlers>(set)));
        for (Operation& operation : operations) {
            originals[&operation] = operation.execute;
            operation.execute = execute_audited;
        }
    }
}

std::string take_audit_problems()
{
    const std::lock_guard lock(mutex);
    std::string text;
    for (const std::string& line : problems) {
        text += line + "\n";
    }
    problems.clear();
    return text;
}

}  // namespace tessera::emulator::test
