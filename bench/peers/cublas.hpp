#pragma once

/// cuBLAS as a contender.

#include <cublas_v2.h>

#include <cstdint>
#include <string>

#include "problem/problem.hpp"
#include "tessera/device_buffer.hpp"
#include "tessera/stream.hpp"

namespace tessera::bench {

/// Precision that cuBLAS may use.
enum class CublasMath : std::uint8_t {
    fp32_pedantic,  ///< CUBLAS_COMPUTE_32F_PEDANTIC: fp32 throughout, no TF32, no emulation
    fp32_default,   ///< CUBLAS_COMPUTE_32F: tensor cores for 16-bit operands, cuBLAS's fp32 for f32
};

/// Addresses of one product, with D row-major in f32.
struct CublasOperands {
    const void* a;
    const void* b;
    float* d;
};

/// Owns a cuBLAS handle on one stream, with its own workspace so that calls can be captured.
class Cublas {
public:
    explicit Cublas(StreamRef stream);
    ~Cublas();
    Cublas(const Cublas&) = delete;
    Cublas& operator=(const Cublas&) = delete;

    /// Enqueues D = A*B on the handle's stream. @throws std::runtime_error with cuBLAS's text
    void multiply(const Problem& problem, const CublasOperands& operands, CublasMath math) const;

    /// For example "13.0.2".
    std::string version() const;

private:
    DeviceBuffer<unsigned char> workspace_;
    cublasHandle_t handle_ = nullptr;
};

}  // namespace tessera::bench
