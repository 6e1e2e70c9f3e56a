#pragma once

// Graphs: nodes, instantiation, launch.

#include <span>

#include "runtime/state.hpp"

namespace tessera::emulator {

/// Makes a new graph known to the runtime. Every function here requires the runtime's mutex.
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

/// A copy that shares only the memory of its allocation nodes and its conditions with `graph`.
[[nodiscard]] std::shared_ptr<Graph> clone(const Graph& graph);

/// The nodes in an order in which each comes after those it depends on, otherwise in the order of creation. Empty if
/// the dependencies are circular.
[[nodiscard]] std::vector<GraphNode*> in_order(const Graph& graph);

[[nodiscard]] cudaGraphNodeType type_of(const Work& work);

/// Returns true if `later` is `earlier` or comes after it in the graph.
[[nodiscard]] bool comes_after(const GraphNode* later, const GraphNode* earlier);

/// Points the `arguments` of a launch to its own copies: a kernel node may outlive the originals.
void repair_pointers(Work& work);

/// The plan for launching `graph`. It is independent of the graph, except that nodes are identified by the originals.
[[nodiscard]] std::shared_ptr<Plan> plan_of(const Graph& graph);

/// A copy of the plan of `exec`, and the node in it that came from `node`; null if there is none. It takes effect when
/// it is stored as the plan.
[[nodiscard]] std::shared_ptr<Plan> change_plan(const GraphExec& exec, cudaGraphNode_t node, PlannedNode*& planned);

/// Releases `count` references; the last one destroys the object.
void release(UserObject& object, unsigned count);

[[nodiscard]] cudaError_t instantiate(cudaGraphExec_t* executable, Graph& graph, unsigned long long flags);
[[nodiscard]] cudaError_t launch_graph(GraphExec& exec, Stream& stream);

}  // namespace tessera::emulator
