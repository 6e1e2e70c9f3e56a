// What the reader refuses, with which text: the file, the value, the cure.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <istream>
#include <streambuf>
#include <utility>

#include "npy_bytes.hpp"

using namespace std::string_literals;
using npy_test::dictionary;
using npy_test::header;

namespace {

const std::filesystem::path data = DIGITS_DATA_FOLDER;
const std::string four_bytes(4, '\0');

std::string good_file() { return header(dictionary("'<f4'", "(1,)")) + four_bytes; }

/// Returns the message of the refusal, or a text that no test expects.
std::string refusal(const std::string& bytes)
{
    try {
        npy_test::read_as_float(bytes);
    } catch (const npy::Error& error) {
        return error.what();
    }
    return "taken";
}

bool says(const std::string& message, std::string_view part)
{
    INFO("message: ", message);
    INFO("lacks: ", part);
    const bool found = message.find(part) != std::string::npos;
    CHECK(found);
    return found;
}

}  // namespace

TEST_CASE("a file that is not .npy is refused")
{
    CHECK(refusal("hello, world") ==
          "test.npy: not an .npy file: it begins with \"hello,\", not with \"\\x93NUMPY\"\n"
          "  try: pass a file that numpy.save wrote");
    says(refusal("PK\x03\x04 and so on"), "\"PK\\x03\\x04 a\"");
    says(refusal("PK\x03\x04 and so on"), "  try: an .npz file is an archive: unpack it");
    says(refusal(""), "it begins with \"\"");
    says(refusal("\x93NUM"), "it begins with \"\\x93NUM\"");
}

TEST_CASE("an unknown format version is refused")
{
    std::string bytes = good_file();
    bytes[6] = 4;
    CHECK(refusal(bytes) ==
          "test.npy: the format version is 4.0; 1.0, 2.0 and 3.0 are known\n"
          "  try: write the file again with numpy.save");
    bytes[6] = 1;
    bytes[7] = '\xff';
    says(refusal(bytes), "the format version is 1.255;");
}

TEST_CASE("every prefix of a file is refused")
{
    for (const int version : {1, 2, 3}) {
        const std::string bytes = header(dictionary("'<f4'", "(1,)"), version) + four_bytes;
        REQUIRE(refusal(bytes) == "taken");
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            CAPTURE(size);
            const std::string message = refusal(bytes.substr(0, size));
            CHECK(message != "taken");
            CHECK(message.find("test.npy: ") == 0);
            CHECK(message.find("\n  try: ") != std::string::npos);
        }
    }
    says(refusal(good_file().substr(0, 9)), "the file ends inside of its header: 2 bytes needed, 1 left of 9");
    says(refusal(good_file().substr(0, 20)), "the file ends inside of its header: ");
}

TEST_CASE("truncated data and trailing bytes are refused")
{
    const std::string bytes = header(dictionary("'<f4'", "(2, 3)")) + std::string(23, 'x');
    CHECK(refusal(bytes) ==
          "test.npy: shape (2, 3) of '<f4' (float32) takes 24 bytes, and 23 follow the header: the file is truncated\n"
          "  try: copy or download the file again, or write it again with numpy.save");
    CHECK(refusal(bytes + "x") == "taken");
    says(refusal(bytes + "xy"), "takes 24 bytes, and 25 follow the header: the file has trailing bytes");
}

TEST_CASE("impossible sizes are refused before memory is allocated")
{
    says(refusal(header(dictionary("'<f8'", "(1152921504606846975,)")) + four_bytes),
         "takes 9223372036854775800 bytes, and 4 follow the header");
    says(refusal(header(dictionary("'<f8'", "(1152921504606846976,)"))),
         "shape (1152921504606846976,) of 8-byte elements takes more than 2^63 bytes");
    says(refusal(header(dictionary("'<f4'", "(4294967296, 4294967296)"))), "takes more than 2^63 bytes");
    // 2^32 * 2^32 wraps to 0: a reader without overflow checks would find nothing missing.
    says(refusal(header(dictionary("'|u1'", "(4294967296, 4294967296)"))), "takes more than 2^63 bytes");
    says(refusal(header(dictionary("'<f4'", "(9223372036854775808,)"))),
         "the extent \"9223372036854775808\", which does not fit into 64 bits");
    std::string long_header = header(dictionary("'<f4'", "(1,)"), 2);
    long_header.replace(8, 4, "\xff\xff\xff\xff");
    says(refusal(long_header), "the header says that it is 4294967295 bytes long; NumPy reads at most 10000");
}

