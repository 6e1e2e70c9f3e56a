#include "gemm/workspace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "memory/owned_memory.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t granularity = 256;  // bytes; alignment of sums and copies
constexpr std::size_t max_devices = 64;
constexpr std::size_t remembered_blocks = 16;  // of captures that have not ended

constexpr std::size_t whole(std::size_t bytes) { return (bytes + granularity - 1) / granularity * granularity; }

/// The counters come first, at a place that does not depend on the need: memory after them is not kept zero. After
/// them, each launch has its partial sums, then its copies.
struct Block {
    std::byte* data = nullptr;
    std::size_t counter_bytes = 0;
    std::size_t other_bytes = 0;

    static std::size_t other_bytes_of(WorkspaceNeed need) noexcept
    {
        return whole(need.partial_bytes) + need.copy_bytes;
    }
    bool serves(WorkspaceNeed need) const noexcept
    {
        return data != nullptr && need.counters * sizeof(std::uint32_t) <= counter_bytes &&
               other_bytes_of(need) <= other_bytes;
    }
    std::size_t bytes() const noexcept { return counter_bytes + other_bytes; }
    WorkspaceMemory memory_for(WorkspaceNeed need) const noexcept
    {
        std::byte* const others = data + counter_bytes;
        return {.partials = reinterpret_cast<float*>(others),
                .arrivals = reinterpret_cast<std::uint32_t*>(data),
                .copies = others + whole(need.partial_bytes)};
    }
};

Block block_for(WorkspaceNeed need, const Block& old)
{
    return {nullptr, std::max(whole(need.counters * sizeof(std::uint32_t)), old.counter_bytes),
            std::max(Block::other_bytes_of(need), old.other_bytes)};
}

void check_allocation(cudaError_t status, const char* call, const Block& block, std::string_view operation,
                      const std::source_location& caller)
{
    if (status != cudaSuccess) [[unlikely]] {
        raise_cuda(status, call, operation, caller,
                   fmt::format("while allocating a workspace of {} bytes", block.bytes()));
    }
}

struct StreamBlock {
    unsigned long long stream = 0;  // its id; CUDA does not reuse the ids of destroyed streams
    Block block;
    OwnedMemory memory;
    std::uint64_t last_use = 0;
};

/// The memory of a graph. On the heap, because CUDA holds its address until the graph is gone.
struct GraphBlock {
    Block block;
    GraphBlock* next = nullptr;
};

}  // namespace

/// A block of a graph that is being captured, and the last launch that uses it. Both stay valid during the capture: its
/// graph is alive, and CUDA does not allow nodes to be removed from it.
struct CapturedBlock {
    unsigned long long capture = 0;  // its id; CUDA does not reuse the ids of ended captures
    GraphBlock* block = nullptr;
    cudaGraphNode_t last_launch = nullptr;  // null: none, and no other launch may use the block
};

namespace {

struct DeviceWorkspaces {
    std::mutex mutex;
    MemoryResourceRef resource;  // of new memory for streams; if none, the device's pool or cudaMalloc
    std::vector<StreamBlock> streams;
    std::array<CapturedBlock, remembered_blocks> captured{};
    std::size_t next_captured = 0;
    std::uint64_t uses = 0;
};

/// Never destroyed: static owners may launch and be destroyed while the process exits.
struct Workspaces {
    std::array<DeviceWorkspaces, max_devices> devices;
    std::atomic<bool> any{false};

    std::mutex retired_mutex;  // not held during CUDA calls, because a CUDA callback takes it
    GraphBlock* retired = nullptr;

