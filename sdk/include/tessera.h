#ifndef TESSERA_H
#define TESSERA_H

/**
 * The C ABI: matrix products for programs that are not written in C++, and for bindings of other languages.
 *
 * Plain C11, also C++. Link `tessera::sdk`, or load `libtessera_c.so`, which needs nothing but the CUDA runtime.
 *
 * @code{.c}
 * tessera_matrix a = tessera_row_major(a_data, TESSERA_BF16, m, k, k);
 * tessera_matrix b = tessera_column_major(w_data, TESSERA_BF16, k, n, k);
 * tessera_matrix d = tessera_row_major(d_data, TESSERA_BF16, m, n, n);
 * tessera_epilogue epilogue = {.size = sizeof epilogue, .activation = TESSERA_GELU};
 * if (tessera_gemm(stream, &a, &b, &d, &epilogue, NULL) != TESSERA_SUCCESS) {
 *     fprintf(stderr, "%s\n", tessera_last_error());
 * }
 * @endcode
 *
 * @par Errors
 * A function that can fail returns a `tessera_status`. Its text, with the values that broke the rule and often a cure, is
 * `tessera_last_error()` of the calling thread. No C++ exception leaves a function. A function that failed has enqueued
 * nothing and has not changed its results.
 *
 * @par Structures
 * Structures that may grow begin with `size`: set it to `sizeof` the structure, so that a library of a later release knows
 * what a program was compiled with. 0 is the default of all their other members.
 *
 * @par Streams
 * `stream` is a `cudaStream_t`, which stays the caller's and must outlive what refers to it. NULL is the legacy default stream.
 *
 * @par Thread safety
 * Every function may be called from several threads at once. A handle may be used by several threads, but must not be
 * destroyed meanwhile.
 *
 * The contract of a product (shapes, arithmetic, what is read, aliasing, synchronization) is that of `tessera::Gemm`.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A `cudaStream_t`. */
typedef struct CUstream_st* tessera_stream;

/** What went wrong; 0 is success. The other numbers are those of `tessera::ErrorCode`, each with a page in docs/errors. */
typedef int32_t tessera_status;
enum {
    TESSERA_SUCCESS = 0,
    TESSERA_SHAPE_MISMATCH = 1,
    TESSERA_OUT_OF_RANGE = 2,
    TESSERA_SIZE_OVERFLOW = 3,
    TESSERA_INVALID_ARGUMENT = 4,
    TESSERA_MISALIGNED = 5,
    TESSERA_ALIASING = 6,
    TESSERA_DEVICE_MISMATCH = 7,
    TESSERA_EMPTY_HANDLE = 8,
    TESSERA_WRONG_MEMORY = 9,
    TESSERA_VARIANT_REFUSED = 10,
    TESSERA_UNSUPPORTED_DEVICE = 11,
    TESSERA_OUT_OF_MEMORY = 12, /**< of the device, or of the host */
    TESSERA_NO_DEVICE = 13,
    TESSERA_CAPTURE_VIOLATION = 14,
    TESSERA_LAUNCH_REFUSED = 15,
    TESSERA_CUDA_FAILURE = 16,
    TESSERA_CONTEXT_LOST = 17,
    TESSERA_TENSOR_MAP_REFUSED = 18,
    TESSERA_COMPILATION_FAILED = 19,
    TESSERA_COMMUNICATION_FAILED =
        20,                       /**< of several GPUs: another rank failed or is late, or NCCL is missing or failed */
    TESSERA_UNKNOWN_FAILURE = 255 /**< an exception that is not one of the library's: from a callback, for example */
};

/** Returns the status's name: "shape_mismatch". */
const char* tessera_status_name(tessera_status status);
/**
 * Returns the text of the calling thread's latest failure, or "": status and function on the first line, then what is wrong,
 * with the values, and after "try:" a cure, if there is one. Valid until the next failure on this thread.
 */
const char* tessera_last_error(void);
/** Returns the `cudaError_t` of the calling thread's latest failure, 0 if CUDA was not what failed. */
int tessera_last_cuda_error(void);

