// tcgen05.cp (shared memory to tensor memory) and tcgen05.shift (PTX ISA "Tensor Memory Data Movement Instructions").

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "execute/tcgen05.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"

namespace tessera::emulator::tcgen05 {
namespace {

/// Which lanes the rows of the source go to; with multicast to several.
struct CopyShape {
    std::string_view name, multicast;
    unsigned rows, row_bytes;
    unsigned block;                           ///< rows that stay together
    std::array<std::array<int, 4>, 4> lanes;  ///< of each block: first lanes of its places; -1: none
};
constexpr std::array<int, 4> to(int a, int b = -1, int c = -1, int d = -1) { return {a, b, c, d}; }
constexpr std::array<CopyShape, 6> copy_shapes{{
    {"128x256b", "", 128, 32, 128, {to(0)}},
    {"128x128b", "", 128, 16, 128, {to(0)}},
    {"4x256b", "", 4, 32, 1, {to(0), to(32), to(64), to(96)}},
    {"64x128b", "warpx2::02_13", 64, 16, 32, {to(0, 64), to(32, 96)}},
    {"64x128b", "warpx2::01_23", 64, 16, 32, {to(0, 32), to(64, 96)}},
    {"32x128b", "warpx4", 32, 16, 32, {to(0, 32, 64, 96)}},
}};

struct Copy : Payload {
    const CopyShape* shape = nullptr;
    unsigned cta_group = 1;
    unsigned source_bits = 8;  ///< 6 or 4: decompress
    AddressRef address;
    Ref descriptor = no_row;
};

class CopyWork : public TensorWork {
public:
    bool step(Cluster& cluster) override
    {
        const CopyShape& shape = *copy->shape;
        for (std::size_t i = 0; i < ctas.size() && ctas[i] != nullptr; ++i) {
            Cta& cta = *ctas[i];
            if (cta.shadow != nullptr) {
                cta.shadow->end(agent);
            }
            check_reading(cluster, *this, cta, tile, {"tcgen05.cp", "its source", {}, true},
                          data_bytes_of(copy->source_bits));
            std::vector<std::byte> rows(std::size_t{shape.rows} * shape.row_bytes);
            gather(cta, tile, rows.data(), shape.row_bytes);
            if (copy->source_bits != 8) {
                unpack_padded(rows.data(), rows.size(), copy->source_bits);
                if (copy->source_bits == 4) {  // E2M1 is in bits 2-5 of its byte, like E2M3 with the same value
                    std::ranges::transform(rows, rows.begin(), [](std::byte code) { return code << 2; });
                }
            }
            TensorMemory& memory = *cta.tensor_memory;
            const TensorAccess access{.kind = TensorAccess::Kind::copy,
                                      .agent = agent,
                                      .issue = issue,
                                      .what = "tcgen05.cp",
                                      .line = line_of(operation)};
            for (const TensorRegion& region : footprint[i].writes) {
                report(cluster, *this, memory.write(region, access));
            }
            for (unsigned row = 0; row < shape.rows; ++row) {
                for (const int lane : shape.lanes[row / shape.block]) {
                    if (lane >= 0) {
                        std::memcpy(
                            memory.at({address.lane + static_cast<unsigned>(lane) + row % shape.block, address.column}),
                            rows.data() + std::size_t{row} * shape.row_bytes, shape.row_bytes);
                    }
                }
            }
        }
        complete(cluster, *this);
        return true;
    }
    [[nodiscard]] std::string describe() const override
    {
        return fmt::format("tcgen05.cp.{} of CTA {} to column {} of tensor memory", copy->shape->name, cta_rank,
                           address.column);
    }