    static Workspaces& get()
    {
        static auto* const instance = new Workspaces;
        return *instance;
    }
};

/// Created at the first use, after the runtime, and therefore destroyed before it.
struct ReleaseAtExit {
    ReleaseAtExit() = default;
    ReleaseAtExit(const ReleaseAtExit&) = delete;
    ReleaseAtExit& operator=(const ReleaseAtExit&) = delete;
    ~ReleaseAtExit() { release_all_workspaces(); }
};

void retire(GraphBlock* block) noexcept
{
    Workspaces& all = Workspaces::get();
    const std::scoped_lock lock(all.retired_mutex);
    block->next = all.retired;
    all.retired = block;
}

/// CUDA calls this at the end of a graph's life, on any thread.
void retire_callback(void* block) { retire(static_cast<GraphBlock*>(block)); }

/// Lets this thread allocate during a capture: nothing here becomes part of the graph.
class Uncaptured {
public:
    Uncaptured(std::string_view operation, const std::source_location& caller)
    {
        check(cudaThreadExchangeStreamCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode", operation, caller);
        changed_ = true;
    }
    Uncaptured() noexcept
    {
        const cudaError_t status = cudaThreadExchangeStreamCaptureMode(&mode_);
        drop(status, "cudaThreadExchangeStreamCaptureMode");
        changed_ = status == cudaSuccess;
    }
    ~Uncaptured()
    {
        if (changed_) {
            drop(cudaThreadExchangeStreamCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode");
        }
    }
    Uncaptured(const Uncaptured&) = delete;
    Uncaptured& operator=(const Uncaptured&) = delete;

private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
    bool changed_ = false;
};

/// State of a stream's capture.
struct CaptureInfo {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* nodes = nullptr;  // what the next node depends on; valid until the next call on the stream
    std::size_t count = 0;

    std::span<const cudaGraphNode_t> predecessors() const noexcept { return {nodes, count}; }
};

cudaError_t read_capture(cudaStream_t stream, CaptureInfo& info) noexcept
{
    // Without an argument for the edges' data, the call refuses programmatic edges, which these kernels create.
    const cudaGraphEdgeData* edges = nullptr;
    return cudaStreamGetCaptureInfo(stream, &info.status, &info.id, &info.graph, &info.nodes, &edges, &info.count);
}

/// Zeroes a new block's counters, on a stream that belongs to no capture and has no other work.
void zero_counters(const Block& block, std::string_view operation, const std::source_location& caller)
{
    cudaStream_t own = nullptr;
    check(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", operation, caller);
    const cudaError_t filled = cudaMemsetAsync(block.data, 0, block.counter_bytes, own);
    const cudaError_t waited = filled == cudaSuccess ? cudaStreamSynchronize(own) : filled;
    drop(cudaStreamDestroy(own), "cudaStreamDestroy");
    check(filled, "cudaMemsetAsync", operation, caller);
    check(waited, "cudaStreamSynchronize", operation, caller);
}

/// Allocates a block for the graph that `stream` is being captured into.
GraphBlock* allocate_in_capture(WorkspaceNeed need, std::string_view operation, const std::source_location& caller)
{
    const Uncaptured uncaptured(operation, caller);
    auto owner = std::make_unique<GraphBlock>();
    owner->block = block_for(need, {});
    void* data = nullptr;
    check_allocation(cudaMalloc(&data, owner->block.bytes()), "cudaMalloc", owner->block, operation, caller);
    owner->block.data = static_cast<std::byte*>(data);
    try {
        zero_counters(owner->block, operation, caller);
    } catch (...) {
        drop(cudaFree(data), "cudaFree");
        throw;
    }
    return owner.release();
}

/// Makes `graph` the owner of `block`, or retires the block.
void give_to_graph(cudaGraph_t graph, GraphBlock* block, std::string_view operation, const std::source_location& caller)
{
    cudaUserObject_t object = nullptr;
    if (const cudaError_t status =
            cudaUserObjectCreate(&object, block, retire_callback, 1, cudaUserObjectNoDestructorSync);
        status != cudaSuccess) {
        retire(block);
        release_retired_workspaces();
        raise_cuda(status, "cudaUserObjectCreate", operation, caller);
    }
    if (const cudaError_t status = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
        status != cudaSuccess) {
        drop(cudaUserObjectRelease(object, 1), "cudaUserObjectRelease");
        release_retired_workspaces();
        raise_cuda(status, "cudaGraphRetainUserObject", operation, caller);
    }
}

std::vector<cudaGraphNode_t> predecessors_of(cudaGraphNode_t node, std::string_view operation,
                                             const std::source_location& caller)
{
    constexpr std::size_t usual_count = 8;
    for (std::size_t room = usual_count;; room *= 2) {
        std::vector<cudaGraphNode_t> nodes(room);
        std::vector<cudaGraphEdgeData> edges(room);
        std::size_t count = room;
        check(cudaGraphNodeGetDependencies(node, nodes.data(), edges.data(), &count), "cudaGraphNodeGetDependencies",
              operation, caller);
        if (count < room) {
            nodes.resize(count);
            return nodes;
        }
    }
}

/// Returns a block that is large enough and whose launches all precede what `info`'s stream captures next, or null.
///
/// The search uses the graph, not the stream's identity. CUDA does not tell the id of a stream that is being captured,
/// and a handle is not enough: it means another stream on each thread (cudaStreamPerThread), or a new stream if the old
/// one was destroyed during the capture; and cudaStreamUpdateCaptureDependencies changes a stream's own order.
CapturedBlock* preceding_block(DeviceWorkspaces& device, const CaptureInfo& info, WorkspaceNeed need,
                               std::string_view operation, const std::source_location& caller)
{
    const auto serves = [&](const CapturedBlock& known) {
        return known.capture == info.id && known.last_launch != nullptr && known.block->block.serves(need);
    };
    if (std::none_of(device.captured.begin(), device.captured.end(), serves)) {
        return nullptr;
    }
    // From the nearest node on, which is usually the last launch.
    std::vector<cudaGraphNode_t> nodes(info.predecessors().begin(), info.predecessors().end());
    std::unordered_set<cudaGraphNode_t> seen(nodes.begin(), nodes.end());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto found =
            std::find_if(device.captured.begin(), device.captured.end(),
                         [&](const CapturedBlock& known) { return serves(known) && known.last_launch == nodes[i]; });
        if (found != device.captured.end()) {
            return &*found;
        }
        for (const cudaGraphNode_t node : predecessors_of(nodes[i], operation, caller)) {
            if (seen.insert(node).second) {
                nodes.push_back(node);
            }
        }
    }
    return nullptr;
}

CapturedBlock& block_of_capture(DeviceWorkspaces& device, const CaptureInfo& info, WorkspaceNeed need,
                                std::string_view operation, const std::source_location& caller)
{
    if (CapturedBlock* const known = preceding_block(device, info, need, operation, caller)) {
        return *known;
    }
    GraphBlock* const block = allocate_in_capture(need, operation, caller);
    give_to_graph(info.graph, block, operation, caller);
    CapturedBlock& slot = device.captured[device.next_captured++ % remembered_blocks];
    slot = {info.id, block, nullptr};
    return slot;
}

/// Frees without the stream, which may be gone. The device has finished by now.
void free_finished(const StreamBlock& stream) noexcept
{
    if (stream.memory.allocation == Allocation::plain) {
        drop(cudaFree(stream.memory.data), "cudaFree");
    } else {
        free_on(nullptr, stream.memory);
    }
}

/// Makes room for one more stream. A stream that cannot be waited for, because something is being captured, stays.
void evict_oldest(DeviceWorkspaces& device) noexcept
{
    const Uncaptured uncaptured;
    if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess) {
        forget(status);
        return;
    }
    const auto oldest =
        std::min_element(device.streams.begin(), device.streams.end(),
                         [](const StreamBlock& a, const StreamBlock& b) { return a.last_use < b.last_use; });
    free_finished(*oldest);
    device.streams.erase(oldest);
}

Allocation allocation_of(const DeviceWorkspaces& device, StreamRef stream, std::string_view operation,
                         const std::source_location& caller)
{
    if (device.resource) {
        return Allocation::resource;
    }
    const bool has_pools = device_of_ordinal(stream.device(), operation, caller).properties().has_memory_pools;
    return has_pools ? Allocation::pool : Allocation::plain;
}

const Block& block_of_stream(DeviceWorkspaces& device, StreamRef stream, WorkspaceNeed need, std::string_view operation,
                             const std::source_location& caller)
{
    const unsigned long long id = id_of_stream(stream, operation, caller);
    const auto find = [&] {
        return std::find_if(device.streams.begin(), device.streams.end(),
                            [&](const StreamBlock& known) { return known.stream == id; });
    };
    auto found = find();
    if (found == device.streams.end() || !found->block.serves(need)) {
        const bool is_new = found == device.streams.end();
        if (is_new && device.streams.size() >= max_streams) {
            evict_oldest(device);
        }
        device.streams.reserve(device.streams.size() + 1);  // nothing after the allocation may throw bad_alloc
        found = find();
        Block block = block_for(need, is_new ? Block{} : found->block);
        const OwnedMemory memory = allocate_on(stream, block.bytes(), allocation_of(device, stream, operation, caller),
                                               device.resource, "a workspace of ", operation, caller);
        block.data = static_cast<std::byte*>(memory.data);
        if (const cudaError_t status = cudaMemsetAsync(memory.data, 0, block.counter_bytes, stream.get());
            status != cudaSuccess) {
            free_on(stream.get(), memory);
            raise_cuda(status, "cudaMemsetAsync", operation, caller);
        }
        if (is_new) {
            device.streams.push_back({id, block, memory, 0});
            found = device.streams.end() - 1;
        } else {
            free_on(stream.get(), found->memory);  // after the kernels that use it
            found->block = block;
            found->memory = memory;
        }
    }
    found->last_use = ++device.uses;
    return found->block;
}

}  // namespace

std::size_t workspace_bytes(WorkspaceNeed need) noexcept { return block_for(need, {}).bytes(); }

void require_workspace(StreamRef stream, const Workspace& workspace, WorkspaceNeed need, std::string_view operation,
                       const std::source_location& caller)
{
    if (workspace.limit() == std::numeric_limits<std::size_t>::max()) {
        return;
    }
    const std::size_t bytes = workspace_bytes(need);
    if (bytes > workspace.limit()) {
        raise(ErrorCode::out_of_range, operation, caller,
              fmt::format("the launch needs a workspace of {} bytes, but {} {}", bytes,
                          workspace.is_callers() ? "the given one has" : "the limit is", workspace.limit()),
              "ask the plan's workspace_bytes() for the size, or prepare a plan with a limit");
    }
    if (!workspace.is_callers() || bytes == 0) {
        return;
    }
    const DeviceSpan<std::byte> memory = workspace.memory();
    require_same_device(operation, caller, "the stream", stream.device(), "the workspace", memory.device());
    if (reinterpret_cast<std::uintptr_t>(memory.data()) % Workspace::alignment != 0) {
        raise(ErrorCode::misaligned, operation, caller,
              fmt::format("the workspace at {} is not {}-byte aligned", fmt::ptr(memory.data()), Workspace::alignment),
              "a buffer of its own, or an offset that is a multiple of Workspace::alignment");
    }
}

namespace {

/// Divides the caller's `memory` and clears its counters.
WorkspaceMemory prepare_callers(StreamRef stream, DeviceSpan<std::byte> memory, WorkspaceNeed need,
                                std::string_view operation, const std::source_location& caller)
{
    Block block = block_for(need, {});
    block.data = memory.data();
    if (need.counters > 0) {
        check(cudaMemsetAsync(block.data, 0, block.counter_bytes, stream.get()), "cudaMemsetAsync", operation, caller);
    }
    return block.memory_for(need);
}

}  // namespace

WorkspaceLease lease_workspace(StreamRef stream, WorkspaceNeed need, const Workspace& workspace,
                               std::string_view operation, const std::source_location& caller)
{
    if (need.partial_bytes == 0 && need.counters == 0 && need.copy_bytes == 0) {
        return {};
    }
    if (workspace.is_callers()) {
        return WorkspaceLease(prepare_callers(stream, workspace.memory(), need, operation, caller));
    }
    if (static_cast<std::size_t>(stream.device()) >= max_devices) {
        raise(ErrorCode::unsupported_device, operation, caller, "the library keeps workspaces for devices 0 to 63 only",
              "pass a workspace of your own");
    }
    Workspaces& all = Workspaces::get();
    static const ReleaseAtExit release_at_exit;
    all.any.store(true, std::memory_order_relaxed);
    DeviceWorkspaces& device = all.devices[static_cast<std::size_t>(stream.device())];
    std::unique_lock lock(device.mutex);

    if (is_capturing(stream.get())) {
        CaptureInfo info;
        check(read_capture(stream.get(), info), "cudaStreamGetCaptureInfo", operation, caller);
        if (info.status == cudaStreamCaptureStatusInvalidated) {
            raise_cuda(cudaErrorStreamCaptureInvalidated, "cudaStreamGetCaptureInfo", operation, caller);
        }
        if (info.status == cudaStreamCaptureStatusActive) {
            CapturedBlock& captured = block_of_capture(device, info, need, operation, caller);
            return {std::move(lock), captured.block->block.memory_for(need), stream.get(), &captured};
        }
    }
    const Block& block = block_of_stream(device, stream, need, operation, caller);
    return {std::move(lock), block.memory_for(need), stream.get(), nullptr};
}

WorkspaceLease::~WorkspaceLease()
{
    if (captured_ == nullptr) {
        return;
    }
    // After a launch, the next node depends on that launch alone. A failed launch leaves the earlier dependencies; if
    // that is one node, it also comes after every launch of the block.
    CaptureInfo info;
    const cudaError_t status = read_capture(stream_, info);
    drop(status, "cudaStreamGetCaptureInfo");
    const bool known = status == cudaSuccess && info.status == cudaStreamCaptureStatusActive && info.count == 1;
    captured_->last_launch = known ? info.predecessors().front() : nullptr;
}

void set_workspace_resource(int device, MemoryResourceRef resource, std::string_view operation,
                            const std::source_location& caller)
{
    if (static_cast<std::size_t>(device) >= max_devices) {
        raise(ErrorCode::unsupported_device, operation, caller, "the library keeps workspaces for devices 0 to 63 only",
              "pass a workspace of your own");
    }
    DeviceWorkspaces& workspaces = Workspaces::get().devices[static_cast<std::size_t>(device)];
    const std::scoped_lock lock(workspaces.mutex);
    workspaces.resource = resource;
}

void release_workspace(cudaStream_t stream, int ordinal) noexcept
{
    Workspaces& all = Workspaces::get();
    if (!all.any.load(std::memory_order_relaxed) || static_cast<std::size_t>(ordinal) >= max_devices) {
        return;
    }
    // During a capture, CUDA does not tell the stream's id and would make the free a node of the graph. The stream's
    // earlier memory stays, like that of a raw stream.
    if (is_capturing(stream)) {
        return;
    }
    unsigned long long id = 0;
    if (const cudaError_t status = cudaStreamGetId(stream, &id); status != cudaSuccess) {
        drop(status, "cudaStreamGetId");
        return;
    }
    DeviceWorkspaces& device = all.devices[static_cast<std::size_t>(ordinal)];
    const std::scoped_lock lock(device.mutex);
    const auto found = std::find_if(device.streams.begin(), device.streams.end(),
                                    [&](const StreamBlock& known) { return known.stream == id; });
    if (found != device.streams.end()) {
        free_on(stream, found->memory);
        device.streams.erase(found);
    }
}

void release_retired_workspaces() noexcept
{
    Workspaces& all = Workspaces::get();
    GraphBlock* block = nullptr;
    {
        const std::scoped_lock lock(all.retired_mutex);
        block = std::exchange(all.retired, nullptr);
    }
    if (block == nullptr) {
        return;
    }
    const Uncaptured uncaptured;
    while (block != nullptr) {
        const std::unique_ptr<GraphBlock> owner(block);
        drop(cudaFree(owner->block.data), "cudaFree");
        block = owner->next;
    }
}

void release_all_workspaces() noexcept
{
    Workspaces& all = Workspaces::get();
    int previous = -1;
    for (std::size_t ordinal = 0; ordinal < max_devices; ++ordinal) {
        DeviceWorkspaces& device = all.devices[ordinal];
        const std::scoped_lock lock(device.mutex);
        if (device.streams.empty()) {
            continue;
        }
        if (previous < 0) {
            drop(cudaGetDevice(&previous), "cudaGetDevice");
        }
        drop(cudaSetDevice(static_cast<int>(ordinal)), "cudaSetDevice");
        drop(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        for (const StreamBlock& stream : device.streams) {
            free_finished(stream);
        }
        device.streams.clear();
    }
    if (previous >= 0) {
        drop(cudaSetDevice(previous), "cudaSetDevice");
    }
    release_retired_workspaces();
}

}  // namespace tessera::detail
