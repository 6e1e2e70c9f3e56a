#include "npy_header.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <istream>

#include "npy.hpp"

namespace npy::detail {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t header_alignment = 64;    // NumPy pads so that the elements start at a multiple of this
constexpr std::size_t max_header_size = 10000;  // NumPy's own limit, see numpy.load's max_header_size

constexpr std::string_view save_again = "write the file again with numpy.save";
constexpr std::string_view copy_again = "copy or download the file again, or write it again with numpy.save";
constexpr std::string_view save_float32 = "convert first: numpy.save(path, array.astype(numpy.float32))";

struct NamedType {
    TypeCode code;
    std::string_view name;
};

constexpr std::array known_types{
    NamedType{{'u', 1}, "uint8"},   NamedType{{'i', 1}, "int8"},    NamedType{{'u', 2}, "uint16"},
    NamedType{{'i', 2}, "int16"},   NamedType{{'u', 4}, "uint32"},  NamedType{{'i', 4}, "int32"},
    NamedType{{'u', 8}, "uint64"},  NamedType{{'i', 8}, "int64"},   NamedType{{'f', 2}, "float16"},
    NamedType{{'f', 4}, "float32"}, NamedType{{'f', 8}, "float64"},
};

/// NumPy marks single bytes with '|': they have no byte order.
std::string descriptor(TypeCode type)
{
    return fmt::format("{}{}{}", type.bytes == 1 ? '|' : '<', type.kind, type.bytes);
}

/// Text from a file, safe to print: unprintable bytes as \xNN, long text truncated.
std::string printable(std::string_view text)
{
    constexpr std::size_t longest = 60;
    std::string result = "\"";
    for (const char c : text.substr(0, longest)) {
        if (c >= ' ' && c <= '~') {
            result += c;
        } else {
            result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
    }
    return result + (text.size() > longest ? "...\"" : "\"");
}

/// As Python writes a tuple.
std::string describe(const std::vector<std::int64_t>& shape)
{
    return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

/// The product of the extents. @throws Error if they are not those of a vector or a matrix
std::size_t require_shape(std::string_view file, const std::vector<std::int64_t>& shape, std::size_t element_bytes)
{
    if (shape.empty() || shape.size() > 2) {
        throw Error(file, fmt::format("the array has shape {}, that is {} dimensions", describe(shape), shape.size()),
                    "store a vector (1 dimension) or a matrix (2), see numpy.reshape");
    }
    std::int64_t bytes = static_cast<std::int64_t>(element_bytes);
    for (const std::int64_t extent : shape) {
        if (extent <= 0) {
            throw Error(file, fmt::format("the array has shape {} and so no elements", describe(shape)),
                        "store at least one row and one column");
        }
        if (__builtin_mul_overflow(bytes, extent, &bytes)) {
            throw Error(
                file,
                fmt::format("shape {} of {}-byte elements takes more than 2^63 bytes", describe(shape), element_bytes),
                save_again);
        }
    }
    return static_cast<std::size_t>(bytes) / element_bytes;
}

/// Parses the header's text, a Python dictionary with three keys:
///
///     {'descr': '<f4', 'fortran_order': False, 'shape': (1797, 64), }
class HeaderParser {
public:
    HeaderParser(std::string_view file, std::string_view text) : file_(file), text_(text) {}

    Header parse()
    {
        bool has_type = false;
        bool has_order = false;
        bool has_shape = false;
        expect('{');
        while (!accept('}')) {
            const std::string_view key = parse_string();
            expect(':');
            if (key == "descr" && !has_type) {
                parse_type();
                has_type = true;
            } else if (key == "fortran_order" && !has_order) {
                header_.column_major = parse_bool();
                has_order = true;
            } else if (key == "shape" && !has_shape) {
                parse_shape();
                has_shape = true;
            } else {
                fail(fmt::format("has the key {} twice, or one that does not belong there", printable(key)));
            }
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        skip_spaces();
        if (position_ != text_.size()) {
            fail(fmt::format("goes on after its end with {}", printable(text_.substr(position_))));
        }
        if (!has_type || !has_order || !has_shape) {
            fail(fmt::format("lacks the key '{}'", !has_type ? "descr" : !has_order ? "fortran_order" : "shape"));
        }
        return header_;
    }

private:
    [[noreturn]] void fail(std::string_view problem) const
    {
        throw Error(file_, fmt::format("the header {} {}", printable(text_), problem), save_again);
    }

    void skip_spaces()
    {
        while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) {
            ++position_;
        }
    }

    char peek()
    {
        skip_spaces();
        return position_ < text_.size() ? text_[position_] : '\0';
    }

    bool accept(char c)
    {
        if (peek() != c) {
            return false;
        }
        ++position_;
        return true;
    }

    void expect(char c)
    {
        if (!accept(c)) {
            fail(fmt::format("is malformed: '{}' expected at offset {}", c, position_));
        }
    }

    /// A string without escapes: none of the keys and none of the known types has any.
    std::string_view parse_string()
    {
        const char quote = peek();
        if (quote != '\'' && quote != '"') {
            fail(fmt::format("is malformed: a string expected at offset {}", position_));
        }
        const std::size_t begin = position_ + 1;
        const std::size_t end = text_.find(quote, begin);
        if (end == std::string_view::npos) {
            fail(fmt::format("is malformed: the string at offset {} has no end", position_));
        }
        position_ = end + 1;
        return text_.substr(begin, end - begin);
    }

    bool parse_bool()
    {
        skip_spaces();
        for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}}) {
            if (text_.substr(position_).starts_with(word)) {
                position_ += word.size();
                return value;
            }
        }
        fail(fmt::format("is malformed: True or False expected at offset {}", position_));
    }

