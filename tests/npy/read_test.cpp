// What the reader accepts: versions, types, byte orders, storage orders, and NumPy's files of the digits example.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "npy_bytes.hpp"

using namespace std::string_literals;
using npy_test::dictionary;
using npy_test::header;

namespace {

const std::filesystem::path data = DIGITS_DATA_FOLDER;
const std::string one_and_minus_two = "\x00\x00\x80\x3f\x00\x00\x00\xc0"s;  // float32, little endian

}  // namespace

TEST_CASE("a vector of every format version is read")
{
    for (const int version : {1, 2, 3}) {
        CAPTURE(version);
        const auto array = npy_test::read<float>(header(dictionary("'<f4'", "(2,)"), version) + one_and_minus_two);
        CHECK(array.shape == std::vector<std::int64_t>{2});
        CHECK(!array.is_matrix());
        CHECK(!array.column_major);
        CHECK(array.elements == std::vector<float>{1.0F, -2.0F});
    }
}

TEST_CASE("Fortran order makes a matrix column-major and leaves a vector alone")
{
    const auto matrix = npy_test::read<float>(header(dictionary("'<f4'", "(1, 2)", "True")) + one_and_minus_two);
    CHECK(matrix.shape == std::vector<std::int64_t>{1, 2});
    CHECK(matrix.is_matrix());
    CHECK(matrix.column_major);
    CHECK(matrix.elements == std::vector<float>{1.0F, -2.0F});
    CHECK(!npy_test::read<float>(header(dictionary("'<f4'", "(2,)", "True")) + one_and_minus_two).column_major);
}

TEST_CASE("big-endian elements are swapped")
{
    CHECK(npy_test::read<float>(header(dictionary("'>f4'", "(1,)")) + "\x3f\x80\x00\x00"s).elements.front() == 1.0F);
    CHECK(npy_test::read<std::int32_t>(header(dictionary("'>i4'", "(1,)")) + "\x01\x02\x03\x04"s).elements.front() ==
          0x01020304);
    CHECK(npy_test::read<tessera::f16>(header(dictionary("'>f2'", "(1,)")) + "\x3c\x00"s).elements.front() == 1.0F);
    CHECK(npy_test::read<double>(header(dictionary("'>f8'", "(1,)")) + "\xbf\xf0\0\0\0\0\0\0"s).elements.front() ==
          -1.0);
    CHECK(npy_test::read<std::uint8_t>(header(dictionary("'>u1'", "(1,)")) + "\x07"s).elements.front() == 7);
}

TEST_CASE("keys may have any order and either quote, with or without a trailing comma")
{
    const auto elements = std::vector<float>{1.0F, -2.0F};
    for (const auto* text : {R"({"shape":(2,1),"fortran_order":False,"descr":"<f4"})",
                             "  { 'fortran_order' : False ,\n 'descr' : '<f4' , 'shape' : ( 2 , 1 , ) , }   \n"}) {
        CAPTURE(text);
        CHECK(npy_test::read<float>(header(text) + one_and_minus_two).elements == elements);
    }
}

