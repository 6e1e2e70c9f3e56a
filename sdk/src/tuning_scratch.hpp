#pragma once

/// Operands for a measurement: several sets that are used in turn, so that no launch finds its own in the second-level
/// cache, filled with random numbers, because the power that zeros take is not that of work.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/device_buffer.hpp"
#include "tessera/gemm.hpp"

namespace tessera::detail {

class TuningScratch {
public:
    /// `problem` is resolved. Blocks.
    TuningScratch(StreamRef stream, const GemmProblem& problem, std::uint64_t seed, const std::source_location& caller);

    std::size_t sets() const noexcept { return sets_; }
    /// Valid while this lives. A, B and C of a set never change.
    GemmOperands operands(std::size_t set) const;
    Epilogue epilogue(std::size_t set) const;

    /// Makes every element of the first set's D NaN.
    void poison_result(StreamRef stream) const;
    /// The elements of the first set's D, without gaps, as float. Blocks.
    std::vector<float> result(StreamRef stream) const;

private:
    struct Matrix {
        DeviceBuffer<std::uint8_t> memory;
        MatrixOperand first;  // of the first set
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
    DeviceBuffer<float> bias_;
};

}  // namespace tessera::detail
