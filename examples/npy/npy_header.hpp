#pragma once

/// The header of an .npy file, which precedes the elements. Private to the reader and writer.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace npy::detail {

/// NumPy's type code without the byte order: a kind ('f' float, 'i' signed, 'u' unsigned integer) and bytes.
struct TypeCode {
    char kind;
    std::size_t bytes;

    friend bool operator==(const TypeCode&, const TypeCode&) = default;
};

struct Header {
    TypeCode type{};
    bool big_endian = false;
    bool column_major = false;
    std::vector<std::int64_t> shape;
    std::size_t element_count = 0;  // product of the shape

    std::size_t data_bytes() const noexcept { return element_count * type.bytes; }
};

/// "'<f4' (float32)"
std::string describe(TypeCode type);

/// Reads up to the first element. What it returns agrees with the size of the stream.
/// @throws Error
Header read_header(std::istream& stream, std::string_view file);

/// The bytes of a version 1.0 header. @throws Error if the shape cannot be stored
std::string make_header(std::string_view file, TypeCode type, const std::vector<std::int64_t>& shape, bool column_major,
                        std::size_t element_count);

}  // namespace npy::detail
