#include "npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <gsl/assert>
#include <new>
#include <stdexcept>
#include <type_traits>

#include "npy_header.hpp"

namespace npy {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored as they are in memory");

template <Element T>
constexpr detail::TypeCode type_code{
    std::is_same_v<T, tessera::f16> || std::is_floating_point_v<T> ? 'f' : (std::is_signed_v<T> ? 'i' : 'u'),
    sizeof(T)};

/// Allocates the array's elements as T.
template <Element T>
std::vector<T> allocate(std::string_view name, const detail::Header& header)
{
    const auto give_up = [&] {
        throw Error(name,
                    fmt::format("{} elements of {} bytes are more than this computer has memory for",
                                header.element_count, sizeof(T)),
                    "a part of the array, saved on its own: numpy.load(file, mmap_mode='r') reads parts");
    };
    try {
        return std::vector<T>(header.element_count);
    } catch (const std::bad_alloc&) {
        give_up();
    } catch (const std::length_error&) {
        give_up();
    }
    return {};
}

/// Fills `elements` from the stream, which is at the first of them.
template <Element T>
void read_into(std::istream& stream, std::string_view name, std::span<T> elements, bool big_endian)
{
    stream.read(reinterpret_cast<char*>(elements.data()), static_cast<std::streamsize>(elements.size_bytes()));
    if (static_cast<std::size_t>(stream.gcount()) != elements.size_bytes()) {
        throw Error(name, fmt::format("reading stopped after {} of {} bytes", stream.gcount(), elements.size_bytes()),
                    "check the disk, and that no other program writes the file");
    }
    if (big_endian) {
        for (T& element : elements) {
            char bytes[sizeof(T)];
            std::memcpy(bytes, &element, sizeof(T));
            std::reverse(bytes, bytes + sizeof(T));
            std::memcpy(&element, bytes, sizeof(T));
        }
    }
}

template <Element T>
std::vector<T> read_elements(std::istream& stream, std::string_view name, const detail::Header& header)
{
    auto elements = allocate<T>(name, header);
    read_into<T>(stream, name, elements, header.big_endian);
    return elements;
}

template <Element T>
void require_type(std::string_view name, const detail::Header& header)
{
    if (header.type != type_code<T>) {
        throw Error(name,
                    fmt::format("the elements are {}, and {} is needed here", detail::describe(header.type),
                                detail::describe(type_code<T>)),
                    "convert first with array.astype in NumPy");
    }
}

template <Element Source>
std::vector<float> convert_elements(std::istream& stream, std::string_view name, const detail::Header& header)
{
    auto elements = read_elements<Source>(stream, name, header);
    if constexpr (std::is_same_v<Source, float>) {
        return elements;
    } else {
        auto converted = allocate<float>(name, header);
        std::transform(elements.begin(), elements.end(), converted.begin(),
                       [](Source element) { return static_cast<float>(element); });
        return converted;
    }
}

/// Converts from the type that the header names.
template <Element... Sources>
std::vector<float> convert_any(std::istream& stream, std::string_view name, const detail::Header& header)
{
    std::vector<float> converted;
    const bool found =
        ((header.type == type_code<Sources> && (converted = convert_elements<Sources>(stream, name, header), true)) ||
         ...);
    Expects(found);  // read_header refuses all other types
    return converted;
}

std::ifstream open(const std::filesystem::path& path)
{
    std::error_code failure;
    const auto status = std::filesystem::status(path, failure);
    if (status.type() == std::filesystem::file_type::not_found) {
        throw Error(path.string(), "there is no such file", "check the path");
    }
    // Pipes and devices have no size to compare the header with.
    if (status.type() != std::filesystem::file_type::regular) {
        throw Error(path.string(), failure ? failure.message() : "this is not a regular file",
                    "pass the path of an .npy file");
    }
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    if (!stream) {
        throw Error(path.string(), fmt::format("the file cannot be opened: {}", std::strerror(errno)),
                    "check its permissions");
    }
    return stream;
}

}  // namespace

Error::Error(std::string_view file, std::string_view problem, std::string_view cure)
    : std::runtime_error(fmt::format("{}: {}\n  try: {}", file, problem, cure))
{}

