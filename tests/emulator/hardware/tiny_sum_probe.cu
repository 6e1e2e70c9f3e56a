// Asks a Hopper GPU (sm_90a) which bits of a tiny sum its tensor cores keep, with f16 and with f32 accumulators.
//
// Build:  nvcc -std=c++20 -O1 -cudart static -gencode arch=compute_90a,code=sm_90a tiny_sum_probe.cu -o tiny_sum_probe
// Run:    ./tiny_sum_probe
//
// All terms of a sum are aligned to the largest exponent among them and cut toward zero 25 bits below it (13 with fp8).
// How far that exponent can fall:
//
//   floor -133   f32 accumulators. With products 2^-25 + 2^-48 and C = 0, the largest exponent is -25. The cut is at
//                2^-50: 2^-48 counts.
//   floor  -21   f16 accumulators: the cut is never below 2^-46. 2^-48 is lost, 2^-25 is half of f16's last place, and
//                the result is the even 0x0000, not 0x0001.
//
// An H200 agrees in every result; with fp8 the two cannot be told apart. The emulator must reproduce the checksums:
// ../numerics/tiny_sum_test.cpp.
//
// In a scan, the sum lies exactly between two f16 results; one more term of +-2^-j decides. A line shows, for each j,
// if that term changed the result ("1"). The lines below it show the same for the two floors, if they differ. Random
// sums follow. The summary names each floor from -40 to -10 (and -133) under which all results are as measured.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "hopper_instructions.cuh"
#include "tiny_sum_inputs.hpp"

