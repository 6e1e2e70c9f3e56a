// Executes single wgmma and mma.sync instructions on a Hopper GPU (sm_90a) on the inputs of probe_inputs.hpp. Prints,
// per instruction and input class, the FNV-1a checksum of the resulting accumulators. The emulator's exact numerics
// must reproduce them: tests/emulator/numerics/hopper_tensor_test.cpp.
//
// Build:
//   nvcc -std=c++20 -O1 -gencode arch=compute_90a,code=sm_90a wgmma_probe.cu -o wgmma_probe
//
// Run: ./wgmma_probe [FILE] prints "name|class|checksum" lines; FILE gets the raw accumulators, case by case and class
// by class: [instance][m][n] cells of the D type, little-endian.
//
// New checksums:
//   ./wgmma_probe | awk -F'|' '{printf "{\"%s\", \"%s\", 0x%s},\n", $1, $2, toupper($3)}' >
//   ../numerics/h200_tensor_checksums.inc

#include <cstdio>
#include <cstdlib>
#include <string>

#include "hopper_instructions.cuh"
#include "probe_inputs.hpp"

namespace {

using namespace tessera::probe;

/// One block of 128 threads per instance.
template <typename Instruction>
__global__ void wgmma_kernel(const std::uint32_t* a, const std::uint32_t* b, const unsigned char* c, unsigned char* out)
{
    __shared__ alignas(1024) std::uint32_t shared_a[64 * 8];
    __shared__ alignas(1024) std::uint32_t shared_b[8 * 8];
    const unsigned instance = blockIdx.x;
    const unsigned thread = threadIdx.x;
    for (unsigned i = thread; i < 64 * 8; i += 128) {
        const unsigned row = i / 8;
        const unsigned word = i % 8;
        shared_a[place_of(row, word)] = a[instance * 512 + i];
    }
    if (thread < 64) {
        const unsigned row = thread / 8;
        const unsigned word = thread % 8;
        shared_b[place_of(row, word)] = b[instance * 64 + thread];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();

    constexpr int registers = Instruction::registers;
    constexpr unsigned bytes = registers == 4 ? 4 : 2;
    const unsigned lane = thread % 32;
    const unsigned row = 16 * (thread / 32) + lane / 4;
    const unsigned column = 2 * (lane % 4);
    std::uint32_t d[registers];
    for (unsigned i = 0; i < 2; ++i) {
        const unsigned at = (instance * 512 + (row + 8 * i) * 8 + column) * bytes;
        for (unsigned r = 0; r < registers / 2; ++r) {
            d[i * registers / 2 + r] = *reinterpret_cast<const std::uint32_t*>(c + at + 4 * r);
        }
    }
    Instruction::run(d, descriptor(shared_a), descriptor(shared_b));
    for (unsigned i = 0; i < 2; ++i) {
        const unsigned at = (instance * 512 + (row + 8 * i) * 8 + column) * bytes;
        for (unsigned r = 0; r < registers / 2; ++r) {
            *reinterpret_cast<std::uint32_t*>(out + at + 4 * r) = d[i * registers / 2 + r];
        }
    }
}

/// One warp per instance. Register 2q + i of A holds word lane%4 + 4q of row lane/4 + 8i, register q of B that word of
/// column lane/4.
template <typename Instruction>
__global__ void mma_kernel(const std::uint32_t* a, const std::uint32_t* b, const unsigned char* c, unsigned char* out)
{
    constexpr unsigned halves = Instruction::b_words;
    constexpr unsigned row_words = 4 * halves;
    constexpr unsigned c_words = Instruction::c_words;
    constexpr unsigned bytes = c_words == 4 ? 4 : 2;
    const unsigned instance = blockIdx.x;
    const unsigned lane = threadIdx.x;
    std::uint32_t a_words[2 * halves];
    std::uint32_t b_words[halves];
    std::uint32_t d[c_words];
    for (unsigned q = 0; q < halves; ++q) {
        const unsigned word = lane % 4 + 4 * q;
        for (unsigned i = 0; i < 2; ++i) {
            a_words[2 * q + i] = a[(instance * 16 + lane / 4 + 8 * i) * row_words + word];
        }
        b_words[q] = b[(instance * 8 + lane / 4) * row_words + word];
    }
    for (unsigned r = 0; r < c_words; ++r) {
        const unsigned i = r / (c_words / 2);
        const unsigned at =
            (instance * 128 + (lane / 4 + 8 * i) * 8 + 2 * (lane % 4)) * bytes + 4 * (r % (c_words / 2));
        d[r] = *reinterpret_cast<const std::uint32_t*>(c + at);
    }
    Instruction::run(d, a_words, b_words);
    for (unsigned r = 0; r < c_words; ++r) {
        const unsigned i = r / (c_words / 2);
        const unsigned at =
            (instance * 128 + (lane / 4 + 8 * i) * 8 + 2 * (lane % 4)) * bytes + 4 * (r % (c_words / 2));
        *reinterpret_cast<std::uint32_t*>(out + at) = d[r];
    }
}

/// f64: register 2q + i of A is element lane%4 + 4q of row lane/4 + 8i; m8n8k4 has only row lane/4.
template <int M, int K>
__global__ void f64_kernel(const double* a, const double* b, const double* c, double* out)
{
    constexpr unsigned rows = M / 8;
    constexpr unsigned quads = K / 4;
    const unsigned instance = blockIdx.x;
    const unsigned lane = threadIdx.x;
    double x[8];
    double y[4];
    double d[4];
    for (unsigned q = 0; q < quads; ++q) {
        for (unsigned i = 0; i < rows; ++i) {
            x[rows * q + i] = a[(instance * M + lane / 4 + 8 * i) * K + lane % 4 + 4 * q];
        }
        y[q] = b[(instance * 8 + lane / 4) * K + lane % 4 + 4 * q];
    }
    for (unsigned i = 0; i < rows; ++i) {
        for (unsigned h = 0; h < 2; ++h) {
            d[2 * i + h] = c[(instance * M + lane / 4 + 8 * i) * 8 + 2 * (lane % 4) + h];
        }
    }
    if constexpr (M == 8) {
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(d[0]), "+d"(d[1])
                     : "d"(x[0]), "d"(y[0]));
    } else if constexpr (K == 4) {
        asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                     : "d"(x[0]), "d"(x[1]), "d"(y[0]));
    } else if constexpr (K == 8) {
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(x[0]), "d"(x[1]), "d"(x[2]), "d"(x[3]), "d"(y[0]), "d"(y[1]));
    } else {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, "
            "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(x[0]), "d"(x[1]), "d"(x[2]), "d"(x[3]), "d"(x[4]), "d"(x[5]), "d"(x[6]), "d"(x[7]), "d"(y[0]),
              "d"(y[1]), "d"(y[2]), "d"(y[3]));
    }
    for (unsigned i = 0; i < rows; ++i) {
        for (unsigned h = 0; h < 2; ++h) {
            out[(instance * M + lane / 4 + 8 * i) * 8 + 2 * (lane % 4) + h] = d[2 * i + h];
        }
    }
}

