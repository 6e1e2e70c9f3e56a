// The driver's calls for tensor maps. Compiled twice, like driver_calls.cpp.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "machine/tensor_map.hpp"

using namespace tessera::emulator;

namespace {

/// The 128-byte swizzles with larger atoms came with Blackwell: the H200's driver refuses them.
bool has_swizzle(TensorSwizzle swizzle)
{
    constexpr int first_major = 10;
    int device = 0, major = 0;
    return swizzle < TensorSwizzle::span_128_atom_32 ||
           (cudaGetDevice(&device) == cudaSuccess &&
            cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
            major >= first_major);
}

CUresult encode_checked(const char* name, CUtensorMap* map, const TensorMap& wanted)
{
    if (map == nullptr || reinterpret_cast<std::uintptr_t>(map) % 64 != 0 || !refusals(wanted).empty() ||
        !has_swizzle(wanted.swizzle)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (wanted.interleave != TensorInterleave::none) {
        std::fprintf(stderr, "tessera-emu: not-emulated: %s of an interleaved tensor map\n", name);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    const auto bytes = encode(wanted);
    static_assert(sizeof(CUtensorMap) == tensor_map_bytes);
    std::memcpy(map, bytes.data(), bytes.size());
    return CUDA_SUCCESS;
}

/// `address` may be null since CUDA 12.6: programs set it on the device, with tensormap.replace.
bool read_shape(TensorMap& map, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* extents,
                const cuuint64_t* strides, const cuuint32_t* element_strides)
{
    if (rank < 1 || rank > max_tensor_rank || extents == nullptr || (rank > 1 && strides == nullptr) ||
        element_strides == nullptr || static_cast<unsigned>(type) > 15) {
        return false;
    }
    map.element = static_cast<TensorElement>(type);
    map.rank = rank;
    map.address = reinterpret_cast<std::uint64_t>(address);
    for (unsigned i = 0; i < rank; ++i) {
        map.extents[i] = extents[i];
        map.element_strides[i] = element_strides[i];
        if (i + 1 < rank) {
            map.strides[i] = strides[i];
        }
    }
    return true;
}

void read_layout(TensorMap& map, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    map.interleave = static_cast<TensorInterleave>(interleave);
    map.swizzle = static_cast<TensorSwizzle>(swizzle);
    map.l2_promotion = static_cast<std::uint8_t>(promotion);
    map.fill = static_cast<TensorFill>(fill);
}

}  // namespace

extern "C" {

CUresult cuTensorMapEncodeTiled(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill)
{
    TensorMap map;
    if (box == nullptr || !read_shape(map, type, rank, address, extents, strides, element_strides)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::copy_n(box, rank, map.box.begin());
    read_layout(map, interleave, swizzle, promotion, fill);
    return encode_checked("cuTensorMapEncodeTiled", out, map);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                 const cuuint64_t* extents, const cuuint64_t* strides, const int* lower,
                                 const int* upper, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                 CUtensorMapFloatOOBfill fill)
{
    TensorMap map;
    map.mode = TensorMapMode::im2col;
    if (lower == nullptr || upper == nullptr || rank < 3 ||
        !read_shape(map, type, rank, address, extents, strides, element_strides)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::copy_n(lower, rank - 2, map.lower_corner.begin());
    std::copy_n(upper, rank - 2, map.upper_corner.begin());
    map.channels_per_pixel = channels;
    map.pixels_per_column = pixels;
    read_layout(map, interleave, swizzle, promotion, fill);
    return encode_checked("cuTensorMapEncodeIm2col", out, map);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* out, void* address)
{
    std::array<std::byte, tensor_map_bytes> bytes;
    if (out == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::memcpy(bytes.data(), out, bytes.size());
    auto map = decode_tensor_map(bytes);
    if (!map || address == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    map->address = reinterpret_cast<std::uint64_t>(address);
    return encode_checked("cuTensorMapReplaceAddress", out, *map);
}

}  // extern "C"
