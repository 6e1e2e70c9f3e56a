#include "mma_sync_sparse_kernels.hpp"

#include <cstring>
#include <span>
#include <type_traits>

#include "mma_sync_tile.cuh"
#include "tessera/device/mma_sync_sparse.cuh"

namespace tessera::test {

namespace {

#ifdef __CUDA_ARCH__
constexpr bool is_device = true;
constexpr int architecture = __CUDA_ARCH__;
constexpr bool has_small_floats = detail::is_family_12;
#else
constexpr bool is_device = false;
constexpr int architecture = 0;
constexpr bool has_small_floats = false;
#endif

/// True if the target being compiled for multiplies these.
template <class A, class B, class D>
constexpr bool has_product =
    is_device && (sizeof(A) > 1 || has_small_floats ||
                  (architecture >= 890 && detail::is_float_8<A> && detail::is_float_8<B> && std::is_same_v<D, float>));

/// Calls `multiply(sums, a fragment, metadata, b fragment, row, column, step)` with a step's number as a type.
template <class A, class B, unsigned K, class D, class Multiply>
__device__ void multiply_tile(DeviceSpan<const std::uint8_t> a, DeviceSpan<const std::uint32_t> metadata,
                              DeviceSpan<const std::uint8_t> b, DeviceSpan<D> d, const Multiply& multiply)
{
    __shared__ TileOf<A, tile_m, stored_row_bytes> a_tile;
    __shared__ TileOf<B, tile_n, tile_row_bytes> b_tile;
    fill<A, tile_m, stored_row_bytes>(a_tile, a);
    fill<B, tile_n, tile_row_bytes>(b_tile, b);
    __syncwarp();
    constexpr unsigned objects = K / detail::small_floats_in<A>;
    constexpr unsigned steps = tile_row_bytes / sizeof(A) / objects;
    constexpr unsigned selectors = SparseMetadata<A, K>::selectors;
    for_each_step<steps>(
        d, [&]<unsigned Step>(auto& sums, unsigned row, unsigned column, std::integral_constant<unsigned, Step> step) {
            const unsigned words = row / 16 * (steps / selectors) + Step / selectors;
            multiply(sums, load_matrix<SparseFragmentA<A, 16, K>>(a_tile, row, objects / 2 * Step),
                     SparseMetadata<A, K, Step % selectors>{metadata[32 * words + threadIdx.x]},
                     load_matrix<FragmentB<B, 8, K>>(b_tile, column, objects * Step), row, column, step);
        });
}

template <class A, class B, unsigned K, class D>
__global__ void sparse_product([[maybe_unused]] DeviceSpan<const std::uint8_t> a,
                               [[maybe_unused]] DeviceSpan<const std::uint32_t> metadata,
                               [[maybe_unused]] DeviceSpan<const std::uint8_t> b, [[maybe_unused]] DeviceSpan<D> d)
{
    if constexpr (has_product<A, B, D>) {
        multiply_tile<A, B, K>(a, metadata, b, d,
                               [](auto& sums, const auto& a_part, const auto& places, const auto& b_part, unsigned,
                                  unsigned, auto) { mma(sums, a_part, places, b_part); });
    }
}

template <class A, class B, unsigned K, ScaleType Type, ScaleVector Vector, unsigned Pair, unsigned Lane>
__global__ void scaled_product([[maybe_unused]] DeviceSpan<const std::uint8_t> a,
                               [[maybe_unused]] DeviceSpan<const std::uint32_t> metadata,
                               [[maybe_unused]] DeviceSpan<const std::uint8_t> b,
                               [[maybe_unused]] DeviceSpan<const std::uint8_t> a_scales,
                               [[maybe_unused]] DeviceSpan<const std::uint8_t> b_scales,
                               [[maybe_unused]] DeviceSpan<float> d)
{
    if constexpr (has_small_floats) {
        multiply_tile<A, B, K>(
            a, metadata, b, d,
            [&]<unsigned Step>(auto& sums, const auto& a_part, const auto& places, const auto& b_part, unsigned row,
                               unsigned column, std::integral_constant<unsigned, Step>) {
                constexpr unsigned byte = Step * static_cast<unsigned>(Vector) % 4;
                using ScaleA = ScaleFragmentA<Type, Vector, byte, Pair>;
                using ScaleB = ScaleFragmentB<Type, Vector, byte, Lane>;
                mma(sums, a_part, places, b_part,
                    ScaleA{load_factors<ScaleA, Vector, Step, 2>(a_scales, row + ScaleA::row())},
                    ScaleB{load_factors<ScaleB, Vector, Step, 2>(b_scales, column + ScaleB::column())});
            });
    }
}

template <class T>
__global__ void write_metadata(DeviceSpan<std::uint32_t> words)
{
    words[threadIdx.x] = SparseMetadata<T, detail::sparse_k<T>>::of(threadIdx.x, [](unsigned row, unsigned i) {
                             return std::is_same_v<T, tf32> ? pattern_place(row, i) % 2 : pattern_place(row, i);
                         }).word;
}

// Row 0 has its first two codes from bit 0 on; tf32's are one of two.
static_assert(SparseMetadata<f16, 16>::of(0, [](unsigned, unsigned i) { return i % 2 == 0 ? 0U : 3U; }).word ==
              0xCCCC'CCCC);
static_assert(SparseMetadata<tf32, 16, 1>::of(3, [](unsigned row, unsigned) { return row / 8; }).word == 0xEEEE'4444);
static_assert(SparseMetadata<f8e4m3, 64>::of(1, [](unsigned row, unsigned i) { return i % 2 + row / 8; }).word ==
              0x9999'9999);

/// Calls `use` with an object of the type.
template <class Use>
auto with_type(OperandType type, bool packed, const Use& use)
{
    switch (type) {
        case OperandType::f16: return use(f16());
        case OperandType::bf16: return use(bf16());
        case OperandType::tf32: return use(tf32());
        default: return packed ? use(f4e2m1x2()) : with_byte_type(type, use);
    }
}

}  // namespace

std::optional<SparseBytes> compress_bytes(OperandType type, bool packed, const std::vector<std::uint8_t>& bytes)
{
    return with_type(type, packed, [&]<class T>(T) -> std::optional<SparseBytes> {
        std::vector<T> matrix(bytes.size() / sizeof(T));
        std::memcpy(matrix.data(), bytes.data(), bytes.size());
        const auto compressed = compress_sparse<T>(matrix, bytes.size() / tile_row_bytes, tile_row_bytes / sizeof(T));
        if (!compressed) {
            return std::nullopt;
        }
        SparseBytes result{std::vector<std::uint8_t>(compressed->stored.size() * sizeof(T)), compressed->metadata};
        std::memcpy(result.stored.data(), compressed->stored.data(), result.stored.size());
        return result;
    });
}

template <class D>
SparseProduct<D> sparse_product_kernel(OperandType type, bool wide)
{
    if (type == OperandType::f16) {
        return wide ? sparse_product<f16, f16, 32, D> : sparse_product<f16, f16, 16, D>;
    }
    if constexpr (std::is_same_v<D, float>) {
        if (type == OperandType::bf16) {
            return wide ? sparse_product<bf16, bf16, 32, D> : sparse_product<bf16, bf16, 16, D>;
        }
        return wide ? sparse_product<tf32, tf32, 16, D> : sparse_product<tf32, tf32, 8, D>;
    }
    return nullptr;
}
template SparseProduct<float> sparse_product_kernel(OperandType type, bool wide);
template SparseProduct<f16> sparse_product_kernel(OperandType type, bool wide);

template <class D>
SparseProduct<D> sparse_bytes_kernel(OperandType a, OperandType b)
{
    return with_byte_type(a, [&](auto in_a) {
        return with_byte_type(
            b, [&](auto in_b) -> SparseProduct<D> { return sparse_product<decltype(in_a), decltype(in_b), 64, D>; });
    });
}
template SparseProduct<float> sparse_bytes_kernel(OperandType a, OperandType b);
template SparseProduct<f16> sparse_bytes_kernel(OperandType a, OperandType b);

SparseScaledProduct sparse_scaled_bytes_kernel(OperandType a, OperandType b)
{
    return with_byte_type(a, [&](auto in_a) {
        return with_byte_type(b, [&](auto in_b) -> SparseScaledProduct {
            return scaled_product<decltype(in_a), decltype(in_b), 64, ScaleType::ue8m0, ScaleVector::x1, 1, 2>;
        });
    });
}

SparseScaledProduct sparse_pairs_kernel(ScaleType type, unsigned place)
{
    return with_place(place, [&](auto pair, auto lane) -> SparseScaledProduct {
        return type == ScaleType::ue8m0
                   ? scaled_product<f4e2m1x2, f4e2m1x2, 128, ScaleType::ue8m0, ScaleVector::x2, pair, lane>
                   : scaled_product<f4e2m1x2, f4e2m1x2, 128, ScaleType::ue4m3, ScaleVector::x4, pair, lane>;
    });
}

Kernel<DeviceSpan<std::uint32_t>> metadata_kernel(OperandType type)
{
    switch (type) {
        case OperandType::f16: return write_metadata<f16>;
        case OperandType::tf32: return write_metadata<tf32>;
        default: return write_metadata<f8e4m3>;
    }
}

}  // namespace tessera::test
