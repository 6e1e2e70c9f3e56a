#pragma once

// Tensor maps from the driver's encoder, of this machine or the emulated one.

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "facts.hpp"

namespace tessera::truth {

struct MapRequest {
    CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
    void* address = nullptr;
    std::vector<std::uint64_t> extents{};  ///< elements, innermost first
    std::vector<std::uint64_t> strides{};  ///< bytes; of dimensions 1 and up
    std::vector<std::uint32_t> box{};
    std::vector<std::uint32_t> element_strides{};  ///< empty: 1 each
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
    CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
};

inline CUresult encode(const MapRequest& request, CUtensorMap& map)
{
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    constexpr unsigned first_version = 12000;
    check(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, first_version, cudaEnableDefault, &found),
        "cuTensorMapEncodeTiled");
    std::vector<std::uint32_t> steps = request.element_strides;
    steps.resize(request.box.size(), 1);
    std::vector<std::uint64_t> strides = request.strides;
    strides.resize(request.extents.size());  // none for a map of one dimension, but the driver requires a pointer
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
        &map, request.type, static_cast<cuuint32_t>(request.extents.size()), request.address,
        reinterpret_cast<const cuuint64_t*>(request.extents.data()),
        reinterpret_cast<const cuuint64_t*>(strides.data()), request.box.data(), steps.data(),
        CU_TENSOR_MAP_INTERLEAVE_NONE, request.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, request.fill);
}

/// For maps that must be accepted.
inline CUtensorMap encoded(const MapRequest& request)
{
    CUtensorMap map{};
    if (const CUresult status = encode(request, map); status != CUDA_SUCCESS) {
        std::fprintf(stderr, "cuTensorMapEncodeTiled: %d\n", static_cast<int>(status));
        std::exit(1);
    }
    return map;
}

struct ElementType {
    CUtensorMapDataType type;
    const char* name;
    unsigned bytes;
};
constexpr ElementType element_types[] = {
    {CU_TENSOR_MAP_DATA_TYPE_UINT8, "u8", 1},
    {CU_TENSOR_MAP_DATA_TYPE_UINT16, "u16", 2},
    {CU_TENSOR_MAP_DATA_TYPE_UINT32, "u32", 4},
    {CU_TENSOR_MAP_DATA_TYPE_INT32, "s32", 4},
    {CU_TENSOR_MAP_DATA_TYPE_UINT64, "u64", 8},
    {CU_TENSOR_MAP_DATA_TYPE_INT64, "s64", 8},
    {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, "f16", 2},
    {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, "f32", 4},
    {CU_TENSOR_MAP_DATA_TYPE_FLOAT64, "f64", 8},
    {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, "bf16", 2},
    {CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, "f32_ftz", 4},
    {CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, "tf32", 4},
    {CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, "tf32_ftz", 4},
};

struct SwizzleMode {
    CUtensorMapSwizzle mode;
    const char* name;
    unsigned span;  ///< bytes; 0: no limit
    unsigned unit;  ///< bytes that stay together
};
constexpr SwizzleMode swizzle_modes[] = {
    {CU_TENSOR_MAP_SWIZZLE_NONE, "none", 0, 16},
    {CU_TENSOR_MAP_SWIZZLE_32B, "32B", 32, 16},
    {CU_TENSOR_MAP_SWIZZLE_64B, "64B", 64, 16},
    {CU_TENSOR_MAP_SWIZZLE_128B, "128B", 128, 16},
    {CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B, "128B_ATOM_32B", 128, 16},
    {CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B, "128B_ATOM_32B_FLIP_8B", 128, 8},
    {CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B, "128B_ATOM_64B", 128, 16},
};

}  // namespace tessera::truth
