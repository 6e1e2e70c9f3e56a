#pragma once

/// Shared by the tests of buffers: elements to copy, and the text of the most frequent error.

#include <numeric>
#include <string>
#include <vector>

namespace tessera::test {

inline std::string mismatch(const std::string& operation, const std::string& what)
{
    return "tessera: device_mismatch in " + operation + "\n  the stream belongs to device 1, but " + what +
           " belongs to device 0\n  try: use a stream and memory of one device, or copy the data to device 1 first";
}

/// 1, 2, ...
inline std::vector<int> ascending(std::size_t size)
{
    std::vector<int> elements(size);
    std::iota(elements.begin(), elements.end(), 1);
    return elements;
}

}  // namespace tessera::test
