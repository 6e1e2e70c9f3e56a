#pragma once

/// `tessera.distributed`: products that are sharded over several GPUs.

#include <nanobind/nanobind.h>

namespace tessera::python {

void define_distributed(nanobind::module_& module);

}  // namespace tessera::python
