#include "program/decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "program/builder.hpp"

namespace tessera::emulator {

using ptx::Operand;
using ptx::Type;

namespace {

struct SpecialRegister {
    std::string_view name, component;
    WarpConstant what;
};

constexpr std::array special_registers{
    SpecialRegister{"%tid", "x", WarpConstant::tid_x},
    SpecialRegister{"%tid", "y", WarpConstant::tid_y},
    SpecialRegister{"%tid", "z", WarpConstant::tid_z},
    SpecialRegister{"%ntid", "x", WarpConstant::ntid_x},
    SpecialRegister{"%ntid", "y", WarpConstant::ntid_y},
    SpecialRegister{"%ntid", "z", WarpConstant::ntid_z},
    SpecialRegister{"%ctaid", "x", WarpConstant::ctaid_x},
    SpecialRegister{"%ctaid", "y", WarpConstant::ctaid_y},
    SpecialRegister{"%ctaid", "z", WarpConstant::ctaid_z},
    SpecialRegister{"%nctaid", "x", WarpConstant::nctaid_x},
    SpecialRegister{"%nctaid", "y", WarpConstant::nctaid_y},
    SpecialRegister{"%nctaid", "z", WarpConstant::nctaid_z},
    SpecialRegister{"%laneid", "", WarpConstant::laneid},
    SpecialRegister{"%warpid", "", WarpConstant::warpid},
    SpecialRegister{"%nwarpid", "", WarpConstant::nwarpid},
    SpecialRegister{"%smid", "", WarpConstant::smid},
    SpecialRegister{"%nsmid", "", WarpConstant::nsmid},
    SpecialRegister{"%gridid", "", WarpConstant::gridid},
    SpecialRegister{"%lanemask_eq", "", WarpConstant::lanemask_eq},
    SpecialRegister{"%lanemask_le", "", WarpConstant::lanemask_le},
    SpecialRegister{"%lanemask_lt", "", WarpConstant::lanemask_lt},
    SpecialRegister{"%lanemask_ge", "", WarpConstant::lanemask_ge},
    SpecialRegister{"%lanemask_gt", "", WarpConstant::lanemask_gt},
    SpecialRegister{"%clusterid", "x", WarpConstant::clusterid_x},
    SpecialRegister{"%clusterid", "y", WarpConstant::clusterid_y},
    SpecialRegister{"%clusterid", "z", WarpConstant::clusterid_z},
    SpecialRegister{"%nclusterid", "x", WarpConstant::nclusterid_x},
    SpecialRegister{"%nclusterid", "y", WarpConstant::nclusterid_y},
    SpecialRegister{"%nclusterid", "z", WarpConstant::nclusterid_z},
    SpecialRegister{"%cluster_ctaid", "x", WarpConstant::cluster_ctaid_x},
    SpecialRegister{"%cluster_ctaid", "y", WarpConstant::cluster_ctaid_y},
    SpecialRegister{"%cluster_ctaid", "z", WarpConstant::cluster_ctaid_z},
    SpecialRegister{"%cluster_nctaid", "x", WarpConstant::cluster_nctaid_x},
    SpecialRegister{"%cluster_nctaid", "y", WarpConstant::cluster_nctaid_y},
    SpecialRegister{"%cluster_nctaid", "z", WarpConstant::cluster_nctaid_z},
    SpecialRegister{"%cluster_ctarank", "", WarpConstant::cluster_ctarank},
    SpecialRegister{"%cluster_nctarank", "", WarpConstant::cluster_nctarank},
    SpecialRegister{"%is_explicit_cluster", "", WarpConstant::is_explicit_cluster},
    SpecialRegister{"%total_smem_size", "", WarpConstant::total_smem_size},
    SpecialRegister{"%dynamic_smem_size", "", WarpConstant::dynamic_smem_size},
    SpecialRegister{"%aggr_smem_size", "", WarpConstant::aggr_smem_size},
};

[[nodiscard]] unsigned row_bytes(Type type)
{
    return type == Type::pred ? 0 : static_cast<unsigned>(ptx::size_of(type));
}

/// The bits of a constant operand as a value of `type`.
[[nodiscard]] std::optional<std::uint64_t> constant_bits(const Operand& operand, Type type)
{
    if (operand.kind == Operand::Kind::integer) {
        const auto value = static_cast<std::uint64_t>(operand.negated ? -operand.integer : operand.integer);
        const std::size_t bytes = ptx::size_of(type);
        return bytes >= 8 || bytes == 0 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
    }
    if (operand.kind == Operand::Kind::real) {
        double value = operand.real_type == Type::f32
                           ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(operand.bits)))
                           : std::bit_cast<double>(operand.bits);
        if (type == Type::f64) {
            if (operand.real_type == Type::f64) {
                return operand.negated ? operand.bits ^ (1ull << 63) : operand.bits;
            }
            return std::bit_cast<std::uint64_t>(operand.negated ? -value : value);
        }
        if (operand.real_type == Type::f32) {  // keeps the bits of NaNs
            return operand.negated ? operand.bits ^ (1u << 31) : operand.bits;
        }
        if (ptx::size_of(type) == 8) {
            return operand.bits;
        }
        value = operand.negated ? -value : value;
        return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    }
    return std::nullopt;
}