    const Copy* copy = nullptr;
    OperandTile tile;
    TensorAddress address;
};

Step execute_copy(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& copy = operation.as<Copy>();
    const CopyShape& shape = *copy.shape;
    check_single_lane(warp, operation, active, "tcgen05.cp");
    for_each_lane(active, [&](unsigned lane) {
        const LaneMask bit = LaneMask{1} << lane;
        note_cta_group(warp, operation, bit, copy.cta_group);
        auto work = std::make_unique<CopyWork>();
        work->copy = &copy;
        work->cta_group = copy.cta_group;
        work->ctas = {&warp.cta, copy.cta_group == 2 ? &require_peer(warp, operation, bit) : nullptr};
        work->address = TensorAddress(static_cast<std::uint32_t>(warp.address(copy.address, lane)));
        const unsigned top_lane = shape.rows == 4 ? 31 : 0;
        if (work->address.lane > top_lane) {
            warp.fault(operation, FindingKind::invalid_operand, error_illegal_instruction, bit,
                       fmt::format("tcgen05.cp.{} to lane {} of tensor memory: the lane of the address must be {}",
                                   shape.name, work->address.lane, top_lane == 0 ? "0" : "0 to 31"));
        }
        const auto decoded = decode_tcgen05_descriptor(warp.row<std::uint64_t>(copy.descriptor)[lane]);
        work->tile = {
            .descriptor = decoded.descriptor, .major = Major::k, .lines = shape.rows, .line_bytes = shape.row_bytes};
        for (const std::string& problem : {decoded.problem, work->tile.problem(8)}) {
            if (!problem.empty()) {
                warp.report(operation, FindingKind::invalid_descriptor, bit, "tcgen05.cp: " + problem);
            }
        }
        TensorRegion region{{}, work->address.column, shape.row_bytes / 4};
        for (unsigned block = 0; block < shape.rows / shape.block; ++block) {
            for (const int first : shape.lanes[block]) {
                if (first >= 0) {
                    region.lanes = region.lanes |
                                   TensorLanes::range(work->address.lane + static_cast<unsigned>(first), shape.block);
                }
            }
        }
        for (std::size_t i = 0; i < work->ctas.size() && work->ctas[i] != nullptr; ++i) {
            check_tile_bounds(warp, operation, bit, *work->ctas[i], work->tile, "tcgen05.cp");
            check_region(warp, operation, bit, *work->ctas[i], region, true, "tcgen05.cp");
            work->footprint[i].writes.push_back(region);
        }
        CopyWork& submitted = *work;
        submit(warp.cluster, std::move(work), warp, operation, lane);
        for (std::size_t i = 0; i < submitted.ctas.size() && submitted.ctas[i] != nullptr; ++i) {
            begin_reading(submitted, *submitted.ctas[i], submitted.tile, "tcgen05.cp");
        }
    });
    return Step::next;
}

struct Shift : Payload {
    unsigned cta_group = 1;
    AddressRef address;
};

/// Shifts the lanes of one warp's quarter, 32 bytes of each: lane i gets the contents of lane i + 1; the last lane
/// keeps its own (tcgen05.cp.4x256b fills it).
class ShiftWork : public TensorWork {
public:
    bool step(Cluster& cluster) override
    {
        for (std::size_t i = 0; i < ctas.size() && ctas[i] != nullptr; ++i) {
            TensorMemory& memory = *ctas[i]->tensor_memory;
            const TensorAccess access{.kind = TensorAccess::Kind::shift,
                                      .agent = agent,
                                      .issue = issue,
                                      .what = "tcgen05.shift",
                                      .line = line_of(operation)};
            for (const TensorRegion& region : footprint[i].writes) {
                report(cluster, *this, memory.check_initialized(region, "tcgen05.shift"));
                report(cluster, *this, memory.write(region, access));
            }
            for (unsigned lane = 0; lane < 31; ++lane) {
                std::memcpy(memory.at({address.lane + lane, address.column}),
                            memory.at({address.lane + lane + 1, address.column}), 32);
            }
        }
        complete(cluster, *this);
        return true;
    }
    [[nodiscard]] std::string describe() const override
    {
        return fmt::format("tcgen05.shift of CTA {} at lane {}, column {} of tensor memory", cta_rank, address.lane,
                           address.column);
    }
    TensorAddress address;
};

Step execute_shift(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& shift = operation.as<Shift>();
    check_single_lane(warp, operation, active, "tcgen05.shift");
    for_each_lane(active, [&](unsigned lane) {
        const LaneMask bit = LaneMask{1} << lane;
        note_cta_group(warp, operation, bit, shift.cta_group);
        auto work = std::make_unique<ShiftWork>();
        work->cta_group = shift.cta_group;
        work->ctas = {&warp.cta, shift.cta_group == 2 ? &require_peer(warp, operation, bit) : nullptr};
        work->address = TensorAddress(static_cast<std::uint32_t>(warp.address(shift.address, lane)));
        if (work->address.lane % 32 != 0 || work->address.lane >= tensor_lanes) {
            warp.fault(operation, FindingKind::invalid_operand, error_illegal_instruction, bit,
                       fmt::format("tcgen05.shift at lane {} of tensor memory: the lane must be 0, 32, 64 or 96",
                                   work->address.lane));
        }
        const TensorRegion region{TensorLanes::range(work->address.lane, 32), work->address.column, 8};
        for (std::size_t i = 0; i < work->ctas.size() && work->ctas[i] != nullptr; ++i) {
            check_region(warp, operation, bit, *work->ctas[i], region, true, "tcgen05.shift");
            work->footprint[i].writes.push_back(region);
        }
        submit(warp.cluster, std::move(work), warp, operation, lane);
    });
    return Step::next;
}

}  // namespace

void decode_copy(Decoder& decoder, Operation& operation)
{
    auto& copy = decoder.emplace_payload<Copy>();
    decoder.take("cp");
    copy.cta_group = take_cta_group(decoder);
    const std::string_view name = decoder.take_one_of({"128x256b", "128x128b", "4x256b", "64x128b", "32x128b"});
    const std::string_view multicast = decoder.take_one_of({"warpx2::02_13", "warpx2::01_23", "warpx4"});
    for (const CopyShape& shape : copy_shapes) {
        if (shape.name == name && shape.multicast == multicast) {
            copy.shape = &shape;
        }
    }
    if (copy.shape == nullptr) {
        decoder.fail(
            "tcgen05.cp has the shapes .128x256b, .128x128b, .4x256b, .64x128b.warpx2::02_13, .64x128b.warpx2::01_23 "
            "and .32x128b.warpx4");
    }
    if (decoder.take("b8x16")) {
        const std::string_view source = decoder.take_one_of({"b6x16_p32", "b4x16_p64"});
        if (source.empty()) {
            decoder.fail("tcgen05.cp to .b8x16 needs the source format .b6x16_p32 or .b4x16_p64");
        }
        copy.source_bits = source == "b6x16_p32" ? 6 : 4;
    }
    if (decoder.operands() != 2) {
        decoder.fail("tcgen05.cp takes an address in tensor memory and a matrix descriptor");
    }
    copy.address = decoder.address(std::size_t{0});
    copy.descriptor = decoder.read(1, ptx::Type::b64);
    operation.execute = execute_copy;
    decoder.effects().unit = AsyncUnit::tensor;
    decoder.effects().access({.space = Space::shared, .proxy = Proxy::async, .later = true});
    decoder.effects().access(
        {.space = Space::tensor, .direction = Direction::write, .proxy = Proxy::async, .later = true});
}

void decode_shift(Decoder& decoder, Operation& operation)
{
    auto& shift = decoder.emplace_payload<Shift>();
    decoder.take("shift");
    shift.cta_group = take_cta_group(decoder);
    if (!decoder.take("down") || decoder.operands() != 1) {
        decoder.fail("tcgen05.shift has the form tcgen05.shift.cta_group::N.down [address]");
    }
    shift.address = decoder.address(std::size_t{0});
    operation.execute = execute_shift;
    decoder.effects().unit = AsyncUnit::tensor;
    decoder.effects().access(
        {.space = Space::tensor, .direction = Direction::read_write, .proxy = Proxy::async, .later = true});
}

}  // namespace tessera::emulator::tcgen05