template <Element T>
Array<T> read(std::istream& stream, std::string_view name)
{
    detail::Header header = detail::read_header(stream, name);
    require_type<T>(name, header);
    auto elements = read_elements<T>(stream, name, header);
    return {std::move(header.shape), header.column_major, std::move(elements)};
}

template <Element T>
Array<T> read(const std::filesystem::path& path)
{
    std::ifstream stream = open(path);
    return read<T>(stream, path.string());
}

template <Element T>
RowReader<T>::RowReader(const std::filesystem::path& path) : name_(path.string()), stream_(open(path))
{
    const detail::Header header = detail::read_header(stream_, name_);
    require_type<T>(name_, header);
    if (header.shape.size() != 2 || header.column_major) {
        throw Error(
            name_,
            header.column_major ? "the matrix is in Fortran order, and its rows are needed one after the other"
                                : "this is a vector, and a matrix is needed here",
            header.column_major ? "store numpy.ascontiguousarray(array)" : "reshape it with array.reshape in NumPy");
    }
    rows_ = header.shape[0];
    columns_ = header.shape[1];
    big_endian_ = header.big_endian;
}

template <Element T>
std::int64_t RowReader<T>::read(std::span<T> to)
{
    const std::int64_t fit = static_cast<std::int64_t>(to.size()) / columns_;
    if (fit == 0) {
        throw Error(name_, fmt::format("a row has {} elements, and there is room for {}", columns_, to.size()),
                    "a buffer for at least one row");
    }
    const std::int64_t count = std::min(fit, rows_ - next_);
    read_into<T>(stream_, name_, to.first(static_cast<std::size_t>(count * columns_)), big_endian_);
    next_ += count;
    return count;
}

Array<float> read_as_float(std::istream& stream, std::string_view name)
{
    detail::Header header = detail::read_header(stream, name);
    auto converted = convert_any<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t,
                                 std::uint64_t, std::int64_t, tessera::f16, float, double>(stream, name, header);
    return {std::move(header.shape), header.column_major, std::move(converted)};
}

Array<float> read_as_float(const std::filesystem::path& path)
{
    std::ifstream stream = open(path);
    return read_as_float(stream, path.string());
}

template <Element T>
void write(std::ostream& stream, std::string_view name, const Array<T>& array)
{
    const std::string header =
        detail::make_header(name, type_code<T>, array.shape, array.column_major, array.elements.size());
    stream.write(header.data(), static_cast<std::streamsize>(header.size()));
    stream.write(reinterpret_cast<const char*>(array.elements.data()),
                 static_cast<std::streamsize>(array.elements.size() * sizeof(T)));
    stream.flush();
    if (!stream) {
        throw Error(name, "writing failed, and what is in the file now is incomplete",
                    "check the space on the disk and write again");
    }
}

template <Element T>
void write(const std::filesystem::path& path, const Array<T>& array)
{
    // Before the file is opened, which empties it: an array that cannot be stored must not destroy an existing file.
    static_cast<void>(
        detail::make_header(path.string(), type_code<T>, array.shape, array.column_major, array.elements.size()));
    errno = 0;
    std::ofstream stream(path, std::ios::binary | std::ios::trunc);
    if (!stream) {
        throw Error(path.string(), fmt::format("the file cannot be written: {}", std::strerror(errno)),
                    "check that the folder exists and may be written to");
    }
    write(stream, path.string(), array);
}

// One line per element type that a file can hold.
#define NPY_INSTANTIATE(T)                                              \
    template class RowReader<T>;                                        \
    template Array<T> read(const std::filesystem::path&);               \
    template Array<T> read(std::istream&, std::string_view);            \
    template void write(const std::filesystem::path&, const Array<T>&); \
    template void write(std::ostream&, std::string_view, const Array<T>&)
NPY_INSTANTIATE(std::uint8_t);
NPY_INSTANTIATE(std::int8_t);
NPY_INSTANTIATE(std::uint16_t);
NPY_INSTANTIATE(std::int16_t);
NPY_INSTANTIATE(std::uint32_t);
NPY_INSTANTIATE(std::int32_t);
NPY_INSTANTIATE(std::uint64_t);
NPY_INSTANTIATE(std::int64_t);
NPY_INSTANTIATE(tessera::f16);
NPY_INSTANTIATE(float);
NPY_INSTANTIATE(double);
#undef NPY_INSTANTIATE

}  // namespace npy
