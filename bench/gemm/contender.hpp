#pragma once

/// Who takes part in `tessera-bench gemm`: a name, and a way to prepare a product for operands that are given.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "problem/problem.hpp"
#include "problem/reference.hpp"
#include "tessera/device.hpp"
#include "tessera/stream.hpp"

namespace tessera::bench {

/// Device addresses of one product. A and B lie as the problem says; C and D are row-major without gaps.
struct Operands {
    const void* a;
    const void* b;
    void* d;
    const void* c = nullptr;  ///< null where the problem has no C
};

/// Device addresses of a bias, one element for each column of D, in two types: each contender takes the one that is
/// the fastest for it. The numbers are the same. Null where the problem has no bias.
struct BiasVectors {
    const float* f32 = nullptr;
    const void* output_type = nullptr;
};

/// Enqueues the product of set `set`. Asynchronous, can be captured into a graph; owns what `prepare` made.
using Enqueue = std::function<void(StreamRef stream, std::size_t set)>;

/// What every contender of a problem is given.
struct Task {
    const Device& device;
    StreamRef stream;  ///< on which everything is enqueued
    const Problem& problem;
    const std::vector<Operands>& sets;  ///< equal contents at different addresses; live as long as what is prepared
    BiasVectors bias;                   ///< lives as long
    /// Times the given products against each other, briefly: median seconds of each.
    std::function<std::vector<double>(const std::vector<Enqueue>& products)> race;
};

/// A problem that a contender has got ready for. All that may take long, such as choosing an algorithm, is done.
struct Prepared {
    Enqueue enqueue;     ///< empty: it cannot compute the problem
    std::string remark;  ///< why it cannot, or what was chosen
    Accumulation accumulation = Accumulation::tensor_core;
    bool computes = true;  ///< else D stays as it is, and is not judged
    GeluForm gelu = GeluForm::erf;
};

struct GemmContender {
    std::string name;
    std::function<Prepared(const Task& task)> prepare;
};

}  // namespace tessera::bench
