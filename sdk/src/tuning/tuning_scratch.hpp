#pragma once

/// Operands for a measurement: several sets that are used in turn, so that no launch finds its own in L2. They are
/// filled with random numbers, because zeros use less power than real data.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/device_buffer.hpp"
#include "tessera/gemm.hpp"

namespace tessera::detail {

class TuningScratch {
public:
    /// Blocks. `problem` must be resolved.
    TuningScratch(StreamRef stream, const GemmProblem& problem, std::uint64_t seed, const std::source_location& caller);

    std::size_t sets() const noexcept { return sets_; }
    /// Valid while this object lives. A, B and C of a set never change.
    GemmOperands operands(std::size_t set) const;
    Epilogue epilogue(std::size_t set) const;

    /// Sets every element of the first set's D to NaN.
    void poison_result(StreamRef stream) const;
    /// Returns the elements of the first set's D, without gaps, as float. Blocks.
    std::vector<float> result(StreamRef stream) const;

private:
    struct Matrix {
        DeviceBuffer<std::uint8_t> memory;
        MatrixOperand first;  // the matrix of the first set
        std::size_t set_bytes = 0;
    };
    Matrix make(StreamRef stream, const MatrixLayout& layout, ElementType type, std::int64_t rows, std::int64_t columns,
                std::uint64_t seed, const std::source_location& caller) const;
    MatrixOperand of_set(const Matrix& matrix, std::size_t set) const;

    GemmProblem problem_;
    std::size_t sets_;
    Matrix a_;
    Matrix b_;
    Matrix c_;
    Matrix d_;
    Matrix pre_activation_;
    DeviceBuffer<float> bias_;
    DeviceBuffer<float> row_scales_;
    DeviceBuffer<float> column_scales_;
};

}  // namespace tessera::detail