/** Returns the library's release as a number: major * 10000 + minor * 100 + patch. */
int tessera_version(void);
/** Returns the library's release as text: "0.1.0". */
const char* tessera_version_text(void);

/** Returns the number of CUDA devices: 0 if there is no GPU or no driver. */
int tessera_device_count(void);
/** Returns 10 * major + minor of a device's compute capability, 90 for an H200. */
tessera_status tessera_compute_capability(int device, int* capability);

/** Blocks until all work enqueued on `stream` so far is done. */
tessera_status tessera_synchronize(tessera_stream stream);
/**
 * Makes later work of `stream` start after everything enqueued on `other` so far. Does not block the host.
 * @param device  ordinal of the device of a default stream among them; -1: the current one
 */
tessera_status tessera_stream_wait(int device, tessera_stream stream, tessera_stream other);
/** Stores 1 if `stream` is being captured into a graph, else 0. */
tessera_status tessera_is_capturing(tessera_stream stream, int* capturing);

/** Device memory with one owner. `tessera_buffer_destroy` frees it. */
typedef struct tessera_buffer tessera_buffer;

/**
 * Allocates `bytes` of device memory, ordered on `stream`, its home stream, which must outlive the buffer. Does not wait.
 * @param device  ordinal of the device, which must be the stream's; -1: the stream's, for a default stream the current one
 * @param bytes   0 or more
 * @param buffer  receives the handle
 */
tessera_status tessera_buffer_create(int device, tessera_stream stream, size_t bytes, tessera_buffer** buffer);
/** Frees the memory after all work on its home stream. Does not wait. NULL is allowed. */
void tessera_buffer_destroy(tessera_buffer* buffer);
/** Returns the address of the memory, a multiple of 256; NULL for a buffer of 0 bytes. */
void* tessera_buffer_data(const tessera_buffer* buffer);
/** Returns the size in bytes. */
size_t tessera_buffer_size(const tessera_buffer* buffer);
/** Returns the ordinal of the memory's device. */
int tessera_buffer_device(const tessera_buffer* buffer);
/** Copies host memory to [offset, offset + bytes) of the buffer, after earlier work on the home stream. Blocks. */
tessera_status tessera_buffer_upload(tessera_buffer* buffer, size_t offset, const void* host, size_t bytes);
/** Copies [offset, offset + bytes) of the buffer to host memory, after earlier work on the home stream. Blocks. */
tessera_status tessera_buffer_download(const tessera_buffer* buffer, size_t offset, void* host, size_t bytes);
/** Copies `bytes` from one buffer to another, which may be of another device. Ordered on `stream`; does not wait. */
tessera_status tessera_buffer_copy(tessera_stream stream, tessera_buffer* target, size_t target_offset,
                                   const tessera_buffer* source, size_t source_offset, size_t bytes);
/**
 * Orders the buffer's free, and later work of its home stream, after everything enqueued on `stream` so far. Call it after
 * the last use on a stream other than the home stream. A default stream is that of the buffer's device.
 */
tessera_status tessera_buffer_used_on(const tessera_buffer* buffer, tessera_stream stream);

/** The type of an element. The numbers are those of `tessera::ElementType`. */
typedef int32_t tessera_element_type;
enum {
    TESSERA_F32 = 0,
    TESSERA_F16 = 1,
    TESSERA_BF16 = 2,
    TESSERA_TF32 = 3, /**< f32 memory that tensor cores may read with 10 significand bits; A and B only */
    TESSERA_F8E4M3 = 4,
    TESSERA_F8E5M2 = 5
};

/**
 * A matrix in device memory, or equally spaced ones. Owns nothing. All strides are in elements.
 *
 * Rows or columns are contiguous: one of the two strides is 1, where that dimension has more than one element. A batch has
 * two levels: groups of `batches` matrices, `outer_batches` of them. A stride of 0 uses one matrix for all.
 */
