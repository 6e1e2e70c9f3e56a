// Memory of another library, such as tensors: a pointer, and type, sizes and strides known at run time. Nothing is
// copied, and no template is instantiated per type.
#include <cuda_runtime_api.h>
#include <tessera/tessera.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

#include "common/exact_sum.hpp"
#include "common/run_example.hpp"

using namespace tessera;

namespace {

/// What the other library provides. Strides are in elements.
struct Tensor {
    void* data;
    ElementType type;
    std::int64_t sizes[2];
    std::int64_t strides[2];
};

/// The tensor as an operand of a product. One of its dimensions must be contiguous.
MatrixOperand operand_of(const Tensor& tensor)
{
    const bool row_major = tensor.strides[1] == 1;
    if (!row_major && tensor.strides[0] != 1) {
        throw std::invalid_argument("a matrix with two strides that are not 1 has to be copied first");
    }
    return MatrixOperand::from_raw_device_pointer(tensor.data, tensor.type,
                                                  {.rows = tensor.sizes[0],
                                                   .columns = tensor.sizes[1],
                                                   .leading_dimension = tensor.strides[row_major ? 0 : 1],
                                                   .row_major = row_major});
}

// ---- the other library: cudaMalloc, gaps between rows, and any type

void check(cudaError_t status)
{
    if (status != cudaSuccess) {
        throw std::runtime_error(cudaGetErrorString(status));
    }
}

struct Freed {
    void operator()(void* data) const { cudaFree(data); }
};

struct Matrix {
    std::unique_ptr<void, Freed> memory;
    Tensor tensor;
    std::vector<double> values;  // the device's elements, row by row
};

template <class T>
Matrix make_matrix(ElementType type, std::int64_t rows, std::int64_t columns, bool row_major, std::uint32_t seed)
{
    const std::int64_t ld = (row_major ? columns : rows) + 8;
    const auto elements = examples::random_values<T>(static_cast<std::size_t>(ld * (row_major ? rows : columns)), seed);
    void* data = nullptr;
    check(cudaMalloc(&data, elements.size() * sizeof(T)));
    Matrix matrix{std::unique_ptr<void, Freed>(data),
                  {data, type, {rows, columns}, {row_major ? ld : 1, row_major ? 1 : ld}},
                  {}};
    check(cudaMemcpy(data, elements.data(), elements.size() * sizeof(T), cudaMemcpyHostToDevice));
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            const auto at = i * matrix.tensor.strides[0] + j * matrix.tensor.strides[1];
            matrix.values.push_back(double{float(elements[static_cast<std::size_t>(at)])});
        }
    }
    return matrix;
}

Matrix make_matrix(ElementType type, std::int64_t rows, std::int64_t columns, bool row_major, std::uint32_t seed)
{
    switch (type) {
        case ElementType::f16: return make_matrix<f16>(type, rows, columns, row_major, seed);
        case ElementType::bf16: return make_matrix<bf16>(type, rows, columns, row_major, seed);
        default: return make_matrix<float>(ElementType::f32, rows, columns, row_major, seed);
    }
}

// ---- every type and order

std::size_t wrong_elements(ElementType type, bool a_row_major, bool b_row_major)
{
    constexpr std::int64_t m = 48, n = 40, k = 32;
    const Matrix a = make_matrix(type, m, k, a_row_major, 1);
    const Matrix b = make_matrix(type, k, n, b_row_major, 2);
    const Matrix d = make_matrix(ElementType::f32, m, n, true, 3);

    const Stream stream;
    Gemm::launch(stream, operand_of(a.tensor), operand_of(b.tensor), operand_of(d.tensor));
    stream.synchronize();

    std::vector<float> result(static_cast<std::size_t>(m * d.tensor.strides[0]));
    check(cudaMemcpy(result.data(), d.tensor.data, result.size() * sizeof(float), cudaMemcpyDeviceToHost));
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            examples::ExactSum sum;
            for (std::int64_t l = 0; l < k; ++l) {
                sum.add(a.values[static_cast<std::size_t>(i * k + l)] * b.values[static_cast<std::size_t>(l * n + j)]);
            }
            const float element = result[static_cast<std::size_t>(i * d.tensor.strides[0] + j)];
            wrong += sum.allows(double{element}, ElementType::f32) ? 0 : 1;
        }
    }
    return wrong;
}

int run()
{
    const Device device = Device::current();
    std::size_t wrong = 0;
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
        for (const bool a_row_major : {true, false}) {
            for (const bool b_row_major : {true, false}) {
                wrong += wrong_elements(type, a_row_major, b_row_major);
            }
        }
    }
    std::printf("wrap_memory: 12 products of wrapped memory on %s, %zu elements are wrong\n",
                device.properties().name.c_str(), wrong);
    return wrong == 0 ? examples::exit_success : examples::exit_failure;
}

}  // namespace

int main() { return examples::run_example("wrap_memory", run); }
