#include "host_values.hpp"

#include <cstring>

#include "elements.hpp"
#include "errors.hpp"
#include "tessera/element.hpp"

namespace nb = nanobind;

namespace tessera::python {

HostMemory::HostMemory(nb::handle object, bool writable)
{
    if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_CONTIG : PyBUF_CONTIG_RO) != 0) {
        throw nb::python_error();
    }
}

namespace {

/// Calls `use` with a value of the element type that `dtype` names.
template <class Use>
void with_element(nb::handle dtype, const Use& use)
{
    switch (element_type_of(dtype)) {
        case TESSERA_BF16: use(bf16{}); break;
        case TESSERA_F8E4M3: use(f8e4m3{}); break;
        case TESSERA_F8E5M2: use(f8e5m2{}); break;
        case TESSERA_F16: use(f16{}); break;
        default: use(f32{}); break;
    }
}

void require_equal_counts(std::size_t one, std::size_t other)
{
    if (one != other) {
        raise("out_of_range", std::to_string(one) + " values and room for " + std::to_string(other), "equal counts");
    }
}

void round_values(nb::handle values, nb::handle rounded, nb::handle dtype)
{
    const HostMemory from(values, false);
    const HostMemory to(rounded, true);
    with_element(dtype, [&]<class Element>(Element) {
        const std::size_t count = from.bytes() / sizeof(float);
        require_equal_counts(count, to.bytes() / sizeof(Element));
        for (std::size_t i = 0; i < count; ++i) {
            float value = 0;
            std::memcpy(&value, static_cast<const char*>(from.data()) + i * sizeof(float), sizeof(float));
            const Element element(value);
            std::memcpy(static_cast<char*>(to.data()) + i * sizeof(Element), &element, sizeof(Element));
        }
    });
}

void widen_values(nb::handle values, nb::handle widened, nb::handle dtype)
{
    const HostMemory from(values, false);
    const HostMemory to(widened, true);
    with_element(dtype, [&]<class Element>(Element) {
        const std::size_t count = from.bytes() / sizeof(Element);
        require_equal_counts(count, to.bytes() / sizeof(float));
        for (std::size_t i = 0; i < count; ++i) {
            Element element;
            std::memcpy(&element, static_cast<const char*>(from.data()) + i * sizeof(Element), sizeof(Element));
            const auto value = static_cast<float>(element);
            std::memcpy(static_cast<char*>(to.data()) + i * sizeof(float), &value, sizeof(float));
        }
    });
}

}  // namespace

void define_host_values(nb::module_& module)
{
    module.def("_round", &round_values);
    module.def("_widen", &widen_values);
    module.def("_name_of_type", [](nb::handle dtype) { return name_of(element_type_of(dtype)); });
}

}  // namespace tessera::python
