#pragma once

// The objects behind the handles of the runtime's API.

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "machine/launch.hpp"
#include "runtime/fatbin.hpp"
#include "runtime/heap.hpp"
#include "runtime/host_stack.hpp"
#include "runtime/queue.hpp"

namespace tessera::emulator {

struct Device;
struct Graph;
struct GraphNode;
struct Capture;

// Code.

/// A module on one device, or the reason why there is none.
struct LoadedOn {
    std::shared_ptr<const LoadedModule> module;
    cudaError_t status = cudaSuccess;
    int ptx_version = 0;  ///< 80 for "sm_80": what the PTX was made for
};

/// A fat binary, or PTX text, and what was loaded from it for each device.
struct CodeImage {
    const void* wrapper = nullptr;  ///< as registered; null if it is `text`
    std::string file;               ///< contents of a file that `entries` point into
    std::string text;
    std::vector<FatbinEntry> entries;
    std::map<int, LoadedOn> loaded;  ///< by device
};

/// The settings of a kernel on one device.
struct KernelState {
    int max_dynamic_shared = -1;  ///< -1: the device's limit without opt-in
    int carveout = -1;
    int required_cluster[3] = {0, 0, 0};
    bool non_portable_cluster = false;
    int scheduling_policy = 0;
    bool refused = false;  ///< it was said why the kernel cannot be loaded
};

/// A kernel by name, on every device: cudaKernel_t, and cudaFunction_t.
struct Kernel {
    std::shared_ptr<CodeImage> image;
    std::string name;
    const void* symbol = nullptr;  ///< the host function; null if it came from a library
    std::map<int, KernelState> states;
};

struct Variable {
    std::shared_ptr<CodeImage> image;
    std::string name;
    std::size_t size = 0;
};

/// cudaLibrary_t, CUmodule, CUlibrary.
struct Library {
    std::shared_ptr<CodeImage> image;
    std::map<std::string, std::unique_ptr<Kernel>> kernels;
};

// Work: the operations of streams and graph nodes.

struct KernelWork {
    std::shared_ptr<const LoadedModule> module;
    const KernelInfo* info = nullptr;
    LaunchRequest request;
    cudaKernelNodeParams parameters{};  ///< as given, except kernelParams
    std::vector<void*> arguments;       ///< into request.parameters
    std::map<int, cudaLaunchAttributeValue> attributes;
    std::shared_ptr<const HostStack> host;  ///< of the launch, or of the node's creation; null without checks
};

/// A copy of `depth` slices of `height` rows of `width` bytes.
struct CopyWork {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::uint64_t width = 0, height = 1, depth = 1;
    std::uint64_t to_pitch = 0, from_pitch = 0, to_slice = 0, from_slice = 0;
    cudaMemcpyKind kind = cudaMemcpyDefault;
    std::shared_ptr<std::vector<std::byte>> staged;  ///< owns the memory behind `from`
    cudaMemcpy3DParms parameters{};                  ///< for queries of a graph node
};

/// Elements of 1, 2 or 4 bytes.
struct FillWork {
    std::byte* to = nullptr;
    unsigned value = 0, element_size = 1;
    std::uint64_t width = 0, height = 1, depth = 1;  ///< in elements
    std::uint64_t pitch = 0, slice = 0;              ///< in bytes
};

struct HostWork {
    cudaHostFn_t function = nullptr;
    void* argument = nullptr;
};

struct EmptyWork {};

/// When a recorded event completed.
struct Recording {
    std::atomic<bool> happened{false};
    std::chrono::steady_clock::time_point time;
};

struct Event {
    unsigned flags = 0;
    int device = 0;
    bool is_recorded = false;
    Position position;
    std::shared_ptr<Recording> recording;
    std::weak_ptr<Capture> capture;  ///< the capture it was last recorded in
    std::vector<GraphNode*> captured_nodes;
};

struct EventRecordWork {
    cudaEvent_t event = nullptr;
};

struct EventWaitWork {
    cudaEvent_t event = nullptr;
};

struct ChildWork {
    std::shared_ptr<Graph> graph;
};

struct AllocateWork {
    cudaMemAllocNodeParams parameters{};
};

struct FreeWork {
    void* address = nullptr;
};

/// A conditional node. Its handle is the address of the value in device memory, which a kernel may set.
struct ConditionalWork {
    std::uint64_t handle = 0;
    cudaGraphConditionalNodeType type = cudaGraphCondTypeIf;
    std::vector<std::shared_ptr<Graph>> bodies;
    std::shared_ptr<std::vector<cudaGraph_t>> body_handles;  ///< the array returned to the program
};

using Work = std::variant<KernelWork, CopyWork, FillWork, HostWork, EmptyWork, EventRecordWork, EventWaitWork,
                          ChildWork, ConditionalWork, AllocateWork, FreeWork>;

// Graphs.

struct GraphNode {
    Graph* graph = nullptr;
    Work work;
    std::vector<GraphNode*> dependencies;
    const GraphNode* copied_from = nullptr;  ///< in a clone
};

/// Memory that a graph's nodes allocate. It exists from the node's creation, because its address is known from then on,
/// until the last graph with the node is destroyed.
struct GraphMemory {
    Heap& heap;
    std::uint64_t address;

