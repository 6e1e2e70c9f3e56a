#include "errors.hpp"

#include <string_view>

namespace nb = nanobind;

namespace tessera::python {
namespace {

[[noreturn]] void raise_text(const char* code, const std::string& text, int cuda_error)
{
    const bool is_communication = std::string_view(code) == "communication_failed";
    const nb::object type =
        nb::module_::import_("tessera._error").attr(is_communication ? "CommunicationError" : "Error");
    const nb::object error = type(text, code, cuda_error);
    PyErr_SetObject(type.ptr(), error.ptr());
    throw nb::python_error();
}

void replace_all(std::string& text, const std::string& from, const std::string& to)
{
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

}  // namespace

void raise(const char* code, const std::string& message, const std::string& cure)
{
    raise_text(code, std::string(code) + ": " + message + (cure.empty() ? "" : "\n  try: " + cure), 0);
}

void check(tessera_status status, const char* function)
{
    if (status == TESSERA_SUCCESS) [[likely]] {
        return;
    }
    std::string text = tessera_last_error();
    if (const std::size_t first = text.find("\n  "); first != std::string::npos) {
        text = text.substr(first + 3);  // without "tessera: shape_mismatch in tessera_gemm"
    }
    // The cures name C++.
    replace_all(text, ".transposed()", ".T");
    replace_all(text, "Gemm::launch", "tessera.gemm");
    replace_all(text, "set .c, or", "pass c, or");
    replace_all(text, "Gating::none", "gating=None");
    replace_all(text, "pass views of tf32", "pass tf32=True");
    raise_text(tessera_status_name(status),
               std::string(tessera_status_name(status)) + " in " + function + "\n  " + text, tessera_last_cuda_error());
}

std::string shape_text(int ndim, const std::int64_t* shape)
{
    std::string text;
    for (int i = 0; i < ndim; ++i) {
        text += (i == 0 ? "" : "x") + std::to_string(shape[i]);
    }
    return ndim == 0 ? "a scalar" : text;
}

}  // namespace tessera::python
