#include "machine/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "base/windows.hpp"
#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "machine/recording.hpp"
#include "machine/residents.hpp"
#include "program/builder.hpp"
#include "program/program.hpp"
#include "ptx/parser.hpp"

namespace tessera::emulator {

namespace {

/// What a driver provides to a cooperative launch, as cooperative_groups::grid_group::sync expects it: its own size and
/// the word of the grid barrier, initially zero.
class GridWorkspace {
public:
    GridWorkspace(AddressSpace& memory, bool wanted) : memory_(memory)
    {
        if (!wanted) {
            return;
        }
        struct Layout {
            std::uint32_t bytes = sizeof(Layout);
            std::uint32_t barrier = 0;
        };
        address_ = memory_.allocate(sizeof(Layout), MemoryKind::module, 0, "workspace of a cooperative launch");
        Allocation* allocation = address_ == 0 ? nullptr : memory_.find(address_);
        if (allocation == nullptr) {
            throw std::runtime_error("out of device memory for the grid barrier of a cooperative launch");
        }
        const Layout layout;
        std::memcpy(allocation->bytes, &layout, sizeof layout);
        allocation->mark_initialized(0, sizeof layout);
    }
    ~GridWorkspace()
    {
        if (address_ != 0) {
            memory_.free(address_);
        }
    }
    GridWorkspace(const GridWorkspace&) = delete;
    GridWorkspace& operator=(const GridWorkspace&) = delete;
    [[nodiscard]] std::uint64_t address() const noexcept { return address_; }

private:
    AddressSpace& memory_;
    std::uint64_t address_ = 0;
};

[[nodiscard]] Handlers handlers_for(const Options& options) noexcept
{
    return options.paths == Paths::plain  ? Handlers::plain
           : options.paths == Paths::both ? Handlers::compared
           : options.check                ? Handlers::checked
                                          : Handlers::unchecked;
}

}  // namespace

LoadedModule::LoadedModule(std::string_view ptx_text, const DeviceModel& device, int device_index, AddressSpace& memory)
    : device_(device),
      memory_(memory),
      program_(ProgramBuilder(ptx::parse(ptx_text), device, device_index, memory).build())
{}

LoadedModule::~LoadedModule()
{
    for (const auto& [name, variable] : program_->variables) {
        memory_.free(variable.address);
    }
}

const KernelInfo* LoadedModule::find_kernel(std::string_view name) const
{
    const auto found = program_->kernels.find(name);
    return found == program_->kernels.end() ? nullptr : &found->second;
}

const VariableInfo* LoadedModule::find_variable(std::string_view name) const
{
    const auto found = program_->variables.find(name);
    return found == program_->variables.end() ? nullptr : &found->second;
}

std::vector<std::string> LoadedModule::kernel_names() const
{
    std::vector<std::string> names;
    for (const auto& [name, kernel] : program_->kernels) {
        names.push_back(name);
    }
    return names;
}

std::optional<std::uint64_t> Grid::cancel_cluster(Cluster& asking)
{
    const std::size_t sequence = asking.place;
    const std::uint64_t index = next[sequence];
    if (index >= clusters.count()) {
        return std::nullopt;
    }
    if (options.schedule != Schedule::in_order && asking.choose(Choice::refusal, 8) == 0) {
        return std::nullopt;  // hardware may refuse for its own reasons; the cluster then starts normally
    }
    next[sequence] += resident;
    return index;
}

std::uint64_t Grid::waiting_clusters() const noexcept
{
    std::uint64_t waiting = 0;
    for (const std::uint64_t index : next) {
        waiting += index < clusters.count() ? (clusters.count() - 1 - index) / resident + 1 : 0;
    }
    return waiting;
}

void Grid::print(std::string_view text)
{
    const std::scoped_lock lock(print_mutex);
    if (request.print) {
        request.print(text);
    }
}

unsigned resident_ctas(const DeviceModel& device, const KernelInfo& kernel, unsigned threads,
                       std::uint32_t dynamic_shared)
{
    const unsigned warps = (std::max(threads, 1U) + warp_size - 1) / warp_size;
    const std::uint64_t shared = std::uint64_t{kernel.static_shared} + dynamic_shared + device.reserved_shared_per_cta;
    std::uint64_t count = device.ctas_per_multiprocessor;
    count = std::min<std::uint64_t>(count, device.threads_per_multiprocessor / (warps * warp_size));
    if (shared > 0) {
        count = std::min<std::uint64_t>(count, device.shared_per_multiprocessor / shared);
    }
    const std::uint64_t registers = std::uint64_t{(kernel.registers + 7) / 8 * 8} * warps * warp_size;
    if (registers > 0) {
        count = std::min<std::uint64_t>(count, device.registers_per_multiprocessor / registers);
    }
    return static_cast<unsigned>(count);
}

LaunchResult launch(const LoadedModule& module, const KernelInfo& kernel, const LaunchRequest& request,
                    const Options& options, AddressSpace& memory, Report& report)
{
    static std::atomic<std::uint64_t> launches{0};
    const Program& program = module.program();
    if (!kernel.load_error.empty()) {
        Finding finding;
        finding.kind = FindingKind::not_emulated;
        finding.error = true;
        finding.not_started = true;
        finding.kernel = kernel.name;
        finding.message = kernel.load_error;
        report.add(std::move(finding), [&](Finding& first) {
            if (request.launched_by) {
                first.host = request.launched_by();
            }
        });
        return {error_illegal_instruction, kernel.load_error, {}};
    }
    const std::unique_ptr<LaunchRecorder> recorder =
        options.recorder == nullptr ? nullptr : options.recorder->begin(kernel.name, request, options);
    const RecordedLaunch* recorded = nullptr;
    try {
        recorded = options.recording == nullptr ? nullptr : &options.recording->next(kernel.name, request);
    } catch (const ScheduleMisfit& misfit) {
        return {error_launch_failure, misfit.what(), {}, false};
    }
    const FunctionCode& code = program.functions[program.kernel_functions.find(kernel.name)->second];
    Grid grid{module, program,    kernel, code, request, options, memory, report, module.device(), {}, 0,
              0,      ++launches, 1,      1,    {},      {},      {},     {}};
    grid.clusters = {request.grid.x / request.cluster.x, request.grid.y / request.cluster.y,
                     request.grid.z / request.cluster.z};
    grid.dynamic_offset = kernel.static_shared;
    // The dynamic part starts at its alignment; the size includes the gap.
    grid.shared_bytes = kernel.static_shared + request.dynamic_shared;
    for (const WarpConstantRow& row : program.warp_constants) {
        if (row.what == WarpConstant::dynamic_shared_address && row.offset > 0) {
            const std::uint32_t start =
                (kernel.static_shared + shared_base + row.offset - 1) / row.offset * row.offset - shared_base;
            grid.shared_bytes = std::max(grid.shared_bytes, start + request.dynamic_shared);
        }
    }
    const std::uint64_t count = grid.clusters.count();
    const std::uint64_t cluster_size = request.cluster.count();
    const std::uint64_t per_multiprocessor = std::max(
        resident_ctas(module.device(), kernel, static_cast<unsigned>(request.block.count()), request.dynamic_shared),
        1U);
    const std::uint64_t capacity =
        std::max<std::uint64_t>(module.device().multiprocessors * per_multiprocessor / cluster_size, 1);
    grid.resident = std::min(capacity, count);
    grid.fits = capacity >= count;
    grid.recorder = recorder.get();
    grid.recorded = recorded;
    Choices choices(options, Choices::of_launch, grid.recorder,
                    recorded == nullptr ? nullptr : recorded->find(Choices::of_launch));
    grid.most_resident = grid.resident;
    // So that small grids, too, have clusters to hand out. A cooperative launch has none: all of it is resident.
    if (kernel.uses_launch_control && !request.cooperative && options.schedule != Schedule::in_order) {
        grid.resident = 1 + choices.pick(Choice::residents, static_cast<std::uint32_t>(grid.resident));
    }
    choices.end(Ending::finished);
    grid.next.resize(grid.resident);
    for (std::uint64_t i = 0; i < grid.resident; ++i) {
        grid.next[i] = i + grid.resident;
    }
    grid.operations = program.operations_with(handlers_for(options)).data();
    const GridWorkspace workspace(memory, request.cooperative);
    grid.workspace = workspace.address();
    Outcome outcome;
    const unsigned cores = std::max(std::thread::hardware_concurrency(), 1U);
    const unsigned threads = options.paths == Paths::both ? 1  // another thread might change what is compared
                             : options.threads != 0       ? options.threads
                                                          : cores;
    grid.clusters_meet = (kernel.synchronizes_clusters || request.cooperative) && grid.most_resident > 1;
    const std::unique_ptr<LaunchMonitor> monitor =
        options.monitor == nullptr ? nullptr : options.monitor->start(kernel.name, request);
    grid.monitor = monitor.get();
    run_clusters(grid, outcome, threads);
    LaunchResult result = outcome.result();
    if (monitor != nullptr) {
        monitor->end(result);
    }
    return result;
}

}  // namespace tessera::emulator
