#include "elements.hpp"

#include <array>
#include <string>

#include "errors.hpp"

namespace nb = nanobind;

namespace tessera::python {
namespace {

struct Element {
    tessera_element_type type;
    const char* name;
    const char* long_name;  // of numpy, ml_dtypes and torch
    std::size_t size;
    dlpack::DataType dlpack;
};

constexpr std::array elements{
    Element{TESSERA_F32, "f32", "float32", 4, {2, 32, 1}},
    Element{TESSERA_F16, "f16", "float16", 2, {2, 16, 1}},
    Element{TESSERA_BF16, "bf16", "bfloat16", 2, {4, 16, 1}},
    Element{TESSERA_F8E4M3, "f8e4m3", "float8_e4m3fn", 1, {10, 8, 1}},
    Element{TESSERA_F8E5M2, "f8e5m2", "float8_e5m2", 1, {12, 8, 1}},
};

constexpr const char* known = "f32, f16, bf16, f8e4m3 or f8e5m2";

const Element& element_of(tessera_element_type type)
{
    for (const Element& element : elements) {
        if (element.type == type) {
            return element;
        }
    }
    return elements[0];  // tf32 is f32 in memory
}

}  // namespace

std::size_t size_of(tessera_element_type type) { return element_of(type).size; }
const char* name_of(tessera_element_type type) { return element_of(type).name; }
dlpack::DataType dlpack_type_of(tessera_element_type type) { return element_of(type).dlpack; }

tessera_element_type element_type_of(const char* name, dlpack::DataType type)
{
    for (const Element& element : elements) {
        if (element.dlpack.code == type.code && element.dlpack.bits == type.bits && type.lanes == 1) {
            return element.type;
        }
    }
    constexpr std::array kinds{"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
    const std::string kind =
        type.code < kinds.size() ? kinds[type.code] : "DLPack type " + std::to_string(type.code) + ", ";
    raise("invalid_argument", std::string(name) + " has elements of " + kind + std::to_string(type.bits),
          std::string("convert them to ") + known);
}

tessera_element_type element_type_of(nb::handle dtype)
{
    std::string text;
    if (nb::isinstance<nb::str>(dtype)) {
        text = nb::cast<std::string>(dtype);
    } else if (nb::hasattr(dtype, "name")) {  // numpy.dtype
        text = nb::cast<std::string>(nb::str(dtype.attr("name")));
    } else if (nb::hasattr(dtype, "__name__")) {  // numpy.float32
        text = nb::cast<std::string>(nb::str(dtype.attr("__name__")));
    } else {
        text = nb::cast<std::string>(nb::str(dtype));
        text = text.substr(text.rfind('.') + 1);  // torch.bfloat16
    }
    for (const Element& element : elements) {
        if (text == element.name || text == element.long_name) {
            return element.type;
        }
    }
    raise("invalid_argument", text + " is no element type", std::string("one of ") + known);
}

}  // namespace tessera::python
