#pragma once

/// A contender of `tessera-bench gemm`: a name, and a function that prepares a product for given operands.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "problem/problem.hpp"
#include "problem/reference.hpp"
#include "tessera/device.hpp"
#include "tessera/stream.hpp"

namespace tessera::bench {

/// Device addresses of one product. A and B are stored as the problem says; C and D are row-major without gaps.
struct Operands {
    const void* a;
    const void* b;
    void* d;
    const void* c = nullptr;  ///< null if the problem has no C
};

/// Device addresses of a bias, one element per column of D, in two types: each contender uses the one that is faster
/// for it. The numbers are the same. Null if the problem has no bias.
struct BiasVectors {
    const float* f32 = nullptr;
    const void* output_type = nullptr;
};

/// Device addresses of the factors of A and B, one float each. Null if the problem has none.
struct ScaleFactors {
    const float* a = nullptr;
    const float* b = nullptr;
};

/// Enqueues the product of set `set`. Asynchronous, can be captured into a graph; owns what `prepare` created.
using Enqueue = std::function<void(StreamRef stream, std::size_t set)>;

/// The inputs of `prepare`, the same for every contender of a problem.
struct Task {
    const Device& device;
    StreamRef stream;  ///< everything is enqueued on it
    const Problem& problem;
    const std::vector<Operands>& sets;  ///< equal contents at different addresses; outlive what is prepared
    BiasVectors bias;                   ///< outlives what is prepared
    ScaleFactors scales;                ///< outlive what is prepared
    /// Briefly times the given products against each other. Returns the median seconds of each.
    std::function<std::vector<double>(const std::vector<Enqueue>& products)> race;
};

/// A contender that is ready for a problem. Everything slow, such as choosing an algorithm, is done.
struct Prepared {
    Enqueue enqueue;     ///< empty: it cannot compute the problem
    std::string remark;  ///< why it cannot, or its choice
    Accumulation accumulation = Accumulation::tensor_core;
    bool computes = true;  ///< otherwise D is not written, and not judged
    EpilogueArithmetic epilogue = {};
};

struct GemmContender {
    std::string name;
    std::function<Prepared(const Task& task)> prepare;
};

}  // namespace tessera::bench
