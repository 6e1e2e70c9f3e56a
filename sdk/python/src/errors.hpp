#pragma once

/// `tessera.Error`, raised with the library's sentences, and with those that only Python needs.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>  // for every file that reads texts

#include <string>

#include "tessera.h"

namespace tessera::python {

/// Raises tessera.Error.
/// @param code     the name of a status: "shape_mismatch"
/// @param message  what is wrong, with the values
/// @param cure     what to try, or empty
[[noreturn]] void raise(const char* code, const std::string& message, const std::string& cure);

/// Raises tessera.Error, or tessera.CommunicationError, with the library's last text, in Python's words, unless `status` is success.
void check(tessera_status status, const char* function);

/// "3x4x5".
std::string shape_text(int ndim, const std::int64_t* shape);

}  // namespace tessera::python