typedef struct tessera_matrix {
    void* data;                /**< address of element (0, 0) */
    tessera_element_type type; /**< of each element */
    int32_t device;        /**< ordinal of the memory's device; -1: CUDA is asked. A launch trusts an ordinal, and takes
                                    its stream as one of D's device. */
    int64_t rows;          /**< of each matrix */
    int64_t columns;       /**< of each matrix */
    int64_t row_stride;    /**< from one row to the next */
    int64_t column_stride; /**< from one column to the next */
    int64_t batches;       /**< matrices in a group; 1 for a single matrix, 0 for none */
    int64_t batch_stride;  /**< from one matrix of a group to the next */
    int64_t outer_batches; /**< groups; 1 for a single one */
    int64_t outer_stride;  /**< from one group to the next */
} tessera_matrix;

/** Returns a single row-major matrix; its rows are `leading_dimension` elements apart. Checks nothing. */
tessera_matrix tessera_row_major(void* data, tessera_element_type type, int64_t rows, int64_t columns,
                                 int64_t leading_dimension);
/** Returns a single column-major matrix; its columns are `leading_dimension` elements apart. Checks nothing. */
tessera_matrix tessera_column_major(void* data, tessera_element_type type, int64_t rows, int64_t columns,
                                    int64_t leading_dimension);
/** Returns the same memory with rows and columns of each matrix exchanged. */
tessera_matrix tessera_transposed(tessera_matrix matrix);

/** Contiguous elements in device memory. Owns nothing. `data` of NULL means that there is no vector. */
typedef struct tessera_vector {
    void* data;                /**< address of the first element */
    tessera_element_type type; /**< of each element */
    int32_t device;            /**< ordinal of the memory's device; -1: CUDA is asked */
    int64_t count;             /**< number of elements */
} tessera_vector;

/** The function that is applied to each element of alpha * A*B + beta * C + bias. */
typedef int32_t tessera_activation;
enum {
    TESSERA_NO_ACTIVATION = 0,
    TESSERA_RELU = 1,
    TESSERA_GELU = 2, /**< the exact form, with erf */
    TESSERA_SILU = 3,
    TESSERA_GELU_TANH = 4, /**< the usual approximation of gelu */
    TESSERA_SIGMOID = 5,
    TESSERA_TANH = 6
};

/** The dimension that a bias runs along. */
typedef int32_t tessera_bias_axis;
enum {
    TESSERA_BIAS_PER_COLUMN = 0, /**< one element for each column of A*B: a layer whose rows are samples */
    TESSERA_BIAS_PER_ROW = 1     /**< one element for each row */
};

/** How two columns of A*B, a gate and a factor, become one of D: act(gate) * factor. */
typedef int32_t tessera_gating;
enum {
    TESSERA_NO_GATING = 0,
    TESSERA_GATING_INTERLEAVED = 1, /**< columns 2j and 2j + 1 */
    TESSERA_GATING_SIDE_BY_SIDE = 2 /**< columns j and j + n/2 */
};

/** In what sums may be kept: see `tessera::Fp8Accumulation` and `tessera::F16Accumulation`. */
enum {
    TESSERA_FP8_TWO_LEVEL = 0, /**< 8-bit inputs on Hopper: sums go to fp32 after every 128 of K */
    TESSERA_FP8_FAST = 1,      /**< 8-bit inputs on Hopper: all of K is summed by the tensor core */
    TESSERA_F16_IN_F32 = 0,    /**< f16 inputs: sums in f32 */
    TESSERA_F16_IN_F16 = 1     /**< f16 inputs: `mma_sync` may keep sums of 64 products in f16 */
};

/**
 * What happens to the product before it is stored: D = act(alpha * A*B + beta * C + bias), of scaled inputs, multiplied by
 * `scale_d` if D has 8 bits. The details are those of `tessera::Epilogue`.
 */
