/// Launches a program whose types the compiler of the host does not know: checks the arguments against the program's members, makes
/// the bytes of the program, and plans.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "program/program_state.hpp"
#include "tessera/error.hpp"
#include "tessera/launch.hpp"
#include "tessera/tile/choice.hpp"

namespace tessera::tile {
namespace detail {
namespace {

using tessera::detail::raise;
constexpr const char* operation = "tile::Kernel::launch";
constexpr std::size_t most_parameter_bytes = 4096 - sizeof(SharedMemory) - sizeof(TensorMemory);

using InputStateOfAny = InputState<std::byte, RowMajor>;

std::string_view name_of(ValueKind kind)
{
    switch (kind) {
        case ValueKind::boolean: return "bool";
        case ValueKind::floating: return "floating-point number";
        case ValueKind::signed_integer: return "signed integer";
        case ValueKind::unsigned_integer: return "unsigned integer";
        case ValueKind::other: break;
    }
    return "structure";
}

/// Says what a member is, or what is given for one.
std::string described(const Member& member, bool is_argument, bool is_const)
{
    switch (member.kind) {
        case MemberKind::input:
        case MemberKind::output:
            if (is_argument) {
                return fmt::format("a {} matrix of {}{}", member.row_major ? "row-major" : "column-major",
                                   is_const ? "const " : "", to_string(member.element));
            }
            return fmt::format("an {} of {} in tiles of ({}, {}), {}",
                               member.kind == MemberKind::input ? "Input" : "Output", to_string(member.element),
                               member.rows, member.columns, member.row_major ? "row-major" : "column-major");
        case MemberKind::numbers:
            return fmt::format("{} of a {} of {} bytes", is_argument ? "a DeviceSpan" : "Numbers",
                               name_of(member.number), member.number_bytes);
        case MemberKind::value: break;
    }
    return fmt::format("a {} of {} bytes", name_of(member.number), member.bytes);
}

bool fits(const Member& member, const ProgramArgument& argument)
{
    const Member& given = argument.member;
    switch (member.kind) {
        case MemberKind::input:
        case MemberKind::output:
            return given.kind == MemberKind::input && given.element == member.element &&
                   given.row_major == member.row_major && !(member.kind == MemberKind::output && argument.is_const);
        case MemberKind::numbers:
            return given.kind == MemberKind::numbers && given.number == member.number &&
                   given.number_bytes == member.number_bytes;
        case MemberKind::value: break;
    }
    return given.kind == MemberKind::value && given.number == member.number && given.bytes == member.bytes;
}

/// The bytes of a program, and what is noted while they are made.
class Packed {
public:
    Packed(const LoadedProgram& loaded, const ProgramArgument* arguments, std::size_t count, const LaunchOn& on)
        : notes_(loaded.program->notes), arguments_(arguments)
    {
        require(loaded, count, on.caller);
        for (std::size_t i = 0; i < count; ++i) {
            put(i, on.caller);
        }
    }

    std::byte* data() noexcept { return bytes_; }
    /// Returns what the program needs on mma.sync and wgmma.
    Plan plan() const { return plan(notes_.plan); }
    /// Returns what it needs on tcgen05.
    PlanWithTensorMemory tcgen05_plan() const;

private:
    void require(const LoadedProgram& loaded, std::size_t count, const std::source_location& caller) const
    {
        const ProgramMembers& members = notes_.members;
        if (count != members.count) {
            raise(ErrorCode::invalid_argument, operation, caller,
                  fmt::format("{} has {} members, and the launch {} arguments", loaded.type, members.count, count),
                  "one for each member, in their order");
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (!fits(members.of[i], arguments_[i])) {
                raise(ErrorCode::invalid_argument, operation, caller,
                      fmt::format("member {} of {} is {}, and argument {} is {}", i + 1, loaded.type,
                                  described(members.of[i], false, false), i + 1,
                                  described(arguments_[i].member, true, arguments_[i].is_const)),
                      "an argument of the member's type: nothing is converted");
            }
        }
        if (members.bytes > most_parameter_bytes) {
            raise(ErrorCode::launch_refused, operation, caller,
                  fmt::format("{} has {} bytes, more than the {} that a kernel's parameters may have", loaded.type,
                              members.bytes, most_parameter_bytes),
                  "fewer inputs: each has 256 bytes");
        }
    }

    template <class T>
    void copy(std::size_t member, const T& value)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        std::memcpy(bytes_ + notes_.offsets[member], &value, sizeof value);
    }

