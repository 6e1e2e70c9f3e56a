#pragma once

/// Makes .npy files as byte strings, also files that no writer would make.

#include <sstream>
#include <string>
#include <string_view>

#include "npy.hpp"

namespace npy_test {

/// Returns the magic string, version, length and text of a header.
inline std::string header(std::string_view dictionary, int version = 1)
{
    std::string bytes = "\x93NUMPY";
    bytes += static_cast<char>(version);
    bytes += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
        bytes += static_cast<char>(dictionary.size() >> (8 * i) & 0xFFU);
    }
    return bytes.append(dictionary);
}

/// Returns a dictionary with the given values, formatted like NumPy's but without padding.
inline std::string dictionary(std::string_view type, std::string_view shape, std::string_view fortran_order = "False")
{
    std::string text = "{'descr': ";
    return text.append(type)
        .append(", 'fortran_order': ")
        .append(fortran_order)
        .append(", 'shape': ")
        .append(shape)
        .append(", }\n");
}

template <class T>
npy::Array<T> read(const std::string& bytes)
{
    std::istringstream stream(bytes);
    return npy::read<T>(stream, "test.npy");
}

inline npy::Array<float> read_as_float(const std::string& bytes)
{
    std::istringstream stream(bytes);
    return npy::read_as_float(stream, "test.npy");
}

}  // namespace npy_test
