// Control flow: bra, brx.idx, call, ret, exit, trap, brkpt, nanosleep, pmevent. PTX ISA "Control Flow Instructions".

#include <fmt/format.h>

#include <array>

#include "execute/builtins.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "machine/warp.hpp"
#include "program/builder.hpp"
#include "program/call.hpp"
#include "program/decoder.hpp"

namespace tessera::emulator {

namespace {

Step execute_branch(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<BranchPayload>();
    return warp.branch(active, payload.targets.front(), payload.join);
}

Step execute_branch_indexed(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<BranchPayload>();
    const auto* index = warp.row<std::uint32_t>(operation.operand[0]);
    std::array<std::uint32_t, warp_size> targets{};
    for_each_lane(active, [&](unsigned lane) {
        if (index[lane] >= payload.targets.size()) {
            warp.fault(operation, FindingKind::invalid_operand, error_invalid_pc, 1u << lane,
                       fmt::format("brx.idx with index {}: there are {} targets", index[lane], payload.targets.size()));
        }
        targets[lane] = payload.targets[index[lane]];
    });
    return warp.branch_indexed(active, targets.data(), payload.join);
}

Step execute_return(Warp& warp, const Operation&, LaneMask active) { return warp.leave(active); }

Step execute_exit(Warp& warp, const Operation&, LaneMask active) { return warp.exit(active); }

Step execute_trap(Warp& warp, const Operation& operation, LaneMask active)
{
    warp.fault(operation, FindingKind::trap, error_launch_failure, active, "trap executed");
}

Step execute_breakpoint(Warp& warp, const Operation& operation, LaneMask active)
{
    warp.fault(operation, FindingKind::trap, error_launch_failure, active, "brkpt executed without a debugger");
}

Step execute_nothing(Warp&, const Operation&, LaneMask) { return Step::next; }

Step execute_sleep(Warp&, const Operation&, LaneMask) { return Step::yield; }

template <class Address>
Step execute_local_address(Warp& warp, const Operation& operation, LaneMask active)
{
    auto* result = warp.row<Address>(operation.operand[0]);
    const auto* offset = warp.row<Address>(operation.operand[1]);
    const Address base = warp.split().frame->local_base;
    for_each_lane(active, [&](unsigned lane) { result[lane] = base + offset[lane]; });
    return Step::next;
}

Step execute_call(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<CallPayload>();
    const Program& program = warp.cluster.grid.program;
    const std::uint32_t return_pc = warp.split().pc + 1;
    if (payload.pointer == no_row) {
        return warp.call(operation, active, program.functions[payload.callee], return_pc);
    }
    // Indirect: lanes with the same callee go first together; the other lanes follow when they have returned.
    const auto* pointers = warp.row<std::uint64_t>(payload.pointer);
    const auto first = static_cast<unsigned>(std::countr_zero(active));
    const std::uint64_t handle = pointers[first];
    if (handle < function_base || handle - function_base >= program.functions.size()) {
        warp.fault(operation, FindingKind::invalid_operand, error_invalid_pc, active,
                   fmt::format("call through {:#x}, which is not the address of a function", handle));
    }
    const FunctionCode& callee = program.functions[handle - function_base];
    if (callee.end == callee.entry) {
        warp.fault(operation, FindingKind::invalid_operand, error_invalid_pc, active,
                   fmt::format("call of {}, which has no definition in this module", callee.name));
    }
    if (callee.parameters.size() != payload.arguments.size() || callee.results.size() != payload.results.size()) {
        warp.fault(operation, FindingKind::invalid_operand, error_invalid_pc, active,
                   fmt::format("call of {} with {} arguments and {} results, but it has {} and {}", callee.name,
                               payload.arguments.size(), payload.results.size(), callee.parameters.size(),
                               callee.results.size()));
    }
    LaneMask same = 0;
    for_each_lane(active, [&](unsigned lane) { same |= pointers[lane] == handle ? 1u << lane : 0; });
    return warp.call(operation, same, callee, return_pc, active & ~same);
}

void decode_branch(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::control;
    decoder.take("uni");
    operation.execute = execute_branch;
    decoder.effects().control = Flow::branch;
    auto& payload = decoder.emplace_payload<BranchPayload>();
    payload.targets.resize(1);
    decoder.function().when_placed(decoder.operand(0).name,
                                   [&payload](std::uint32_t place) { payload.targets[0] = place; });
}

void decode_branch_indexed(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::control;
    if (!decoder.take("idx")) {
        decoder.fail("brx needs .idx");
    }
    decoder.take("uni");
    operation.execute = execute_branch_indexed;
    decoder.effects().control = Flow::branch;
    operation.operand[0] = decoder.read(0, ptx::Type::u32);
    const ptx::TargetList* list = decoder.function().target_list(decoder.operand(1).name);
    if (list == nullptr || list->names.empty()) {
        decoder.fail(fmt::format("'{}' is not a list of .branchtargets", decoder.operand(1).name));
    }
    auto& payload = decoder.emplace_payload<BranchPayload>();
    payload.targets.resize(list->names.size());
    for (std::size_t i = 0; i < list->names.size(); ++i) {
        decoder.function().when_placed(list->names[i],
                                       [&payload, i](std::uint32_t place) { payload.targets[i] = place; });
    }
}

std::vector<CallArgument> decode_arguments(Decoder& decoder, const ptx::Operand& list)
{
    std::vector<CallArgument> result;
    for (const ptx::Operand& element : list.elements) {
        const Symbol* symbol = decoder.function().find(element.name);
        if (symbol == nullptr || symbol->kind != Symbol::Kind::frame_parameter) {
            decoder.fail(fmt::format("'{}' is not a .param variable of this function", element.name));
        }
        result.push_back({static_cast<std::uint32_t>(symbol->offset), static_cast<std::uint32_t>(symbol->size)});
    }
    return result;
}

void decode_call(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::control;
    decoder.take("uni");
    CallPayload payload;
    std::size_t next = 0;
    if (decoder.is_vector(0)) {
        payload.results = decode_arguments(decoder, decoder.operand(next++));
    }
    const ptx::Operand& callee = decoder.operand(next);
    const std::size_t callee_index = next++;
    if (next < decoder.operands() && decoder.is_vector(next)) {
        payload.arguments = decode_arguments(decoder, decoder.operand(next++));
    }
    ProgramBuilder& program = decoder.function().program;
    if (decoder.is_register(callee_index)) {
        payload.pointer = decoder.read(callee_index, ptx::Type::u64);
        operation.execute = execute_call;
        decoder.effects().control = Flow::call;
        // Every function whose address is taken may be called.
        for (std::uint32_t i = 0; i < program.program().functions.size(); ++i) {
            if (!program.program().module.functions[i].kernel) {
                program.uses[decoder.function().index].calls.insert(i);
            }
        }
        decoder.emplace_payload(std::move(payload));
        return;
    }
    const std::optional<std::uint32_t> index = program.function_index(callee.name);
    if (!index) {
        decoder.fail(fmt::format("the function '{}' is not declared", callee.name));
    }
    const ptx::Function& function = program.program().module.functions[*index];
    if (!function.defined) {
        const BuiltinFunction* const builtin = builtin_function(callee.name);
        if (builtin == nullptr) {
            decoder.fail(
                fmt::format("the function '{}' is not defined in this module: link all device code into one module "
                            "(without -rdc=true, or with device link-time optimization)",
                            callee.name));
        }
        if (payload.arguments.size() < builtin->arguments) {
            decoder.fail(fmt::format("{} takes {} arguments, not {}", callee.name, builtin->arguments,
                                     payload.arguments.size()));
        }
        ProgramBuilder::Uses& uses = program.uses[decoder.function().index];
        uses.uses_printf = uses.uses_printf || builtin->prints;
        uses.uses_malloc = uses.uses_malloc || builtin->uses_heap;
        decoder.effects().meets_clusters = builtin->meets_clusters;
        if (builtin->memory) {
            decoder.effects().access(*builtin->memory);
        }
        operation.execute = builtin->execute;
        decoder.emplace_payload(std::move(payload));
        return;
    }
    program.uses[decoder.function().index].calls.insert(*index);
    if (function.parameters.size() != payload.arguments.size() || function.results.size() != payload.results.size()) {
        decoder.fail(fmt::format("{} takes {} arguments and gives {} results, not {} and {}", callee.name,
                                 function.parameters.size(), function.results.size(), payload.arguments.size(),
                                 payload.results.size()));
    }
    payload.callee = *index;
    operation.execute = execute_call;
    decoder.effects().control = Flow::call;
    decoder.emplace_payload(std::move(payload));
}

void decode_return(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::control;
    decoder.take("uni");
    operation.execute = execute_return;
    decoder.effects().control = Flow::leave;
}

void decode_exit(Decoder& decoder, Operation& operation)
{
    decoder.effects().control = Flow::end;
    operation.kind = InstructionClass::control;
    operation.execute = execute_exit;
}

void decode_trap(Decoder& decoder, Operation& operation)
{
    decoder.effects().control = Flow::end;
    operation.kind = InstructionClass::control;
    operation.execute = execute_trap;
}

void decode_breakpoint(Decoder& decoder, Operation& operation)
{
    decoder.effects().control = Flow::end;
    operation.kind = InstructionClass::control;
    operation.execute = execute_breakpoint;
}

void decode_sleep(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::control;
    decoder.take("u32");
    static_cast<void>(decoder.read(0, ptx::Type::u32));
    operation.execute = execute_sleep;
}

void decode_event(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::control;
    decoder.take("mask");
    operation.execute = execute_nothing;
}

}  // namespace

Execute local_address_operation(unsigned bytes) noexcept
{
    return bytes == 4 ? execute_local_address<std::uint32_t> : execute_local_address<std::uint64_t>;
}

Execute end_of_function_operation() noexcept { return execute_return; }

std::span<const InstructionEntry> control_instructions()
{
    static constexpr std::array<InstructionEntry, 9> table{{
        {"bra", decode_branch},
        {"brx", decode_branch_indexed},
        {"call", decode_call},
        {"ret", decode_return},
        {"exit", decode_exit},
        {"trap", decode_trap},
        {"brkpt", decode_breakpoint},
        {"nanosleep", decode_sleep},
        {"pmevent", decode_event},
    }};
    return table;
}

}  // namespace tessera::emulator
