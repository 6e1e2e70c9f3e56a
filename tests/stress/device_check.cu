#include <cuda_runtime_api.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "device_check.hpp"
#include "support/test_main.hpp"

namespace tessera::test {
namespace {

constexpr int threads = 256;
constexpr std::int64_t most_blocks = 4096;

int blocks_for(std::int64_t elements)
{
    return static_cast<int>(std::clamp<std::int64_t>((elements + threads - 1) / threads, 1, most_blocks));
}

void require_launched(const char* kernel)
{
    if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) {
        throw std::runtime_error(std::string("launching ") + kernel + " failed: " + cudaGetErrorString(status));
    }
}

__device__ std::int64_t first_index() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ std::int64_t index_step() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

/// The unsigned integer with T's size.
template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>;

template <class T>
__device__ Bits<T> bits_of(const T* element)
{
    return *reinterpret_cast<const Bits<T>*>(element);
}

/// Any type of C, D and bias.
__device__ double widened(const DeviceArray& array, std::int64_t index)
{
    switch (array.type) {
        case ElementType::f16:
            return static_cast<double>(static_cast<float>(static_cast<const f16*>(array.data)[index]));
        case ElementType::bf16:
            return static_cast<double>(static_cast<float>(static_cast<const bf16*>(array.data)[index]));
        default: break;
    }
    return static_cast<double>(static_cast<const float*>(array.data)[index]);
}

__device__ std::int64_t index_in(const Placement& place, std::int64_t batch, std::int64_t row, std::int64_t column)
{
    return place.first + batch * place.batch_stride +
           (place.row_major ? row * place.leading_dimension + column : column * place.leading_dimension + row);
}

struct Position {
    std::int64_t batch;
    std::int64_t row;
    std::int64_t column;
    bool inside;  // otherwise the index belongs to no element
};

__device__ Position position_of(const Placement& place, std::int64_t index)
{
    Position position{0, 0, 0, false};
    std::int64_t rest = index - place.first;
    if (rest < 0 || place.rows == 0 || place.columns == 0) {
        return position;
    }
    if (place.batches > 1) {
        position.batch = rest / place.batch_stride;
        rest -= position.batch * place.batch_stride;
    }
    const std::int64_t vector = rest / place.leading_dimension;
    const std::int64_t within = rest % place.leading_dimension;
    position.row = place.row_major ? vector : within;
    position.column = place.row_major ? within : vector;
    position.inside = position.batch < place.batches && position.row < place.rows && position.column < place.columns;
    return position;
}

/// Returns act(element (row, column) of A * B with its epilogue) in fp32.
__device__ Bounded finished_at(const Expectation& expectation, const Placement& place, const Position& at,
                               std::int64_t column, Activation activation)
{
    ElementEpilogue epilogue;
    epilogue.alpha = expectation.alpha;
    epilogue.activation = activation;
    if (expectation.beta != 0) {
        epilogue.beta = expectation.beta;
        epilogue.c = widened(expectation.c.array, index_in(expectation.c.place, at.batch, at.row, column));
    }
    if (expectation.axis != BiasAxis::none) {
        epilogue.has_bias = true;
        epilogue.bias = widened(expectation.bias, expectation.axis == BiasAxis::per_row ? at.row : column);
    }
    const SumOfProducts& sum = expectation.sums[(at.batch * place.rows + at.row) * expectation.columns + column];
    return epilogue_of(bounded(sum, expectation.depth, expectation.relative_error, expectation.smallest_error),
                       epilogue);
}

__device__ Bounded expected_at(const Expectation& expectation, const Placement& place, ElementType type,
                               const Position& at)
{
    const bool interleaved = expectation.gating == Gating::interleaved;
    const std::int64_t column = interleaved ? 2 * at.column : at.column;
    Bounded value = finished_at(expectation, place, at, column, expectation.activation);
    if (expectation.gating != Gating::none) {
        const std::int64_t up = interleaved ? column + 1 : column + expectation.columns / 2;
        value = product_of(value, finished_at(expectation, place, at, up, Activation::none));
    }
    if (expectation.scale_d != 1) {
        const double scale = expectation.scale_d;
        value = after_rounding(scale * value.value, std::abs(scale * value.value), std::abs(scale) * value.error);
    }
    return stored(value, type);
}

__device__ void report(Finding* finding, Fault fault, std::int64_t element, double actual, const Bounded& expected)
{
    if (atomicCAS(&finding->fault, 0U, static_cast<unsigned>(fault)) == 0U) {
        finding->element = element;
        finding->actual = actual;
        finding->expected = expected.value;
        finding->error = expected.error;
    }
}

template <class T>
__global__ void fill_kernel(T* data, std::int64_t size, std::uint64_t seed)
{
    for (std::int64_t i = first_index(); i < size; i += index_step()) {
        const std::uint64_t bits = hash(seed, 0, static_cast<std::uint64_t>(i));
        data[i] = T(static_cast<float>(static_cast<double>(bits >> 40U) * 0x1p-23 - 1));
    }
}

template <class T>
__global__ void prepare_kernel(T* data, std::int64_t size, ElementType type, Placement place, const T* source,
                               Placement source_place)
{
    for (std::int64_t i = first_index(); i < size; i += index_step()) {
        const Position at = position_of(place, i);
        if (source != nullptr && at.inside) {
            data[i] = source[index_in(source_place, at.batch, at.row, at.column)];
        } else {
            reinterpret_cast<Bits<T>*>(data)[i] = static_cast<Bits<T>>(poison_bits(type));
        }
    }
}

template <class A, class B>
__global__ void sum_kernel(const A* a, Placement a_place, const B* b, Placement b_place, std::int64_t depth,
                           SumOfProducts* sums)
{
    const std::int64_t rows = a_place.rows;
    const std::int64_t columns = b_place.columns;
    for (std::int64_t i = first_index(); i < a_place.batches * rows * columns; i += index_step()) {
        const std::int64_t column = i % columns;
        const std::int64_t row = i / columns % rows;
        const std::int64_t batch = i / columns / rows;
        const A* x = a + index_in(a_place, batch, row, 0);
        const B* y = b + index_in(b_place, batch, 0, column);
        const std::int64_t x_step = a_place.row_major ? 1 : a_place.leading_dimension;
        const std::int64_t y_step = b_place.row_major ? b_place.leading_dimension : 1;
        SumOfProducts sum;
        for (std::int64_t k = 0; k < depth; ++k) {
            const double product =
                static_cast<double>(static_cast<float>(*x)) * static_cast<double>(static_cast<float>(*y));
            sum.value += product;
            sum.magnitude += std::abs(product);
            x += x_step;
            y += y_step;
        }
        sums[i] = sum;
    }
}

template <class T>
__global__ void check_kernel(const T* data, std::int64_t size, ElementType type, Placement place,
                             Expectation expectation, Finding* finding)
{
    for (std::int64_t i = first_index(); i < size; i += index_step()) {
        const bool is_poison = bits_of(data + i) == static_cast<Bits<T>>(poison_bits(type));
        const double actual = static_cast<double>(static_cast<float>(data[i]));
        const Position at = position_of(place, i);
        if (!at.inside) {
            if (!is_poison) {
                report(finding, Fault::outside, i, actual, {});
            }
            continue;
        }
        const Bounded expected = expected_at(expectation, place, type, at);
        if (is_poison) {
            report(finding, Fault::unwritten, i, actual, expected);
        } else if (!agrees(expected, actual, type)) {
            report(finding, Fault::wrong, i, actual, expected);
        }
    }
}

template <class T>
__global__ void compare_kernel(const T* first, const T* second, std::int64_t size, Finding* finding)
{
    for (std::int64_t i = first_index(); i < size; i += index_step()) {
        if (bits_of(first + i) != bits_of(second + i)) {
            report(finding, Fault::other_bits, i, static_cast<float>(second[i]),
                   {static_cast<double>(static_cast<float>(first[i])), 0});
        }
    }
}

template <class T>
__global__ void nudge_kernel(T* data, ElementType type, Placement place, Expectation expectation, std::int64_t element)
{
    const Position at{element / place.columns / place.rows, element / place.columns % place.rows,
                      element % place.columns, true};
    const Bounded expected = expected_at(expectation, place, type, at);
    T* const target = data + index_in(place, at.batch, at.row, at.column);
    // Away from zero, where a larger bit pattern is a larger number.
    double outside = expected.value + (expected.value < 0 ? -1.5 : 1.5) * expected.error;
    if (sizeof(T) == 1) {
        outside = -outside;  // beyond the largest number of 8 bits is poison
    }
    *target = T(static_cast<float>(outside));
    while (agrees(expected, static_cast<double>(static_cast<float>(*target)))) {
        ++*reinterpret_cast<Bits<T>*>(target);
    }
}

template <class T>
__global__ void flip_kernel(T* data, std::int64_t index)
{
    reinterpret_cast<Bits<T>*>(data)[index] ^= 1U;
}

template <class T>
__global__ void poison_kernel(T* data, ElementType type, std::int64_t index)
{
    reinterpret_cast<Bits<T>*>(data)[index] = static_cast<Bits<T>>(poison_bits(type));
}

/// Calls use(pointer) with the array's data as elements of its type, which is one that D can have.
template <class Use>
void with_output(const DeviceArray& array, const Use& use)
{
    with_output_type(array.type, [&]<class T>(std::type_identity<T>) { use(static_cast<T*>(array.data)); });
}

}  // namespace

