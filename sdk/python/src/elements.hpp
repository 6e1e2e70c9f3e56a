#pragma once

/// Element types by their names in Python, in DLPack, and in the CUDA array interface.

#include <nanobind/nanobind.h>

#include <cstddef>

#include "dlpack.hpp"
#include "tessera.h"

namespace tessera::python {

std::size_t size_of(tessera_element_type type);
/// "bf16".
const char* name_of(tessera_element_type type);
dlpack::DataType dlpack_type_of(tessera_element_type type);
/// Raises tessera.Error for a type that tessera does not multiply. `name` is the operand's.
tessera_element_type element_type_of(const char* name, dlpack::DataType type);
/// Reads "bf16", "bfloat16", torch.bfloat16, numpy.float32 and so on.
tessera_element_type element_type_of(nanobind::handle dtype);

}  // namespace tessera::python
