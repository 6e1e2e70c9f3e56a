#pragma once

/// What the cases of the mma.sync kernel have in common.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "gemm/backend.hpp"
#include "gemm/gemm_operands.hpp"
#include "gemm/mma/mma_launch.hpp"
#include "support/choice_runner.hpp"
#include "support/gemm_runner.hpp"

namespace tessera::test {

using detail::KernelChoice;

inline Stream& stream()
{
    static Stream instance;
    return instance;
}

inline const DeviceProperties& device() { return Device::current().properties(); }

/// Every type that the device multiplies by mma.sync.
inline std::vector<InputTypes> inputs_here()
{
    std::vector<InputTypes> inputs(input_types.begin(), input_types.end());
    std::erase_if(inputs, [](InputTypes input) { return !detail::has_mma_code(input, device()); });
    return inputs;
}

inline bool sums_in_f16(InputTypes input, const KernelChoice& choice)
{
    return kernels::mma_kernels(input)[choice.config].config->f16_sums;
}

/// The device as if it had few SMs, so that small products have several waves of tiles.
inline DeviceProperties with_few_sms(int sms)
{
    DeviceProperties few = device();
    few.sm_count = sms;
    return few;
}

/// Checks the problem on a choice, made for `on`.
inline void check(const GemmCase& gemm, const GemmData& data, const Reference& reference, const KernelChoice& choice,
                  const DeviceProperties& on = device())
{
    DeviceOperands operands(stream(), gemm, data);
    const GemmProblem problem = operands.problem();
    GemmCase summed = gemm;
    if (!sums_in_f16(gemm.input, choice)) {
        summed.f16_accumulation = F16Accumulation::in_f32;
    }
    check_choice(stream(), gemm, reference, operands,
                 fmt::format("{} with {}", gemm.describe(), detail::describe_mma(problem, choice)),
                 detail::mma_workspace(problem, choice), summation_of(Variant::mma_sync, summed), Launches::twice,
                 [&](const GemmProblem& launched, const kernels::GemmArguments& arguments,
                     const detail::WorkspaceMemory& memory) {
                     detail::EncodedLaunch launch;
                     const detail::CallStatus encoded =
                         detail::encode_mma(launch, launched, on, choice, arguments, memory);
                     return encoded.status == cudaSuccess ? detail::enqueue(launch, stream()) : encoded;
                 });
}

/// All choices for a problem that differ in more than the number of parts of K: whole tiles, and of the splits the largest.
inline std::vector<KernelChoice> choices_for(const GemmProblem& problem, const DeviceProperties& on = device())
{
    std::vector<KernelChoice> choices;
    detail::for_each_mma_candidate(problem, on, [&](const KernelChoice& choice) {
        const bool is_next_split = !choices.empty() && choices.back().config == choice.config &&
                                   choices.back().swapped == choice.swapped && choices.back().cluster_k > 1 &&
                                   choices.back().stream_k == choice.stream_k;
        if (is_next_split) {
            choices.back() = choice;
        } else {
            choices.push_back(choice);
        }
    });
    return choices;
}

/// Makes every line of A and B begin at a multiple of 16 bytes.
inline void align_operands(GemmCase& gemm)
{
    const auto align = [](Layout& layout, std::int64_t rows, std::int64_t columns) {
        constexpr std::int64_t elements = 16;
        const std::int64_t run = layout.row_major ? columns : rows;
        layout.offset = layout.offset / 4 * elements;
        layout.padding = (run + elements - 1) / elements * elements - run + layout.padding / 8 * elements;
    };
    align(gemm.a, gemm.m, gemm.k);
    align(gemm.b, gemm.k, gemm.n);
}

inline bool has_f16_sums()
{
    bool has = false;
    detail::for_each_mma_candidate(
        detail::resolved({.m = 64,
                          .n = 64,
                          .k = 64,
                          .input = ElementType::f16,
                          .output = ElementType::f32,
                          .f16_accumulation = F16Accumulation::in_f16}),
        device(), [&](const KernelChoice& choice) { has = has || sums_in_f16(ElementType::f16, choice); });
    return has;
}

}  // namespace tessera::test
