#pragma once

// NCCL's functions, found at run time. What is declared here is the part of NCCL's ABI that is used; it has been stable since 2.18.

#include <cuda_runtime_api.h>

#include <array>
#include <climits>
#include <cstddef>
#include <source_location>
#include <string>
#include <string_view>

struct ncclComm;

namespace tessera::distributed::detail {

enum class NcclResult : int {
    success = 0,
    unhandled_cuda_error = 1,
    system_error = 2,
    internal_error = 3,
    invalid_argument = 4,
    invalid_usage = 5,
    remote_error = 6,
    in_progress = 7,
};

enum class NcclType : int { uint8 = 1, f16 = 6, f32 = 7, bf16 = 9 };
enum class NcclOperation : int { sum = 0 };

struct NcclId {
    std::array<char, 128> bytes{};
};

/// ncclConfig_t of 2.28. Older releases read the first members only, and newer ones know by `version` which are there.
struct NcclConfig {
    static constexpr int undefined = INT_MIN;

    std::size_t size = sizeof(NcclConfig);
    unsigned magic = 0xcafebeef;
    unsigned version = 22809;
    int blocking = undefined;
    int cga_cluster_size = undefined;
    int min_ctas = undefined;
    int max_ctas = undefined;
    const char* net_name = nullptr;
    int split_share = undefined;
    int traffic_class = undefined;
    const char* name = nullptr;
    int collnet_enable = undefined;
    int cta_policy = undefined;
    int shrink_share = undefined;
    int nvls_ctas = undefined;
    int channels_per_net_peer = undefined;
    int nvlink_centric_scheduling = undefined;
};
inline constexpr int nccl_policy_zero_ctas = 2;        // NCCL_CTA_POLICY_ZERO
inline constexpr int nccl_symmetric_window = 1;        // NCCL_WIN_COLL_SYMMETRIC
inline constexpr int oldest_nccl = 21805;              // non-blocking communicators with a bounded number of CTAs
inline constexpr int oldest_nccl_with_copies = 22803;  // copy engines

using NcclWindow = void*;

/// Loaded once; never unloaded.
struct Nccl {
    NcclResult (*get_version)(int*);
    NcclResult (*get_unique_id)(NcclId*);
    NcclResult (*comm_init_rank_config)(ncclComm**, int, NcclId, int, NcclConfig*);
    NcclResult (*comm_split)(ncclComm*, int color, int key, ncclComm**, NcclConfig*);
    NcclResult (*comm_finalize)(ncclComm*);
    NcclResult (*comm_destroy)(ncclComm*);
    NcclResult (*comm_abort)(ncclComm*);
    const char* (*get_error_string)(NcclResult);
    const char* (*get_last_error)(ncclComm*);
    NcclResult (*comm_get_async_error)(ncclComm*, NcclResult*);
    NcclResult (*comm_count)(const ncclComm*, int*);
    NcclResult (*comm_cu_device)(const ncclComm*, int*);
    NcclResult (*comm_user_rank)(const ncclComm*, int*);
    NcclResult (*all_reduce)(const void*, void*, std::size_t, NcclType, NcclOperation, ncclComm*, cudaStream_t);
    NcclResult (*reduce_scatter)(const void*, void*, std::size_t, NcclType, NcclOperation, ncclComm*, cudaStream_t);
    NcclResult (*all_gather)(const void*, void*, std::size_t, NcclType, ncclComm*, cudaStream_t);
    NcclResult (*send)(const void*, std::size_t, NcclType, int, ncclComm*, cudaStream_t);
    NcclResult (*receive)(void*, std::size_t, NcclType, int, ncclComm*, cudaStream_t);
    NcclResult (*group_start)();
    NcclResult (*group_end)();
    // Null where `has_copies` is false.
    NcclResult (*mem_alloc)(void**, std::size_t);
    NcclResult (*mem_free)(void*);
    NcclResult (*window_register)(ncclComm*, void*, std::size_t, NcclWindow*, int);
    NcclResult (*window_deregister)(ncclComm*, NcclWindow);

    int version = 0;      // 10000 * major + 100 * minor + patch
    std::string library;  // where it was found
    bool has_copies = false;

    /// Returns the functions of the library that TESSERA_NCCL names (a file, or a folder in which it is), or of that which the
    /// loader finds, or of the Python package beside the interpreter.
    /// @throws Error  `communication_failed` with where it was looked for, or with the version that is too old
    static const Nccl& get(std::string_view operation, const std::source_location& caller);

    /// "2.28.9"
    std::string version_text() const;
};

std::string nccl_version_text(int version);

}  // namespace tessera::distributed::detail
