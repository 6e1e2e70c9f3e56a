#include "gemm/tma_matrix.hpp"

#include <bit>

#include "matrix/encode_for_launch.hpp"

namespace tessera::detail {
namespace {

bool takes_stride(std::int64_t elements, std::int64_t element_bytes)
{
    // Not elements * element_bytes < limit, which could overflow.
    return elements < tma_stride_limit / element_bytes && elements * element_bytes % tma_alignment == 0;
}

TmaMatrix output(const void* data, ElementType type, const kernels::GemmArguments& arguments, std::int64_t row_stride,
                 std::int64_t column_stride, std::int64_t batches, std::int64_t batch_stride)
{
    return {.data = data,
            .element_bytes = static_cast<std::int64_t>(size_of(type)),
            .run = arguments.d_columns(),
            .lines = arguments.m,
            .stride = row_stride,
            .batches = batches,
            .batch_stride = batch_stride,
            .contiguous = column_stride == 1};
}

TmaMatrix input(const kernels::Operand& operand, ElementType type, bool k_major, std::int64_t rows, std::int64_t k,
                std::int64_t row_stride, std::int64_t k_stride, std::int64_t batches)
{
    return {.data = operand.data,
            .element_bytes = static_cast<std::int64_t>(size_of(type)),
            .run = k_major ? k : rows,
            .lines = k_major ? rows : k,
            .stride = k_major ? row_stride : k_stride,
            .batches = batches,
            .batch_stride = operand.batch_stride,
            .contiguous = true};
}

/// The kernels do not interpret elements when they copy them.
int storage_type(std::int64_t element_bytes)
{
    switch (element_bytes) {
        case 1: return tensor_map_type<std::uint8_t>;
        case 2: return tensor_map_type<std::uint16_t>;
        default: return tensor_map_type<f32>;
    }
}

}  // namespace

bool TmaMatrix::is_addressable() const noexcept
{
    return contiguous && std::bit_cast<std::uintptr_t>(data) % tma_alignment == 0 &&
           (lines <= 1 || takes_stride(stride, element_bytes)) &&
           (!batched() || takes_stride(batch_stride, element_bytes));
}

TmaMatrix tma_a(const kernels::GemmArguments& arguments, bool k_major, std::int64_t batches) noexcept
{
    return input(arguments.a, arguments.a_type, k_major, arguments.m, arguments.k, arguments.a.row_stride,
                 arguments.a.column_stride, batches);
}

TmaMatrix tma_b(const kernels::GemmArguments& arguments, bool k_major, std::int64_t batches) noexcept
{
    return input(arguments.b, arguments.b_type, k_major, arguments.n, arguments.k, arguments.b.column_stride,
                 arguments.b.row_stride, batches);
}

TmaMatrix tma_pairs_of_b(const kernels::GemmArguments& arguments) noexcept
{
    const bool interleaved = arguments.gating == Gating::interleaved;
    TmaMatrix pairs = tma_b(arguments, true, 1);
    pairs.lines /= 2;
    pairs.batches = 2;
    pairs.batch_stride = interleaved ? pairs.stride : pairs.lines * pairs.stride;
    pairs.stride *= interleaved ? 2 : 1;
    return pairs;
}

TmaMatrix tma_c(const kernels::GemmArguments& arguments, std::int64_t batches) noexcept
{
    const kernels::Operand& c = arguments.c;
    return output(c.data, arguments.c_type, arguments, c.row_stride, c.column_stride, batches, c.batch_stride);
}

TmaMatrix tma_d(const kernels::GemmArguments& arguments, std::int64_t batches) noexcept
{
    return output(arguments.d, arguments.d_type, arguments, arguments.d_row_stride, arguments.d_column_stride, batches,
                  arguments.d_batch_stride);
}

TmaMatrix tma_pre_activation(const kernels::GemmArguments& arguments, std::int64_t batches) noexcept
{
    const kernels::Destination& x = arguments.pre_activation;
    return output(x.data, x.type, arguments, x.row_stride, x.column_stride, batches, x.batch_stride);
}

bool tma_can_load(const MatrixLayout& layout, std::size_t element_bytes, std::int64_t lines,
                  std::int64_t batches) noexcept
{
    // An address that is a multiple of its alignment stands for all of them.
    return TmaMatrix{.data = std::bit_cast<const void*>(layout.address_alignment),
                     .element_bytes = static_cast<std::int64_t>(element_bytes),
                     .run = 0,
                     .lines = lines,
                     .stride = layout.leading_dimension,
                     .batches = batches,
                     .batch_stride = layout.batch_stride,
                     .contiguous = true}
        .is_addressable();
}

std::int64_t line_alignment(const MatrixLayout& layout, std::size_t element_bytes, std::int64_t lines) noexcept
{
    const std::int64_t stride = lines > 1 ? layout.leading_dimension * static_cast<std::int64_t>(element_bytes) : 0;
    const std::int64_t bits = static_cast<std::int64_t>(layout.address_alignment) | stride | tma_alignment;
    return bits & -bits;
}

CallStatus encode_map(const DeviceProperties& device, const TmaMatrix& matrix, const TmaBox& box, AnyTensorMap<3>& map)
{
    // A stride that is never used may be anything; the encoder wants a multiple of 16.
    const auto stride_bytes = [&](bool used, std::int64_t elements) {
        return static_cast<std::uint64_t>(used ? elements * matrix.element_bytes : tma_alignment);
    };
    TensorMapRequest request{};
    request.type = storage_type(matrix.element_bytes);
    request.element_bytes = static_cast<std::uint32_t>(matrix.element_bytes);
    request.rank = 3;
    request.data = matrix.data;
    request.extents = {static_cast<std::uint64_t>(matrix.run), static_cast<std::uint64_t>(matrix.lines),
                       static_cast<std::uint64_t>(matrix.batched() ? matrix.batches : 1)};
    request.strides = {stride_bytes(matrix.lines > 1, matrix.stride),
                       stride_bytes(matrix.batched(), matrix.batch_stride)};
    request.box = {box.run, box.lines, box.matrices};
    request.swizzle = box.swizzle;
    request.out_of_bounds = OutOfBounds::zero;
    request.promotion = L2Promotion::b128;  // 256 bytes were slower on an H200
    TensorMapBits bits{};
    const CallStatus ended = encode_for_launch(device, request, bits);
    map = AnyTensorMap<3>::from_bits(bits);
    return ended;
}

}  // namespace tessera::detail