typedef struct tessera_epilogue {
    size_t size;                          /**< sizeof(tessera_epilogue) */
    const float* alpha;                   /**< on the host, read by the call; NULL: 1 */
    const float* beta;                    /**< on the host, read by the call; NULL: 1 if there is a C */
    const tessera_matrix* c;              /**< added to the product; NULL: none */
    const tessera_matrix* pre_activation; /**< receives the argument of act; NULL: not stored */
    tessera_vector bias;                  /**< f32, f16 or bf16 */
    tessera_vector scale_a;               /**< f32: one, or one for each row of A */
    tessera_vector scale_b;               /**< f32: one, or one for each column of B */
    tessera_vector scale_d;               /**< f32: one, for a D of 8 bits */
    tessera_vector amax_d;                /**< f32: one, raised to the largest magnitude of a D of 8 bits */
    tessera_bias_axis bias_axis;
    tessera_activation activation;
    tessera_gating gating;
    int32_t fp8_accumulation; /**< TESSERA_FP8_TWO_LEVEL or TESSERA_FP8_FAST */
    int32_t f16_accumulation; /**< TESSERA_F16_IN_F32 or TESSERA_F16_IN_F16 */
} tessera_epilogue;

/** A kernel family by name. The numbers are those of `tessera::Variant`. */
typedef int32_t tessera_variant;
enum {
    TESSERA_AUTOMATIC = 0,
    TESSERA_SIMT_NAIVE = 1,
    TESSERA_SIMT_TILED = 2,
    TESSERA_SIMT_VECTORIZED = 3,
    TESSERA_SIMT_COARSENED = 4,
    TESSERA_SIMT_REGISTER_BLOCKED = 5,
    TESSERA_MMA_SYNC = 8,
    TESSERA_HOPPER = 16,
    TESSERA_BLACKWELL = 32
};
/** Returns the variant's name: "hopper". */
const char* tessera_variant_name(tessera_variant variant);
/** Stores the variant with this name. The error lists all names. */
tessera_status tessera_variant_from_name(const char* name, tessera_variant* variant);

/** Whose memory the workspace of a launch is, if its kernel needs one: see `tessera::Workspace`. */
typedef int32_t tessera_workspace_owner;
enum {
    TESSERA_WORKSPACE_OF_LIBRARY = 0, /**< a block for each stream, allocated at the first launch that needs it */
    TESSERA_WORKSPACE_OF_CALLER = 1,  /**< `workspace`, of `workspace_bytes`; none of 0 bytes */
    TESSERA_WORKSPACE_LIMITED = 2     /**< the library's, of at most `workspace_bytes` */
};

/** How a product is launched. */
typedef struct tessera_options {
    size_t size;                             /**< sizeof(tessera_options) */
    tessera_variant variant;                 /**< ignored by a launch of a plan, which has its variant */
    tessera_workspace_owner workspace_owner; /**< whose memory the workspace is */
    void* workspace;                         /**< device memory at a multiple of 256 bytes */
    size_t workspace_bytes;                  /**< size of `workspace`, or the limit */
} tessera_options;

/**
 * Enqueues D = act(alpha * A*B + beta * C + bias) on `stream`. Asynchronous; can be captured into a graph.
 * @param a, b, d   A is m x k, B is k x n, D is m x n; D is written
 * @param epilogue  NULL: D = A*B
 * @param options   NULL: the library chooses the kernel and keeps the workspace
 */
tessera_status tessera_gemm(tessera_stream stream, const tessera_matrix* a, const tessera_matrix* b,
                            const tessera_matrix* d, const tessera_epilogue* epilogue, const tessera_options* options);

/** A product whose kernel has been chosen. `tessera_plan_destroy` frees it. */
typedef struct tessera_plan tessera_plan;

/**
 * Chooses a kernel for products like this one. Reads no memory: `data` of a matrix or of a vector may be any address with the
 * alignment that launches will have, and of a matrix it may be NULL, which means a multiple of 256 bytes.
 * @param device   ordinal of the device of all launches; -1: the current one
 * @param options  NULL: any variant and any workspace; `workspace_bytes` of the other owners is a limit
 * @param plan     receives the handle
 */
tessera_status tessera_plan_create(int device, const tessera_matrix* a, const tessera_matrix* b,
                                   const tessera_matrix* d, const tessera_epilogue* epilogue,
                                   const tessera_options* options, tessera_plan** plan);
