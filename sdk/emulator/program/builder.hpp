#pragma once

// From a parsed module to a Program: places variables, assigns registers to rows, lowers instructions, and finds where
// diverged lanes join again.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/address_space.hpp"
#include "program/decoder.hpp"
#include "program/program.hpp"
#include "program/register_rows.hpp"

namespace tessera::emulator {

/// The meaning of a name in a function.
struct Symbol {
    enum class Kind : std::uint8_t {
        reg,
        memory_variable,
        shared_variable,
        dynamic_shared,
        frame_local,
        frame_parameter,
        kernel_parameter,
        function
    };
    Kind kind = Kind::reg;
    ptx::Type type = ptx::Type::none;  ///< of a register
    Ref row = no_row;                  ///< of a register
    std::uint64_t offset = 0;          ///< address, or offset in its area; alignment of dynamic shared memory
    std::uint64_t size = 0;
};

/// The variable's alignment in bytes: its own, or that of its type.
[[nodiscard]] std::uint64_t alignment_of(const ptx::Variable& variable);

/// Of a kernel's parameters (PTX ISA, "Kernel Function Parameters": from sm_70 on).
inline constexpr std::uint64_t max_parameter_bytes = 32764;

class ProgramBuilder {
public:
    ProgramBuilder(ptx::Module module, const DeviceModel& device, int device_index, AddressSpace& memory);

    /// @throws std::runtime_error with a sentence: out of memory for the variables, an unresolved symbol
    [[nodiscard]] std::unique_ptr<Program> build();

    [[nodiscard]] Ref constant_row(std::uint64_t bits, unsigned bytes);
    [[nodiscard]] Ref warp_constant(WarpConstant what, unsigned bytes, std::uint32_t offset = 0);
    [[nodiscard]] const Symbol* find(std::string_view name) const;
    [[nodiscard]] std::optional<std::uint32_t> function_index(std::string_view name) const;

    const DeviceModel& device;
    Program& program() noexcept { return *program_; }

    /// The functions that each function calls, and the module-scope shared variables it uses: for a kernel's footprint.
    struct Uses {
        std::set<std::uint32_t> calls;
        bool module_shared = false;
        bool synchronizes_clusters = false, uses_bulk_copies = false, uses_launch_control = false;
        bool uses_printf = false, uses_malloc = false;
        std::uint32_t registers = 0;  ///< alive at the same time
        std::string error;            ///< first instruction that could not be lowered
    };
    std::vector<Uses> uses;
    std::uint32_t module_shared_bytes = 0;

private:
    void place_variables();
    void initialize(const ptx::Variable& variable, std::uint64_t address);
    void describe_kernels();

    int device_index_;
    AddressSpace& memory_;
    std::unique_ptr<Program> program_;
    std::map<std::string, Symbol, std::less<>> symbols_;
    std::map<std::pair<std::uint64_t, unsigned>, Ref> constant_rows_;
};

/// Lowers one function.
class FunctionBuilder {
public:
    FunctionBuilder(ProgramBuilder& program, const ptx::Function& function, std::uint32_t index);
    void build();

    [[nodiscard]] const Symbol* find(std::string_view name) const;
    [[nodiscard]] Ref new_row(unsigned bytes);
    /// Calls `use` with the operation of a label when the function is complete.
    void when_placed(const std::string& label, std::function<void(std::uint32_t)> use);
    /// Names listed by a .branchtargets, .calltargets or .callprototype.
    [[nodiscard]] const ptx::TargetList* target_list(std::string_view label) const;
    /// Adds an operation; while one is being decoded, before that one.
    void append(const Operation& operation, const Effects& effects, const OperandRoles& roles);

    ProgramBuilder& program;
    const ptx::Function& source;
    const std::uint32_t index;

    /// Bytes of static shared variables in this function's own body (kernels only: those of other functions are the
    /// module's).
    std::uint32_t shared_bytes = 0;

private:
    void declare(const ptx::Variable& variable);
    void declare_parameters();
    void collect_targets(const ptx::Block& block);
    void lower(const ptx::Block& block);
    void lower(const ptx::Instruction& instruction);
    void survey();
    void connect();
    void mark_names_of_late_registers();

    FunctionCode& code() noexcept { return program.program().functions[index]; }

    struct Scope {
        std::map<std::string, Symbol, std::less<>> names;
        std::map<std::string, const ptx::Variable*, std::less<>> ranges;  // %r<12>
    };
    std::vector<Scope> scopes_;
    mutable std::map<const ptx::Variable*, std::deque<Symbol>> range_symbols_;  // by number; they keep their places
    mutable RegisterRows rows_;  // the survey numbers registers as they are found
    std::map<std::string, ptx::TargetList, std::less<>> targets_;
    struct Use {
        std::vector<std::uint32_t> scope;  // ids of the open blocks, outermost first
        std::string label;
        std::function<void(std::uint32_t)> use;
        const ptx::Instruction* instruction;
        std::uint32_t position;  // in the survey
    };
    [[nodiscard]] std::optional<std::uint32_t> place_of(const Use& use) const;
    std::vector<Use> label_uses_;
    std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> placed_;  // (block id, label)
    std::vector<std::uint32_t> open_blocks_;
    std::uint32_t next_block_ = 0;
    bool surveys_ = false;  // registers have numbers instead of rows; nothing is added to the program
    const ptx::Instruction* current_ = nullptr;
};

/// A branch's payload, used by the pass that finds joins.
struct BranchPayload : Payload {
    std::vector<std::uint32_t> targets;  ///< operations; one, or those of a brx.idx
    std::uint32_t join = 0xFFFFFFFF;     ///< operation where the diverged lanes join again
};

/// Operation that computes the local address of a .local variable: operand 0 = frame's base + operand 1.
[[nodiscard]] Execute local_address_operation(unsigned bytes) noexcept;

/// Operation after the last one of a function: returns.
[[nodiscard]] Execute end_of_function_operation() noexcept;

/// Sets `join` of the branches in [first, last) to their immediate post-dominators and marks the operations there, and
/// those after calls.
void find_joins(Program& program, std::uint32_t first, std::uint32_t last);

/// Sets Operation::untested in [first, last), the operations of a function.
void mark_untested_waits(Program& program, std::uint32_t first, std::uint32_t last);

/// Sets Operation::base in [first, last), the operations of a function.
void mark_known_bases(Program& program, std::uint32_t first, std::uint32_t last);

/// For each operation of the function [first, last): whether a path of at least one step leads from it to `target`.
[[nodiscard]] std::vector<bool> operations_before(const Program& program, std::uint32_t first, std::uint32_t last,
                                                  std::uint32_t target);

}  // namespace tessera::emulator