namespace {

/// An imaginary file of many terabytes: it has a header and a size.
class HugeFile : public std::streambuf {
public:
    explicit HugeFile(std::string header, std::int64_t data_bytes) : header_(std::move(header)), data_bytes_(data_bytes)
    {
        setg(header_.data(), header_.data(), header_.data() + header_.size());
    }

protected:
    pos_type seekoff(off_type offset, std::ios_base::seekdir from, std::ios_base::openmode) override
    {
        const auto header_bytes = static_cast<std::int64_t>(header_.size());
        const std::int64_t begin = from == std::ios::end   ? header_bytes + data_bytes_
                                   : from == std::ios::cur ? gptr() - eback() + beyond_header_
                                                           : 0;
        const std::int64_t position = begin + offset;
        const std::int64_t in_header = std::min(position, header_bytes);
        beyond_header_ = position - in_header;
        setg(header_.data(), header_.data() + in_header, header_.data() + header_.size());
        return position;
    }
    pos_type seekpos(pos_type position, std::ios_base::openmode mode) override
    {
        return seekoff(position, std::ios::beg, mode);
    }

private:
    std::string header_;
    std::int64_t data_bytes_;
    std::int64_t beyond_header_ = 0;
};

}  // namespace

TEST_CASE("more elements than memory can hold are refused with a sentence")
{
    constexpr std::int64_t elements = std::int64_t{1} << 60U;  // more than any address space
    for (const auto& [type, bytes] : {std::pair("'<f4'", 4), std::pair("'|u1'", 1)}) {
        HugeFile file(header(dictionary(type, "(1152921504606846976,)")), elements * bytes);
        std::istream stream(&file);
        std::string message = "taken";
        try {
            static_cast<void>(npy::read_as_float(stream, "test.npy"));
        } catch (const npy::Error& error) {
            message = error.what();
        }
        CHECK(message ==
              "test.npy: 1152921504606846976 elements of " + std::to_string(bytes) +
                  " bytes are more than this computer has memory for\n"
                  "  try: a part of the array, saved on its own: numpy.load(file, mmap_mode='r') reads parts");
    }
}

TEST_CASE("shapes without elements, or not of one or two dimensions, are refused")
{
    CHECK(refusal(header(dictionary("'<f4'", "(0, 64)"))) ==
          "test.npy: the array has shape (0, 64) and so no elements\n"
          "  try: store at least one row and one column");
    says(refusal(header(dictionary("'<f4'", "(0,)"))), "shape (0,) and so no elements");
    says(refusal(header(dictionary("'<f4'", "()")) + four_bytes), "shape (), that is 0 dimensions");
    says(refusal(header(dictionary("'<f4'", "(1, 1, 1)")) + four_bytes),
         "shape (1, 1, 1), that is 3 dimensions\n  try: store a vector (1 dimension) or a matrix (2)");
}

TEST_CASE("types other than plain numbers are refused")
{
    CHECK(refusal(header(dictionary("'|O'", "(1,)"))) ==
          "test.npy: the array holds Python objects (type \"|O\"), not numbers\n"
          "  try: convert first: numpy.save(path, array.astype(numpy.float32))");
    says(refusal(header(dictionary("[('x', '<f4'), ('y', '<i4')]", "(1,)"))),
         "the array has a structured type, \"[('x', '<f4'), ('y', '<i4')]");
    says(refusal(header(dictionary("('<f4', (2,))", "(1,)"))), "the array has a structured type");
    for (const auto* type : {"'<c8'", "'|b1'", "'<U5'", "'|S3'", "'|V2'", "'<M8[ns]'", "'<f16'", "'<f3'", "''", "'<'",
                             "'f4'", "'=f4'", "'|f4'", "'<f4 '", "'<<f4'"}) {
        CAPTURE(type);
        const std::string text(type);
        says(refusal(header(dictionary(type, "(1,)")) + four_bytes),
             "the elements are of type \"" + text.substr(1, text.size() - 2) + "\", not one of int8 to int64");
    }
}

