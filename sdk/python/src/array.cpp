#include "array.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "elements.hpp"
#include "errors.hpp"
#include "host_values.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace tessera::python {

Memory::Memory(int device, tessera_stream stream, std::size_t bytes) : stream_(stream)
{
    check(tessera_buffer_create(device, stream, bytes, &buffer_), "tessera.empty");
}

Memory::~Memory() { tessera_buffer_destroy(buffer_); }

void Memory::begin_use_on(tessera_stream user) const
{
    if (user != stream_) {
        check(tessera_stream_wait(device(), user, stream_), "tessera.Array.__dlpack__");
    }
}

void Memory::end_use_on(tessera_stream user) const
{
    if (user != stream_) {
        tessera_buffer_used_on(buffer_, user);  // a failure leaves the free where it is: nobody could be told
    }
}

std::int64_t Array::size() const
{
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) {
        product *= extent;
    }
    return product;
}

Array make_array(const std::vector<std::int64_t>& shape, tessera_element_type type, int device, tessera_stream stream)
{
    Array array;
    array.type = type;
    array.shape = shape;
    array.strides.resize(shape.size());
    std::int64_t packed = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        if (shape[i] < 0 || __builtin_mul_overflow(packed, shape[i], &packed)) {
            raise("invalid_argument",
                  "an array cannot have the shape " + shape_text(static_cast<int>(shape.size()), shape.data()),
                  "extents of 0 or more, whose product fits into 63 bits");
        }
    }
    packed = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        array.strides[i] = packed;
        packed *= std::max<std::int64_t>(shape[i], 1);
    }
    array.memory = std::make_shared<Memory>(device, stream, static_cast<std::size_t>(array.size()) * size_of(type));
    return array;
}

namespace {

nb::tuple tuple_of(const std::vector<std::int64_t>& values)
{
    nb::list list;
    for (const std::int64_t value : values) {
        list.append(value);
    }
    return nb::tuple(list);
}

/// What an exported tensor points to. The consumer gives it back after its last use, while its stream still exists: from then on
/// the memory's stream waits for what is on the consumer's.
struct Exported {
    Exported(const Array& array, std::optional<tessera_stream> user)
        : memory(array.memory), shape(array.shape), strides(array.strides), user_(user)
    {}
    ~Exported()
    {
        if (user_) {
            memory->end_use_on(*user_);
        }
    }
    Exported(const Exported&) = delete;
    Exported& operator=(const Exported&) = delete;

