#include "operand.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "elements.hpp"
#include "errors.hpp"

namespace nb = nanobind;

namespace tessera::python {
namespace {

// cudaStreamLegacy and cudaStreamPerThread, by which protocols name the default streams.
constexpr std::uintptr_t legacy_number = 1;

Source describe(PyTypeObject* type)
{
    Source source;
    source.type = type;
    const nb::handle handle(reinterpret_cast<PyObject*>(type));
    source.is_array = handle.is(nb::type<Array>());
    const auto module = nb::cast<std::string>(nb::str(nb::getattr(handle, "__module__", nb::str(""))));
    source.is_cupy = module.substr(0, module.find('.')) == "cupy";
    if (PyObject* const capsule = PyObject_GetAttrString(handle.ptr(), "__dlpack_c_exchange_api__")) {
        const nb::object owner = nb::steal(capsule);
        auto* api = static_cast<dlpack::ExchangeApi*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
        if (api == nullptr) {
            PyErr_Clear();
        }
        while (api != nullptr && api->version.major != 1) {
            api = api->previous;
        }
        source.api = api != nullptr && api->borrow_tensor != nullptr ? api : nullptr;
    } else {
        PyErr_Clear();
    }
    // A subclass, such as torch.nn.Parameter, is of a framework's module, too.
    const nb::object root = nb::module_::import_("sys").attr("modules").attr("get")("torch");
    if (source.api != nullptr && !root.is_none() && nb::hasattr(root, "Tensor")) {
        source.is_torch = PyObject_IsSubclass(handle.ptr(), root.attr("Tensor").ptr()) == 1;
    }
    return source;
}

std::string kind_of(nb::handle object)
{
    const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
    const auto module = nb::cast<std::string>(nb::str(nb::getattr(type, "__module__", nb::str(""))));
    const auto name = nb::cast<std::string>(nb::str(nb::getattr(type, "__name__", nb::str("?"))));
    return module == "builtins" || module.empty() ? name : module + "." + name;
}

[[noreturn]] void refuse_host(const char* name, nb::handle object)
{
    raise("wrong_memory", std::string(name) + " is a " + kind_of(object) + " in host memory",
          kind_of(object) == "torch.Tensor" ? "move it to the device: tensor.cuda()"
                                            : "copy it to the device: tessera.asarray(array)");
}

void fill(Operand& operand, int ndim, const std::int64_t* shape, const std::int64_t* strides)
{
    if (ndim > Operand::max_dimensions) {
        raise("invalid_argument", std::string(operand.name) + " has " + std::to_string(ndim) + " dimensions",
              "at most 8");
    }
    operand.ndim = ndim;
    std::int64_t packed = 1;
    for (int i = ndim; i-- > 0;) {
        const auto at = static_cast<std::size_t>(i);
        operand.shape[at] = shape[i];
        operand.strides[at] = strides != nullptr ? strides[i] : packed;
        packed *= shape[i];
    }
}

}  // namespace

const Source& source_of(nb::handle object)
{
    static std::array<Source, 16> known;
    static std::size_t count = 0;
    PyTypeObject* const type = Py_TYPE(object.ptr());
    for (std::size_t i = 0; i < count; ++i) {
        if (known[i].type == type) {
            return known[i];
        }
    }
    const std::size_t place = count < known.size() ? count++ : known.size() - 1;
    Py_INCREF(reinterpret_cast<PyObject*>(type));  // the address stays this type's
    return known[place] = describe(type);
}

tessera_stream stream_of(nb::handle stream)
{
    nb::object number = nb::borrow(stream);
    if (stream.is_none()) {
        return nullptr;
    }
    if (nb::hasattr(stream, "__cuda_stream__")) {  // cuda.core, CuPy
        number = stream.attr("__cuda_stream__")()[1];
    } else if (nb::hasattr(stream, "cuda_stream")) {  // torch
        number = stream.attr("cuda_stream");
    } else if (nb::hasattr(stream, "ptr")) {  // CuPy
        number = stream.attr("ptr");
    } else if (nb::hasattr(stream, "handle")) {  // numba
        number = stream.attr("handle").attr("value");
    }
    std::uintptr_t value = 0;
    if (!number.is_none() && !nb::try_cast(number, value)) {
        raise("invalid_argument", "a " + kind_of(stream) + " is no stream",
              "a stream of torch, CuPy, numba or cuda.core, or its address as an int");
    }
    return value == legacy_number ? nullptr : reinterpret_cast<tessera_stream>(value);
}

std::uintptr_t number_of(tessera_stream stream)
{
    return stream == nullptr ? legacy_number : reinterpret_cast<std::uintptr_t>(stream);
}

Reader::Reader(nb::handle stream, nb::handle first) : source_(source_of(first)), first_(first)
{
    if (!stream.is_none()) {
        is_decided_ = true;
        stream_ = stream_of(stream);
    }
}

void Reader::decide_stream(int device)
{
    device_ = device;
    if (source_.api != nullptr) {
        void* current = nullptr;
        if (source_.api->current_stream(dlpack::cuda, device, &current) != 0) {
            throw nb::python_error();
        }
        if (is_decided_) {
            exchange_with(static_cast<tessera_stream>(current));
        } else {
            stream_ = static_cast<tessera_stream>(current);
        }
    } else if (!is_decided_ && source_.is_array) {
        stream_ = nb::cast<const Array&>(first_).memory->stream();
    } else if (!is_decided_ && source_.is_cupy) {
        stream_ = stream_of(nb::module_::import_("cupy").attr("cuda").attr("get_current_stream")());
    }
    is_decided_ = true;
}

void Reader::wait_for(tessera_stream other)
{
    if (other != stream_) {
        check(tessera_stream_wait(device_, stream_, other), "tessera");
    }
}

/// What is on `other` so far comes before this call's work, and what comes there later after it: `finish` does the second half.
void Reader::exchange_with(tessera_stream other)
{
    if (other == stream_ ||
        std::find(others_.begin(), others_.begin() + other_count_, other) != others_.begin() + other_count_) {
        return;
    }
    wait_for(other);
    others_[other_count_++] = other;
}

void Reader::read_tensor(Operand& operand, const dlpack::Tensor& tensor)
{
    operand.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
    if (any_type_ != nullptr) {
        *any_type_ = tensor.dtype;
    } else {
        operand.type = element_type_of(operand.name, tensor.dtype);
    }
    operand.device = tensor.device.id;
    fill(operand, tensor.ndim, tensor.shape, tensor.strides);
}

Operand Reader::read_of_any_type(const char* name, nb::handle object, dlpack::DataType& type)
{
    any_type_ = &type;
    try {
        Operand operand = read(name, object);
        any_type_ = nullptr;
        return operand;
    } catch (...) {
        any_type_ = nullptr;
        throw;
    }
}

Operand Reader::read(const char* name, nb::handle object)
{
    Operand operand;
    operand.name = name;
    const Source& source = source_of(object);
    if (source.api != nullptr) {
        dlpack::Tensor tensor{};
        if (source.api->borrow_tensor(object.ptr(), &tensor) != 0) {
            throw nb::python_error();
        }
        if (tensor.device.type != dlpack::cuda && tensor.device.type != dlpack::cuda_managed) {
            refuse_host(name, object);
        }
        if (device_ < 0) {
            decide_stream(tensor.device.id);
        }
        if (source.api != source_.api) {
            void* current = nullptr;
            if (source.api->current_stream(dlpack::cuda, tensor.device.id, &current) != 0) {
                throw nb::python_error();
            }
            exchange_with(static_cast<tessera_stream>(current));
        }
        read_tensor(operand, tensor);
    } else if (source.is_array) {
        const auto& array = nb::cast<const Array&>(object);
        if (device_ < 0) {
            decide_stream(array.memory->device());
        }
        exchange_with(array.memory->stream());
        operand.data = array.data();
        operand.type = array.type;
        if (any_type_ != nullptr) {
            *any_type_ = dlpack_type_of(array.type);
        }
        operand.device = array.memory->device();
        fill(operand, static_cast<int>(array.shape.size()), array.shape.data(), array.strides.data());
    } else if (nb::hasattr(object, "__dlpack__")) {
        read_exported(operand, object);
    } else if (nb::hasattr(object, "__cuda_array_interface__")) {
        read_interface(operand, object);
    } else {
        raise("invalid_argument", std::string(name) + " is a " + kind_of(object),
              "an array on the device with __dlpack__ or __cuda_array_interface__; tessera.asarray makes one of host "
              "memory");
    }
    return operand;
}

/// By DLPack's rules the producer makes the contents ready on the stream that it is told.
void Reader::read_exported(Operand& operand, nb::handle object)
{
    const auto device = nb::cast<nb::tuple>(object.attr("__dlpack_device__")());
    const int type = nb::cast<int>(nb::int_(device[0]));
    if (type != dlpack::cuda && type != dlpack::cuda_managed) {
        refuse_host(operand.name, object);
    }
    if (device_ < 0) {
        decide_stream(nb::cast<int>(nb::int_(device[1])));
    }
    nb::object capsule;
    try {
        capsule = object.attr("__dlpack__")(nb::arg("stream") = number_of(stream_),
                                            nb::arg("max_version") = nb::make_tuple(1, 0));
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_TypeError)) {
            throw;
        }
        capsule = object.attr("__dlpack__")(nb::arg("stream") = number_of(stream_));  // of a time before max_version
    }
    // An unused capsule frees its tensor itself: the memory lives as long as the capsule, until the launch is enqueued. The
    // producer frees it in the order of the stream.
    if (auto* const versioned =
            static_cast<dlpack::ManagedTensorVersioned*>(PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0
                                                             ? PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned")
                                                             : nullptr)) {
        operand.writable = (versioned->flags & dlpack::read_only) == 0;
        read_tensor(operand, versioned->tensor);
    } else if (auto* const plain =
                   static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"))) {
        read_tensor(operand, plain->tensor);
    } else {
        throw nb::python_error();
    }
    operand.owner = capsule;
}

