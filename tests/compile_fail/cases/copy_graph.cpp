// Two owners would destroy one graph twice.
// expect g++: "use of deleted function 'tessera::Graph::Graph(const tessera::Graph&)'"
// expect clang++: "call to deleted constructor of 'Graph'"
#include "tessera/graph.hpp"

using namespace tessera;

#ifdef NEGATIVE
Graph second(const Graph& graph) { return graph; }
#else
const Graph& second(const Graph& graph) { return graph; }
#endif