[[nodiscard]] std::string name_with_component(const Operand& operand)
{
    return operand.component.empty() ? operand.name : operand.name + "." + operand.component;
}

}  // namespace

Decoder::Decoder(FunctionBuilder& function, const ptx::Instruction& instruction, Operation& operation)
    : function_(function), instruction_(instruction), operation_(operation), taken_(instruction.modifiers.size(), false)
{}

bool Decoder::take(std::string_view name)
{
    for (std::size_t i = 0; i < taken_.size(); ++i) {
        if (!taken_[i] && instruction_.modifiers[i] == name) {
            taken_[i] = true;
            return true;
        }
    }
    return false;
}

std::string_view Decoder::take_one_of(std::initializer_list<std::string_view> names)
{
    for (std::size_t i = 0; i < taken_.size(); ++i) {
        if (taken_[i]) {
            continue;
        }
        for (const std::string_view name : names) {
            if (instruction_.modifiers[i] == name) {
                taken_[i] = true;
                return name;
            }
        }
    }
    return {};
}

std::optional<Type> Decoder::take_type()
{
    for (std::size_t i = 0; i < taken_.size(); ++i) {
        if (!taken_[i]) {
            if (const std::optional<Type> type = ptx::type_named(instruction_.modifiers[i])) {
                taken_[i] = true;
                return type;
            }
        }
    }
    return std::nullopt;
}

Type Decoder::require_type()
{
    const std::optional<Type> type = take_type();
    if (!type) {
        fail("a type is missing");
    }
    return *type;
}

std::optional<std::string> Decoder::take_prefixed(std::string_view prefix)
{
    for (std::size_t i = 0; i < taken_.size(); ++i) {
        if (!taken_[i] && instruction_.modifiers[i].starts_with(prefix)) {
            taken_[i] = true;
            return instruction_.modifiers[i].substr(prefix.size());
        }
    }
    return std::nullopt;
}

void Decoder::take_cache_hints()
{
    static constexpr std::array<std::string_view, 10> plain{"ca", "cg", "cs", "cv",  "lu",
                                                            "wb", "wt", "nc", "uni", "cop"};
    for (std::size_t i = 0; i < taken_.size(); ++i) {
        const std::string& modifier = instruction_.modifiers[i];
        if (modifier.starts_with("L1::") || modifier.starts_with("L2::") || modifier.starts_with("level::") ||
            std::ranges::find(plain, modifier) != plain.end()) {
            taken_[i] = true;
        }
    }
}

Scope Decoder::take_scope()
{
    const std::string_view name = take_one_of({"cta", "cluster", "gpu", "sys"});
    return name.empty()        ? Scope::none
           : name == "cta"     ? Scope::cta
           : name == "cluster" ? Scope::cluster
           : name == "gpu"     ? Scope::gpu
                               : Scope::sys;
}

std::vector<std::string> Decoder::remaining() const
{
    std::vector<std::string> result;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
        if (!taken_[i]) {
            result.push_back(instruction_.modifiers[i]);
        }
    }
    return result;
}

const Operand& Decoder::operand(std::size_t index) const
{
    if (index >= instruction_.operands.size()) {
        fail(fmt::format("operand {} is missing: there are {}", index + 1, instruction_.operands.size()));
    }
    return instruction_.operands[index];
}

Ref Decoder::read(std::size_t index, Type type) { return read(operand(index), type); }