void fill_random(StreamRef stream, const DeviceArray& array, std::uint64_t seed)
{
    const auto fill = [&](auto* data) {
        fill_kernel<<<blocks_for(array.size), threads, 0, stream.get()>>>(data, array.size, seed);
    };
    switch (array.type) {
        case ElementType::f32: fill(static_cast<f32*>(array.data)); break;
        case ElementType::f16: fill(static_cast<f16*>(array.data)); break;
        case ElementType::bf16: fill(static_cast<bf16*>(array.data)); break;
        case ElementType::tf32: fill(static_cast<tf32*>(array.data)); break;
        case ElementType::f8e4m3: fill(static_cast<f8e4m3*>(array.data)); break;
        case ElementType::f8e5m2: fill(static_cast<f8e5m2*>(array.data)); break;
    }
    require_launched("fill_kernel");
}

void prepare_output(StreamRef stream, const DeviceArray& array, const Placement& place, const PlacedMatrix& source)
{
    with_output(array, [&]<class T>(T* data) {
        prepare_kernel<<<blocks_for(array.size), threads, 0, stream.get()>>>(
            data, array.size, array.type, place, static_cast<const T*>(source.array.data), source.place);
    });
    require_launched("prepare_kernel");
}

void sum_products(StreamRef stream, const PlacedMatrix& a, const PlacedMatrix& b, std::int64_t depth,
                  SumOfProducts* sums)
{
    const int blocks = blocks_for(a.place.batches * a.place.rows * b.place.columns);
    with_input_types(
        InputTypes(a.array.type, b.array.type), [&]<class A, class B>(std::type_identity<A>, std::type_identity<B>) {
            sum_kernel<<<blocks, threads, 0, stream.get()>>>(static_cast<const A*>(a.array.data), a.place,
                                                             static_cast<const B*>(b.array.data), b.place, depth, sums);
        });
    require_launched("sum_kernel");
}