namespace {

using namespace tessera::probe;
using namespace tessera::tiny_sums;

constexpr int f32_floor = -133;
constexpr int f16_floor = -21;

/// d, and if all elements of D were equal, as they must be.
struct Result {
    std::uint32_t d;
    std::uint32_t differs;
};

__device__ void store(const std::uint32_t* d, int registers, std::uint32_t first, Result* result)
{
    for (int r = 0; r < registers; ++r) {
        if (d[r] != first) {
            atomicExch(&result->differs, 1U);
        }
    }
    if (threadIdx.x == 0) {
        result->d = d[0];
    }
}

template <typename Instruction>
__global__ void wgmma_kernel(const Sum* sums, Result* results)
{
    __shared__ alignas(1024) std::uint32_t shared_a[64 * 8];
    __shared__ alignas(1024) std::uint32_t shared_b[8 * 8];
    const Sum& sum = sums[blockIdx.x];
    for (unsigned i = threadIdx.x; i < 64 * 8; i += 128) {
        const unsigned row = i / 8;
        const unsigned word = i % 8;
        shared_a[place_of(row, word)] = sum.a[word];
        if (row < 8) {
            shared_b[place_of(row, word)] = sum.b[word];
        }
    }
    __shared__ std::uint32_t first;
    std::uint32_t d[Instruction::registers];
    for (std::uint32_t& value : d) {
        value = sum.c;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    Instruction::run(d, descriptor(shared_a), descriptor(shared_b));
    if (threadIdx.x == 0) {
        first = d[0];
    }
    __syncthreads();
    store(d, Instruction::registers, first, &results[blockIdx.x]);
}

/// Word q of a lane is word lane % 4 + 4q of the row of A or column of B; all rows of A are equal.
template <typename Instruction>
__global__ void mma_kernel(const Sum* sums, Result* results)
{
    const Sum& sum = sums[blockIdx.x];
    const unsigned place = threadIdx.x % 4;
    const std::uint32_t a[4] = {sum.a[place], sum.a[place], sum.a[place + 4], sum.a[place + 4]};
    const std::uint32_t b[2] = {sum.b[place], sum.b[place + 4]};
    std::uint32_t d[Instruction::c_words];
    for (std::uint32_t& value : d) {
        value = sum.c;
    }
    Instruction::run(d, a, b);
    store(d, Instruction::c_words, __shfl_sync(0xFFFFFFFFU, d[0], 0), &results[blockIdx.x]);
}

struct Instruction {
    const char* name;
    Kinds kinds;
    int fraction_bits;
    unsigned threads;
    void (*kernel)(const Sum*, Result*);
};

using Wide = __int128;
constexpr int unit = -100;  // of Wide

/// The number of units of significand * 2^exponent, cut toward zero to multiples of 2^last.
Wide cut(Wide significand, int exponent, int last)
{
    const bool negative = significand < 0;
    Wide magnitude = (negative ? -significand : significand) << (exponent - unit);
    const int drop = last - unit;
    magnitude = drop <= 0 ? magnitude : magnitude >> drop << drop;
    return negative ? -magnitude : magnitude;
}

/// What a model with the given floor predicts: the f16 or f32 code.
std::uint32_t predict(const Instruction& instruction, const Case& sum, int floor)
{
    const Format& format = instruction.kinds.format;
    int largest = floor;
    for (const Term& term : sum.terms) {
        if (term.a.significand != 0 && term.b.significand != 0) {
            largest = std::max(largest, term.a.exponent + term.b.exponent);
        }
    }
    if (sum.c_odd != 0) {
        int exponent = sum.c_exponent - 1;
        for (int magnitude = std::abs(sum.c_odd); magnitude != 0; magnitude /= 2) {
            ++exponent;
        }
        largest = std::max(largest, instruction.kinds.f32_result ? exponent : std::max(exponent, -14));
    }
    const int last = largest - instruction.fraction_bits;
    Wide total = cut(sum.c_odd, sum.c_exponent, last);
    for (const Term& term : sum.terms) {
        total += cut(Wide{term.a.significand} * term.b.significand,
                     term.a.exponent + term.b.exponent - 2 * format.mantissa, last);
    }
    const bool negative = total < 0;
    Wide magnitude = negative ? -total : total;
    if (magnitude == 0) {
        return 0;
    }
    int exponent = unit - 1;
    for (Wide rest = magnitude; rest != 0; rest /= 2) {
        ++exponent;
    }
    const int kept = instruction.kinds.f32_result ? 23 : 10;
    const int smallest = instruction.kinds.f32_result ? -126 : -14;
    const int field = std::max(exponent, smallest);
    const int drop = field - kept - unit;
    auto code = static_cast<std::uint32_t>(magnitude >> drop);
    if (!instruction.kinds.f32_result) {  // to nearest even
        const Wide rest = magnitude - (static_cast<Wide>(code) << drop);
        const Wide half = Wide{1} << (drop - 1);
        code += rest > half || (rest == half && (code & 1U) != 0) ? 1 : 0;
    }
    code += static_cast<std::uint32_t>(field - smallest) << kept;
    return code == 0 ? 0 : code | (negative ? 1U << (instruction.kinds.f32_result ? 31 : 15) : 0U);
}

std::vector<std::uint32_t> measure(const Instruction& instruction, const std::vector<Case>& cases)
{
    std::vector<Sum> sums;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        sums.push_back(pack(instruction.kinds, cases[i], i));
    }
    void *in = nullptr, *out = nullptr;
    check(cudaMalloc(&in, sums.size() * sizeof(Sum)), "cudaMalloc");
    check(cudaMalloc(&out, sums.size() * sizeof(Result)), "cudaMalloc");
    check(cudaMemcpy(in, sums.data(), sums.size() * sizeof(Sum), cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaMemset(out, 0, sums.size() * sizeof(Result)), "cudaMemset");
    instruction.kernel<<<static_cast<unsigned>(sums.size()), instruction.threads>>>(static_cast<const Sum*>(in),
                                                                                    static_cast<Result*>(out));
    check(cudaGetLastError(), instruction.name);
    check(cudaDeviceSynchronize(), instruction.name);
    std::vector<Result> results(sums.size());
    check(cudaMemcpy(results.data(), out, results.size() * sizeof(Result), cudaMemcpyDeviceToHost), "cudaMemcpy");
    check(cudaFree(in), "cudaFree");
    check(cudaFree(out), "cudaFree");
    std::vector<std::uint32_t> values;
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i].differs != 0) {
            std::printf("%s: case %zu: the elements of D differ\n", instruction.name, i);
        }
        values.push_back(instruction.kinds.f32_result ? results[i].d : results[i].d & 0xFFFFU);
    }
    return values;
}