Ref Decoder::read(const Operand& operand, Type type)
{
    const Ref row = find_row_to_read(operand, type);
    reads_.push_back({.row = row, .bytes = static_cast<std::uint8_t>(row_bytes(type))});
    return row;
}

Ref Decoder::read_in_lanes(const Operand& operand, Type type, LaneMask lanes)
{
    const Ref row = read(operand, type);
    reads_.back().lanes = lanes;
    return row;
}

void Decoder::expect_size(const Operand& operand, const Symbol& symbol, Type type) const
{
    // A row has the stride of its register: read with another width, a lane would get a part of its neighbour's value.
    if ((symbol.type == Type::pred) != (type == Type::pred) || ptx::size_of(symbol.type) != ptx::size_of(type)) {
        fail(fmt::format("'{}' is a .{} register, a .{} one is needed here", operand.name, ptx::name_of(symbol.type),
                         ptx::name_of(type)));
    }
}

Ref Decoder::find_row_to_read(const Operand& operand, Type type)
{
    if (const std::optional<std::uint64_t> bits = constant_bits(operand, type)) {
        return constant_row(*bits, type);
    }
    if (operand.kind == Operand::Kind::sink) {
        fail("the sink _ cannot be read");
    }
    if (operand.kind != Operand::Kind::identifier && operand.kind != Operand::Kind::address) {
        fail("a register or a constant is needed here, not a vector");
    }
    if (operand.negated) {
        fail(fmt::format("-{} cannot be read: negation is for constants and predicates", operand.name));
    }
    const unsigned bytes = row_bytes(type);
    const Symbol* symbol = function_.find(operand.name);
    if (symbol == nullptr) {
        if (operand.name == "WARP_SZ") {
            return constant_row(warp_size, type);
        }
        for (const SpecialRegister& special : special_registers) {
            if (special.name == operand.name && special.component == operand.component) {
                return function_.program.warp_constant(special.what, bytes == 0 ? 4 : bytes);
            }
        }
        fail(fmt::format("'{}' is not declared", name_with_component(operand)));
    }
    const auto addend = static_cast<std::uint64_t>(operand.integer);  // symbol+4
    // Compilers that use short pointers (Triton) put addresses in local memory into 32 bits.
    const bool is_local = symbol->kind == Symbol::Kind::frame_local;
    if (const bool wide =
            symbol->kind == Symbol::Kind::memory_variable || symbol->kind == Symbol::Kind::function || is_local;
        wide && bytes != 8 && !(is_local && bytes == 4)) {
        fail(fmt::format("the address of '{}' has 64 bits, .{} has {}", operand.name, ptx::name_of(type), 8 * bytes));
    }
    switch (symbol->kind) {
        case Symbol::Kind::reg: {
            expect_size(operand, *symbol, type);
            return symbol->row;
        }
        case Symbol::Kind::memory_variable: return constant_row(symbol->offset + addend, Type::u64);
        case Symbol::Kind::function: return constant_row(symbol->offset, Type::u64);
        case Symbol::Kind::shared_variable:
            return function_.program.warp_constant(WarpConstant::shared_address, bytes,
                                                   static_cast<std::uint32_t>(symbol->offset + addend));
        case Symbol::Kind::dynamic_shared:
            if (addend != 0) {
                fail("an offset to the address of an extern shared array is not supported here: add it separately");
            }
            return function_.program.warp_constant(WarpConstant::dynamic_shared_address, bytes,
                                                   static_cast<std::uint32_t>(symbol->offset));
        case Symbol::Kind::kernel_parameter: return constant_row(symbol->offset + addend, type);
        case Symbol::Kind::frame_parameter: return constant_row(symbol->offset + addend, type);
        case Symbol::Kind::frame_local: {
            const Ref row = function_.new_row(bytes);
            Operation load;
            load.execute = local_address_operation(bytes);
            load.operand[0] = row;
            load.operand[1] = constant_row(symbol->offset + addend, bytes == 4 ? Type::u32 : Type::u64);
            load.source = &instruction_;
            load.kind = InstructionClass::integer;
            const auto width = static_cast<std::uint8_t>(bytes);
            const OperandRole offset{.row = load.operand[1], .bytes = width}, address{.row = row, .bytes = width};
            function_.append(load, {.flow = ValueFlow::passed_on}, {{}, {&offset, 1}, {&address, 1}});
            return row;
        }
    }
    fail("unknown kind of symbol");
}

