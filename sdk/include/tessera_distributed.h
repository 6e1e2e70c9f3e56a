#ifndef TESSERA_DISTRIBUTED_H
#define TESSERA_DISTRIBUTED_H

/**
 * The C ABI of products that are sharded over several GPUs. Link `tessera::distributed`, or load `libtessera_c.so`. NCCL is found
 * at run time. The contract is that of `tessera::distributed::Communicator` and `ShardedGemm`; errors and structures are as in
 * tessera.h.
 */

#include "tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ncclComm;
/** One rank of a group of GPUs. One thread at a time uses it. `tessera_communicator_destroy` gives it up. */
typedef struct tessera_communicator tessera_communicator;

/** What a communicator is made with, the same on all ranks. */
typedef struct tessera_communicator_options {
    size_t size;             /**< sizeof(tessera_communicator_options) */
    double timeout_seconds;  /**< how long a rank waits for the others; 0: a minute */
    int32_t max_ctas;        /**< most CTAs of a kernel of NCCL's; 0: NCCL chooses */
    int32_t no_copy_engines; /**< not 0: kernels of NCCL's move all data */
} tessera_communicator_options;

/** Joins the group that torchrun's, mpirun's or Slurm's variables describe. Collective: called by all ranks. Blocks. */
tessera_status tessera_communicator_from_environment(const tessera_communicator_options* options,
                                                     tessera_communicator** communicator);
/**
 * Gives all ranks the text of rank 0: there, `text` has it, and on the others, it receives it. Returns 0, or another number if that
 * failed.
 * @param bytes  of `text`, the same on all ranks; a 0 ends what is said
 */
typedef int (*tessera_broadcast)(void* context, char* text, size_t bytes);
/**
 * Joins a group of `size` ranks as `rank`, on `device`. They meet by a broadcast that they have already, of MPI for example. Collective.
 * Blocks.
 * @param broadcast  called once on each rank, in this call, also if that fails before
 * @param context    passed to `broadcast`
 */
tessera_status tessera_communicator_from_broadcast(int32_t rank, int32_t size, int32_t device,
                                                   tessera_broadcast broadcast, void* context,
                                                   const tessera_communicator_options* options,
                                                   tessera_communicator** communicator);
/**
 * Uses a communicator of NCCL's, an `ncclComm_t`, that somebody else owns and destroys after the handle. Its ranks do not hear of each
 * other's failures.
 */
tessera_status tessera_communicator_borrow(struct ncclComm* nccl, const tessera_communicator_options* options,
                                           tessera_communicator** communicator);
/**
 * Makes a communicator for each of `count` devices, all of this process. Blocks.
 * @param devices        ordinals; rank i is devices[i]
 * @param communicators  receives `count` handles
 */
tessera_status tessera_communicator_of_devices(const int32_t* devices, int32_t count,
                                               const tessera_communicator_options* options,
                                               tessera_communicator** communicators);
/** Tells the other ranks that this one leaves. NULL is allowed. */
void tessera_communicator_destroy(tessera_communicator* communicator);
/** Returns this rank. */
int tessera_communicator_rank(const tessera_communicator* communicator);
/** Returns the number of ranks. */
int tessera_communicator_size(const tessera_communicator* communicator);
/** Returns the ordinal of this rank's device. */
int tessera_communicator_device(const tessera_communicator* communicator);
/** Returns NCCL's communicator, which the handle owns. Calls of your own must not overlap with those of this library. */
struct ncclComm* tessera_communicator_nccl(const tessera_communicator* communicator);
/** Hands out one line for people, as `tessera_plan_explain` does. */
tessera_status tessera_communicator_describe(const tessera_communicator* communicator, char* text, size_t capacity,
                                             size_t* length);
/** Blocks until all work enqueued on `stream` so far is done, a rank fails, or the timeout is over. */
tessera_status tessera_communicator_synchronize(const tessera_communicator* communicator, tessera_stream stream);
/** Ends the communicator on all ranks, whose errors name this rank and `reason`. Does not wait. */
void tessera_communicator_abort(const tessera_communicator* communicator, const char* reason);

/** How a matrix is divided among ranks. The numbers are those of `tessera::distributed::Sharding`. */
typedef int32_t tessera_sharding;
enum {
    TESSERA_REPLICATED = 0,
    TESSERA_BY_ROWS = 1,
    TESSERA_BY_COLUMNS = 2,
    TESSERA_BY_BLOCKS = 3 /**< the ranks form a grid, and each has a block */
};

/** Which block of a grid of R x C ranks rank r has. */
typedef int32_t tessera_grid_order;
enum {
    TESSERA_ALONG_ROWS = 0,   /**< (r / C, r % C) */
    TESSERA_ALONG_COLUMNS = 1 /**< (r % R, r / R) */
};

/** A rank's part of a matrix. */
typedef struct tessera_sharded_matrix {
    tessera_matrix local;          /**< this rank's part */
    int64_t rows;                  /**< of the whole matrix */
    int64_t columns;               /**< of the whole matrix */
    tessera_sharding sharding;     /**< how it is divided */
    int32_t grid_rows;             /**< by blocks: ranks that the rows are divided among */
    int32_t grid_columns;          /**< by blocks: ranks that the columns are divided among */
    tessera_grid_order grid_order; /**< by blocks: which block a rank has */
} tessera_sharded_matrix;

/**
 * Stores which part of `extent` rank `rank` of `ranks` has: `count` from `begin` on. By blocks, ask with a row of the grid among its
 * rows, and with a column among its columns.
 */
tessera_status tessera_share_of(int64_t extent, int32_t ranks, int32_t rank, int64_t* begin, int64_t* count);

/** A prepared product of sharded matrices. `tessera_sharded_plan_destroy` frees it. */
typedef struct tessera_sharded_plan tessera_sharded_plan;

/**
 * Prepares D = act(alpha * A*B + bias). Collective. Blocks.
 * @param epilogue  NULL: D = A*B; its arrays are used by launches
 * @param chunks    parts that a rank's rows are cut into; 0: the library chooses
 * @param plan      receives the handle
 */
tessera_status tessera_sharded_plan_create(const tessera_communicator* communicator, const tessera_sharded_matrix* a,
                                           const tessera_sharded_matrix* b, const tessera_sharded_matrix* d,
                                           const tessera_epilogue* epilogue, int32_t chunks,
                                           tessera_sharded_plan** plan);
/** Waits for the device, then frees the plan. On all ranks in the same order. NULL is allowed. */
void tessera_sharded_plan_destroy(tessera_sharded_plan* plan);
/** Enqueues the product of the plan's matrices. Collective. Asynchronous; can be captured into a graph. */
tessera_status tessera_sharded_plan_launch(const tessera_sharded_plan* plan, tessera_stream stream);
/** Returns the number of chunks. */
int tessera_sharded_plan_chunks(const tessera_sharded_plan* plan);
/** Hands out the schedule as a text, as `tessera_plan_explain` does. */
tessera_status tessera_sharded_plan_explain(const tessera_sharded_plan* plan, char* text, size_t capacity,
                                            size_t* length);

#ifdef __cplusplus
}
#endif

#endif