TEST_CASE("every number type is converted to float")
{
    const auto convert = [](std::string_view type, const std::string& bytes) {
        const auto array = npy_test::read_as_float(header(dictionary(type, "(1,)")) + bytes);
        REQUIRE(array.elements.size() == 1);
        return array.elements.front();
    };
    CHECK(convert("'|u1'", "\xff"s) == 255.0F);
    CHECK(convert("'u1'", "\xff"s) == 255.0F);
    CHECK(convert("'|i1'", "\xff"s) == -1.0F);
    CHECK(convert("'<u2'", "\xff\xff"s) == 65535.0F);
    CHECK(convert("'<i2'", "\xfe\xff"s) == -2.0F);
    CHECK(convert("'>i2'", "\xff\xfe"s) == -2.0F);
    CHECK(convert("'<u4'", "\xff\xff\xff\xff"s) == 4294967296.0F);  // rounded up
    CHECK(convert("'<i4'", "\x00\x00\x00\x80"s) == -2147483648.0F);
    CHECK(convert("'<u8'", "\xff\xff\xff\xff\xff\xff\xff\xff"s) == 18446744073709551616.0F);
    CHECK(convert("'<i8'", "\xff\xff\xff\xff\xff\xff\xff\xff"s) == -1.0F);
    CHECK(convert("'<f2'", "\x00\xc0"s) == -2.0F);
    CHECK(convert("'<f4'", "\x00\x00\x80\x3f"s) == 1.0F);
    CHECK(convert("'<f8'", "\x9a\x99\x99\x99\x99\x99\xb9\x3f"s) == 0.1F);
    CHECK(std::isinf(convert("'<f8'", "\x9c\x75\x00\x88\x3c\xe4\x37\x7e"s)));  // 1e300
    CHECK(std::isnan(convert("'<f2'", "\x01\x7e"s)));
}

TEST_CASE("files from NumPy are read and written back byte for byte")
{
    const auto images = npy::read<float>(data / "images.npy");
    CHECK(images.shape == std::vector<std::int64_t>{1797, 64});
    CHECK(!images.column_major);
    for (const float pixel : images.elements) {
        REQUIRE(pixel >= 0.0F);
        REQUIRE(pixel <= 1.0F);
        REQUIRE(std::floor(16.0F * pixel) == 16.0F * pixel);
    }
    // The first image is a 0 and begins with the pixels 0 0 5 13 9 1 0 0.
    const std::vector<float> row(images.elements.begin(), images.elements.begin() + 8);
    CHECK(row == std::vector<float>{0.0F, 0.0F, 5.0F / 16, 13.0F / 16, 9.0F / 16, 1.0F / 16, 0.0F, 0.0F});
    const auto labels = npy::read<std::int32_t>(data / "labels.npy");
    CHECK(labels.shape == std::vector<std::int64_t>{1797});
    CHECK(labels.elements.front() == 0);
    CHECK(npy::read_as_float(data / "labels.npy").elements.back() == static_cast<float>(labels.elements.back()));
}

TEST_CASE("rows that are read a few at a time are those of the whole matrix")
{
    const auto whole = npy::read<float>(data / "images.npy");
    npy::RowReader<float> reader(data / "images.npy");
    REQUIRE(whole.shape == std::vector<std::int64_t>{reader.rows(), reader.columns()});
    std::vector<float> rows;
    std::vector<float> chunk(static_cast<std::size_t>(reader.columns()) * 100 +
                             1);  // 100 rows fit; 1797 is no multiple
    while (const std::int64_t count = reader.read(chunk)) {
        CHECK(count <= 100);
        rows.insert(rows.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(count * reader.columns()));
    }
    CHECK(rows == whole.elements);
    CHECK(reader.read(chunk) == 0);
}

TEST_CASE(
    "rows are refused of a vector, of another type, of a matrix in Fortran order, and where there is no room for one")
{
    CHECK_THROWS_WITH_AS(npy::RowReader<std::int32_t>(data / "labels.npy"), doctest::Contains("this is a vector"),
                         npy::Error);
    CHECK_THROWS_WITH_AS(npy::RowReader<double>(data / "images.npy"), doctest::Contains("float64"), npy::Error);
    npy::RowReader<float> reader(data / "images.npy");
    std::vector<float> narrow(63);
    CHECK_THROWS_WITH_AS(reader.read(narrow), doctest::Contains("a row has 64 elements, and there is room for 63"),
                         npy::Error);
    const auto fortran = std::filesystem::temp_directory_path() / "tessera_npy_fortran_rows.npy";
    npy::write(fortran, npy::matrix<float>(1, 2, {1, 2}, true));
    CHECK_THROWS_WITH_AS(npy::RowReader<float>{fortran}, doctest::Contains("Fortran order"), npy::Error);
    std::filesystem::remove(fortran);
}
