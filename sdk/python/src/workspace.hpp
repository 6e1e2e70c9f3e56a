#pragma once

/// Memory of the caller's framework: for results, and for workspaces, so that no product of PyTorch's tensors allocates behind
/// its caching allocator.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "dlpack.hpp"
#include "tessera.h"

namespace tessera::python {

/// Allocates a tensor of the framework on its current stream. Raises tessera.Error with the framework's text.
dlpack::ManagedTensorVersioned* allocate_by(const dlpack::ExchangeApi& api, tessera_element_type type, int device,
                                            std::size_t ndim, const std::int64_t* shape);

/// The workspace of one launch.
///
/// The library keeps a block for each stream. The first launch for a framework on a device makes the library take these blocks
/// from the framework's allocator. While a stream is being captured, the library would allocate a block for the graph with
/// cudaMalloc; the framework's own memory for graphs takes its place.
class Workspace {
public:
    Workspace(const dlpack::ExchangeApi* api, tessera_stream stream, int device);
    ~Workspace();
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    /// Returns how to launch. Valid as long as this object.
    const tessera_options* options(const tessera_plan* plan, const tessera_matrix& a, const tessera_matrix& b,
                                   const tessera_matrix& d, const tessera_epilogue& epilogue,
                                   const tessera_options& wanted);

private:
    const dlpack::ExchangeApi* api_;
    tessera_stream stream_;
    int device_;
    dlpack::ManagedTensorVersioned* memory_ = nullptr;
    tessera_options options_{};
};

/// Gives back the library's blocks, which belong to a framework, and restores the library's own allocator.
void release_workspaces();

/// Raises tessera.Error if PyTorch is recording and one of its tensors requires a gradient: `tessera.gemm` has none.
void require_no_gradient(std::initializer_list<nanobind::handle> tensors);

}  // namespace tessera::python
