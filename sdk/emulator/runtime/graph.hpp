#pragma once

// Graphs: nodes, instantiation, launch.

#include <span>

#include "runtime/state.hpp"

namespace tessera::emulator {

/// A new graph, known to the runtime. The runtime's mutex must be held for everything here.
[[nodiscard]] std::shared_ptr<Graph> make_graph();
[[nodiscard]] std::shared_ptr<Graph> find_graph(cudaGraph_t handle);
[[nodiscard]] std::shared_ptr<GraphExec> find_graph_exec(cudaGraphExec_t handle);
/// Null if `handle` is not a node of a living graph.
[[nodiscard]] GraphNode* find_node(cudaGraphNode_t handle);

inline cudaGraph_t handle_of(Graph* graph) { return reinterpret_cast<cudaGraph_t>(graph); }
inline cudaGraphNode_t handle_of(const GraphNode* node)
{
    return reinterpret_cast<cudaGraphNode_t>(const_cast<GraphNode*>(node));
}
inline cudaGraphExec_t handle_of(GraphExec* exec) { return reinterpret_cast<cudaGraphExec_t>(exec); }

GraphNode* add_node(Graph& graph, Work work, std::vector<GraphNode*> dependencies);

/// A copy that has nothing in common with `graph` but the memory of its allocation nodes and conditions.
[[nodiscard]] std::shared_ptr<Graph> clone(const Graph& graph);

/// The nodes so that each comes after those it depends on, in the order of creation otherwise. Empty if they depend on
/// each other in a circle (and there are any).
[[nodiscard]] std::vector<GraphNode*> in_order(const Graph& graph);

[[nodiscard]] cudaGraphNodeType type_of(const Work& work);

/// True if `later` comes after `earlier` in the graph, or is it.
[[nodiscard]] bool comes_after(const GraphNode* later, const GraphNode* earlier);

/// What `arguments` of a launch point to, copied: a kernel node may outlive them.
void repair_pointers(Work& work);

/// What launching `graph` shall do. Independent of the graph, but that its nodes are named as the originals.
[[nodiscard]] std::shared_ptr<Plan> plan_of(const Graph& graph);

/// A copy of the plan of `exec`, and in it the node that came from `node`; null if there is none. It takes effect when
/// it is stored as the plan.
[[nodiscard]] std::shared_ptr<Plan> change_plan(const GraphExec& exec, cudaGraphNode_t node, PlannedNode*& planned);

/// Gives up `count` references; the last one destroys the object.
void release(UserObject& object, unsigned count);

[[nodiscard]] cudaError_t instantiate(cudaGraphExec_t* executable, Graph& graph, unsigned long long flags);
[[nodiscard]] cudaError_t launch_graph(GraphExec& exec, Stream& stream);

}  // namespace tessera::emulator