using Launch = void (*)(const void* a, const void* b, const void* c, void* out);

template <typename Instruction>
void launch_wgmma(const void* a, const void* b, const void* c, void* out)
{
    wgmma_kernel<Instruction>
        <<<instance_count, 128>>>(static_cast<const std::uint32_t*>(a), static_cast<const std::uint32_t*>(b),
                                  static_cast<const unsigned char*>(c), static_cast<unsigned char*>(out));
}

template <typename Instruction>
void launch_mma(const void* a, const void* b, const void* c, void* out)
{
    mma_kernel<Instruction>
        <<<instance_count, 32>>>(static_cast<const std::uint32_t*>(a), static_cast<const std::uint32_t*>(b),
                                 static_cast<const unsigned char*>(c), static_cast<unsigned char*>(out));
}

template <int M, int K>
void launch_f64(const void* a, const void* b, const void* c, void* out)
{
    f64_kernel<M, K><<<instance_count, 32>>>(static_cast<const double*>(a), static_cast<const double*>(b),
                                             static_cast<const double*>(c), static_cast<double*>(out));
}

// In the order of wgmma_cases and mma_cases.
constexpr Launch wgmma_launches[] = {
    launch_wgmma<F16F32>,  launch_wgmma<F16F16>,  launch_wgmma<Bf16F32>,       launch_wgmma<Tf32F32>,
    launch_wgmma<E4E4F32>, launch_wgmma<E4E5F32>, launch_wgmma<E5E4F32>,       launch_wgmma<E5E5F32>,
    launch_wgmma<E4E4F16>, launch_wgmma<E4E5F16>, launch_wgmma<E5E4F16>,       launch_wgmma<E5E5F16>,
    launch_wgmma<S8S8>,    launch_wgmma<S8U8>,    launch_wgmma<U8S8>,          launch_wgmma<U8U8>,
    launch_wgmma<S8S8Sat>, launch_wgmma<U8U8Sat>, launch_wgmma<F16F32Negated>, launch_wgmma<F16F32WithoutD>,
};
constexpr Launch mma_launches[] = {
    launch_mma<MmaF16K8>,   launch_mma<MmaF16K16>,      launch_mma<MmaHalfK8>, launch_mma<MmaHalfK16>,
    launch_mma<MmaBf16K8>,  launch_mma<MmaBf16K16>,     launch_mma<MmaTf32K4>, launch_mma<MmaTf32K8>,
    launch_mma<MmaE4E4>,    launch_mma<MmaE5E5>,        launch_mma<MmaE4E5>,   launch_mma<MmaE4E4Half>,
    launch_mma<MmaE4E4K16>, launch_mma<MmaE5E4HalfK16>, launch_mma<MmaS8K16>,  launch_mma<MmaS8K32>,
    launch_mma<MmaU8S8K32>, launch_mma<MmaS8K32Sat>,    launch_f64<8, 4>,      launch_f64<16, 4>,
    launch_f64<16, 8>,      launch_f64<16, 16>,
};
static_assert(std::size(wgmma_launches) == std::size(wgmma_cases) && std::size(mma_launches) == std::size(mma_cases));