/** Frees the plan. Its launches need not have finished. NULL is allowed. */
void tessera_plan_destroy(tessera_plan* plan);
/** Returns the bytes of device memory that a launch needs besides its operands. */
size_t tessera_plan_workspace_bytes(const tessera_plan* plan);
/** Returns the chosen variant, never TESSERA_AUTOMATIC. */
tessera_variant tessera_plan_variant(const tessera_plan* plan);
/** Enqueues the product, as `tessera_gemm` does, with the plan's kernel. The operands must be like the plan's. */
tessera_status tessera_plan_launch(const tessera_plan* plan, tessera_stream stream, const tessera_matrix* a,
                                   const tessera_matrix* b, const tessera_matrix* d, const tessera_epilogue* epilogue,
                                   const tessera_options* options);
/**
 * Says which variant runs the plan's product and why, and why each other does not.
 * @param text      receives as much of the text as fits, with a final 0; NULL if `capacity` is 0
 * @param capacity  size of `text` in bytes
 * @param length    receives the length of the whole text without the final 0; NULL if it is not wanted
 */
tessera_status tessera_plan_explain(const tessera_plan* plan, char* text, size_t capacity, size_t* length);
/**
 * Says the same of any product on any device, which need not be present.
 * @param capability  10 * major + minor of the compute capability, such as 100; 0: the current device
 */
tessera_status tessera_explain(int capability, const tessera_matrix* a, const tessera_matrix* b,
                               const tessera_matrix* d, const tessera_epilogue* epilogue, tessera_variant variant,
                               char* text, size_t capacity, size_t* length);

/** How thorough a measurement is. 0 means the default of `tessera::TuningOptions`. */
typedef struct tessera_tuning_options {
    size_t size; /**< sizeof(tessera_tuning_options) */
    size_t rounds;
    double sample_seconds;
    double prune_ratio;
    double time_limit_seconds;
    uint64_t seed;
} tessera_tuning_options;

/** What a measurement found. */
typedef struct tessera_tuning_result {
    size_t size;             /**< sizeof(tessera_tuning_result), set by the caller */
    tessera_variant variant; /**< what automatic launches of the product run from now on */
    double seconds;          /**< of that, per product */
    double untuned_seconds;  /**< of what they ran before */
    size_t candidates;       /**< kernels that were measured */
    char configuration[128]; /**< for people */
} tessera_tuning_result;

/**
 * Measures which kernel is the fastest for products like this one. Automatic launches use it from then on. Blocks for about a
 * second, and allocates operands of its own. `data` is as in `tessera_plan_create`.
 * @param device   ordinal; -1: the current one
 * @param options  NULL: defaults
 * @param result   NULL: not wanted
 */
tessera_status tessera_tune(int device, const tessera_matrix* a, const tessera_matrix* b, const tessera_matrix* d,
                            const tessera_epilogue* epilogue, const tessera_tuning_options* options,
                            tessera_tuning_result* result);
/** Writes the measured choices to a file, beside those that are there. */
tessera_status tessera_tuning_save(const char* path);
/** Reads measured choices. A missing file counts as empty. `used` receives how many are known from now on, or is NULL. */
tessera_status tessera_tuning_load(const char* path, size_t* used);

/**
 * The source of tile programs, compiled when they are needed by NVRTC: see docs/tile-programs.md. `tessera_program_destroy`
 * frees it; kernels live on.
 */
typedef struct tessera_program tessera_program;
/** A program of one type, compiled for one device. `tessera_kernel_destroy` frees it; launches need to have finished. */
typedef struct tessera_kernel tessera_kernel;

/** What a member of a program is, and so an argument of its launches. */
typedef int32_t tessera_argument_kind;
enum {
    TESSERA_ARGUMENT_VALUE = 0,  /**< a plain value */
    TESSERA_ARGUMENT_INPUT = 1,  /**< a matrix that is read */
    TESSERA_ARGUMENT_OUTPUT = 2, /**< a matrix that is written */
    TESSERA_ARGUMENT_NUMBERS = 3 /**< elements in device memory from which single values are read */
};
/** What kind of number a value is, or one of several numbers. */
typedef int32_t tessera_number_kind;
enum {
    TESSERA_NUMBER_OTHER = 0, /**< a structure */
    TESSERA_NUMBER_BOOL = 1,
    TESSERA_NUMBER_FLOAT = 2,
    TESSERA_NUMBER_SIGNED = 3,
    TESSERA_NUMBER_UNSIGNED = 4
};

