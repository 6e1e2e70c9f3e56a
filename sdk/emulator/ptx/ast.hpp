#pragma once

// PTX text as a tree: the parser makes it and the program builder reads it. Names follow the PTX ISA.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tessera::emulator::ptx {

/// A fundamental type (PTX ISA "Fundamental Types"). `none` where a declaration or modifier has no type.
enum class Type : std::uint8_t {
    none,
    pred,
    b8,
    b16,
    b32,
    b64,
    b128,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    f16,
    f16x2,
    bf16,
    bf16x2,
    f32,
    f64,
    f32x2,
    tf32,
    e4m3,
    e5m2,
    e4m3x2,
    e5m2x2,
    e2m3x2,
    e3m2x2,
    e2m1x2,
    ue8m0x2,
    e2m3,
    e3m2,
    e2m1,
    u16x2,
    s16x2,
    u8x4,
    s8x4,
    texref,
    samplerref,
    surfref,
};

/// Size in bytes of one value of `type`; 0 for `none` and `pred`.
[[nodiscard]] std::size_t size_of(Type type) noexcept;
/// "f32"
[[nodiscard]] std::string_view name_of(Type type) noexcept;
/// The type called `name` (without the dot); nothing if there is none.
[[nodiscard]] std::optional<Type> type_named(std::string_view name) noexcept;

enum class StateSpace : std::uint8_t { reg, sreg, constant, global, local, param, shared };

/// A place in the PTX text and, where `.loc` gives it, in the source that it was compiled from.
struct Location {
    std::uint32_t line = 0;         ///< of the PTX text, from 1
    std::uint32_t source_file = 0;  ///< index of `.file`; 0: unknown
    std::uint32_t source_line = 0;
    std::uint32_t inlined = 0;  ///< index in Module::inlined of the inlined call that this belongs to; 0: none
};

/// A call that the compiler replaced by the function's body.
struct InlinedCall {
    std::string function;           ///< label in Module::debug_strings; empty if it was not named
    std::uint64_t offset = 0;       ///< of the function's name, relative to the label
    std::uint32_t source_file = 0;  ///< place of the call
    std::uint32_t source_line = 0;
    std::uint32_t inlined = 0;  ///< the inlined call around this one, a lower number; 0: none
    friend auto operator<=>(const InlinedCall&, const InlinedCall&) = default;
};

/// An operand of an instruction.
struct Operand {
    enum class Kind : std::uint8_t {
        identifier,  ///< register, special register, variable, label or function: `name`; the scope says which
                     ///< `integer` is an offset in bytes, as in `mov.u64 %rd1, table+8`
        integer,     ///< `integer`: a constant expression's 64 bits
        real,        ///< `bits` of an f32 (0f...) or f64 (0d... or decimal) constant: `real_type`
        address,     ///< [base + offset]: `name` or, if empty, an absolute address; `integer` is the offset
        vector,      ///< {a, b, ...}: `elements`
        bracket,     ///< [a, {b, c}] and other lists in brackets, e.g. of tensor copies: `elements`
        sink,        ///< _
    };
    Kind kind = Kind::sink;
    bool negated = false;   ///< !p, or -r where PTX allows it. Identifiers only: signs of constants are evaluated
    std::string name;       ///< identifier without a component, or the base of an address
    std::string component;  ///< "x" of %tid.x, "b0" of a selector as in vset; empty if there is none
    std::string second;     ///< q of "p|q"; "_" if it is the sink; empty if there is none
    std::int64_t integer = 0;
    std::uint64_t bits = 0;
    Type real_type = Type::none;
    std::vector<Operand> elements;
};

/// `call (result), callee, (a, b), prototype;` has these operands: a vector of the results (if any), an identifier, a
/// vector of the arguments (if any, empty for `()`), and the identifier of the prototype or target list (if any). So
/// the callee is the first identifier, and a vector before it has the results.
struct Instruction {
    std::string opcode;                  ///< the text before the first dot: "cp" of cp.async.bulk
    std::vector<std::string> modifiers;  ///< "async", "bulk", ..., "shared::cluster", in the order of the text
    std::vector<Operand> operands;
    std::string guard;  ///< register of @p; empty if there is none
    bool guard_negated = false;
    Location location;
    std::string text;  ///< the statement in one line, for messages
};