    void put(std::size_t index, const std::source_location& caller)
    {
        const Member& member = notes_.members.of[index];
        const ProgramArgument& argument = arguments_[index];
        if (member.kind == MemberKind::input || member.kind == MemberKind::output) {
            require_extents(operation, member.compiled_rows, member.compiled_columns, argument.memory.rows,
                            argument.memory.columns, caller);
        }
        switch (member.kind) {
            case MemberKind::input: {
                InputStateOfAny state{{}, argument.memory, false};
                if (member.can_be_staged) {
                    state.has_map = encode_map(map_of_tiles(member), argument.memory, state.map, caller);
                }
                has_map_[index] = state.has_map;
                copy(index, state);
                break;
            }
            case MemberKind::output:
                copy(index, OutputState<const std::byte, RowMajor>{
                                argument.memory, raster_of(argument.memory, member.rows, member.columns)});
                break;
            case MemberKind::numbers:
                copy(index, NumbersState<std::byte>{static_cast<const std::byte*>(argument.value), argument.count,
                                                    argument.device});
                break;
            case MemberKind::value: std::memcpy(bytes_ + notes_.offsets[index], argument.value, member.bytes); break;
        }
    }

    Plan plan(const PlanNotes& notes) const;

    static StagedMap map_of_tiles(const Member& member)
    {
        return {.element = member.element,
                .type = tensor_map_type_of(member.element),
                .element_bytes = static_cast<std::uint32_t>(size_of(member.element)),
                .in_line = member.in_line,
                .box_lines = member.box_lines,
                .swizzle = member.swizzle,
                .row_major = member.row_major};
    }
    static StagedMap map_of_halves(const Member& member)
    {
        StagedMap map = map_of_tiles(member);
        map.in_line = member.in_line_of_halves;
        map.box_lines = member.box_lines_of_halves;
        map.swizzle = member.swizzle_of_halves;
        return map;
    }

    static int tensor_map_type_of(ElementType element)
    {
        using tessera::detail::tensor_map_type;
        switch (element) {
            case ElementType::f32: return tensor_map_type<f32>;
            case ElementType::f16: return tensor_map_type<f16>;
            case ElementType::bf16: return tensor_map_type<bf16>;
            case ElementType::tf32: return tensor_map_type<tf32>;
            case ElementType::f8e4m3: return tensor_map_type<f8e4m3>;
            case ElementType::f8e5m2: break;
        }
        return tensor_map_type<f8e5m2>;
    }

    /// Calls `visit` with a member; with all of a kind if nobody knows which it is.
    template <class Visit>
    void for_each(const MemberNumber& member, MemberKind kind, Visit visit) const
    {
        for (std::size_t i = 0; i < notes_.members.count; ++i) {
            if (member ? *member == i : notes_.members.of[i].kind == kind) {
                visit(i);
            }
        }
    }

    alignas(128) std::byte bytes_[most_parameter_bytes] = {};
    bool has_map_[most_members] = {};
    const ProgramNotes& notes_;
    const ProgramArgument* arguments_;
};

Plan Packed::plan(const PlanNotes& notes) const
{
    Plan plan;
    plan.scratch_bytes = notes.scratch_bytes;
    plan.stage_bytes = notes.stage_bytes;
    plan.held_bytes = notes.held_bytes;
    plan.held = notes.held;
    for (const MemberNumber& place : notes.places) {
        for_each(place, MemberKind::output, [&](std::size_t i) {
            const Member& member = notes_.members.of[i];
            const AnyMemory& memory = arguments_[i].memory;
            plan.note_places(tiles_along(memory.rows, member.rows), tiles_along(memory.columns, member.columns),
                             memory.batches);
        });
    }
    for (std::size_t i = 0; i < notes_.members.count; ++i) {
        const MemberKind kind = notes_.members.of[i].kind;
        if (kind == MemberKind::input || kind == MemberKind::output) {
            plan.note_device(arguments_[i].memory.device);
        } else if (kind == MemberKind::numbers) {
            plan.note_device(arguments_[i].device);
        }
    }
    for (const MemberNumber& matrix : notes.matrices) {
        if (matrix) {  // the kernel checks the others
            plan.note_batches(arguments_[*matrix].memory.batches);
        }
    }
    for (const NotedWhole& whole : notes.whole) {
        for (const MemberKind kind : {MemberKind::input, MemberKind::output}) {
            for_each(whole.member, kind, [&](std::size_t i) {
                const Member& member = notes_.members.of[i];
                const AnyMemory& memory = arguments_[i].memory;
                if (plan.tiles > 0 && member.kind == kind) {
                    plan.note_whole(memory.rows, memory.columns, member.rows, member.columns, whole.of_rows,
                                    whole.of_columns);
                }
            });
        }
    }
    plan.gathers = notes.gathers;
    plan.reads_row = notes.reads_row;
    plan.reads_column = notes.reads_column;
    plan.streams_rows = notes.streams_rows;
    plan.streams_columns = notes.streams_columns;
    plan.by_tma = !notes.gathers;
    const auto need_map = [&](std::size_t i) { plan.by_tma = plan.by_tma && has_map_[i]; };
    for (const auto& bands : notes.streams) {
        const NotedBand* first = nullptr;
        for (const NotedBand& band : bands) {
            for_each(band.member, MemberKind::input, need_map);
            if (!band.member || !band.along_columns || !band.is_whole) {
                continue;  // the kernel checks it
            }
            const auto extent = [&](const NotedBand& of) {
                const AnyMemory& memory = arguments_[*of.member].memory;
                return *of.along_columns ? memory.columns : memory.rows;
            };
            first = first == nullptr ? &band : first;
            plan.note_extents({extent(*first), extent(band)});
        }
    }
    for (const MemberNumber& held : notes.held_members) {
        for_each(held, MemberKind::input, need_map);
    }
    return plan;
}

PlanWithTensorMemory Packed::tcgen05_plan() const
{
    if (!notes_.tcgen05) {
        return {};
    }
    const Tcgen05Notes& notes = *notes_.tcgen05;
    PlanWithTensorMemory both{plan(notes.plan), notes.needs};
    for (const MemberNumber& place : notes.plan.places) {
        for_each(place, MemberKind::output, [&](std::size_t i) {
            const Member& member = notes_.members.of[i];
            const AnyMemory& memory = arguments_[i].memory;
            both.tcgen05.note_places(tiles_along(memory.rows, member.rows),
                                     tiles_along(memory.columns, member.columns));
        });
    }
    for (const NotedPairMap& noted : notes.pair_maps) {
        if (noted.member && noted.is_halved) {
            static_assert(offsetof(InputStateOfAny, map) == 0);
            const std::size_t i = *noted.member;
            both.tcgen05.note_map_of_pair(
                {notes_.offsets[i], *noted.is_halved, map_of_halves(notes_.members.of[i]), arguments_[i].memory});
        } else {
            both.tcgen05.refuse_pairs(PairRefusal::map);
        }
    }
    return both;
}

}  // namespace
}  // namespace detail

