#pragma once

/// Reads and writes NumPy's .npy files: vectors and matrices of plain numbers.
///
///     const auto weights = npy::read<float>("weights.npy");      // float32 only
///     const auto image = npy::read_as_float("image.npy");        // any number type, converted
///     npy::write("product.npy", npy::matrix(rows, columns, elements));
///
/// The reader is strict. It takes format versions 1.0, 2.0 and 3.0, one or two dimensions, either byte order and either
/// storage order (Fortran order makes a matrix column-major). It refuses everything else with a sentence that names the
/// file, the value and the cure. A size in a header is compared with the file's size before memory is allocated.
///
/// bfloat16 has no NumPy type: keep such data as float32, which holds every bfloat16 exactly.
///
/// Source: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays", and numpy.lib.format.

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/element.hpp"

namespace npy {

/// A file that cannot be read or written. what() is two lines: "FILE: what is wrong" and "  try: the cure".
class Error : public std::runtime_error {
public:
    Error(std::string_view file, std::string_view problem, std::string_view cure);
};

/// Element types that are read and written. `tessera::f16` is NumPy's float16.
template <class T>
concept Element = std::same_as<T, std::uint8_t> || std::same_as<T, std::int8_t> || std::same_as<T, std::uint16_t> ||
                  std::same_as<T, std::int16_t> || std::same_as<T, std::uint32_t> || std::same_as<T, std::int32_t> ||
                  std::same_as<T, std::uint64_t> || std::same_as<T, std::int64_t> || std::same_as<T, tessera::f16> ||
                  std::same_as<T, float> || std::same_as<T, double>;

/// A vector or a matrix as stored in a file.
template <Element T>
struct Array {
    std::vector<std::int64_t> shape;  ///< one extent (vector) or two (rows, columns), each at least 1
    bool column_major = false;        ///< a matrix whose columns, not rows, are contiguous
    std::vector<T> elements;          ///< their number is the product of the extents

    bool is_matrix() const noexcept { return shape.size() == 2; }
};

/// A row-major matrix; with `column_major`, one stored column by column.
template <Element T>
Array<T> matrix(std::int64_t rows, std::int64_t columns, std::vector<T> elements, bool column_major = false)
{
    return {{rows, columns}, column_major, std::move(elements)};
}

/// Reads a file whose elements are of type T.
/// @throws Error
template <Element T>
Array<T> read(const std::filesystem::path& path);

/// The same from a seekable stream; `name` stands for the file in messages.
template <Element T>
Array<T> read(std::istream& stream, std::string_view name);

/// Reads a file of any of the element types and converts to float. Exact for integers of up to 16 bits, float16 and
/// float32; otherwise rounded to nearest.
/// @throws Error
Array<float> read_as_float(const std::filesystem::path& path);
Array<float> read_as_float(std::istream& stream, std::string_view name);

/// Reads a row-major matrix a few rows at a time, so that what follows can begin before the whole file is read.
///
///     npy::RowReader<float> reader("images.npy");
///     while (const auto rows = reader.read(chunk)) { ... }
template <Element T>
class RowReader {
public:
    /// Opens the file and reads its header.
    /// @throws Error for what read() refuses, and for vectors and column-major matrices
    explicit RowReader(const std::filesystem::path& path);

    std::int64_t rows() const noexcept { return rows_; }
    std::int64_t columns() const noexcept { return columns_; }

    /// Reads the next rows, as many as fit into `to` and are left, without a copy of its own.
    /// @return their number; 0 at the end
    /// @throws Error if `to` has no room for a row, or if reading fails
    std::int64_t read(std::span<T> to);

private:
    std::string name_;
    std::ifstream stream_;
    std::int64_t rows_ = 0;
    std::int64_t columns_ = 0;
    std::int64_t next_ = 0;
    bool big_endian_ = false;
};

/// Writes format version 1.0, the same bytes as numpy.save. An existing file is replaced.
/// @throws Error if the file cannot be written, or if shape and elements contradict each other
template <Element T>
void write(const std::filesystem::path& path, const Array<T>& array);
template <Element T>
void write(std::ostream& stream, std::string_view name, const Array<T>& array);

}  // namespace npy