/// `.reg .b32 %r<12>;` is one Variable with name "%r" and `count` 12 (registers %r0 to %r11); `.reg .pred p, q;` is
/// two. Variables of all other state spaces are also of this type.
struct Variable {
    StateSpace space = StateSpace::reg;
    Type type = Type::none;
    std::uint32_t vector_width = 1;  ///< 2 for .v2, 4 for .v4
    std::string name;
    std::optional<std::uint32_t> count;  ///< of a parameterized name
    std::vector<std::uint64_t> extents;  ///< of an array; 0 for [], whose size the launch or another module sets
    bool is_array = false;
    std::uint32_t alignment = 0;  ///< bytes; 0: the type's own
    bool external = false, visible = false, weak = false, common = false;
    bool managed = false;                     ///< .attribute(.managed)
    bool pointer = false;                     ///< .ptr of a kernel parameter
    std::optional<StateSpace> pointee_space;  ///< of .ptr, if it names one
    std::uint32_t pointee_alignment = 0;      ///< bytes, of .ptr .align; 0: not given
    /// Initial value of a global or constant variable: flat, in element order.
    struct InitialValue {
        std::uint64_t bits = 0;       ///< of a number, already in the variable's type
        std::string symbol;           ///< or address of a variable or function, plus `bits`
        bool generic = false;         ///< generic(symbol)
        std::uint8_t mask_shift = 0;  ///< of `0xFF00(symbol)`: the byte of the address, in bits
        bool masked = false;
    };
    std::vector<InitialValue> initial;
    Location location;

    /// Bytes of the variable; 0 if an extent is 0.
    [[nodiscard]] std::uint64_t size() const noexcept;
};

struct Label {
    std::string name;
    Location location;
};

struct Statement;

/// { ... }: declarations are visible from their place to the end of the block. Inline assembly makes such blocks.
struct Block {
    std::vector<Statement> statements;
};

/// `.branchtargets`, `.calltargets` or `.callprototype` with its label.
struct TargetList {
    std::string label;
    enum class Kind : std::uint8_t { branch, call, prototype } kind = Kind::branch;
    std::vector<std::string> names;
    std::vector<Variable> results, parameters;  ///< of a prototype; a parameter's name may be "_"
    bool no_return = false;                     ///< of a prototype
    Location location;
};

struct Statement {
    std::variant<Instruction, Variable, Label, Block, TargetList> value;
};

struct Function {
    bool kernel = false;  ///< .entry, not .func
    std::string name;
    std::vector<Variable> results;  ///< return parameters of a .func
    std::vector<Variable> parameters;
    bool defined = false;  ///< has a body
    Block body;
    bool external = false, visible = false, weak = false;
    /// .maxntid, .reqntid, .reqnctapercluster: x, y, z; missing extents are 1.
    std::optional<std::vector<std::uint32_t>> max_threads, required_threads, required_cluster;
    bool explicit_cluster = false;     ///< .explicitcluster
    bool blocks_are_clusters = false;  ///< .blocksareclusters
    std::optional<std::uint32_t> max_registers, min_ctas_per_sm, max_cluster_rank;
    bool no_return = false;
    Location location;
};

struct Module {
    std::uint32_t version_major = 0, version_minor = 0;
    std::string target;                       ///< "sm_100a"
    std::vector<std::string> target_options;  ///< "debug", "texmode_unified"
    std::uint32_t address_size = 64;
    std::map<std::uint32_t, std::string> files;                     ///< .file
    std::vector<InlinedCall> inlined;                               ///< by number, from 1
    std::map<std::string, std::string, std::less<>> debug_strings;  ///< .section .debug_str: the bytes after each label
    std::vector<Variable> variables;                                ///< at module scope
    std::vector<Function> functions;
    std::map<std::string, std::string> aliases;  ///< .alias new, old
};

}  // namespace tessera::emulator::ptx