    std::shared_ptr<Memory> memory;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;

private:
    std::optional<tessera_stream> user_;
};

template <class Managed>
nb::object capsule_of(const Array& array, const char* name, std::optional<tessera_stream> user)
{
    auto* const managed = new Managed{};
    auto* const exported = new Exported(array, user);
    managed->context = exported;
    managed->deleter = [](Managed* self) {
        delete static_cast<Exported*>(self->context);
        delete self;
    };
    dlpack::Tensor* tensor = nullptr;
    if constexpr (std::is_same_v<Managed, dlpack::ManagedTensorVersioned>) {
        managed->version = {1, 0};
        tensor = &managed->tensor;
    } else {
        tensor = &managed->tensor;
    }
    *tensor = {array.data(),
               {dlpack::cuda, array.memory->device()},
               static_cast<std::int32_t>(array.shape.size()),
               dlpack_type_of(array.type),
               exported->shape.data(),
               exported->strides.data(),
               0};
    PyObject* const capsule = PyCapsule_New(managed, name, [](PyObject* self) {
        // A consumer renames the capsule and calls the deleter itself.
        const char* const own = PyCapsule_GetName(self);
        if (own != nullptr && std::string_view(own).substr(0, 4) != "used") {
            auto* const unused = static_cast<Managed*>(PyCapsule_GetPointer(self, own));
            unused->deleter(unused);
        }
    });
    if (capsule == nullptr) {
        managed->deleter(managed);
        throw nb::python_error();
    }
    return nb::steal(capsule);
}

Array copy_of(const Array& array)
{
    Array copy = array;
    const std::size_t bytes = tessera_buffer_size(array.memory->buffer());
    copy.memory = std::make_shared<Memory>(array.memory->device(), array.memory->stream(), bytes);
    check(tessera_buffer_copy(array.memory->stream(), copy.memory->buffer(), 0, array.memory->buffer(), 0, bytes),
          "tessera.Array.copy");
    return copy;
}

nb::object to_dlpack(const Array& array, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                     nb::handle copy)
{
    if (!dl_device.is_none()) {
        const auto wanted = nb::cast<nb::tuple>(dl_device);
        if (nb::cast<int>(nb::int_(wanted[0])) != dlpack::cuda ||
            nb::cast<int>(nb::int_(wanted[1])) != array.memory->device()) {
            PyErr_Format(PyExc_BufferError,
                         "tessera.Array: the memory is on CUDA device %d; copy it to the host with .numpy()",
                         array.memory->device());
            throw nb::python_error();
        }
    }
    std::int64_t number = 1;  // None: the legacy default stream
    if (!stream.is_none()) {
        number = nb::cast<std::int64_t>(stream);
    }
    if (number == 0) {
        raise("invalid_argument", "DLPack does not say which stream 0 is",
              "stream=1 for the legacy default stream, 2 for the thread's own, or a stream's address");
    }
    const Array given = !copy.is_none() && nb::cast<bool>(copy) ? copy_of(array) : array;
    std::optional<tessera_stream> user;
    if (number != -1) {  // -1: the consumer synchronizes itself
        user = stream_of(nb::int_(number));
        given.memory->begin_use_on(*user);
    }
    const bool is_versioned = !max_version.is_none() && nb::cast<int>(nb::int_(max_version[0])) >= 1;
    return is_versioned ? capsule_of<dlpack::ManagedTensorVersioned>(given, "dltensor_versioned", user)
                        : capsule_of<dlpack::ManagedTensor>(given, "dltensor", user);
}

nb::dict interface_of(const Array& array)
{
    if (array.type != TESSERA_F32 && array.type != TESSERA_F16) {
        PyErr_Format(PyExc_AttributeError, "the CUDA array interface has no name for elements of %s: use DLPack",
                     name_of(array.type));
        throw nb::python_error();
    }
    std::vector<std::int64_t> bytes = array.strides;
    for (std::int64_t& stride : bytes) {
        stride *= static_cast<std::int64_t>(size_of(array.type));
    }
    nb::dict result;
    result["shape"] = tuple_of(array.shape);
    result["typestr"] = array.type == TESSERA_F32 ? "<f4" : "<f2";
    result["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.data()), false);
    result["strides"] = tuple_of(bytes);
    result["stream"] = number_of(array.memory->stream());
    result["version"] = 3;
    return result;
}

/// Elements from the first to one past the last.
std::size_t extent_of(const Array& array) { return tessera_buffer_size(array.memory->buffer()) / size_of(array.type); }

/// Copies all of the array's memory, without Python's lock.
template <class Copy>
void copy_bytes(const Array& array, const HostMemory& host, const char* function, const Copy& copy)
{
    const std::size_t bytes = tessera_buffer_size(array.memory->buffer());
    if (host.bytes() != bytes) {
        raise("out_of_range",
              std::string(function) + ": the host has " + std::to_string(host.bytes()) + " bytes and the array " +
                  std::to_string(bytes),
              "memory of equal size");
    }
    tessera_status status = TESSERA_SUCCESS;
    {
        const nb::gil_scoped_release released;
        status = copy(array.memory->buffer(), 0, host.data(), bytes);
    }
    check(status, function);
}

void upload(const Array& array, nb::handle host)
{
    copy_bytes(array, HostMemory(host, false), "tessera.asarray", &tessera_buffer_upload);
}

void download(const Array& array, nb::handle host)
{
    copy_bytes(array, HostMemory(host, true), "tessera.Array.numpy", &tessera_buffer_download);
}

Array transposed(const Array& array)
{
    if (array.shape.size() < 2) {
        raise("invalid_argument",
              "an array of shape (" + shape_text(static_cast<int>(array.shape.size()), array.shape.data()) +
                  ") has no rows and columns",
              "an array of two or more dimensions");
    }
    Array result = array;
    std::swap(*(result.shape.end() - 1), *(result.shape.end() - 2));
    std::swap(*(result.strides.end() - 1), *(result.strides.end() - 2));
    return result;
}

Array empty(const std::vector<std::int64_t>& shape, nb::handle dtype, nb::handle stream, nb::handle device)
{
    return make_array(shape, element_type_of(dtype), device.is_none() ? -1 : nb::cast<int>(device), stream_of(stream));
}

std::vector<std::int64_t> shape_of(nb::handle shape)
{
    std::vector<std::int64_t> extents;
    for (nb::handle extent : nb::cast<nb::sequence>(shape)) {
        extents.push_back(nb::cast<std::int64_t>(extent));
    }
    return extents;
}

}  // namespace

void define_array(nb::module_& module)
{
    nb::class_<Array>(
        module, "Array",
        "An array in the memory of a CUDA device.\n\n"
        "`tessera.asarray` and `tessera.empty` make one, and products of arrays give one. It has `__dlpack__` and\n"
        "`__cuda_array_interface__`, so `torch.from_dlpack(array)` and `cupy.from_dlpack(array)` share its memory.\n"
        "Its memory is freed in the order of `stream`, after everything that uses it.")
        .def_prop_ro(
            "shape", [](const Array& array) { return tuple_of(array.shape); }, "Extents, as a tuple.")
        .def_prop_ro(
            "strides", [](const Array& array) { return tuple_of(array.strides); },
            "Elements, not bytes, from one index to the next, as a tuple.")
        .def_prop_ro(
            "ndim", [](const Array& array) { return array.shape.size(); }, "Number of dimensions.")
        .def_prop_ro("size", &Array::size, "Number of elements.")
        .def_prop_ro(
            "nbytes", [](const Array& array) { return static_cast<std::size_t>(array.size()) * size_of(array.type); },
            "Size of the elements in bytes.")
        .def_prop_ro(
            "dtype", [](const Array& array) { return name_of(array.type); },
            "\"f32\", \"f16\", \"bf16\", \"f8e4m3\" or \"f8e5m2\".")
        .def_prop_ro(
            "device", [](const Array& array) { return array.memory->device(); }, "CUDA's number of the device.")
        .def_prop_ro(
            "stream", [](const Array& array) { return number_of(array.memory->stream()); },
            "The stream that the contents are ready on: its address, 1 for the legacy default stream.")
        .def_prop_ro(
            "data_ptr", [](const Array& array) { return reinterpret_cast<std::uintptr_t>(array.data()); },
            "Address of the first element on the device.")
        .def_prop_ro("T", &transposed, "The same memory with the last two dimensions exchanged.")
        .def("copy", &copy_of, "A copy in memory of its own, on the same stream.")
        .def("__len__",
             [](const Array& array) {
                 if (array.shape.empty()) {
                     throw nb::type_error("an array without dimensions has no length");
                 }
                 return array.shape[0];
             })
        .def("__repr__",
             [](const Array& array) {
                 return "tessera.Array(" + shape_text(static_cast<int>(array.shape.size()), array.shape.data()) + ", " +
                        name_of(array.type) + ", device " + std::to_string(array.memory->device()) + ")";
             })
        .def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
             nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
             "Gives the memory to another library: see the Python array API standard.")
        .def("__dlpack_device__",
             [](const Array& array) { return nb::make_tuple(static_cast<int>(dlpack::cuda), array.memory->device()); })
        .def_prop_ro("__cuda_array_interface__", &interface_of)
        .def_prop_ro("_extent", &extent_of)
        .def("_upload", &upload)
        .def("_download", &download);
    module.def(
        "empty",
        [](nb::handle shape, nb::handle dtype, nb::handle stream, nb::handle device) {
            return empty(shape_of(shape), dtype, stream, device);
        },
        nb::arg("shape"), nb::arg("dtype") = "f32", nb::kw_only(), nb::arg("stream") = nb::none(),
        nb::arg("device") = nb::none(), nb::sig("def empty(shape, dtype='f32', *, stream=None, device=None)"),
        "Allocates an array without gaps. Its contents are undefined.\n\n"
        "stream  the stream that it is used on, the legacy default stream if it is left out\n"
        "device  CUDA's number of the device; left out: the stream's, for a default stream the current device");
}

}  // namespace tessera::python
