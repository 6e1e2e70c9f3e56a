// npy_rewrite IN OUT: rewrites a row-major float32 matrix column by column, which NumPy calls Fortran order.
#include <cstdio>
#include <exception>

#include "npy.hpp"

int main(int argc, char** argv)
try {
    if (argc != 3) {
        std::fputs("usage: npy_rewrite IN.npy OUT.npy\n", stderr);
        return 2;
    }
    auto array = npy::read<float>(std::filesystem::path(argv[1]));
    const auto rows = static_cast<std::size_t>(array.shape.at(0));
    const auto columns = static_cast<std::size_t>(array.shape.at(1));
    std::vector<float> elements(rows * columns);
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < columns; ++column) {
            elements[column * rows + row] = array.elements[row * columns + column];
        }
    }
    array.elements = std::move(elements);
    array.column_major = true;
    npy::write(std::filesystem::path(argv[2]), array);
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