Ref Decoder::write(std::size_t index, Type type) { return write(operand(index), type); }

Ref Decoder::write(const Operand& operand, Type type)
{
    const Ref row = find_row_to_write(operand, type);
    writes_.push_back({.row = row, .bytes = static_cast<std::uint8_t>(row_bytes(type))});
    return row;
}

Ref Decoder::find_row_to_write(const Operand& operand, Type type)
{
    if (operand.kind == Operand::Kind::sink || (operand.kind == Operand::Kind::identifier && operand.name == "_")) {
        return function_.new_row(row_bytes(type));
    }
    if (operand.kind != Operand::Kind::identifier) {
        fail("the destination must be a register");
    }
    const Symbol* symbol = function_.find(operand.name);
    if (symbol == nullptr || symbol->kind != Symbol::Kind::reg) {
        fail(fmt::format("'{}' is not a register", name_with_component(operand)));
    }
    expect_size(operand, *symbol, type);
    return symbol->row;
}

Ref Decoder::write_second(std::size_t index)
{
    const Operand& both = operand(index);
    if (both.second.empty()) {
        return no_row;
    }
    Operand second;
    second.kind = both.second == "_" ? Operand::Kind::sink : Operand::Kind::identifier;
    second.name = both.second;
    return write(second, Type::pred);
}

Decoder::Predicate Decoder::read_predicate(std::size_t index)
{
    Operand plain = operand(index);
    if (plain.kind == Operand::Kind::integer) {
        const bool value = (plain.integer != 0) != plain.negated;
        reads_.push_back({.row = function_.program.constant_row(value ? all_lanes : 0, 0)});
        return {reads_.back().row, false};
    }
    const bool negated = plain.negated;
    plain.negated = false;
    const Ref row = read(plain, Type::pred);
    reads_.back().negated = negated;
    return {row, negated};
}

std::vector<Ref> Decoder::read_vector(std::size_t index, Type type)
{
    const Operand& vector = operand(index);
    if (vector.kind != Operand::Kind::vector) {
        return {read(vector, type)};
    }
    std::vector<Ref> rows;
    rows.reserve(vector.elements.size());
    for (const Operand& element : vector.elements) {
        rows.push_back(read(element, type));
    }
    return rows;
}

std::vector<Ref> Decoder::write_vector(std::size_t index, Type type)
{
    const Operand& vector = operand(index);
    if (vector.kind != Operand::Kind::vector) {
        return {write(vector, type)};
    }
    std::vector<Ref> rows;
    rows.reserve(vector.elements.size());
    for (const Operand& element : vector.elements) {
        rows.push_back(write(element, type));
    }
    return rows;
}

bool Decoder::is_vector(std::size_t index) const { return operand(index).kind == Operand::Kind::vector; }

bool Decoder::is_register(std::size_t index) const
{
    const Operand& plain = operand(index);
    if (plain.kind != Operand::Kind::identifier) {
        return false;
    }
    const Symbol* symbol = function_.find(plain.name);
    return symbol != nullptr && symbol->kind == Symbol::Kind::reg;
}

bool Decoder::is_sink(std::size_t index) const
{
    const Operand& plain = operand(index);
    return plain.kind == Operand::Kind::sink || (plain.kind == Operand::Kind::identifier && plain.name == "_");
}

AddressRef Decoder::address(std::size_t index) { return address(operand(index)); }

