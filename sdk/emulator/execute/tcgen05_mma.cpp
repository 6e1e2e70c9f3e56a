// tcgen05.mma in all its forms (PTX ISA "TensorCore 5th Generation of MMA Instructions"): reading the instruction,
// checking its operands, and the asynchronous work itself. The arithmetic is in tcgen05_product.

#include <fmt/format.h>

#include <algorithm>

#include "execute/tcgen05.hpp"
#include "execute/tcgen05_product.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/options.hpp"

namespace tessera::emulator::tcgen05 {
namespace {

constexpr const char* name = "tcgen05.mma";

struct Mma : Payload {
    MmaForm form;
    AddressRef d, a, metadata, scales_a, scales_b;
    Ref a_descriptor = no_row, b_descriptor = no_row, descriptor = no_row, column_mask = no_row;
    std::vector<Ref> disabled;
    Decoder::Predicate enable;
    unsigned scale_d = 0;
};

class MmaWork : public TensorWork {
public:
    bool step(Cluster& cluster) override
    {
        for (std::size_t i = 0; i < operands.ctas(); ++i) {
            Cta& cta = *ctas[i];
            if (cta.exited()) {
                cluster.report(*this, FindingKind::cluster_protocol,
                               fmt::format("tcgen05.mma is executed after CTA {}, whose memory it uses, has exited: "
                                           "wait for the commit of all MMAs before a CTA exits",
                                           cta.rank));
            }
            if (cluster.options().check) {
                check_shared(cluster, cta);
                check_tensor(cluster, *cta.tensor_memory, i);
            }
        }
        if (std::string problem = multiply(operands, ctas, cluster.options().numerics); !problem.empty()) {
            cluster.report(*this, FindingKind::invalid_operand, "tcgen05.mma: " + problem);
        }
        const InstructionDescriptor& d = operands.descriptor;
        cluster.statistics.mma_flops += std::uint64_t{2} * d.m * d.n * d.k;
        cluster.statistics.mma_operand_bytes +=
            std::uint64_t{d.m} * operands.a_row_bytes() + std::uint64_t{d.n} * operands.b_row_bytes();
        complete(cluster, *this);
        return true;
    }
    [[nodiscard]] std::string describe() const override
    {
        const InstructionDescriptor& d = operands.descriptor;
        return fmt::format("tcgen05.mma kind::{} {}x{}x{} of CTA {} to column {} of tensor memory",
                           name_of(operands.form.kind), d.m, d.n, d.k, cta_rank, operands.d.column);
    }

    MmaOperands operands;

private:
    void check_shared(Cluster& cluster, Cta& cta)
    {
        cta.shadow->end(agent);
        const InstructionDescriptor& d = operands.descriptor;
        const bool padded = operands.form.kind == MmaKind::f8f6f4 || operands.form.kind == MmaKind::mxf8f6f4;
        const auto data_bytes = [&](MmaElement element) {
            return padded ? data_bytes_of(bits_of(element)) : OperandTile::chunk_bytes;
        };
        if (!operands.form.a_in_tensor_memory) {
            check_reading(cluster, *this, cta, operands.a, {name, "A", name_of(d.a), padded}, data_bytes(d.a));
        }
        check_reading(cluster, *this, cta, operands.b, {name, "B", name_of(d.b), padded}, data_bytes(d.b));
        if (cta.tiles != nullptr && !operands.form.a_in_tensor_memory) {
            if (auto problem = cta.tiles->check_extents(operands.a, operands.b, name, *cta.shadow)) {
                cluster.report(*this, FindingKind::layout_mismatch, std::move(*problem));
            }
        }
    }

