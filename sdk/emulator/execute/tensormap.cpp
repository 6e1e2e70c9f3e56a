// Tensor maps in memory: how copies find them; tensormap.replace and tensormap.cp_fenceproxy (PTX ISA 9.7.9.28,
// 9.7.13.5).

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "execute/barrier_families.hpp"
#include "execute/copy_families.hpp"
#include "execute/tensor_map_access.hpp"
#include "machine/fault.hpp"
#include "machine/memory_access.hpp"

namespace tessera::emulator {

namespace {

using ptx::Type;

using MapBytes = std::span<const std::byte, tensor_map_bytes>;

// PTX and the driver number element types differently.
constexpr std::array elements_of_ptx{
    TensorElement::u8,       TensorElement::u16,       TensorElement::u32,        TensorElement::s32,
    TensorElement::u64,      TensorElement::s64,       TensorElement::f16,        TensorElement::f32,
    TensorElement::f32_ftz,  TensorElement::f64,       TensorElement::bf16,       TensorElement::tf32,
    TensorElement::tf32_ftz, TensorElement::u4_align8, TensorElement::u4_align16, TensorElement::u6_align16,
};

/// Variants of the 128-byte swizzle by tensormap.replace's atomicity: 16 bytes, 32, 32 with exchanged halves, 64.
constexpr std::array atoms_of_ptx{TensorSwizzle::span_128, TensorSwizzle::span_128_atom_32,
                                  TensorSwizzle::span_128_atom_32_flip_8, TensorSwizzle::span_128_atom_64};

enum class Field : std::uint8_t {
    global_address,
    rank,
    box_dim,
    global_dim,
    global_stride,
    element_stride,
    elemtype,
    interleave_layout,
    swizzle_mode,
    swizzle_atomicity,
    fill_mode,
};

struct FieldName {
    std::string_view name;
    Field field;
    bool indexed;
    Type type;
};

constexpr std::array field_names{
    FieldName{"global_address", Field::global_address, false, Type::b64},
    FieldName{"rank", Field::rank, false, Type::b32},
    FieldName{"box_dim", Field::box_dim, true, Type::b32},
    FieldName{"global_dim", Field::global_dim, true, Type::b32},
    FieldName{"global_stride", Field::global_stride, true, Type::b64},
    FieldName{"element_stride", Field::element_stride, true, Type::b32},
    FieldName{"elemtype", Field::elemtype, false, Type::b32},
    FieldName{"interleave_layout", Field::interleave_layout, false, Type::b32},
    FieldName{"swizzle_mode", Field::swizzle_mode, false, Type::b32},
    FieldName{"swizzle_atomicity", Field::swizzle_atomicity, false, Type::b32},
    FieldName{"fill_mode", Field::fill_mode, false, Type::b32},
};

/// Sets one field. Returns false if the field has no such value or index.
bool replace(TensorMap& map, Field field, std::size_t index, std::uint64_t value)
{
    switch (field) {
        case Field::global_address: map.address = value; return true;
        case Field::rank: map.rank = static_cast<std::uint32_t>(value) + 1; return value < max_tensor_rank;
        case Field::box_dim:
            if (index < max_tensor_rank) {
                map.box[index] = static_cast<std::uint32_t>(value);
            }
            return index < max_tensor_rank && value >= 1 && value <= 256;
        case Field::global_dim:
            if (index < max_tensor_rank) {
                map.extents[index] = value;
            }
            return index < max_tensor_rank && value >= 1;
        case Field::global_stride:
            if (index < max_tensor_rank - 1) {
                map.strides[index] = value;
            }
            return index < max_tensor_rank - 1 && value % 16 == 0;
        case Field::element_stride:
            if (index < max_tensor_rank) {
                map.element_strides[index] = static_cast<std::uint32_t>(value);
            }
            return index < max_tensor_rank && value >= 1 && value <= 8;
        case Field::elemtype:
            if (value < elements_of_ptx.size()) {
                map.element = elements_of_ptx[value];
            }
            return value < elements_of_ptx.size();
        case Field::interleave_layout: map.interleave = static_cast<TensorInterleave>(value); return value <= 2;
        case Field::swizzle_mode:
            map.swizzle =
                value == 3 && map.swizzle > TensorSwizzle::span_128 ? map.swizzle : static_cast<TensorSwizzle>(value);
            return value <= 3;
        case Field::swizzle_atomicity:
            if (value < atoms_of_ptx.size() && map.swizzle >= TensorSwizzle::span_128) {
                map.swizzle = atoms_of_ptx[value];
            }
            return value < atoms_of_ptx.size() && (value == 0 || map.swizzle >= TensorSwizzle::span_128);
        case Field::fill_mode: map.fill = static_cast<TensorFill>(value); return value <= 1;
    }
    return false;
}

struct ReplacePayload : Payload {
    AddressRef address;
    Space space = Space::generic;
    Field field = Field::global_address;
    std::string_view name;
    std::size_t index = 0;
    Ref value = no_row;
    bool wide = false;
};

Step execute_replace(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& payload = operation.as<ReplacePayload>();
    for_each_lane(active, [&](unsigned lane) {
        const std::uint64_t address = warp.address(payload.address, lane);
        const MemoryAccess access{
            .space = payload.space, .direction = Direction::read_write, .what = "tensormap.replace"};
        std::byte* const bytes = locate(warp, operation, access, address, tensor_map_bytes, tensor_map_bytes, lane);
        // 128 zero bytes are an empty map: compilers (Triton's) start from it to make maps in a kernel.
        const bool blank = std::all_of(bytes, bytes + tensor_map_bytes, [](std::byte b) { return b == std::byte{0}; });
        std::optional<TensorMap> map = blank ? TensorMap{} : decode_tensor_map(MapBytes(bytes, tensor_map_bytes));
        if (!map) {
            warp.report(
                operation, FindingKind::invalid_descriptor, bit(lane),
                fmt::format("tensormap.replace: there is no tensor map at {:#x}: copy one there, or zeros, first",
                            address));
            return;
        }
        const std::uint64_t value = payload.wide ? warp.row<std::uint64_t>(payload.value)[lane]
                                                 : std::uint64_t{warp.row<std::uint32_t>(payload.value)[lane]};
        if (!replace(*map, payload.field, payload.index, value)) {
            warp.report(
                operation, FindingKind::invalid_descriptor, bit(lane),
                fmt::format("tensormap.replace: {} of index {} cannot be {}", payload.name, payload.index, value));
        }
        const auto encoded = encode(*map);
        std::memcpy(bytes, encoded.data(), encoded.size());
    });
    warp.cluster.progress();
    return Step::next;
}

struct CopyFencePayload : Payload {
    AddressRef destination, source;
    MemoryOrder order{};
};

/// Copies the map to global memory and releases it to the tensormap proxy, once for the warp.
Step execute_copy_fence(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!warp.gather_aligned(operation)) {
        return Step::wait;
    }
    const auto& payload = operation.as<CopyFencePayload>();
    const auto lane = static_cast<unsigned>(std::countr_zero(active));
    const MemoryAccess from{.space = Space::shared, .direction = Direction::read, .what = "tensormap.cp_fenceproxy"};
    const MemoryAccess to{.space = Space::global, .direction = Direction::write, .what = "tensormap.cp_fenceproxy"};
    const std::byte* const source =
        locate(warp, operation, from, warp.address(payload.source, lane), tensor_map_bytes, tensor_map_bytes, lane);
    std::array<std::byte, tensor_map_bytes> bytes{};
    std::memcpy(bytes.data(), source, bytes.size());
    std::memcpy(
        locate(warp, operation, to, warp.address(payload.destination, lane), tensor_map_bytes, tensor_map_bytes, lane),
        bytes.data(), bytes.size());
    if (warp.checks()) {
        warp.cluster.clocks.proxy_fence(warp.agent, active, fences_tensormap);
        warp.cluster.clocks.fence(warp.agent, payload.order, warp.barriers.fences);
    }
    warp.cluster.progress();
    return Step::next;
}

void decode_replace(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<ReplacePayload>();
    decoder.take("tile");
    const std::string_view space = decoder.take_one_of({"global", "shared::cta"});
    payload.space = space.empty() ? Space::generic : space == "global" ? Space::global : Space::shared;
    const FieldName* found = nullptr;
    for (const FieldName& name : field_names) {
        found = decoder.take(name.name) ? &name : found;
    }
    if (found == nullptr || !decoder.take("b1024")) {
        decoder.fail("the form is tensormap.replace.tile.{field}{.space}.b1024.{b32,b64}");
    }
    if (decoder.require_type() != found->type) {
        decoder.fail(fmt::format("the field {} has the type .{}", found->name, ptx::name_of(found->type)));
    }
    if (decoder.operands() != (found->indexed ? 3U : 2U)) {
        decoder.fail(fmt::format("the field {} needs {} operands", found->name, found->indexed ? 3 : 2));
    }
    payload.field = found->field;
    payload.name = found->name;
    payload.wide = found->type == Type::b64;
    payload.address = decoder.address(0);
    if (found->indexed) {
        const std::optional<std::int64_t> index = decoder.constant(1);
        if (!index || *index < 0) {
            decoder.fail("the index of the field's dimension is a constant");
        }
        payload.index = static_cast<std::size_t>(*index);
    }
    payload.value = decoder.read(found->indexed ? 2 : 1, found->type);
    operation.execute = execute_replace;
    decoder.effects().access({.space = payload.space, .direction = Direction::read_write, .bytes = tensor_map_bytes});
}

void decode_copy_fence(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<CopyFencePayload>();
    const bool spaces = decoder.take("global") && decoder.take("shared::cta");
    const bool semantics = decoder.take("tensormap::generic") && decoder.take("release");
    const Scope scope = decoder.take_scope();
    if (!spaces || !semantics || scope == Scope::none || !decoder.take("sync") || !decoder.take("aligned")) {
        decoder.fail(
            "the form is tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned");
    }
    if (decoder.operands() != 3 || decoder.constant(2) != std::int64_t{tensor_map_bytes}) {
        decoder.fail("the operands are [destination], [source] and the size, which is 128");
    }
    payload.destination = decoder.address(0);
    payload.source = decoder.address(1);
    operation.execute = execute_copy_fence;
    decoder.mark_aligned();
    decoder.effects().access({.space = Space::shared, .bytes = tensor_map_bytes});
    decoder.effects().access({.space = Space::global, .direction = Direction::write, .bytes = tensor_map_bytes});
    payload.order = {Semantics::release, scope};
    decoder.effects().sync = {.object = SyncObject::other_proxy, .fences = true, .order = payload.order};
}

}  // namespace

