#pragma once

/// Rounding on the host to types that numpy lacks, and back.

#include <nanobind/nanobind.h>

namespace tessera::python {

void define_host_values(nanobind::module_& module);

/// Contiguous memory of a Python object, held while this exists.
class HostMemory {
public:
    HostMemory(nanobind::handle object, bool writable);
    ~HostMemory() { PyBuffer_Release(&view_); }
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;

    void* data() const { return view_.buf; }
    std::size_t bytes() const { return static_cast<std::size_t>(view_.len); }

private:
    Py_buffer view_{};
};

}  // namespace tessera::python
