#pragma once

/// `tessera.Program` and `tessera.Kernel`: tile programs that are compiled at run time.

#include <nanobind/nanobind.h>

namespace tessera::python {

void define_programs(nanobind::module_& module);

}  // namespace tessera::python
