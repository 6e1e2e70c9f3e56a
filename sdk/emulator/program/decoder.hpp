#pragma once

// Lowers one ptx::Instruction to an Operation. Each family of instructions (execute/*.cpp) has a table of opcodes with
// a function that reads modifiers and operands through Decoder. Anything that the function does not read is an error,
// so nothing is silently ignored. Decoder notes how each operand is used; what else the operation does is for the family
// to fill in: see program/effects.hpp.

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/device_model.hpp"
#include "program/effects.hpp"
#include "program/operation.hpp"
#include "program/program.hpp"

namespace tessera::emulator {

class FunctionBuilder;
struct Symbol;

/// The instruction is unknown or invalid; the message names the wrong part.
class DecodeError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// [base + offset] as an operand: the address is base's value in the lane (if any) plus `offset`, relative to an
/// anchor.
struct AddressRef {
    enum class Anchor : std::uint8_t {
        absolute,          ///< the sum is the address
        kernel_parameter,  ///< bytes into the launch's parameter block
        frame_parameter,   ///< bytes into the frame's .param area
        frame_local,       ///< bytes into the frame's .local area
    };
    Anchor anchor = Anchor::absolute;
    Ref base = no_row;
    bool wide = true;  ///< base holds 64-bit values, not 32-bit ones
    std::int64_t offset = 0;

    bool operator==(const AddressRef&) const = default;
};

class Decoder {
public:
    Decoder(FunctionBuilder& function, const ptx::Instruction& instruction, Operation& operation);

    // --- modifiers: each is taken once; at the end all must have been taken ---
    // Returns true and takes ".name" if it is present.
    bool take(std::string_view name);
    /// Takes one of `names`, if present; else returns an empty text.
    std::string_view take_one_of(std::initializer_list<std::string_view> names);
    /// Takes the first remaining type. A second call takes the second type (cvt, mma: up to four).
    std::optional<ptx::Type> take_type();
    /// @throws DecodeError if there is none
    ptx::Type require_type();
    /// Takes the first remaining modifier that starts with `prefix`; returns it without the prefix. Empty if there is
    /// none.
    std::optional<std::string> take_prefixed(std::string_view prefix);
    /// Takes hints on caching or scheduling: .L1::*, .L2::*, .level::*, .ca .cg .cs .cv .cop .lu .wb .wt, .nc, .uni.
    void take_cache_hints();
    /// Takes .cta, .cluster, .gpu or .sys.
    Scope take_scope();
    [[nodiscard]] std::vector<std::string> remaining() const;

    // --- operands ---
    [[nodiscard]] std::size_t operands() const noexcept { return instruction_.operands.size(); }
    [[nodiscard]] const ptx::Operand& operand(std::size_t index) const;
    /// Row to read a value of `type` from: register of exactly this size, special register, immediate (converted to the
    /// type), address of a variable or function. Negation (-r, !p) is resolved for immediates and refused for registers, except for
    /// predicates: see read_predicate.
    Ref read(std::size_t index, ptx::Type type);
    Ref read(const ptx::Operand& operand, ptx::Type type);
    /// The same, of an operand whose value matters in `lanes` only.
    Ref read_in_lanes(const ptx::Operand& operand, ptx::Type type, LaneMask lanes);
    /// Row to write to: a register of exactly the size of `type`; a scratch row for the sink "_".
    Ref write(std::size_t index, ptx::Type type);
    Ref write(const ptx::Operand& operand, ptx::Type type);
    /// For p|q as destination: the second predicate's row; no_row if the operand has none.
    Ref write_second(std::size_t index);
    struct Predicate {
        Ref row = no_row;
        bool negated = false;
    };
    Predicate read_predicate(std::size_t index);
    /// {a, b, c, ...}, or a single operand as a vector of one.
    std::vector<Ref> read_vector(std::size_t index, ptx::Type type);
    std::vector<Ref> write_vector(std::size_t index, ptx::Type type);
    [[nodiscard]] bool is_vector(std::size_t index) const;
    [[nodiscard]] bool is_register(std::size_t index) const;
    [[nodiscard]] bool is_sink(std::size_t index) const;
    AddressRef address(std::size_t index);
    AddressRef address(const ptx::Operand& operand);
    /// An integer that must be constant.
    [[nodiscard]] std::optional<std::int64_t> constant(std::size_t index) const;
    /// The declared type of the register.
    [[nodiscard]] ptx::Type declared_type(std::size_t index) const;
    /// Row for a constant value, the same in every lane.
    Ref constant_row(std::uint64_t bits, ptx::Type type);
    /// Row for temporary values of this function.
    Ref scratch_row(unsigned bytes);