void check_output(StreamRef stream, const PlacedMatrix& d, const Expectation& expectation, Finding* finding)
{
    with_output(d.array, [&](auto* data) {
        check_kernel<<<blocks_for(d.array.size), threads, 0, stream.get()>>>(data, d.array.size, d.array.type, d.place,
                                                                             expectation, finding);
    });
    require_launched("check_kernel");
}

void compare_bits(StreamRef stream, const DeviceArray& first, const DeviceArray& second, Finding* finding)
{
    with_output(first, [&]<class T>(T* data) {
        compare_kernel<<<blocks_for(first.size), threads, 0, stream.get()>>>(data, static_cast<const T*>(second.data),
                                                                             first.size, finding);
    });
    require_launched("compare_kernel");
}

void nudge_element(StreamRef stream, const PlacedMatrix& d, const Expectation& expectation, std::int64_t element)
{
    with_output(d.array, [&](auto* data) {
        nudge_kernel<<<1, 1, 0, stream.get()>>>(data, d.array.type, d.place, expectation, element);
    });
    require_launched("nudge_kernel");
}

void flip_bit(StreamRef stream, const DeviceArray& array, std::int64_t index)
{
    with_output(array, [&](auto* data) { flip_kernel<<<1, 1, 0, stream.get()>>>(data, index); });
    require_launched("flip_kernel");
}

void poison_element(StreamRef stream, const DeviceArray& array, std::int64_t index)
{
    with_output(array, [&](auto* data) { poison_kernel<<<1, 1, 0, stream.get()>>>(data, array.type, index); });
    require_launched("poison_kernel");
}

}  // namespace tessera::test