void Reader::read_interface(Operand& operand, nb::handle object)
{
    const auto interface = nb::cast<nb::dict>(object.attr("__cuda_array_interface__"));
    const auto pointer = nb::cast<nb::tuple>(interface["data"]);
    operand.data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(pointer[0]));
    operand.writable = !nb::cast<bool>(pointer[1]);
    const auto text = nb::cast<std::string>(interface["typestr"]);
    std::int64_t size = 0;
    if (any_type_ != nullptr) {
        constexpr std::string_view kinds = "iuf";  // as DLPack numbers them
        const std::size_t code =
            text.size() == 3 && (text[0] == '<' || text[0] == '|') ? kinds.find(text[1]) : text.npos;
        size = text.size() == 3 ? text[2] - '0' : 0;
        if (code == text.npos || size < 1 || size > 8) {
            raise("invalid_argument", std::string(operand.name) + " has elements of '" + text + "'",
                  "integers or floats");
        }
        *any_type_ = {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * size), 1};
    } else if (text != "<f4" && text != "<f2") {
        raise("invalid_argument", std::string(operand.name) + " has elements of '" + text + "'",
              "f32 or f16: the CUDA array interface has no name for other types that tessera multiplies; use DLPack "
              "for them");
    }
    if (any_type_ == nullptr) {
        operand.type = text == "<f4" ? TESSERA_F32 : TESSERA_F16;
        size = static_cast<std::int64_t>(size_of(operand.type));
    }
    if (device_ < 0) {
        decide_stream(-1);
    }
    std::array<std::int64_t, Operand::max_dimensions> shape{};
    std::array<std::int64_t, Operand::max_dimensions> strides{};
    const auto extents = nb::cast<nb::tuple>(interface["shape"]);
    const nb::object steps = interface.contains("strides") ? nb::object(interface["strides"]) : nb::none();
    const std::size_t count = extents.size();
    for (std::size_t i = 0; i < count && i < shape.size(); ++i) {
        shape[i] = nb::cast<std::int64_t>(extents[i]);
        if (!steps.is_none()) {
            const auto bytes = nb::cast<std::int64_t>(steps[i]);
            if (bytes % size != 0) {
                raise("misaligned", std::string(operand.name) + " has a stride of " + std::to_string(bytes) + " bytes",
                      "a multiple of its elements' size");
            }
            strides[i] = bytes / size;
        }
    }
    fill(operand, static_cast<int>(count), shape.data(), steps.is_none() ? nullptr : strides.data());
    if (interface.contains("stream") && !nb::object(interface["stream"]).is_none()) {
        exchange_with(stream_of(nb::object(interface["stream"])));
    }
}

void Reader::finish()
{
    for (std::size_t i = 0; i < other_count_; ++i) {
        check(tessera_stream_wait(device_, others_[i], stream_), "tessera");
    }
}

}  // namespace tessera::python