LaunchReport Kernel::launch_with(const LaunchOn& on, const detail::ProgramArgument* arguments, std::size_t count) const
{
    const detail::LoadedProgram& loaded = *program_;
    tessera::detail::require_same_device(detail::operation, on.caller, "the stream", on.stream.device(), "the kernel",
                                         loaded.device);
    detail::Packed packed(loaded, arguments, count, on);
    const detail::ProgramMembers& members = loaded.program->notes.members;
    const auto candidate = [](cudaKernel_t kernel, std::uint32_t threads) {
        return detail::Candidate{reinterpret_cast<const void*>(kernel), static_cast<int>(threads)};
    };
    const detail::Candidates candidates{
        .mma_sync = candidate(loaded.mma_sync, members.threads_mma_sync),
        .mma_sync_by_tma = candidate(loaded.by_tma, members.threads_by_tma),
        .wgmma = candidate(loaded.wgmma, members.threads_wgmma),
        .clusters = candidate(loaded.clusters, members.threads_wgmma),
        .tcgen05 = candidate(loaded.tcgen05, members.threads_tcgen05),
        .pairs = candidate(loaded.pairs, members.threads_tcgen05),
        .clusters_of_pairs = candidate(loaded.clusters_of_pairs, members.threads_tcgen05)};
    const detail::PlanWithTensorMemory tcgen05_plan = packed.tcgen05_plan();
    const detail::Choice choice = detail::choose(packed.plan(), tcgen05_plan, on.stream, candidates,
                                                 {.stages = static_cast<int>(members.stages),
                                                  .cluster = static_cast<int>(members.cluster),
                                                  .cluster_columns = static_cast<int>(members.cluster_columns),
                                                  .pairs = members.pairs},
                                                 on.caller);
    const LaunchReport& report = choice.report;
    if (report.ctas == 0) {
        return report;
    }
    if (report.pairs) {
        detail::encode_maps_of_pair(tcgen05_plan.tcgen05, packed.data(), on.caller);
    }
    const bool by_tcgen05 = report.instructions == Instructions::tcgen05;
    const bool in_clusters = !by_tcgen05 && report.cluster > 1;
    const detail::Candidate& chosen = report.pairs && report.cluster > 2           ? candidates.clusters_of_pairs
                                      : report.pairs                               ? candidates.pairs
                                      : by_tcgen05                                 ? candidates.tcgen05
                                      : in_clusters                                ? candidates.clusters
                                      : report.instructions == Instructions::wgmma ? candidates.wgmma
                                      : report.by_tma                              ? candidates.mma_sync_by_tma
                                                                                   : candidates.mma_sync;
    LaunchConfig config(on.stream, {report.ctas}, {static_cast<unsigned>(chosen.threads)}, on.caller);
    config.shared_memory_bytes(report.shared_memory_bytes);
    if (report.cluster > 1) {
        config.cluster({static_cast<unsigned>(report.cluster)});
    }
    if (report.instructions != Instructions::mma_sync) {
        config.programmatic_dependent_launch();
    }
    detail::SharedMemory memory = choice.memory;
    detail::TensorMemory tensor_memory = choice.tensor_memory;
    TileRaster groups = choice.groups;
    void* const third = in_clusters ? static_cast<void*>(&groups) : &tensor_memory;
    void* parameters[] = {packed.data(), &memory,
                          third};  // only tcgen05's kernels and those in clusters have the third
    tessera::detail::launch_kernel(chosen.kernel, config, parameters);
    return report;
}

}  // namespace tessera::tile