TensorMap tensor_map_at(Warp& warp, const Operation& operation, const AddressRef& reference, unsigned lane,
                        const char* what)
{
    std::uint64_t address = warp.address(reference, lane);
    if (reference.anchor == AddressRef::Anchor::kernel_parameter) {
        address += parameter_window;
    }
    if (address >= local_window && address < local_window + (std::uint64_t{1} << 32U)) {
        warp.fault(operation, FindingKind::invalid_descriptor, error_illegal_instruction, bit(lane),
                   fmt::format("{}: the tensor map at {:#x} is in local memory: pass it as const __grid_constant__ "
                               "CUtensorMap, so that the kernel uses the parameter itself and not a copy",
                               what, address));
    }
    constexpr std::uint64_t map_alignment = 64;
    if (address % map_alignment != 0) {
        warp.fault(
            operation, FindingKind::misaligned, error_misaligned_address, bit(lane),
            fmt::format("{}: the tensor map at {:#x} must be aligned to {} bytes", what, address, map_alignment));
    }
    GlobalProblem problem;
    const std::byte* const bytes = locate_global(warp.cluster, address, tensor_map_bytes, Direction::read, problem);
    if (bytes == nullptr) {
        warp.fault(operation, problem.kind, error_illegal_address, bit(lane),
                   fmt::format("{}: the tensor map: {}", what, problem.text));
    }
    if (problem.kind == FindingKind::out_of_bounds && !problem.text.empty()) {
        warp.report(operation, problem.kind, bit(lane), fmt::format("{}: the tensor map: {}", what, problem.text));
    }
    const std::optional<TensorMap> map = decode_tensor_map(MapBytes(bytes, tensor_map_bytes));
    if (!map) {
        warp.fault(operation, FindingKind::invalid_descriptor, error_illegal_instruction, bit(lane),
                   fmt::format("{}: the 128 bytes at {:#x} are not a tensor map: encode one with "
                               "cuTensorMapEncodeTiled and check its result",
                               what, address));
    }
    return *map;
}

void decode_tensormap(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::copy;
    if (decoder.take("replace")) {
        decode_replace(decoder, operation);
    } else if (decoder.take("cp_fenceproxy")) {
        decode_copy_fence(decoder, operation);
    } else {
        decoder.fail("the forms are tensormap.replace and tensormap.cp_fenceproxy");
    }
}

}  // namespace tessera::emulator
