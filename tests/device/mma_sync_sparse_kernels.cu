#include "mma_sync_sparse_kernels.hpp"

#include <cstring>
#include <span>
#include <type_traits>

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

template <class T, unsigned Rows, unsigned RowBytes>
using TileOf = SharedTile<detail::tile_element<T>, Box<RowBytes / sizeof(T), Rows>,
                          RowBytes == 128 ? Swizzle::b128 : Swizzle::b64>;

template <class T, unsigned Rows, unsigned RowBytes>
__device__ void fill(TileOf<T, Rows, RowBytes>& tile, DeviceSpan<const std::uint8_t> bytes)
{
    constexpr unsigned row = RowBytes / sizeof(T);
    for (unsigned i = threadIdx.x; i < Rows * row; i += 32) {
        detail::tile_element<T> element;
        std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
        tile(i / row, i % row) = element;
    }
}

/// Calls `multiply(sums, a fragment, metadata, b fragment, row, column, step)` with a step's number as a type.
template <class A, class B, unsigned K, class D, class Multiply>
__device__ void multiply_tile(DeviceSpan<const std::uint8_t> a, DeviceSpan<const std::uint32_t> metadata,
                              DeviceSpan<const std::uint8_t> b, DeviceSpan<D> d, const Multiply& multiply)
{
    __shared__ TileOf<A, sparse_m, stored_row_bytes> a_tile;
    __shared__ TileOf<B, sparse_n, sparse_row_bytes> b_tile;
    fill<A, sparse_m, stored_row_bytes>(a_tile, a);
    fill<B, sparse_n, sparse_row_bytes>(b_tile, b);
    __syncwarp();
    constexpr unsigned objects = K / detail::small_floats_in<A>;
    constexpr unsigned steps = sparse_row_bytes / sizeof(A) / objects;
    constexpr unsigned selectors = SparseMetadata<A, K>::selectors;
    for (unsigned row = 0; row < sparse_m; row += 16) {
        for (unsigned column = 0; column < sparse_n; column += 8) {
            FragmentC<D, 16, 8> sums;
            const auto at = [&](unsigned i) { return (row + sums.row(i)) * sparse_n + column + sums.column(i); };
            for (unsigned i = 0; i < 4; ++i) {
                sums[i] = d[at(i)];
            }
            const auto step = [&]<unsigned Step>(std::integral_constant<unsigned, Step> number) {
                if constexpr (Step < steps) {
                    const unsigned words = row / 16 * (steps / selectors) + Step / selectors;
                    multiply(sums, load_matrix<SparseFragmentA<A, 16, K>>(a_tile, row, objects / 2 * Step),
                             SparseMetadata<A, K, Step % selectors>{metadata[32 * words + threadIdx.x]},
                             load_matrix<FragmentB<B, 8, K>>(b_tile, column, objects * Step), row, column, number);
                }
            };
            step(std::integral_constant<unsigned, 0>());
            step(std::integral_constant<unsigned, 1>());
            step(std::integral_constant<unsigned, 2>());
            step(std::integral_constant<unsigned, 3>());
            for (unsigned i = 0; i < 4; ++i) {
                d[at(i)] = sums[i];
            }
        }
    }
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

/// The four bytes from `first` on; NaN, in both types of factors, in lanes whose word does not count.
[[maybe_unused]] __device__ std::uint32_t load_word(DeviceSpan<const std::uint8_t> scales, std::size_t first,
                                                    std::size_t count, bool counts)
{
    std::uint32_t word = 0xFFFF'FFFF;
    for (unsigned i = 0; counts && i < count; ++i) {
        word = (word & ~(0xFFU << (8 * i))) | static_cast<std::uint32_t>(scales[first + i]) << (8 * i);
    }
    return word;
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
                constexpr auto factors = static_cast<unsigned>(Vector);
                constexpr unsigned of_row = 2 * factors;  // in one word, or two
                constexpr unsigned byte = Step * factors % 4, word = Step * factors / 4;
                constexpr unsigned bytes = of_row < 4 ? of_row : 4;
                using ScaleA = ScaleFragmentA<Type, Vector, byte, Pair>;
                using ScaleB = ScaleFragmentB<Type, Vector, byte, Lane>;
                mma(sums, a_part, places, b_part,
                    ScaleA{load_word(a_scales, (row + ScaleA::row()) * of_row + 4 * word, bytes, ScaleA::counts())},
                    ScaleB{
                        load_word(b_scales, (column + ScaleB::column()) * of_row + 4 * word, bytes, ScaleB::counts())});
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
auto with_byte_type(OperandType type, const Use& use)
{
    switch (type) {
        case OperandType::e4m3: return use(f8e4m3());
        case OperandType::e5m2: return use(f8e5m2());
        case OperandType::e2m3: return use(f6e2m3());
        case OperandType::e3m2: return use(f6e3m2());
        default: return use(f4e2m1());
    }
}

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
        const auto compressed =
            compress_sparse<T>(matrix, bytes.size() / sparse_row_bytes, sparse_row_bytes / sizeof(T));
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
    const auto choose = [&]<ScaleType Type, ScaleVector Vector>() -> SparseScaledProduct {
        switch (place) {
            case 0: return scaled_product<f4e2m1x2, f4e2m1x2, 128, Type, Vector, 0, 0>;
            case 1: return scaled_product<f4e2m1x2, f4e2m1x2, 128, Type, Vector, 1, 1>;
            case 2: return scaled_product<f4e2m1x2, f4e2m1x2, 128, Type, Vector, 0, 2>;
            default: return scaled_product<f4e2m1x2, f4e2m1x2, 128, Type, Vector, 1, 3>;
        }
    };
    return type == ScaleType::ue8m0 ? choose.operator()<ScaleType::ue8m0, ScaleVector::x2>()
                                    : choose.operator()<ScaleType::ue4m3, ScaleVector::x4>();
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