TEST_CASE("a type other than the required one is refused")
{
    CHECK_THROWS_WITH_AS(npy_test::read<double>(good_file()),
                         "test.npy: the elements are '<f4' (float32), and '<f8' (float64) is needed here\n"
                         "  try: convert first with array.astype in NumPy",
                         npy::Error);
    CHECK_THROWS_WITH_AS(npy_test::read<std::uint32_t>(good_file()), doctest::Contains("'<u4' (uint32) is needed"),
                         npy::Error);
    CHECK_THROWS_WITH_AS(npy_test::read<std::int8_t>(header(dictionary("'|u1'", "(1,)")) + "x"),
                         doctest::Contains("are '|u1' (uint8), and '|i1' (int8) is needed"), npy::Error);
}

TEST_CASE("headers that are not the expected dictionary are refused")
{
    const auto message = [](std::string_view text) { return refusal(header(text) + four_bytes); };
    CHECK(message("{'descr': '<f4', 'fortran_order': False}") ==
          "test.npy: the header \"{'descr': '<f4', 'fortran_order': False}\" lacks the key 'shape'\n"
          "  try: write the file again with numpy.save");
    says(message("{'fortran_order': False, 'shape': (1,)}"), "lacks the key 'descr'");
    says(message("{'descr': '<f4', 'shape': (1,)}"), "lacks the key 'fortran_order'");
    says(message(""), "is malformed: '{' expected at offset 0");
    says(message("{}"), "lacks the key 'descr'");
    says(message("{'descr': '<f4', 'descr': '<f4'}"), "the key \"descr\" twice, or one that does not belong");
    says(message("{'colour': 1}"), "has the key \"colour\" twice, or one that does not belong there");
    says(message("{descr: '<f4'}"), "a string expected at offset 1");
    says(message("{'descr'"), "':' expected at offset 8");
    says(message("{'descr: 1"), "the string at offset 1 has no end");
    says(message("{'descr': '<f4' 'shape': (1,)}"), "'}' expected at offset 16");
    says(message("{'descr': '<f4', 'fortran_order': 0}"), "True or False expected at offset 34");
    says(message(dictionary("'<f4'", "(1)")), "(1) is a number in Python, the shape of a vector is (1,)");
    says(message(dictionary("'<f4'", "[1]")), "'(' expected at offset");
    says(message(dictionary("'<f4'", "(-1,)")), "an extent of 0 or more expected at offset");
    says(message(dictionary("'<f4'", "(01,)")), "an extent of 0 or more expected at offset");
    says(message(dictionary("'<f4'", "(1L,)")), "',' or ')' expected at offset");
    says(message(dictionary("'<f4'", "(1.0,)")), "',' or ')' expected at offset");
    says(message(dictionary("'<f4'", "(,)")), "an extent of 0 or more expected");
    says(message(dictionary("'<f4'", "(1 1)")), "',' or ')' expected at offset");
    says(message(dictionary("'<f4'", "(1,,)")), "an extent of 0 or more expected");
    says(message(dictionary("'<f4'", "(1,)") + "x"), "goes on after its end with \"x\"");
    says(message(dictionary("'<f4'", "(1,)") + "\x00"s), "goes on after its end with \"\\x00\"");
    says(message("{\x00}"s), "a string expected at offset 1");
    says(message(std::string(200, '\x1b')), std::string("\\x1b\\x1b..."));
}

TEST_CASE("paths that are not readable files are refused")
{
    CHECK_THROWS_WITH_AS(npy::read<float>(data / "absent.npy"), doctest::Contains("absent.npy: there is no such file"),
                         npy::Error);
    CHECK_THROWS_WITH_AS(npy::read<float>(data), doctest::Contains("data: this is not a regular file"), npy::Error);
    CHECK_THROWS_WITH_AS(npy::read<float>("/dev/null"), doctest::Contains("/dev/null: this is not a regular file"),
                         npy::Error);
    CHECK_THROWS_WITH_AS(npy::read<float>(data / "README.md"),
                         doctest::Contains("README.md: not an .npy file: it begins with \"# Data\""), npy::Error);
}