    /// Gives the operation its payload.
    template <typename P>
    P& emplace_payload(P payload = {})
    {
        auto owned = std::make_unique<P>(std::move(payload));
        P& result = *owned;
        own(std::move(owned));
        return result;
    }

    [[nodiscard]] const ptx::Instruction& instruction() const noexcept { return instruction_; }
    [[nodiscard]] Operation& operation() noexcept { return operation_; }
    [[nodiscard]] const DeviceModel& device() const noexcept;
    /// The module's .target: "sm_120a".
    [[nodiscard]] std::string_view target() const noexcept;
    [[nodiscard]] FunctionBuilder& function() noexcept { return function_; }
    /// What the operation does. Operands that are read and written are in roles().
    [[nodiscard]] Effects& effects() noexcept { return effects_; }
    /// Declares that all lanes of the warp that have not exited execute the instruction together.
    void mark_aligned();
    /// The operands that were asked for so far.
    [[nodiscard]] OperandRoles roles() const noexcept { return {addresses_, reads_, writes_}; }
    /// Declares that asynchronous work uses these registers after the instruction was issued. Warp::run then calls
    /// access_late_registers() before each other operation of the function that names one of them.
    void mark_late_registers(std::span<const Ref> rows);
    /// @throws DecodeError(message)
    [[noreturn]] void fail(const std::string& message) const;
    /// @throws DecodeError naming the first modifier that was not taken
    void finish() const;

private:
    void own(std::unique_ptr<Payload> payload);
    void expect_size(const ptx::Operand& operand, const Symbol& symbol, ptx::Type type) const;
    Ref find_row_to_read(const ptx::Operand& operand, ptx::Type type);
    Ref find_row_to_write(const ptx::Operand& operand, ptx::Type type);

    FunctionBuilder& function_;
    const ptx::Instruction& instruction_;
    Operation& operation_;
    std::vector<bool> taken_;
    Effects effects_;
    std::vector<OperandRole> addresses_, reads_, writes_;
};

/// Fills `operation.execute`, its operands and payload, and `kind`; and Decoder::effects().
using Decode = void (*)(Decoder& decoder, Operation& operation);

struct InstructionEntry {
    std::string_view opcode;  ///< text before the first dot: "cp", "tcgen05", "mbarrier"
    Decode decode;
};

// The families. An opcode is in one table only. Opcodes whose forms belong to several families ("cp", "fence", "red"
// ...) are decoded by a function that distinguishes them.
[[nodiscard]] std::span<const InstructionEntry> integer_instructions();   // execute/integer.cpp
[[nodiscard]] std::span<const InstructionEntry> floating_instructions();  // execute/floating.cpp
[[nodiscard]] std::span<const InstructionEntry>
conversion_instructions();  // execute/conversion.cpp: cvt, mov, pack, prmt ...
[[nodiscard]] std::span<const InstructionEntry>
control_instructions();  // execute/control.cpp: bra, call, ret, exit, trap ...
[[nodiscard]] std::span<const InstructionEntry>
memory_instructions();  // execute/memory.cpp: ld, st, atom, red, cvta, isspacep, mapa ...
[[nodiscard]] std::span<const InstructionEntry>
barrier_instructions();  // execute/barrier.cpp: bar, barrier, mbarrier, fence, membar
[[nodiscard]] std::span<const InstructionEntry>
warp_instructions();  // execute/warp_collective.cpp: shfl, vote, match, redux, elect, activemask
[[nodiscard]] std::span<const InstructionEntry>
matrix_instructions();  // execute/matrix.cpp: ldmatrix, stmatrix, movmatrix, mma, wmma
[[nodiscard]] std::span<const InstructionEntry>
copy_instructions();  // execute/copy.cpp: cp.*, prefetch, tensormap, st.async family helpers
[[nodiscard]] std::span<const InstructionEntry> wgmma_instructions();    // execute/wgmma.cpp: wgmma, setmaxnreg
[[nodiscard]] std::span<const InstructionEntry> tcgen05_instructions();  // execute/tcgen05.cpp
[[nodiscard]] std::span<const InstructionEntry>
launch_control_instructions();  // execute/launch_control.cpp: clusterlaunchcontrol, griddepcontrol

/// @throws DecodeError unless the instruction has `count` operands
void expect_operands(const Decoder& decoder, std::size_t count);
/// @throws DecodeError unless it has `low` to `high` operands
void expect_operands(const Decoder& decoder, std::size_t low, std::size_t high);
/// @throws DecodeError unless the device has this compute capability (100 for sm_100)
void expect_capability(const Decoder& decoder, unsigned capability, std::string_view what);

}  // namespace tessera::emulator
