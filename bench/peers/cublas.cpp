#include "peers/cublas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace tessera::bench {
namespace {

// Twice cuBLAS's default on Hopper and Blackwell (32 MiB), so that it limits no algorithm.
constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

void check(cublasStatus_t status, const char* call)
{
    if (status != CUBLAS_STATUS_SUCCESS) {
        throw std::runtime_error(fmt::format("{} failed: {}", call, cublasGetStatusString(status)));
    }
}

cudaDataType_t data_type(ElementType type)
{
    switch (type) {
        case ElementType::f16: return CUDA_R_16F;
        case ElementType::bf16: return CUDA_R_16BF;
        default: break;
    }
    return CUDA_R_32F;
}

}  // namespace

Cublas::Cublas(StreamRef stream) : workspace_(stream, workspace_bytes)
{
    check(cublasCreate(&handle_), "cublasCreate");
    try {
        check(cublasSetStream(handle_, stream.get()), "cublasSetStream");
        // After the stream, because setting a stream restores the default workspace.
        check(cublasSetWorkspace(handle_, workspace_.data(), workspace_.size_bytes()), "cublasSetWorkspace");
    } catch (...) {
        cublasDestroy(handle_);  // a constructor that throws runs no destructor
        throw;
    }
}

Cublas::~Cublas() { cublasDestroy(handle_); }

void Cublas::multiply(const Problem& problem, const CublasOperands& operands, CublasMath math) const
{
    // cuBLAS is column-major: a row-major D is the column-major D^T = B^T * A^T, and a row-major B has the same memory
    // layout as B^T.
    const auto [m, n, k] = problem.shape;
    const bool a_rows = problem.orders.a_row_major;
    const bool b_rows = problem.orders.b_row_major;
    const cudaDataType_t type = data_type(problem.input);
    const float alpha = 1;
    const float beta = 0;
    check(cublasGemmEx_64(handle_, b_rows ? CUBLAS_OP_N : CUBLAS_OP_T, a_rows ? CUBLAS_OP_N : CUBLAS_OP_T, n, m, k,
                          &alpha, operands.b, type, b_rows ? n : k, operands.a, type, a_rows ? k : m, &beta, operands.d,
                          CUDA_R_32F, n,
                          math == CublasMath::fp32_pedantic ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F,
                          CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
}

std::string Cublas::version() const
{
    const auto part = [](libraryPropertyType property) {
        int value = 0;
        check(cublasGetProperty(property, &value), "cublasGetProperty");
        return value;
    };
    return fmt::format("{}.{}.{}", part(MAJOR_VERSION), part(MINOR_VERSION), part(PATCH_LEVEL));
}

}  // namespace tessera::bench