    void parse_type()
    {
        if (peek() == '[' || peek() == '(') {
            throw Error(file_, fmt::format("the array has a structured type, {}", printable(text_.substr(position_))),
                        "store one field at a time: numpy.save(path, array['field'].astype(numpy.float32))");
        }
        const std::string_view name = parse_string();
        constexpr std::string_view byte_orders = "<>|=";
        const bool has_order = !name.empty() && byte_orders.find(name.front()) != std::string_view::npos;
        const std::string_view code = name.substr(has_order ? 1 : 0);
        if (code.starts_with('O')) {
            throw Error(file_, fmt::format("the array holds Python objects (type {}), not numbers", printable(name)),
                        save_float32);
        }
        const auto* known = std::find_if(known_types.begin(), known_types.end(), [&](const NamedType& type) {
            return code == fmt::format("{}{}", type.code.kind, type.code.bytes);
        });
        // A type of several bytes must say its byte order: a guess may be wrong.
        const bool order_is_said = has_order && (name.front() == '<' || name.front() == '>');
        if (known == known_types.end() || (known->code.bytes > 1 && !order_is_said)) {
            throw Error(file_,
                        fmt::format("the elements are of type {}, not one of int8 to int64, uint8 to uint64, float16, "
                                    "float32 and float64",
                                    printable(name)),
                        save_float32);
        }
        header_.type = known->code;
        header_.big_endian = name.front() == '>' && known->code.bytes > 1;
    }

    void parse_shape()
    {
        expect('(');
        bool separated = true;
        while (!accept(')')) {
            if (!separated) {
                fail(fmt::format("is malformed: ',' or ')' expected at offset {}", position_));
            }
            header_.shape.push_back(parse_extent());
            separated = accept(',');
        }
        if (header_.shape.size() == 1 && !separated) {
            fail(fmt::format("is malformed: ({}) is a number in Python, the shape of a vector is ({},)",
                             header_.shape[0], header_.shape[0]));
        }
    }

    std::int64_t parse_extent()
    {
        skip_spaces();
        const std::size_t begin = position_;
        while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
            ++position_;
        }
        const std::string_view digits = text_.substr(begin, position_ - begin);
        if (digits.empty() || (digits.size() > 1 && digits.front() == '0')) {
            fail(fmt::format("is malformed: an extent of 0 or more expected at offset {}", begin));
        }
        std::int64_t extent = 0;
        if (std::from_chars(digits.data(), digits.data() + digits.size(), extent).ec != std::errc()) {
            fail(fmt::format("has the extent {}, which does not fit into 64 bits", printable(digits)));
        }
        return extent;
    }

    std::string_view file_;
    std::string_view text_;
    std::size_t position_ = 0;
    Header header_;
};

