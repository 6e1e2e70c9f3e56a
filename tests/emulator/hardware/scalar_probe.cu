// Executes scalar floating-point instructions of PTX on a GPU (sm_90) on generated operands and prints, per
// instruction, the FNV-1a checksum of the results. The emulator's scalar arithmetic must reproduce them:
// tests/emulator/numerics/hopper_scalar_test.cpp. Subnormal operands are kept unless an instruction says .ftz.
//
// Build:
//   nvcc -std=c++20 -O1 --expt-relaxed-constexpr -gencode arch=compute_90,code=sm_90 scalar_probe.cu -o scalar_probe
//
// Run: ./scalar_probe [FILE] prints "name|checksum" lines; FILE gets the results, case by case, as 64-bit cells.
//
// New checksums, without the approximations, whose bits the emulator does not copy:
//   ./scalar_probe | grep -v 'approx\|div.full' | awk -F'|' '{printf "{\"%s\", 0x%s},\n", $1, toupper($2)}' >
//   ../numerics/h200_scalar_checksums.inc

#include <cstdio>
#include <cstdlib>

#include "probe_check.hpp"
#include "scalar_inputs.hpp"

namespace {

using namespace tessera::probe;

template <int Bits>
struct Cell;
template <>
struct Cell<16> {
    using type = std::uint16_t;
};
template <>
struct Cell<32> {
    using type = std::uint32_t;
};
template <>
struct Cell<64> {
    using type = std::uint64_t;
};

// Operands and results are passed as bits of their own width.
#define KERNEL_CASE(NAME, OPERANDS, DT, DW, DC, ST, SW, SC)                                                     \
    case __COUNTER__ - first: {                                                                                 \
        using Source = Cell<width_of(SW)>::type;                                                                \
        Cell<width_of(DW)>::type d;                                                                             \
        asm volatile("{ .reg ." DT " d; .reg ." ST " a, b, c;\n mov.b" SW " a, %1; mov.b" SW " b, %2; mov.b" SW \
                     " c, %3;\n " NAME " " OPERANDS ";\n mov.b" DW " %0, d; }"                                  \
                     : "=" DC(d)                                                                                \
                     : SC(static_cast<Source>(in[i].a)), SC(static_cast<Source>(in[i].b)),                      \
                       SC(static_cast<Source>(in[i].c)));                                                       \
        out[i] = d;                                                                                             \
        break;                                                                                                  \
    }

__global__ void run(int which, const Operands* in, std::uint64_t* out)
{
    constexpr int first = __COUNTER__ + 1;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    switch (which) {
        TESSERA_SCALAR_CASES(KERNEL_CASE)
        TESSERA_APPROXIMATE_CASES(KERNEL_CASE)
    }
}

}  // namespace

int main(int argc, char** argv)
{
    std::FILE* const dump = argc > 1 ? std::fopen(argv[1], "wb") : nullptr;
    Operands* in = nullptr;
    std::uint64_t* out = nullptr;
    check(cudaMalloc(&in, scalar_count * sizeof(Operands)), "cudaMalloc");
    check(cudaMalloc(&out, scalar_count * sizeof(std::uint64_t)), "cudaMalloc");
    int which = 0;
    for (const ScalarCase& test : scalar_cases) {
        const std::vector<Operands> operands = scalar_operands(test);
        check(cudaMemcpy(in, operands.data(), scalar_count * sizeof(Operands), cudaMemcpyHostToDevice), "cudaMemcpy");
        run<<<scalar_count / 128, 128>>>(which++, in, out);
        std::vector<std::uint64_t> results(scalar_count);
        check(cudaMemcpy(results.data(), out, scalar_count * sizeof(std::uint64_t), cudaMemcpyDeviceToHost), test.name);
        std::printf("%s|%016llx\n", test.name,
                    static_cast<unsigned long long>(fnv1a(results.data(), scalar_count * sizeof(std::uint64_t))));
        if (dump != nullptr) {
            std::fwrite(results.data(), sizeof(std::uint64_t), scalar_count, dump);
        }
    }
    if (dump != nullptr) {
        std::fclose(dump);
    }
    return 0;
}
