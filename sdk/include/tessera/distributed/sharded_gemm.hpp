#pragma once

/// @file
/// @ingroup distributed
/// @brief `ShardedGemm`: a product of sharded matrices, with the communication under the product.

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>

#include "tessera/distributed/sharded_matrix.hpp"
#include "tessera/gemm.hpp"

namespace tessera::distributed {

namespace detail {
struct ShardedPlan;
}  // namespace detail

/// How a sharded product is cut. The same on all ranks.
struct ShardedGemmOptions {
    /// Parts that each rank's rows are cut into: while one part is multiplied, another one travels. 0: the library's choice, by
    /// the model in docs/tensor-parallel.md; 1: first all communication, then the product, or the other way around.
    int chunks = 0;
    /// Products per second of one GPU that the model counts with, in operations; 0: of the device's kind.
    double flops_per_second = 0;
    /// Bytes per second that a GPU sends, and receives, at the same time, which the model counts with; 0: of the device's kind.
    double link_bytes_per_second = 0;
};

/// A product D = act(alpha * A*B + bias) of sharded matrices, prepared once. Move-only. Which product it is follows from how the
/// matrices are divided:
///
/// | A | B | D | what happens |
/// |---|---|---|---|
/// | by rows | by columns | by columns | all-gather of A, and the product |
/// | by columns | by rows | by rows | the product, and reduce-scatter of D |
/// | by columns | by rows | replicated | the product, and all-reduce of D |
/// | by blocks | by blocks | by blocks | all-gather of A, the product, and reduce-scatter of D |
/// | replicated | by columns | by columns | the product |
/// | by rows | replicated | by rows | the product |
/// | replicated | replicated | replicated | the product |
///
/// @code{.cpp}
/// const auto first = ShardedGemm::prepare(communicator, sharded_x, w1, h, {.activation = Activation::gelu});
/// const auto second = ShardedGemm::prepare(communicator, h, w2, sharded_y);
/// first.launch(stream);
/// second.launch(stream);
/// communicator.synchronize(stream);
/// @endcode
///
/// @par Blocks
/// B and D are crosswise to A: for A in a grid of R x C ranks, a grid of C x R in the other `GridOrder`. The ranks of a column of A's grid
/// gather rows of A, those of a row sum D.
///
/// @par Chunks
/// Communication runs on a stream of its own, with the most urgent priority; events order it with the product's stream. A product
/// beside which NCCL's kernels run leaves them their SMs. A product that is too small to hide anything is one chunk: everything is
/// enqueued on one stream then.
///
/// @par Arithmetic
/// As for `Gemm`. A sum over ranks is added up in the order of a ring, and rounded to D's type at each rank, as NCCL does. The
/// result is the same each time if NCCL's is.
///
/// @par Epilogue
/// alpha, a bias per column, an activation and scales of whole matrices or of B's columns. With all-reduce, only alpha and scales
/// of whole matrices. C and a pre-activation are refused, and so are a bias and scales per row. A bias and scales per column have
/// an element for each of this rank's columns.
///
/// @par Graphs
/// A launch can be captured. A graph must be launched by all ranks, as the product would be.
///
/// @par Thread safety
/// As for the communicator. Launches of one communicator's products are enqueued in the same order on all ranks, and on streams
/// of which one waits for the other.
class ShardedGemm {
public:
    /// Prepares the product: chooses the schedule and the kernels and allocates what is gathered or partial. Collective. Blocks.
    ///
    /// @param communicator  the ranks
    /// @param a, b, d       A is m x k, B k x n, D m x n, as wholes. A shard of A whose rows are gathered, and a D that is
    ///                      all-reduced, are row-major without gaps. Orders and leading dimensions are otherwise free
    /// @param epilogue      see above; its vectors are used by `launch` without arguments
    /// @param options       how it is cut
    /// @throws Error  `shape_mismatch` or `invalid_argument` with the matrices that do not fit, `device_mismatch`,
    ///                `out_of_memory`, and what `GemmPlan::prepare` throws; RankError
    static ShardedGemm prepare(const Communicator& communicator, const ShardedMatrix& a, const ShardedMatrix& b,
                               const ShardedMatrix& d, const Epilogue& epilogue = {},
                               const ShardedGemmOptions& options = {},
                               std::source_location caller = std::source_location::current());

    /// Moves the plan; `other` can only be destroyed or assigned to afterwards.
    ShardedGemm(ShardedGemm&& other) noexcept;
    /// Frees what this has, then moves.
    ShardedGemm& operator=(ShardedGemm&& other) noexcept;
    ShardedGemm(const ShardedGemm&) = delete;
    ShardedGemm& operator=(const ShardedGemm&) = delete;
    /// Waits for the device, then frees the plan's memory.
    ~ShardedGemm();

    /// Enqueues the product on `stream`, with the matrices that it was prepared for. Collective. Asynchronous; does not allocate.
    /// @throws Error  what `GemmPlan::launch` throws; RankError. Another rank may then wait: destroy the communicator, which
    ///                tells it.
    void launch(StreamRef stream, std::source_location caller = std::source_location::current()) const;
    /// Enqueues the product of other matrices that are divided and stored in the same way.
    /// @throws Error  `shape_mismatch` if they are not, and as above
    void launch(StreamRef stream, const ShardedMatrix& a, const ShardedMatrix& b, const ShardedMatrix& d,
                const Epilogue& epilogue = {}, std::source_location caller = std::source_location::current()) const;

    /// Returns the number of chunks: 1 if nothing overlaps.
    int chunks() const noexcept;
    /// Returns a text for people: the schedule of this rank, with the model's times.
    std::string explain() const;

private:
    explicit ShardedGemm(std::unique_ptr<detail::ShardedPlan> plan) noexcept;

    std::unique_ptr<detail::ShardedPlan> plan_;
};

}  // namespace tessera::distributed
