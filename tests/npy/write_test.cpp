// What the writer writes: the same bytes as NumPy, which the reader reads back.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <random>

#include "npy_bytes.hpp"

namespace {

const std::filesystem::path data = DIGITS_DATA_FOLDER;

std::string bytes_of(const std::filesystem::path& path)
{
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

template <class T>
std::string written(const npy::Array<T>& array)
{
    std::ostringstream stream;
    npy::write(stream, "test.npy", array);
    return stream.str();
}

template <class T>
bool same_bytes(const std::vector<T>& left, const std::vector<T>& right)
{
    const auto bytes = [](const std::vector<T>& elements) {
        return std::string_view(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
    };
    return bytes(left) == bytes(right);
}

/// A folder that is removed at the end of the test.
class ScratchFolder {
public:
    ScratchFolder()
        : path_(std::filesystem::temp_directory_path() / ("npy_tests_" + std::to_string(std::random_device{}())))
    {
        std::filesystem::create_directory(path_);
    }
    ~ScratchFolder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    std::filesystem::path operator/(const char* name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

}  // namespace

TEST_CASE("the files of the digits example are written byte for byte as NumPy writes them")
{
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(data)) {
        if (entry.path().extension() != ".npy") {
            continue;
        }
        CAPTURE(entry.path().string());
        const std::string original = bytes_of(entry.path());
        if (original.find("<f4") < 32) {
            CHECK(written(npy::read<float>(entry.path())) == original);
        } else if (original.find("<f8") < 32) {
            CHECK(written(npy::read<double>(entry.path())) == original);
        } else {
            CHECK(written(npy::read<std::int32_t>(entry.path())) == original);
        }
        ++files;
    }
    CHECK(files == 11);
}

TEST_CASE_TEMPLATE("all bit patterns survive writing and reading", T, std::uint8_t, std::int8_t, std::uint16_t,
                   std::int16_t, std::uint32_t, std::int32_t, std::uint64_t, std::int64_t, tessera::f16, float, double)
{
    const std::uint64_t seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    for (const auto& shape : {std::vector<std::int64_t>{1}, {257}, {1, 1}, {7, 31}, {31, 7}}) {
        for (const bool column_major : {false, true}) {
            npy::Array<T> array{shape, column_major && shape.size() == 2, {}};
            array.elements.resize(static_cast<std::size_t>(shape.size() == 2 ? shape[0] * shape[1] : shape[0]));
            auto* bytes = reinterpret_cast<unsigned char*>(array.elements.data());
            for (std::size_t i = 0; i < array.elements.size() * sizeof(T); ++i) {
                bytes[i] = static_cast<unsigned char>(random());
            }
            const std::string file = written(array);
            CHECK((file.size() - array.elements.size() * sizeof(T)) % 64 == 0);
            const auto copy = npy_test::read<T>(file);
            CHECK(copy.shape == array.shape);
            CHECK(copy.column_major == array.column_major);
            CHECK(same_bytes(copy.elements, array.elements));
        }
    }
}

TEST_CASE("the header equals that of numpy.save")
{
    const std::string file = written(npy::matrix<float>(3, 1, {1.0F, 2.0F, 3.0F}, true));
    const std::string text = "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 1), }";
    CHECK(file.substr(0, 10) == std::string("\x93NUMPY\x01\x00\x76\x00", 10));
    CHECK(file.substr(10, text.size()) == text);
    CHECK(file.substr(10 + text.size(), 128 - 11 - text.size()).find_first_not_of(' ') == std::string::npos);
    CHECK(file[127] == '\n');
    CHECK(file.size() == 128 + 12);
    CHECK(written(npy::Array<std::uint8_t>{{2}, false, {1, 2}}).find("'descr': '|u1'") != std::string::npos);
}

TEST_CASE("writing replaces the whole file")
{
    const ScratchFolder folder;
    npy::write(folder / "a.npy", npy::matrix<double>(50, 2, std::vector<double>(100, 1.5)));
    npy::write(folder / "a.npy", npy::Array<float>{{1}, false, {4.0F}});
    CHECK(npy::read<float>(folder / "a.npy").elements == std::vector<float>{4.0F});
}

TEST_CASE("data that cannot be stored is refused, and an existing file stays")
{
    const ScratchFolder folder;
    npy::write(folder / "a.npy", npy::Array<float>{{1}, false, {4.0F}});
    CHECK_THROWS_WITH_AS(npy::write(folder / "a.npy", npy::matrix<float>(2, 3, {1.0F})),
                         doctest::Contains("a.npy: shape (2, 3) takes 6 elements and there are 1\n  try: pass as many"),
                         npy::Error);
    CHECK_THROWS_WITH_AS(npy::write(folder / "a.npy", npy::matrix<float>(0, 3, {})),
                         doctest::Contains("shape (0, 3) and so no elements"), npy::Error);
    CHECK_THROWS_WITH_AS(npy::write(folder / "a.npy", npy::Array<float>{}),
                         doctest::Contains("shape (), that is 0 dimensions"), npy::Error);
    CHECK(npy::read<float>(folder / "a.npy").elements == std::vector<float>{4.0F});
}

TEST_CASE("a path that cannot be written is refused with the reason")
{
    const ScratchFolder folder;
    const npy::Array<float> array{{1}, false, {4.0F}};
    CHECK_THROWS_WITH_AS(
        npy::write(folder / "absent/a.npy", array),
        doctest::Contains("a.npy: the file cannot be written: No such file or directory\n  try: check"), npy::Error);
    if (std::filesystem::exists("/dev/full")) {  // a disk without space
        CHECK_THROWS_WITH_AS(npy::write("/dev/full", array), doctest::Contains("/dev/full: writing failed"),
                             npy::Error);
    }
}