    void check_tensor(Cluster& cluster, TensorMemory& memory, std::size_t i)
    {
        const InstructionDescriptor& d = operands.descriptor;
        TensorAccess access{.kind = TensorAccess::Kind::operand,
                            .agent = agent,
                            .issue = issue,
                            .what = name,
                            .line = line_of(operation)};
        TensorRegion result = footprint[i].writes.front();
        result.lanes = result.lanes.without(operands.disabled_lanes(i));  // they keep what they have
        if (operands.accumulate) {
            report(cluster, *this,
                   memory.check_initialized(result, "the accumulator of tcgen05.mma, whose enable-input-d is true,"));
        }
        const std::vector<TensorRegion>& reads = footprint[i].reads;
        for (std::size_t j = operands.accumulate ? 1 : 0; j < reads.size(); ++j) {  // D is the first
            report(cluster, *this, memory.check_initialized(reads[j], name));
            report(cluster, *this, memory.read(reads[j], access));
        }
        access.kind = TensorAccess::Kind::accumulate;
        access.accumulator = std::uint64_t{operands.d.bits()} | std::uint64_t{d.m} << 32 | std::uint64_t{d.n} << 48 |
                             (operands.form.weight_stationary ? std::uint64_t{1} << 63 : 0);
        access.starts_anew = !operands.accumulate;
        report(cluster, *this, memory.write(result, access));
    }
};

// ---- issue ----

/// Faults if the layout does not have the lane of an address in tensor memory.
void check_lane(Warp& warp, const Operation& operation, LaneMask lane, const MmaOperands& operands,
                TensorAddress address, const char* what)
{
    const DataPath path = operands.descriptor.data_path;
    const bool half = path == DataPath::c || path == DataPath::f;
    if (address.lane != 0 && (!half || address.lane != 16)) {
        warp.fault(operation, FindingKind::invalid_operand, error_illegal_instruction, lane,
                   fmt::format("tcgen05.mma: the lane of the address of {} is {}; it must be 0{}", what, address.lane,
                               half ? " or 16" : ", an MMA of this shape uses all lanes"));
    }
    if (address.lane != operands.d.lane) {
        warp.report(operation, FindingKind::invalid_operand, lane,
                    fmt::format("tcgen05.mma: {} is at lane {} and D at lane {}; layouts that use half of the lanes "
                                "need the same lane for both",
                                what, address.lane, operands.d.lane));
    }
}

OperandTile make_tile(Warp& warp, const Operation& operation, LaneMask lane, std::uint64_t bits, char which,
                      Major major, unsigned rows, unsigned row_bytes, MmaElement element, const MmaForm& form)
{
    const auto decoded = decode_tcgen05_descriptor(bits);
    OperandTile tile{.descriptor = decoded.descriptor, .major = major, .lines = rows, .line_bytes = row_bytes};
    if (major == Major::mn) {
        const unsigned bytes = std::max(1u, bits_of(element) / 8);
        tile.lines = row_bytes / bytes;
        tile.line_bytes = rows * bytes;
    }
    const bool packed = form.kind == MmaKind::mxf4 || form.kind == MmaKind::mxf4nvf4;
    std::string problem = decoded.problem;
    if (problem.empty()) {
        problem = tile.problem(packed ? 4 : std::max(8u, bits_of(element)));
    }
    if (!problem.empty()) {
        warp.report(operation, FindingKind::invalid_descriptor, lane,
                    fmt::format("tcgen05.mma, descriptor of {}: {}", which, problem));
    }
    if (decoded.descriptor.base_offset != 0) {
        warp.report(
            operation, FindingKind::not_emulated, lane,
            fmt::format(
                "tcgen05.mma, descriptor of {}: the base offset is {}, and how hardware applies it is not documented "
                "well enough to be emulated with certainty; align the tile to {} bytes and set it to 0",
                which, decoded.descriptor.base_offset, swizzle_repeat(decoded.descriptor.swizzle)));
    }
    return tile;
}

MmaOperands read_operands(Warp& warp, const Operation& operation, unsigned lane)
{
    const auto& mma = operation.as<Mma>();
    const LaneMask bit = LaneMask{1} << lane;
    const auto tensor_address = [&](const AddressRef& ref) {
        return TensorAddress(static_cast<std::uint32_t>(warp.address(ref, lane)));
    };
    MmaOperands operands;
    operands.form = mma.form;
    auto decoded = decode_instruction_descriptor(warp.row<std::uint32_t>(mma.descriptor)[lane], mma.form);
    if (!decoded.problem.empty()) {
        warp.fault(operation, FindingKind::invalid_descriptor, error_illegal_instruction, bit,
                   "tcgen05.mma, " + decoded.problem);
    }
    operands.descriptor = decoded.descriptor;
    const InstructionDescriptor& d = operands.descriptor;
    operands.d = tensor_address(mma.d);
    check_lane(warp, operation, bit, operands, operands.d, "D");
    if (mma.column_mask != no_row) {
        std::string problem;
        operands.columns = decode_column_mask(warp.row<std::uint64_t>(mma.column_mask)[lane], d.m, d.n, problem);
        if (!problem.empty()) {
            warp.report(operation, FindingKind::invalid_descriptor, bit, "tcgen05.mma, " + problem);
        }
    }
    if (mma.form.a_in_tensor_memory) {
        operands.a_address = tensor_address(mma.a);
        check_lane(warp, operation, bit, operands, operands.a_address, "A");
    } else {
        operands.a = make_tile(warp, operation, bit, warp.row<std::uint64_t>(mma.a_descriptor)[lane], 'A', d.a_major,
                               operands.rows_per_cta(), operands.a_row_bytes(), d.a, mma.form);
    }
    operands.b = make_tile(warp, operation, bit, warp.row<std::uint64_t>(mma.b_descriptor)[lane], 'B', d.b_major,
                           d.n / operands.ctas() + operands.columns.shift, operands.b_row_bytes(), d.b, mma.form);
    if (mma.form.sparse) {
        operands.metadata = tensor_address(mma.metadata);
        check_lane(warp, operation, bit, operands, operands.metadata, "the sparsity metadata");
    }
    if (mma.form.scales != 0) {
        // CUTLASS keeps the scale factor id of the descriptor in bits 30 and 31; the lane is 0.
        operands.scales_a = tensor_address(mma.scales_a);
        operands.scales_b = tensor_address(mma.scales_b);
        operands.scales_a.lane &= 0x3FFF;
        operands.scales_b.lane &= 0x3FFF;
        if (operands.scales_a.lane != 0 || operands.scales_b.lane != 0) {
            warp.report(operation, FindingKind::invalid_operand, bit,
                        "tcgen05.mma: the lane of the addresses of scale factors must be 0");
        }
    }
    operands.accumulate = (warp.predicate(mma.enable) & bit) != 0;
    operands.scale_d = mma.scale_d;
    for (std::size_t i = 0; i < mma.disabled.size(); ++i) {
        operands.disabled[i] = warp.row<std::uint32_t>(mma.disabled[i])[lane];
    }
    return operands;
}

/// D must have columns of its own: it is written while the instruction reads its other operands.
void check_overlap(Warp& warp, const Operation& operation, LaneMask lane, const MmaOperands& operands)
{
    const TensorRegion d = d_region(operands);
    const auto check = [&](const TensorRegion& region, const char* what) {
        if (region.overlaps(d)) {
            warp.report(operation, FindingKind::invalid_operand, lane,
                        fmt::format("tcgen05.mma: {} in columns {} to {} of tensor memory {} D, columns {} to {}: give "
                                    "each columns of its own",
                                    what, region.column, region.column + region.columns - 1,
                                    std::string_view(what).ends_with('s') ? "overlap" : "overlaps", d.column,
                                    d.column + d.columns - 1));
        }
    };
    if (operands.form.a_in_tensor_memory) {
        check(a_region(operands), "A");
    }
    if (operands.form.sparse) {
        check(metadata_region(operands), "the sparsity metadata");
    }
    if (operands.form.scales != 0) {
        for (const bool of_b : {false, true}) {
            for (const TensorRegion& region : scale_regions(operands, of_b)) {
                check(region, of_b ? "scale factors of B's rows" : "scale factors of A's rows");
            }
        }
    }
}

TensorFootprint make_footprint(const MmaOperands& operands)
{
    TensorFootprint print;
    print.writes.push_back(d_region(operands));
    if (operands.accumulate) {
        print.reads.push_back(d_region(operands));
    }
    if (operands.form.a_in_tensor_memory) {
        print.reads.push_back(a_region(operands));
    }
    if (operands.form.sparse) {
        print.reads.push_back(metadata_region(operands));
    }
    if (operands.form.scales != 0) {
        for (const bool of_b : {false, true}) {
            std::ranges::copy(scale_regions(operands, of_b), std::back_inserter(print.reads));
        }
    }
    return print;
}

void issue(Warp& warp, const Operation& operation, unsigned lane)
{
    const LaneMask bit = LaneMask{1} << lane;
    const auto& mma = operation.as<Mma>();
    note_cta_group(warp, operation, bit, mma.form.cta_group);
    auto work = std::make_unique<MmaWork>();
    work->kind = AsyncOperation::Kind::mma;
    work->cta_group = mma.form.cta_group;
    work->ctas = {&warp.cta, nullptr};
    if (mma.form.cta_group == 2) {
        work->ctas[1] = &require_peer(warp, operation, bit);
        if (work->ctas[1]->rank < work->ctas[0]->rank) {
            std::swap(work->ctas[0], work->ctas[1]);  // the even CTA has the first rows, whichever CTA issues
        }
    }
    work->operands = read_operands(warp, operation, lane);
    const MmaOperands& operands = work->operands;
    if (warp.checks()) {
        check_overlap(warp, operation, bit, operands);
    }
    const TensorFootprint print = make_footprint(operands);
    for (std::size_t i = 0; i < operands.ctas(); ++i) {
        Cta& cta = *work->ctas[i];
        if (!mma.form.a_in_tensor_memory) {
            check_tile_bounds(warp, operation, bit, cta, operands.a, "tcgen05.mma, operand A");
        }
        check_tile_bounds(warp, operation, bit, cta, operands.b, "tcgen05.mma, operand B");
        for (const TensorRegion& region : print.writes) {
            check_region(warp, operation, bit, cta, region, true, name);
        }
        for (const TensorRegion& region : print.reads) {
            check_region(warp, operation, bit, cta, region, false, name);
        }
        work->footprint[i] = print;
    }
    ++warp.cluster.statistics.mma_issued;
    MmaWork& submitted = *work;
    submit(warp.cluster, std::move(work), warp, operation, lane);
    for (std::size_t i = 0; i < operands.ctas(); ++i) {
        if (!mma.form.a_in_tensor_memory) {
            begin_reading(submitted, *submitted.ctas[i], operands.a, name);
        }
        begin_reading(submitted, *submitted.ctas[i], operands.b, name);
    }
}

Step execute(Warp& warp, const Operation& operation, LaneMask active)
{
    check_single_lane(warp, operation, active, name);
    for_each_lane(active, [&](unsigned lane) { issue(warp, operation, lane); });
    return Step::next;
}

// ---- decoding ----

MmaKind take_kind(Decoder& decoder)
{
    const auto kind = decoder.take_prefixed("kind::");
    for (const MmaKind known : {MmaKind::f16, MmaKind::tf32, MmaKind::f8f6f4, MmaKind::i8, MmaKind::mxf8f6f4,
                                MmaKind::mxf4, MmaKind::mxf4nvf4}) {
        if (kind == name_of(known)) {
            return known;
        }
    }
    decoder.fail("tcgen05.mma needs .kind::f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4 or mxf4nvf4");
}

/// Scale factors per row, from .block_scale and its size.
unsigned take_scales(Decoder& decoder, MmaKind kind)
{
    const bool scaled = decoder.take("block_scale");
    const std::string_view size =
        decoder.take_one_of({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32"});
    if (scaled != is_block_scaled(kind)) {
        decoder.fail(fmt::format("kind::{} {} .block_scale", name_of(kind), scaled ? "has no" : "needs"));
    }
    if (!scaled) {
        if (!size.empty()) {
            decoder.fail(fmt::format(".{} needs .block_scale", size));
        }
        return 0;
    }
    unsigned scales = 0;
    switch (kind) {
        case MmaKind::mxf8f6f4: scales = size.empty() || size == "scale_vec::1X" || size == "block32" ? 1 : 0; break;
        case MmaKind::mxf4: scales = size.empty() || size == "scale_vec::2X" || size == "block32" ? 2 : 0; break;
        default:
            scales = size == "scale_vec::4X" || size == "block16"   ? 4
                     : size == "scale_vec::2X" || size == "block32" ? 2
                                                                    : 0;
            break;
    }
    if (scales == 0) {
        decoder.fail(size.empty() ? fmt::format("kind::{} needs .scale_vec::2X, .scale_vec::4X, .block32 or .block16",
                                                name_of(kind))
                                  : fmt::format("kind::{} has no .{}", name_of(kind), size));
    }
    return scales;
}

void take_collector(Decoder& decoder, const MmaForm& form)
{
    const auto usage = decoder.take_prefixed("collector::");
    if (!usage) {
        return;
    }
    // The collector caches the operand. It is a hint and does not change the results of correct programs.
    const std::size_t colons = usage->find("::");
    const std::string buffer = usage->substr(0, colons),
                      use = colons == std::string::npos ? "" : usage->substr(colons + 2);
    const bool known_buffer =
        form.weight_stationary ? buffer == "b0" || buffer == "b1" || buffer == "b2" || buffer == "b3" : buffer == "a";
    if (!known_buffer || (use != "fill" && use != "use" && use != "lastuse" && use != "discard")) {
        decoder.fail(fmt::format(
            ".collector::{} does not exist; {} ::fill, ::use, ::lastuse or ::discard", *usage,
            form.weight_stationary ? "with .ws it is collector::b0 to b3 with" : "it is collector::a with"));
    }
    if (form.shift_a && (use == "fill" || use == "use")) {
        decoder.fail(fmt::format(".collector::a::{} cannot be combined with .ashift", use));
    }
}

}  // namespace

void decode_mma(Decoder& decoder, Operation& operation)
{
    using OperandKind = ptx::Operand::Kind;
    auto& mma = decoder.emplace_payload<Mma>();
    MmaForm& form = mma.form;
    decoder.take("mma");
    form.sparse = decoder.take("sp");
    form.weight_stationary = decoder.take("ws");
    form.cta_group = take_cta_group(decoder);
    form.kind = take_kind(decoder);
    form.scales = take_scales(decoder, form.kind);
    form.shift_a = decoder.take("ashift");
    take_collector(decoder, form);
    if (form.weight_stationary && (form.cta_group == 2 || is_block_scaled(form.kind) || form.shift_a)) {
        decoder.fail(
            "tcgen05.mma.ws needs .cta_group::1 and one of the kinds f16, tf32, f8f6f4 and i8, and takes no .ashift");
    }

    std::size_t next = 0;
    const auto at_least = [&](std::size_t count) {
        if (decoder.operands() < next + count) {
            decoder.fail(
                "tcgen05.mma takes D, A, B, the sparsity metadata with .sp, the instruction descriptor, the scale "
                "factors of block-scaled kinds, and whether to accumulate: too few operands");
        }
    };
    const auto is_address = [&] {
        const OperandKind kind = decoder.operand(next).kind;
        return kind == OperandKind::address || kind == OperandKind::bracket;
    };
    at_least(4);
    mma.d = decoder.address(next++);
    form.a_in_tensor_memory = is_address();
    if (form.a_in_tensor_memory) {
        mma.a = decoder.address(next++);
    } else {
        mma.a_descriptor = decoder.read(next++, ptx::Type::b64);
    }
    if (form.shift_a && !form.a_in_tensor_memory) {
        decoder.fail(".ashift needs A in tensor memory");
    }
    mma.b_descriptor = decoder.read(next++, ptx::Type::b64);
    if (form.sparse) {
        at_least(2);
        mma.metadata = decoder.address(next++);
    }
    mma.descriptor = decoder.read(next++, ptx::Type::b32);
    if (form.scales != 0) {
        at_least(3);
        mma.scales_a = decoder.address(next++);
        mma.scales_b = decoder.address(next++);
    } else if (next < decoder.operands() && decoder.is_vector(next)) {
        mma.disabled = decoder.read_vector(next++, ptx::Type::b32);
        if (form.weight_stationary || mma.disabled.size() != 4 * form.cta_group) {
            decoder.fail(form.weight_stationary ? "tcgen05.mma.ws has no vector of disabled lanes"
                                                : fmt::format("the vector of disabled lanes has {} registers, not {}",
                                                              4 * form.cta_group, mma.disabled.size()));
        }
    }
    at_least(1);
    mma.enable = decoder.read_predicate(next++);
    if (next < decoder.operands()) {
        if (form.weight_stationary) {
            mma.column_mask = decoder.read(next++, ptx::Type::b64);
        } else {
            const auto scale = decoder.constant(next++);
            if (!scale || *scale < 0 || *scale > 15 || (form.kind != MmaKind::f16 && form.kind != MmaKind::tf32)) {
                decoder.fail("scale-input-d is an immediate from 0 to 15, for kind::f16 and kind::tf32 only");
            }
            mma.scale_d = static_cast<unsigned>(*scale);
        }
    }
    if (next != decoder.operands()) {
        decoder.fail("tcgen05.mma: too many operands");
    }
    operation.execute = execute;
    decoder.effects().unit = AsyncUnit::tensor;
    decoder.effects().access({.space = Space::shared, .proxy = Proxy::async, .later = true});
    decoder.effects().access(
        {.space = Space::tensor, .direction = Direction::read_write, .proxy = Proxy::async, .later = true});
}

}  // namespace tessera::emulator::tcgen05