void print_scans(const Instruction& instruction, const std::vector<Case>& cases,
                 const std::vector<std::uint32_t>& values)
{
    std::printf("  j from 20:%*s%s\n", 41, "", "20        30        40");
    for (std::size_t first = 0; first < cases.size() && !cases[first].scan.empty();) {
        std::string measured, by_f32_floor, by_f16_floor;
        const std::uint32_t without[3] = {values[first], predict(instruction, cases[first], f32_floor),
                                          predict(instruction, cases[first], f16_floor)};
        std::size_t i = first + 1;
        for (int j = 20; i < cases.size() && cases[i].j != 0; ++i, ++j) {
            measured += values[i] != without[0] ? '1' : '.';
            by_f32_floor += predict(instruction, cases[i], f32_floor) != without[1] ? '1' : '.';
            by_f16_floor += predict(instruction, cases[i], f16_floor) != without[2] ? '1' : '.';
        }
        std::printf("  %-40s %08x  %s\n", cases[first].scan.c_str(), values[first], measured.c_str());
        if (by_f32_floor != by_f16_floor) {
            std::printf("  %40s %08x  %s\n", "floor -133:", without[1], by_f32_floor.c_str());
            std::printf("  %40s %08x  %s\n", "floor -21:", without[2], by_f16_floor.c_str());
        } else if (by_f32_floor != measured || without[1] != values[first]) {
            std::printf("  %40s %08x  %s\n", "both floors:", without[1], by_f32_floor.c_str());
        }
        first = i;
    }
}

void print_case(const Case& sum, std::uint32_t value, std::uint32_t expected)
{
    std::printf("  %08x, predicted %08x: C = %d * 2^%d", value, expected, sum.c_odd, sum.c_exponent);
    for (const Term& term : sum.terms) {
        std::printf(" + 0x%x * 0x%x", term.a.code, term.b.code);
    }
    std::printf("\n");
}

void probe(const Instruction& instruction)
{
    std::size_t scanned = 0;
    const std::vector<Case> cases = all_cases(instruction.kinds, scanned);
    const std::vector<std::uint32_t> values = measure(instruction, cases);

    std::printf("%s|%zu scanned, %zu random|%016llx\n", instruction.name, scanned, cases.size() - scanned,
                static_cast<unsigned long long>(checksum(values)));
    print_scans(instruction, {cases.begin(), cases.begin() + static_cast<std::ptrdiff_t>(scanned)}, values);
    int best = f32_floor;
    std::size_t fewest = cases.size() + 1;
    std::printf("  floors with which every result agrees:");
    const auto wrong_with = [&](int floor) {
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < cases.size(); ++i) {
            wrong += predict(instruction, cases[i], floor) != values[i] ? 1 : 0;
        }
        return wrong;
    };
    for (int floor = -41; floor <= -10; ++floor) {
        const int tried = floor == -41 ? f32_floor : floor;
        const std::size_t wrong = wrong_with(tried);
        if (wrong == 0) {
            std::printf(" %d", tried);
        }
        if (wrong < fewest) {
            fewest = wrong;
            best = tried;
        }
    }
    std::printf("\n  results that disagree: floor -133: %zu, floor -21: %zu, best floor %d: %zu of %zu\n",
                wrong_with(f32_floor), wrong_with(f16_floor), best, fewest, cases.size());
    int printed = 0;
    for (std::size_t i = 0; i < cases.size() && printed < 12; ++i) {
        const std::uint32_t expected = predict(instruction, cases[i], best);
        if (expected != values[i]) {
            print_case(cases[i], values[i], expected);
            ++printed;
        }
    }
}

}  // namespace

int main()
{
    const Format f16{10}, e5m2{2};
    const Instruction instructions[] = {
        {"wgmma m64n8k16 f16.f16.f16", {f16, false, 16}, 25, 128, wgmma_kernel<F16F16>},
        {"mma.sync m16n8k16 f16.f16.f16.f16", {f16, false, 16}, 25, 32, mma_kernel<MmaHalfK16>},
        {"mma.sync m16n8k8 f16.f16.f16.f16", {f16, false, 8}, 25, 32, mma_kernel<MmaHalfK8>},
        {"wgmma m64n8k32 f16.e5m2.e5m2", {e5m2, false, 32}, 13, 128, wgmma_kernel<E5E5F16>},
        {"wgmma m64n8k16 f32.f16.f16", {f16, true, 16}, 25, 128, wgmma_kernel<F16F32>},
        {"mma.sync m16n8k16 f32.f16.f16.f32", {f16, true, 16}, 25, 32, mma_kernel<MmaF16K16>},
    };
    for (const Instruction& instruction : instructions) {
        probe(instruction);
    }
    return 0;
}