/** A member of a program. */
typedef struct tessera_member {
    tessera_argument_kind kind;
    tessera_element_type type;  /**< of a matrix */
    int32_t row_major;          /**< of a matrix: 1 for row-major, 0 for column-major */
    int32_t rows;               /**< of a tile of a matrix */
    int32_t columns;            /**< of a tile of a matrix */
    tessera_number_kind number; /**< of a value, or of numbers */
    size_t bytes;               /**< of a value, or of one of several numbers */
} tessera_member;

/** An argument of a launch. */
typedef struct tessera_argument {
    const tessera_matrix* matrix; /**< of an input or output; it is contiguous along the member's order */
    const void* data;             /**< of a value: on the host, read by the call; of numbers: on the device */
    size_t count;                 /**< of numbers */
    int32_t device;               /**< of numbers: ordinal; -1: CUDA is asked */
} tessera_argument;

/**
 * Takes the text of a CUDA C++ source. Compiles nothing yet.
 * @param name              the file that errors of the compiler name; NULL: "program"
 * @param definitions       macros, as "NAME" or "NAME=value"; NULL if there are none
 * @param definition_count  number of `definitions`
 */
tessera_status tessera_program_create(const char* source, const char* name, const char* const* definitions,
                                      size_t definition_count, tessera_program** program);
/** Frees the source. NULL is allowed. */
void tessera_program_destroy(tessera_program* program);
/**
 * Compiles a type for a GPU that need not be there, and hands out its PTX.
 * @param type        a type of the source that is a tile program: "Add<float>"
 * @param capability  10 * major + minor of the compute capability, such as 90
 * @param text        receives as much of the PTX as fits, with a final 0; NULL if `capacity` is 0
 * @param length      receives the length of the whole text without the final 0; NULL if it is not wanted
 */
tessera_status tessera_program_compile(const tessera_program* program, const char* type, int capability, char* text,
                                       size_t capacity, size_t* length);
/** Compiles a type for the current device, or finds it among compiled ones. */
tessera_status tessera_program_kernel(const tessera_program* program, const char* type, tessera_kernel** kernel);
/** Frees the kernel. NULL is allowed. */
void tessera_kernel_destroy(tessera_kernel* kernel);
/** Returns the number of members of the program, one for each argument of a launch. */
size_t tessera_kernel_member_count(const tessera_kernel* kernel);
/** Stores what member `index` is. */
tessera_status tessera_kernel_member(const tessera_kernel* kernel, size_t index, tessera_member* member);
/**
 * Enqueues the program on `stream`, with one argument for each member, in their order. Asynchronous; can be captured into a
 * graph. A default stream is that of the kernel's device.
 */
tessera_status tessera_kernel_launch(const tessera_kernel* kernel, tessera_stream stream,
                                     const tessera_argument* arguments, size_t count);

/** Returns `bytes` of memory of the stream's device at a multiple of `alignment`, usable by later work of `stream`; or NULL. */
typedef void* (*tessera_allocate)(void* context, size_t bytes, size_t alignment, tessera_stream stream);
/** Takes the memory back, after all work that is on `stream` by now. */
typedef void (*tessera_deallocate)(void* context, void* memory, size_t bytes, size_t alignment, tessera_stream stream);

/**
 * Takes the library's own workspaces on a device from an allocator of the caller from now on. Existing ones stay as they are.
 * @param device      ordinal
 * @param context     passed to both functions
 * @param allocate    NULL restores the library's own allocator
 * @param deallocate  NULL only if `allocate` is
 */
tessera_status tessera_set_workspace_allocator(int device, void* context, tessera_allocate allocate,
                                               tessera_deallocate deallocate);
/** Waits for the devices and frees the library's workspaces. Not while a stream is being captured. */
void tessera_release_workspaces(void);

#ifdef __cplusplus
}
#endif

#endif
