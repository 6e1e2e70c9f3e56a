// CUDA copies pageable memory "asynchronously" only in name. copy_from(gsl::span) is the blocking form.
// expect g++: "no matching function for call to 'tessera::DeviceBuffer<float>::copy_from_async("
// expect clang++: "no matching member function for call to 'copy_from_async'"
#include <vector>

#include "tessera/device_buffer.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Source = std::vector<float>;
#else
using Source = PinnedBuffer<float>;
#endif

void upload(DeviceBuffer<float>& target, StreamRef stream, Source& source) { target.copy_from_async(stream, source); }