/// Reads exactly `size` bytes. The caller has compared `size` with the stream's.
std::string read_text(std::istream& stream, std::string_view file, std::size_t size)
{
    std::string text(size, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(size));
    if (static_cast<std::size_t>(stream.gcount()) != size) {
        throw Error(file, "reading failed inside of the header", copy_again);
    }
    return text;
}

}  // namespace

std::string describe(TypeCode type)
{
    const auto* known = std::find_if(known_types.begin(), known_types.end(),
                                     [&](const NamedType& named) { return named.code == type; });
    return fmt::format("'{}' ({})", descriptor(type), known == known_types.end() ? "unknown" : known->name);
}

Header read_header(std::istream& stream, std::string_view file)
{
    stream.seekg(0, std::ios::end);
    const auto end = static_cast<std::streamoff>(stream.tellg());
    stream.seekg(0);
    if (!stream || end < 0) {
        throw Error(file, "the file has no size", "copy it to a regular file first");
    }
    std::size_t left = static_cast<std::size_t>(end);
    const auto take = [&](std::size_t size) {
        if (size > left) {
            throw Error(file,
                        fmt::format("the file ends inside of its header: {} bytes needed, {} left of {}", size, left,
                                    static_cast<std::size_t>(end)),
                        copy_again);
        }
        left -= size;
        return read_text(stream, file, size);
    };

    const std::string start = take(std::min(left, magic.size()));
    if (start != magic) {
        throw Error(file, fmt::format("not an .npy file: it begins with {}, not with \"\\x93NUMPY\"", printable(start)),
                    start.starts_with("PK") ? "an .npz file is an archive: unpack it and pass one of its .npy files"
                                            : "pass a file that numpy.save wrote");
    }
    const std::string version = take(2);
    if ((version[0] != 1 && version[0] != 2 && version[0] != 3) || version[1] != 0) {
        throw Error(file,
                    fmt::format("the format version is {}.{}; 1.0, 2.0 and 3.0 are known",
                                static_cast<unsigned char>(version[0]), static_cast<unsigned char>(version[1])),
                    save_again);
    }
    std::size_t header_size = 0;
    const std::string size_bytes = take(version[0] == 1 ? 2 : 4);
    for (std::size_t i = size_bytes.size(); i-- > 0;) {
        header_size = header_size << 8 | static_cast<unsigned char>(size_bytes[i]);
    }
    if (header_size > max_header_size) {
        throw Error(file,
                    fmt::format("the header says that it is {} bytes long; NumPy reads at most {}", header_size,
                                max_header_size),
                    save_again);
    }

    Header header = HeaderParser(file, take(header_size)).parse();
    header.element_count = require_shape(file, header.shape, header.type.bytes);
    if (header.shape.size() == 1) {
        header.column_major = false;  // a vector lies the same way in both orders
    }
    if (header.data_bytes() != left) {
        throw Error(file,
                    fmt::format("shape {} of {} takes {} bytes, and {} follow the header: the file {}",
                                describe(header.shape), describe(header.type), header.data_bytes(), left,
                                header.data_bytes() > left ? "is truncated" : "has trailing bytes"),
                    copy_again);
    }
    return header;
}

std::string make_header(std::string_view file, TypeCode type, const std::vector<std::int64_t>& shape, bool column_major,
                        std::size_t element_count)
{
    const std::size_t expected = require_shape(file, shape, type.bytes);
    if (expected != element_count) {
        throw Error(
            file, fmt::format("shape {} takes {} elements and there are {}", describe(shape), expected, element_count),
            "pass as many elements as the shape has");
    }
    std::string text = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descriptor(type),
                                   column_major && shape.size() == 2 ? "True" : "False", describe(shape));
    constexpr std::size_t fixed = magic.size() + 4;  // with version and length
    const std::size_t used = fixed + text.size() + 1;
    text.append((header_alignment - used % header_alignment) % header_alignment, ' ');
    text += '\n';
    std::string header(magic);
    header += {'\x01', '\x00', static_cast<char>(text.size() & 0xFFU), static_cast<char>(text.size() >> 8)};
    return header + text;
}

}  // namespace npy::detail