void* to_device(const std::vector<unsigned char>& bytes)
{
    void* device = nullptr;
    check(cudaMalloc(&device, bytes.size()), "cudaMalloc");
    check(cudaMemcpy(device, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    return device;
}

void probe(const Case& test, Launch launch, std::FILE* dump)
{
    for (int which = 0; which < class_count; ++which) {
        const Problem problem = make_problem(test, which, instance_count);
        void* const a = to_device(pack(problem.a, test.a));
        void* const b = to_device(pack(problem.b, test.b));
        const std::vector<unsigned char> c_bytes = pack(problem.c, test.d);
        void* const c = to_device(c_bytes);
        void* const out = to_device(std::vector<unsigned char>(c_bytes.size(), 0xCD));
        launch(a, b, c, out);
        check(cudaDeviceSynchronize(), test.name);
        std::vector<unsigned char> result(c_bytes.size());
        check(cudaMemcpy(result.data(), out, result.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
        std::printf("%s|%s|%016llx\n", test.name, class_name(which),
                    static_cast<unsigned long long>(fnv1a(result.data(), result.size())));
        if (dump != nullptr) {
            std::fwrite(result.data(), 1, result.size(), dump);
        }
        for (void* memory : {a, b, c, out}) {
            check(cudaFree(memory), "cudaFree");
        }
    }
}

}  // namespace

int main(int argc, char** argv)
{
    std::FILE* const dump = argc > 1 ? std::fopen(argv[1], "wb") : nullptr;
    for (std::size_t i = 0; i < std::size(wgmma_cases); ++i) {
        probe(wgmma_cases[i], wgmma_launches[i], dump);
    }
    for (std::size_t i = 0; i < std::size(mma_cases); ++i) {
        probe(mma_cases[i], mma_launches[i], dump);
    }
    if (dump != nullptr) {
        std::fclose(dump);
    }
    return 0;
}
