#pragma once

/// `tessera.Array`: an array in device memory that tessera allocated, for programs without a framework. It gives itself to
/// others by DLPack and by the CUDA array interface.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "dlpack.hpp"
#include "tessera.h"

namespace tessera::python {

/// Device memory.
class Memory {
public:
    /// @param device  ordinal, or -1 for the stream's
    Memory(int device, tessera_stream stream, std::size_t bytes);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    char* data() const { return static_cast<char*>(tessera_buffer_data(buffer_)); }
    int device() const { return tessera_buffer_device(buffer_); }
    tessera_stream stream() const { return stream_; }
    tessera_buffer* buffer() const { return buffer_; }

    /// Makes work of `user` from now on see the contents.
    void begin_use_on(tessera_stream user) const;
    /// Lets later work of the memory's stream, and the free, wait for what is on `user` so far.
    void end_use_on(tessera_stream user) const;

private:
    tessera_stream stream_;
    tessera_buffer* buffer_ = nullptr;
};

struct Array {
    std::shared_ptr<Memory> memory;
    tessera_element_type type = TESSERA_F32;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;  // in elements

    std::int64_t size() const;
    void* data() const { return memory->data(); }
};

/// Allocates an array without gaps, contents undefined.
Array make_array(const std::vector<std::int64_t>& shape, tessera_element_type type, int device, tessera_stream stream);

void define_array(nanobind::module_& module);

}  // namespace tessera::python
