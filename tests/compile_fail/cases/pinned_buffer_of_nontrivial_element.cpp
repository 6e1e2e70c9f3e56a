// A std::string is a pointer to pageable memory: the device would copy the pointer.
// expect: "PinnedBuffer<T> is copied as bytes by the device, so T must be trivially copyable"
#include <array>
#include <string>

#include "tessera/pinned_buffer.hpp"

#ifdef NEGATIVE
using Element = std::string;
#else
using Element = std::array<char, 16>;
#endif

std::size_t count(const tessera::PinnedBuffer<Element>& buffer) { return buffer.size(); }
