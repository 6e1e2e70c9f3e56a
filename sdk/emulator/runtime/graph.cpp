#include "runtime/graph.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/stream_work.hpp"
#include "runtime/work.hpp"

namespace tessera::emulator {

namespace {

/// Calls `visit(graph)` for each graph inside the node.
template <class AnyWork, class Visit>
void for_each_inner(AnyWork& work, Visit&& visit)
{
    if (auto* child = std::get_if<ChildWork>(&work)) {
        visit(child->graph);
    } else if (auto* conditional = std::get_if<ConditionalWork>(&work)) {
        for (auto& body : conditional->bodies) {
            visit(body);
        }
    }
}

/// The first graph for which `matches(shared_ptr)` is true, among those known to the runtime and all graphs inside
/// them.
template <class Matches>
std::shared_ptr<Graph> search_graphs(Matches&& matches)
{
    std::vector<std::shared_ptr<Graph>> open;
    for (const auto& [handle, graph] : Runtime::get().graphs) {
        open.push_back(graph);
    }
    for (const auto& capture : Runtime::get().captures) {
        open.push_back(capture->graph);
    }
    while (!open.empty()) {
        std::shared_ptr<Graph> graph = std::move(open.back());
        open.pop_back();
        if (matches(*graph)) {
            return graph;
        }
        for (const auto& node : graph->nodes) {
            for_each_inner(node->work, [&](const std::shared_ptr<Graph>& inner) { open.push_back(inner); });
        }
    }
    return nullptr;
}

void add_to_plan(const Graph& graph, Plan& plan)
{
    for (const auto& [handle, initial] : graph.conditions) {
        if (initial) {
            plan.emplace_back().work = FillWork{.to = reinterpret_cast<std::byte*>(handle),
                                                .value = *initial,
                                                .element_size = sizeof(unsigned),
                                                .width = 1};
        }
    }
    for (const GraphNode* node : in_order(graph)) {
        plan.push_back({.original = node, .work = node->work, .enabled = true});
        repair_pointers(plan.back().work);
    }
}

/// Children run as part of their parent's launch, so that their events are recorded on it.
void perform_plan(Device& device, const Plan& plan);

void perform_graph(Device& device, const Graph& graph)
{
    Plan plan;
    add_to_plan(graph, plan);
    perform_plan(device, plan);
}

unsigned value_of(std::uint64_t condition)
{
    unsigned value = 0;
    if (const Allocation* allocation = Runtime::get().memory.find(condition)) {
        std::memcpy(&value, allocation->bytes, sizeof value);
    }
    return value;
}

void perform_conditional(Device& device, const ConditionalWork& work)
{
    if (work.type == cudaGraphCondTypeWhile) {
        while (value_of(work.handle) != 0 && device.failure.load() == 0) {
            perform_graph(device, *work.bodies.front());
        }
        return;
    }
    const unsigned value = value_of(work.handle);
    const std::size_t chosen = work.type == cudaGraphCondTypeIf ? (value != 0 ? 0 : 1) : value;
    if (chosen < work.bodies.size()) {
        perform_graph(device, *work.bodies[chosen]);
    }
}

void perform_node(Device& device, const Work& work)
{
    if (const auto* record = std::get_if<EventRecordWork>(&work)) {
        Runtime& runtime = Runtime::get();
        const std::scoped_lock lock(runtime.mutex);
        if (const auto found = runtime.events.find(record->event); found != runtime.events.end()) {
            Event& event = *found->second;
            event.is_recorded = true;
            event.position = {};
            event.recording = std::make_shared<Recording>();
            event.recording->time = std::chrono::steady_clock::now();
            event.recording->happened = true;
        }
    } else if (const auto* wait = std::get_if<EventWaitWork>(&work)) {
        Position position;
        {
            Runtime& runtime = Runtime::get();
            const std::scoped_lock lock(runtime.mutex);
            if (const auto found = runtime.events.find(wait->event); found != runtime.events.end()) {
                position = found->second->position;
            }
        }
        position.wait();
    } else if (const auto* child = std::get_if<ChildWork>(&work)) {
        perform_graph(device, *child->graph);
    } else if (const auto* conditional = std::get_if<ConditionalWork>(&work)) {
        perform_conditional(device, *conditional);
    } else {
        perform(device, work);
    }
}

void perform_plan(Device& device, const Plan& plan)
{
    for (const PlannedNode& node : plan) {
        if (node.enabled) {
            perform_node(device, node.work);
        }
    }
}

}  // namespace

void release(UserObject& object, unsigned count)
{
    if (object.references.fetch_sub(count) == count) {
        object.destroy(object.pointer);
        delete &object;
    }
}

UserReferences::~UserReferences()
{
    for (const auto& [object, count] : counts_) {
        release(*object, count);
    }
}

void UserReferences::retain(const UserReferences& others)
{
    for (const auto& [object, count] : others.counts_) {
        object->references += count;
        counts_[object] += count;
    }
}

bool UserReferences::give_up(UserObject& object, unsigned count)
{
    const auto found = counts_.find(&object);
    if (found == counts_.end() || found->second < count) {
        return false;
    }
    found->second -= count;
    if (found->second == 0) {
        counts_.erase(found);
    }
    release(object, count);
    return true;
}

std::shared_ptr<Plan> change_plan(const GraphExec& exec, cudaGraphNode_t node, PlannedNode*& planned)
{
    auto plan = std::make_shared<Plan>(*exec.plan);
    for (PlannedNode& candidate : *plan) {
        repair_pointers(candidate.work);
        if (candidate.original != nullptr && handle_of(candidate.original) == node) {
            planned = &candidate;
        }
    }
    return planned == nullptr ? nullptr : plan;
}

std::shared_ptr<Graph> make_graph()
{
    auto graph = std::make_shared<Graph>();
    graph->self = graph;
    Runtime::get().graphs[handle_of(graph.get())] = graph;
    return graph;
}

std::shared_ptr<Graph> find_graph(cudaGraph_t handle)
{
    const auto& graphs = Runtime::get().graphs;
    const auto found = graphs.find(handle);
    if (found != graphs.end()) {
        return found->second;
    }
    // Graphs inside of nodes, and graphs being captured, belong to other objects.
    return search_graphs([&](const Graph& graph) { return &graph == reinterpret_cast<const Graph*>(handle); });
}

std::shared_ptr<GraphExec> find_graph_exec(cudaGraphExec_t handle)
{
    const auto& execs = Runtime::get().graph_execs;
    const auto found = execs.find(handle);
    return found == execs.end() ? nullptr : found->second;
}

GraphNode* find_node(cudaGraphNode_t handle)
{
    const auto owner = search_graphs([&](const Graph& graph) {
        return std::ranges::any_of(graph.nodes, [&](const auto& node) { return handle_of(node.get()) == handle; });
    });
    return owner == nullptr ? nullptr : reinterpret_cast<GraphNode*>(handle);
}

GraphNode* add_node(Graph& graph, Work work, std::vector<GraphNode*> dependencies)
{
    auto node = std::make_unique<GraphNode>();
    node->graph = &graph;
    node->work = std::move(work);
    repair_pointers(node->work);
    node->dependencies = std::move(dependencies);
    graph.nodes.push_back(std::move(node));
    return graph.nodes.back().get();
}

void clone_inner(Work& work)
{
    for_each_inner(work, [](std::shared_ptr<Graph>& inner) { inner = clone(*inner); });
}

std::shared_ptr<Graph> clone(const Graph& graph)
{
    auto copy = std::make_shared<Graph>();
    copy->self = copy;
    copy->memory = graph.memory;
    copy->conditions = graph.conditions;
    copy->user_objects.retain(graph.user_objects);
    std::map<const GraphNode*, GraphNode*> copies;
    for (const auto& node : graph.nodes) {
        Work work = node->work;
        clone_inner(work);
        GraphNode* made = add_node(*copy, std::move(work), {});
        made->copied_from = node.get();
        copies[node.get()] = made;
    }
    for (const auto& node : graph.nodes) {
        for (const GraphNode* dependency : node->dependencies) {
            copies[node.get()]->dependencies.push_back(copies.at(dependency));
        }
    }
    return copy;
}

std::vector<GraphNode*> in_order(const Graph& graph)
{
    std::vector<GraphNode*> order;
    std::set<const GraphNode*> placed;
    while (order.size() < graph.nodes.size()) {
        const std::size_t before = order.size();
        for (const auto& node : graph.nodes) {
            const bool is_ready =
                !placed.contains(node.get()) &&
                std::ranges::all_of(node->dependencies, [&](const GraphNode* other) { return placed.contains(other); });
            if (is_ready) {
                order.push_back(node.get());
                placed.insert(node.get());
            }
        }
        if (order.size() == before) {
            return {};
        }
    }
    return order;
}

cudaGraphNodeType type_of(const Work& work)
{
    struct Types {
        cudaGraphNodeType operator()(const KernelWork&) const { return cudaGraphNodeTypeKernel; }
        cudaGraphNodeType operator()(const CopyWork&) const { return cudaGraphNodeTypeMemcpy; }
        cudaGraphNodeType operator()(const FillWork&) const { return cudaGraphNodeTypeMemset; }
        cudaGraphNodeType operator()(const HostWork&) const { return cudaGraphNodeTypeHost; }
        cudaGraphNodeType operator()(const EmptyWork&) const { return cudaGraphNodeTypeEmpty; }
        cudaGraphNodeType operator()(const EventRecordWork&) const { return cudaGraphNodeTypeEventRecord; }
        cudaGraphNodeType operator()(const EventWaitWork&) const { return cudaGraphNodeTypeWaitEvent; }
        cudaGraphNodeType operator()(const ChildWork&) const { return cudaGraphNodeTypeGraph; }
        cudaGraphNodeType operator()(const ConditionalWork&) const { return cudaGraphNodeTypeConditional; }
        cudaGraphNodeType operator()(const AllocateWork&) const { return cudaGraphNodeTypeMemAlloc; }
        cudaGraphNodeType operator()(const FreeWork&) const { return cudaGraphNodeTypeMemFree; }
    };
    return std::visit(Types{}, work);
}

bool comes_after(const GraphNode* later, const GraphNode* earlier)
{
    std::set<const GraphNode*> seen;
    std::vector<const GraphNode*> open{later};
    while (!open.empty()) {
        const GraphNode* node = open.back();
        open.pop_back();
        if (node == earlier) {
            return true;
        }
        for (const GraphNode* dependency : node->dependencies) {
            if (seen.insert(dependency).second) {
                open.push_back(dependency);
            }
        }
    }
    return false;
}

void repair_pointers(Work& work)
{
    if (auto* kernel = std::get_if<KernelWork>(&work)) {
        kernel->arguments.clear();
        for (const ParameterLayout& parameter : kernel->info->parameters) {
            kernel->arguments.push_back(kernel->request.parameters.data() + parameter.offset);
        }
        kernel->parameters.kernelParams = kernel->arguments.data();
    }
}

cudaError_t instantiate(cudaGraphExec_t* executable, Graph& graph, unsigned long long flags)
{
    if (in_order(graph).size() != graph.nodes.size()) {
        return cudaErrorInvalidValue;
    }
    auto exec = std::make_shared<GraphExec>();
    exec->plan = plan_of(graph);
    exec->memory = graph.memory;
    exec->user_objects->retain(graph.user_objects);
    exec->flags = flags;
    exec->device = current_device().index;
    *executable = handle_of(exec.get());
    Runtime::get().graph_execs[*executable] = std::move(exec);
    return cudaSuccess;
}

std::shared_ptr<Plan> plan_of(const Graph& graph)
{
    auto plan = std::make_shared<Plan>();
    add_to_plan(graph, *plan);
    for (PlannedNode& node : *plan) {
        clone_inner(node.work);
    }
    return plan;
}

cudaError_t launch_graph(GraphExec& exec, Stream& stream)
{
    if (stream.capture != nullptr) {
        if (stream.capture->is_invalid) {
            return cudaErrorStreamCaptureInvalidated;
        }
        // A captured launch becomes a child graph.
        auto child = std::make_shared<Graph>();
        child->self = child;
        child->memory = exec.memory;
        GraphNode* previous = nullptr;
        for (const PlannedNode& node : *exec.plan) {
            if (node.enabled) {
                previous =
                    add_node(*child, node.work,
                             previous == nullptr ? std::vector<GraphNode*>{} : std::vector<GraphNode*>{previous});
            }
        }
        return submit(stream, ChildWork{std::move(child)});
    }
    if (const cudaError_t forbidden = forbid_on_captured(stream); forbidden != cudaSuccess) {
        return forbidden;
    }
    for (const PlannedNode& node : *exec.plan) {
        if (node.enabled) {
            note_launch(*stream.device, node.work);
        }
    }
    // Launches of one executable graph do not overlap.
    exec.last_launch = enqueue(stream,
                               [&device = *stream.device, plan = exec.plan, memory = exec.memory,
                                user_objects = exec.user_objects] { perform_plan(device, *plan); },
                               {exec.last_launch});
    return cudaSuccess;
}

}  // namespace tessera::emulator