    GraphMemory(Heap& owner, std::uint64_t at) : heap(owner), address(at) {}
    GraphMemory(const GraphMemory&) = delete;
    GraphMemory& operator=(const GraphMemory&) = delete;
    ~GraphMemory() { heap.finish_free(address); }
};

/// A reference-counted object of the program, cudaUserObject_t.
struct UserObject {
    void* pointer = nullptr;
    cudaHostFn_t destroy = nullptr;
    std::atomic<unsigned> references{0};
};

/// References of a graph, or of an object made from it, to user objects. The last reference destroys the object.
class UserReferences {
public:
    UserReferences() = default;
    UserReferences(const UserReferences&) = delete;
    UserReferences& operator=(const UserReferences&) = delete;
    ~UserReferences();

    /// Takes over `count` references.
    void take(UserObject& object, unsigned count) { counts_[&object] += count; }
    /// Retains every reference that `others` has, the same number of times.
    void retain(const UserReferences& others);
    /// Releases `count` references; returns false if there are fewer.
    [[nodiscard]] bool give_up(UserObject& object, unsigned count);

private:
    std::map<UserObject*, unsigned> counts_;
};

/// cudaGraph_t.
struct Graph {
    std::list<std::unique_ptr<GraphNode>> nodes;  ///< in the order of creation
    std::vector<std::shared_ptr<GraphMemory>> memory;
    UserReferences user_objects;
    std::map<std::uint64_t, std::optional<unsigned>> conditions;  ///< handles, and the values that a launch sets
    std::weak_ptr<Graph> self;
};

/// One node of an executable graph.
struct PlannedNode {
    const GraphNode* original = nullptr;  ///< null: sets a condition to its default
    Work work;
    bool enabled = true;
};
using Plan = std::vector<PlannedNode>;

/// cudaGraphExec_t. A change replaces the plan: enqueued launches keep the old one.
struct GraphExec {
    std::shared_ptr<const Plan> plan;
    std::vector<std::shared_ptr<GraphMemory>> memory;
    /// Launches hold references, too.
    std::shared_ptr<UserReferences> user_objects = std::make_shared<UserReferences>();
    unsigned long long flags = 0;
    int device = 0;
    Position last_launch;
};

// Streams.

struct Capture {
    unsigned long long id = 0;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread;
    struct Stream* origin = nullptr;
    std::shared_ptr<Graph> graph;
    bool into_given_graph = false;
    bool is_invalid = false;
    std::set<struct Stream*> members;
    std::vector<GraphNode*> left_behind;  ///< latest nodes of member streams that were destroyed
};

/// cudaStream_t. The legacy and the per-thread default streams are objects, too.
struct Stream {
    enum class Kind : std::uint8_t { created, legacy, per_thread };
    Kind kind = Kind::created;
    Device* device = nullptr;
    unsigned flags = cudaStreamDefault;
    int priority = 0;
    unsigned long long id = 0;
    std::shared_ptr<Queue> queue = std::make_shared<Queue>();
    std::shared_ptr<Capture> capture;
    std::vector<GraphNode*> frontier;               ///< the next captured node comes after these
    std::vector<cudaGraphNode_t> frontier_handles;  ///< the same, for cudaStreamGetCaptureInfo
    std::map<int, cudaLaunchAttributeValue> attributes;

    /// Returns true if the stream is ordered against the legacy stream.
    [[nodiscard]] bool is_blocking() const { return kind != Kind::legacy && (flags & cudaStreamNonBlocking) == 0; }
};

// Devices.

struct Device {
    const DeviceModel* model = nullptr;
    int index = 0;
    unsigned flags = cudaDeviceScheduleAuto;
    std::atomic<int> failure{0};  ///< the error that made the context unusable; 0: usable
    Stream legacy;
    std::vector<Position> orphans;  ///< last work of destroyed streams
    Pool default_pool;
    Pool* current_pool = nullptr;
    std::set<int> peers;
    std::map<int, std::size_t> limits;
    bool launched_printf = false, launched_malloc = false;  ///< kernels that use them fix their limits
    cudaFuncCache cache_config = cudaFuncCachePreferNone;
    std::uint64_t graph_memory_high = 0;

    std::mutex print_mutex;
    std::string printed;  ///< output of kernels, until the host synchronizes

    /// Bytes available to programs; the context uses the rest.
    [[nodiscard]] std::uint64_t usable_memory() const { return model->memory - (std::uint64_t{640} << 20U); }
};

}  // namespace tessera::emulator