AddressRef Decoder::address(const Operand& operand)
{
    AddressRef result;
    if (operand.kind == Operand::Kind::integer) {
        result.offset = operand.integer;
        return result;
    }
    if (operand.kind == Operand::Kind::bracket && operand.elements.size() == 1) {
        return address(operand.elements.front());
    }
    if (operand.kind != Operand::Kind::address && operand.kind != Operand::Kind::identifier) {
        fail("an address is needed here");
    }
    result.offset = operand.integer;
    if (operand.name.empty()) {
        return result;
    }
    const Symbol* symbol = function_.find(operand.name);
    if (symbol == nullptr) {
        fail(fmt::format("'{}' is not declared", operand.name));
    }
    switch (symbol->kind) {
        case Symbol::Kind::reg:
            if (symbol->type == Type::pred || (ptx::size_of(symbol->type) != 4 && ptx::size_of(symbol->type) != 8)) {
                fail(fmt::format("'{}' is a .{} register, an address has 32 or 64 bits", operand.name,
                                 ptx::name_of(symbol->type)));
            }
            result.base = symbol->row;
            result.wide = ptx::size_of(symbol->type) == 8;
            addresses_.push_back({.row = result.base, .bytes = static_cast<std::uint8_t>(result.wide ? 8 : 4)});
            break;
        case Symbol::Kind::memory_variable: result.offset += static_cast<std::int64_t>(symbol->offset); break;
        case Symbol::Kind::function: fail(fmt::format("'{}' is a function, not memory", operand.name));
        case Symbol::Kind::shared_variable:
            result.base = function_.program.warp_constant(WarpConstant::shared_address, 4,
                                                          static_cast<std::uint32_t>(symbol->offset));
            result.wide = false;
            break;
        case Symbol::Kind::dynamic_shared:
            result.base = function_.program.warp_constant(WarpConstant::dynamic_shared_address, 4,
                                                          static_cast<std::uint32_t>(symbol->offset));
            result.wide = false;
            break;
        case Symbol::Kind::kernel_parameter:
            result.anchor = AddressRef::Anchor::kernel_parameter;
            result.offset += static_cast<std::int64_t>(symbol->offset);
            break;
        case Symbol::Kind::frame_parameter:
            result.anchor = AddressRef::Anchor::frame_parameter;
            result.offset += static_cast<std::int64_t>(symbol->offset);
            break;
        case Symbol::Kind::frame_local:
            result.anchor = AddressRef::Anchor::frame_local;
            result.offset += static_cast<std::int64_t>(symbol->offset);
            break;
    }
    return result;
}

std::optional<std::int64_t> Decoder::constant(std::size_t index) const
{
    const Operand& plain = operand(index);
    if (plain.kind != Operand::Kind::integer) {
        return std::nullopt;
    }
    return plain.negated ? -plain.integer : plain.integer;
}

Type Decoder::declared_type(std::size_t index) const
{
    const Operand& plain = operand(index);
    if (plain.kind == Operand::Kind::identifier) {
        const Symbol* symbol = function_.find(plain.name);
        if (symbol != nullptr && symbol->kind == Symbol::Kind::reg) {
            return symbol->type;
        }
    }
    return Type::none;
}

Ref Decoder::constant_row(std::uint64_t bits, Type type)
{
    if (type == Type::pred) {
        return function_.program.constant_row(bits != 0 ? all_lanes : 0, 0);
    }
    return function_.program.constant_row(bits, row_bytes(type));
}

Ref Decoder::scratch_row(unsigned bytes) { return function_.new_row(bytes); }

const DeviceModel& Decoder::device() const noexcept { return function_.program.device; }

std::string_view Decoder::target() const noexcept { return function_.program.program().module.target; }

void Decoder::mark_aligned()
{
    effects_.lanes = Convergence::aligned;
    effects_.may_wait = true;
}

void Decoder::mark_late_registers(std::span<const Ref> rows)
{
    for (std::vector<OperandRole>* const roles : {&reads_, &writes_}) {
        for (OperandRole& role : *roles) {
            role.later = role.later || std::ranges::find(rows, role.row) != rows.end();
        }
    }
}

void Decoder::fail(const std::string& message) const { throw DecodeError(message); }

void Decoder::finish() const
{
    const std::vector<std::string> left = remaining();
    if (!left.empty()) {
        fail(fmt::format("'.{}' is not known for {}", left.front(), instruction_.opcode));
    }
}

void Decoder::own(std::unique_ptr<Payload> payload)
{
    operation_.payload = payload.get();
    function_.program.program().payloads.push_back(std::move(payload));
}

void expect_capability(const Decoder& decoder, unsigned capability, std::string_view what)
{
    if (decoder.device().capability() < capability) {
        decoder.fail(
            fmt::format("{} needs sm_{}, the device is sm_{}", what, capability, decoder.device().capability()));
    }
}

void expect_operands(const Decoder& decoder, std::size_t low, std::size_t high)
{
    if (decoder.operands() < low || decoder.operands() > high) {
        decoder.fail(fmt::format("takes {} to {} operands, not {}", low, high, decoder.operands()));
    }
}

void expect_operands(const Decoder& decoder, std::size_t count)
{
    if (decoder.operands() != count) {
        decoder.fail(fmt::format("takes {} operands, not {}", count, decoder.operands()));
    }
}

}  // namespace tessera::emulator
