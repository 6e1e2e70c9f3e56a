// wgmma.mma_async, wgmma.fence, commit_group and wait_group (PTX ISA 9.7.15). Each warp of the warpgroup multiplies its
// own 16 rows, as an asynchronous operation that starts when all four warps have issued the instruction.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "execute/warp_matrix.hpp"
#include "execute/wgmma_operation.hpp"
#include "execute/wgmma_state.hpp"
#include "machine/cluster.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {
namespace {

constexpr unsigned max_columns = 256;

/// The queue of one warp's operations, in order. Queues of other families have other upper bits.
AsyncQueue queue_of(const Warp& warp)
{
    constexpr AsyncQueue family = AsyncQueue{0x57} << 56;
    return family | AsyncQueue{warp.cta.rank} << 32 | warp.index;
}

/// Reads and checks the descriptor in `row`.
MatrixDescriptor read_descriptor(Warp& warp, const Operation& operation, LaneMask active, const WgmmaPayload& payload,
                                 bool is_a)
{
    const auto* values = warp.row<std::uint64_t>(is_a ? payload.a_descriptor : payload.b_descriptor);
    const std::uint64_t bits = values[std::countr_zero(active)];
    const DecodedMatrixDescriptor decoded = decode_wgmma_descriptor(bits);
    if (warp.checks()) {
        LaneMask different = 0;
        for_each_lane(active, [&](unsigned lane) { different |= LaneMask{values[lane] != bits} << lane; });
        if (different != 0) {
            warp.report(
                operation, FindingKind::invalid_descriptor, different,
                fmt::format(
                    "the lanes give different descriptors of {}; all threads of the warpgroup must give the same",
                    is_a ? "A" : "B"));
        }
        std::string problem = decoded.problem;
        if (problem.empty()) {
            problem =
                payload.tile(decoded.descriptor, is_a).problem(bits_of(is_a ? payload.product.a : payload.product.b));
        }
        if (!problem.empty()) {
            warp.report(operation, FindingKind::invalid_descriptor, active,
                        fmt::format("{}: {}", is_a ? "A" : "B", problem));
        }
    }
    return decoded.descriptor;
}

/// Compares this wgmma with the wgmma of the same number of the other warps of the warpgroup.
void check_warpgroup(Warp& warp, const Operation& operation, LaneMask active, const WarpgroupState& state)
{
    const WarpgroupState::Issue& own = state.issues[state.issued % WarpgroupState::remembered];
    const unsigned first = warp.index / warps_per_warpgroup * warps_per_warpgroup;
    for (unsigned i = 0; i < warps_per_warpgroup; ++i) {
        const auto& other_state = warp.cta.warps[first + i]->warpgroup;
        if (first + i == warp.index || other_state == nullptr || other_state->issued <= state.issued ||
            other_state->issued > state.issued + WarpgroupState::remembered) {
            continue;
        }
        const WarpgroupState::Issue& other = other_state->issues[state.issued % WarpgroupState::remembered];
        if (other.operation != own.operation) {
            warp.report(operation, FindingKind::divergent_aligned, active,
                        fmt::format("warp {} executes another instruction as wgmma number {} than warp {}: all four "
                                    "warps of a warpgroup must execute the same",
                                    first + i, state.issued + 1, warp.index));
            return;
        }
        if (other.a != own.a || other.b != own.b || other.accumulate != own.accumulate) {
            warp.report(
                operation, FindingKind::invalid_descriptor, active,
                fmt::format("warp {} gives this wgmma descriptors {:#x}, {:#x} and scale-d {}, but warp {} gives "
                            "{:#x}, {:#x} and {}: all four warps of a warpgroup must give the same",
                            warp.index, own.a, own.b, own.accumulate, first + i, other.a, other.b, other.accumulate));
            return;
        }
    }
}

/// Returns scale-d, after checking that it is the same in all lanes.
bool read_scale_d(Warp& warp, const Operation& operation, LaneMask active, const WgmmaPayload& payload)
{
    const LaneMask value = warp.predicate(payload.scale_d) & active;
    if (value != 0 && value != active) {
        warp.report(operation, FindingKind::invalid_operand, active & ~value,
                    "scale-d differs between lanes; all threads of the warpgroup must give the same value");
    }
    return value != 0;
}

/// wgmma needs a whole warpgroup. The last warpgroup of a CTA may be incomplete.
bool has_whole_warpgroup(Warp& warp, const Operation& operation, LaneMask active)
{
    const std::size_t end = (warp.index / warps_per_warpgroup + 1) * std::size_t{warps_per_warpgroup};
    if (warp.cta.warps.size() >= end && warp.lanes == all_lanes) {
        return true;
    }
    warp.report(
        operation, FindingKind::invalid_operand, active,
        fmt::format(
            "warp {} is in a warpgroup with fewer than 128 threads (the CTA has {}); wgmma needs four whole warps",
            warp.index, warp.cta.threads),
        true);
    return false;
}

Step execute_wgmma(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    const auto& payload = operation.as<WgmmaPayload>();
    WarpgroupState& state = warpgroup_state(warp);
    const bool accumulate = read_scale_d(warp, operation, active, payload);
    const FrameRegisters d{warp.split().frame, payload.d, payload.d_sorted};
    bool overlaps = false;
    if (!settle_overlapping(warp, d, overlaps) || !access_a(warp, operation, payload.a_sorted)) {
        return Step::wait;
    }
    if (overlaps && warp.checks()) {
        warp.report(operation, FindingKind::async_read_pending, active,
                    "the accumulator overlaps that of another wgmma in flight without being the same registers in the "
                    "same order; wait for that wgmma first (wgmma.wait_group)");
    }
    if (!state.fenced && warp.checks()) {
        warp.report(operation, FindingKind::invalid_operand, active,
                    "the warp's first wgmma has no wgmma.fence before it and may read old register values; put "
                    "wgmma.fence.sync.aligned before it");
        state.fenced = true;
    } else if (warp.checks()) {
        if (accumulate) {
            check_fence(warp, operation, payload.d, "D");
        }
        check_fence(warp, operation, payload.a_sorted, "A");
        overwrite_accumulator(warp, payload.d);
    }
    const std::shared_ptr<WgmmaAccumulator> accumulator = take_accumulator(warp, d, payload.accumulator, accumulate);
    auto wgmma = std::make_unique<WgmmaOperation>(warp, payload, accumulator);
    wgmma->number = state.issued;
    wgmma->accumulate = accumulate;
    wgmma->whole_warpgroup = has_whole_warpgroup(warp, operation, active);
    if (payload.a_in_registers) {
        wgmma->a_registers.resize(payload.a_fragment.line_bytes() * rows_per_warp);
        payload.a_fragment.gather(warp, payload.a, wgmma->a_registers.data());
        if (warp.checks()) {
            state.operands.push_back({{warp.split().frame, payload.a, payload.a_sorted}, state.issued + 1, &operation});
        }
    } else {
        wgmma->a_descriptor = read_descriptor(warp, operation, active, payload, true);
    }
    wgmma->b_descriptor = read_descriptor(warp, operation, active, payload, false);
    if (payload.metadata != no_row) {
        wgmma->positions.resize(std::size_t{rows_per_warp} * payload.product.k / 2);
        if (!sparse_positions(payload.product, warp.row<std::uint32_t>(payload.metadata), payload.selector,
                              wgmma->positions.data()) &&
            warp.checks()) {
            warp.report(operation, FindingKind::invalid_operand, active, sparse_problem);
        }
    }
    const auto lane = std::countr_zero(active);
    state.issues[state.issued % WarpgroupState::remembered] = {
        &operation, payload.a_in_registers ? 0 : warp.row<std::uint64_t>(payload.a_descriptor)[lane],
        warp.row<std::uint64_t>(payload.b_descriptor)[lane], accumulate};
    if (warp.checks() && wgmma->whole_warpgroup) {
        check_warpgroup(warp, operation, active, state);
    }
    ++state.issued;
    accumulator->end = state.issued;
    accumulator->last = &operation;
    warp.cluster.submit(std::move(wgmma), warp, operation, active, queue_of(warp));
    return Step::next;
}

Step execute_fence(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    WarpgroupState& state = warpgroup_state(warp);
    state.fenced = true;
    ++state.fences;
    return Step::next;
}

Step execute_commit(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    WarpgroupState& state = warpgroup_state(warp);
    state.groups.push_back(state.issued);
    return Step::next;
}

struct WaitPayload final : Payload {
    std::uint64_t keep = 0;
};

Step execute_wait(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    WarpgroupState& state = warpgroup_state(warp);
    const std::uint64_t keep = operation.as<WaitPayload>().keep;
    if (state.groups.size() > keep) {
        const std::uint64_t end = state.groups[state.groups.size() - 1 - keep];
        const std::vector<Warp*> warps = warps_that_wait_for_each_other(warp);
        if (std::any_of(warps.begin(), warps.end(),
                        [&](Warp* other) { return warpgroup_state(*other).completed < end; })) {
            warp.split().wait = {.kind = Wait::Kind::async_group, .phase = end};
            return Step::wait;
        }
        while (state.groups.size() > keep) {
            state.groups.pop_front();
        }
        for (; state.acquired < end; ++state.acquired) {
            if (warp.checks()) {
                warp.cluster.clocks.acquire(warp.agent, state.completions.front());
                state.completions.pop_front();
            }
        }
        waited(warp, end);
    }
    return Step::next;
}

void require_sync_aligned(Decoder& decoder)
{
    const bool sync = decoder.take("sync");
    if (!decoder.take("aligned") || !sync) {
        decoder.fail("needs .sync.aligned");
    }
}

/// K of a dense instruction: 32 bytes of elements; 256 bits of b1.
unsigned k_of(Element element) { return 256 / bits_of(element); }

void check_types(Decoder& decoder, const std::vector<std::string>& types, Product& product)
{
    if (types.size() != 3) {
        decoder.fail("needs three types: those of d, a and b");
    }
    const std::optional<SumType> sum = sum_type_named(types[0]);
    const std::optional<Element> a = element_named(types[1]), b = element_named(types[2]);
    const auto group = [](Element element) {
        switch (element) {
            case Element::e5m2: return Element::e4m3;
            case Element::u8: return Element::s8;
            default: return element;
        }
    };
    if (!sum || !a || !b || group(*a) != group(*b) || *a == Element::f64 || *a == Element::s4 || *a == Element::u4) {
        decoder.fail(fmt::format("there is no wgmma with types .{}.{}.{}", types[0], types[1], types[2]));
    }
    const bool half_sum = *a == Element::f16 || group(*a) == Element::e4m3;
    const bool valid =
        is_floating(*a) ? *sum == SumType::f32 || (half_sum && *sum == SumType::f16) : *sum == SumType::s32;
    if (!valid) {
        decoder.fail(fmt::format("operands of .{} cannot have sums of .{}", types[1], types[0]));
    }
    product.a = *a;
    product.b = *b;
    product.sum = *sum;
}

void check_shape(Decoder& decoder, const MmaShape& shape, const Product& product, bool sparse)
{
    const unsigned k = k_of(product.a) * (sparse ? 2 : 1);
    const bool wide_steps = !is_floating(product.a);
    const bool columns = shape.n >= 8 && shape.n <= max_columns && shape.n % 8 == 0 &&
                         (!wide_steps || shape.n % 16 == 0 || shape.n == 8 || shape.n == 24);
    if (shape.m != 64 || shape.k != k || !columns) {
        decoder.fail(fmt::format("there is no shape {} for .{}: M is 64, K is {}, N is {}", shape.name(),
                                 name_of(product.a), k,
                                 wide_steps ? "8, 16, 24 or a multiple of 16 up to 256" : "a multiple of 8 up to 256"));
    }
}

/// A constant that must have one of two values.
std::int64_t one_of(Decoder& decoder, std::size_t operand, std::int64_t first, std::int64_t second, const char* name)
{
    const std::optional<std::int64_t> value = operand < decoder.operands() ? decoder.constant(operand) : std::nullopt;
    if (!value || (*value != first && *value != second)) {
        decoder.fail(fmt::format("operand {} ({}) must be the constant {} or {}", operand, name, first, second));
    }
    return *value;
}

void read_accumulator(Decoder& decoder, WgmmaPayload& payload)
{
    const SumType sum = payload.product.sum;
    payload.accumulator = {
        .rows = rows_per_warp, .columns = payload.product.n, .pair = 2, .packed = sum == SumType::f16};
    payload.d = decoder.write_vector(0, sum == SumType::f32 ? ptx::Type::f32 : ptx::Type::b32);
    if (payload.d.size() != payload.accumulator.registers()) {
        decoder.fail(fmt::format("d has {} registers; N = {} needs {}", payload.d.size(), payload.product.n,
                                 payload.accumulator.registers()));
    }
    payload.d_sorted = payload.d;
    std::ranges::sort(payload.d_sorted);
    if (std::ranges::adjacent_find(payload.d_sorted) != payload.d_sorted.end()) {
        decoder.fail("d names a register twice");
    }
    decoder.mark_late_registers(payload.d);
}

void read_a(Decoder& decoder, WgmmaPayload& payload)
{
    payload.a_in_registers = decoder.is_vector(1);
    if (!payload.a_in_registers) {
        payload.a_descriptor = decoder.read(1, ptx::Type::b64);
        return;
    }
    const unsigned stored = k_of(payload.product.a);  // a sparse A stores half of K
    payload.a_fragment = {.rows = rows_per_warp, .chunks = stored * bits_of(payload.product.a) / 128, .pair = 2};
    payload.a = decoder.read_vector(1, ptx::Type::b32);
    if (payload.a.size() != payload.a_fragment.registers()) {
        decoder.fail(fmt::format("a has {} registers; it needs {}", payload.a.size(), payload.a_fragment.registers()));
    }
    for (const Ref ref : payload.a) {
        if (ref < in_constants) {  // an immediate cannot change
            payload.a_sorted.push_back(ref);
        }
    }
    std::ranges::sort(payload.a_sorted);
    decoder.mark_late_registers(payload.a_sorted);
}

void decode_mma_async(Decoder& decoder, Operation& operation)
{
    const bool sparse = decoder.take("sp");
    const MmaShape shape = take_mma_shape(decoder);
    auto& payload = decoder.emplace_payload<WgmmaPayload>();
    Product& product = payload.product;
    check_types(decoder, take_matrix_types(decoder), product);
    check_shape(decoder, shape, product, sparse);
    product.m = rows_per_warp;
    product.n = shape.n;
    product.k = shape.k;
    product.unit = numerics::TensorUnit::hopper_wgmma;
    if (product.a == Element::b1) {
        if (sparse || !decoder.take("and") || !decoder.take("popc")) {
            decoder.fail("single-bit operands need .and.popc, and are not sparse");
        }
    } else if (product.sum == SumType::s32) {
        product.saturate = decoder.take("satfinite");
    }
    read_accumulator(decoder, payload);
    read_a(decoder, payload);
    payload.b_descriptor = decoder.read(2, ptx::Type::b64);
    std::size_t next = 3;
    if (sparse) {
        payload.metadata = decoder.read(3, ptx::Type::b32);
        const unsigned choices = sparse_selectors(product.a, product.k);
        payload.selector = static_cast<unsigned>(one_of(decoder, 4, 0, choices - 1, "the sparsity selector"));
        next = 5;
    }
    payload.scale_d = decoder.read_predicate(next++);
    if (is_floating(product.a)) {
        product.negate_a = one_of(decoder, next++, 1, -1, "imm-scale-a") < 0;
        product.negate_b = one_of(decoder, next++, 1, -1, "imm-scale-b") < 0;
    }
    if (bits_of(product.a) == 16) {
        if (!payload.a_in_registers) {
            payload.a_mn_major = one_of(decoder, next++, 0, 1, "imm-trans-a") != 0;
        }
        payload.b_mn_major = one_of(decoder, next++, 0, 1, "imm-trans-b") != 0;
    }
    if (decoder.operands() != next) {
        decoder.fail(fmt::format("has {} operands; this form has {}", decoder.operands(), next));
    }
    operation.execute = execute_wgmma;
    decoder.effects().unit = AsyncUnit::tensor;
    decoder.effects().access({.space = Space::shared, .proxy = Proxy::async, .later = true});
}

void decode_wgmma(Decoder& decoder, Operation& operation)
{
    if (decoder.device().major != 9) {
        decoder.fail("exists on devices of compute capability 9.0 (target sm_90a) only");
    }
    const std::string_view what = decoder.take_one_of({"mma_async", "fence", "commit_group", "wait_group"});
    require_sync_aligned(decoder);
    decoder.mark_aligned();
    operation.kind = InstructionClass::tensor;
    if (what == "mma_async") {
        decode_mma_async(decoder, operation);
    } else if (what == "fence") {
        operation.execute = execute_fence;
        decoder.effects().sync = {.object = SyncObject::wgmma_registers, .fences = true};
    } else if (what == "commit_group") {
        operation.execute = execute_commit;
        decoder.effects().sync = {.object = SyncObject::async_groups, .commits = true};
    } else if (what == "wait_group") {
        const std::optional<std::int64_t> keep = decoder.constant(0);
        if (!keep || *keep < 0) {
            decoder.fail("needs a constant number of groups that may stay pending");
        }
        decoder.emplace_payload<WaitPayload>().keep = static_cast<std::uint64_t>(*keep);
        operation.execute = execute_wait;
        decoder.effects().sync = {.object = SyncObject::async_groups, .waits = true};
        operation.kind = InstructionClass::barrier;
    } else {
        decoder.fail("needs .mma_async, .fence, .commit_group or .wait_group");
    }
}

constexpr std::array<InstructionEntry, 2> entries{{{"wgmma", decode_wgmma}, {"setmaxnreg", decode_setmaxnreg}}};

}  // namespace

std::vector<Warp*> warps_that_wait_for_each_other(Warp& warp)
{
    const std::size_t first = warp.index / warps_per_warpgroup * std::size_t{warps_per_warpgroup};
    if (warp.cta.warps.size() < first + warps_per_warpgroup) {
        return {&warp};
    }
    std::vector<Warp*> warps;
    for (std::size_t i = first; i < first + warps_per_warpgroup; ++i) {
        warps.push_back(warp.cta.warps[i].get());
    }
    return warps;
}

std::span<const InstructionEntry> wgmma_instructions() { return entries; }

}  // namespace tessera::emulator
