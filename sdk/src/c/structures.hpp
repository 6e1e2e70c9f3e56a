#pragma once

/// The structures of the C ABI as what they stand for.

#include <cstddef>
#include <string_view>

#include "tessera.h"
#include "tessera/gemm.hpp"

namespace tessera::c {

/// Returns a matrix whose memory is used. `name` is for errors.
MatrixOperand used_operand(const char* name, const tessera_matrix* matrix, bool writable);

/// Returns an epilogue whose memory is used; that without anything for NULL.
Epilogue used_epilogue(const tessera_epilogue* epilogue);

/// Hands out a text as snprintf does.
void copy_text(std::string_view text, char* room, std::size_t capacity, std::size_t* length);

}  // namespace tessera::c
