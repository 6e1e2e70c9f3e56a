#include "gemm_runner.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "kernels/blackwell/blackwell_kernels.hpp"
#include "kernels/hopper/hopper_kernels.hpp"
#include "kernels/mma/mma_kernels.hpp"
#include "kernels/simt/simt_kernels.hpp"
#include "test_main.hpp"

namespace tessera::test {
namespace {

template <class T>
DeviceSpan<T> span_of(DeviceBuffer<std::byte>& buffer)
{
    return {reinterpret_cast<T*>(buffer.data()), buffer.size() / sizeof(T), buffer.device()};
}

template <class Use>
void with_order(bool row_major, Use&& use)
{
    if (row_major) {
        use(RowMajor{});
    } else {
        use(ColumnMajor{});
    }
}

/// Returns the batch at `place`, with the checks of a user's view.
template <class T, class Order>
BatchView<T, Order> batch_view(DeviceSpan<T> span, const Placement& place, Order order)
{
    const auto first = static_cast<std::size_t>(place.first);
    return span.subspan(first, span.size() - first)
        .matrices(place.batches, place.batch_stride, place.rows, place.columns, place.leading_dimension, order);
}

}  // namespace

DeviceOperands::DeviceOperands(StreamRef stream, const GemmCase& gemm, const GemmData& data)
    : stream_(stream),
      gemm_(gemm),
      data_(data),
      a_(DeviceBuffer<std::byte>::from_host(stream, data.a.bytes())),
      b_(DeviceBuffer<std::byte>::from_host(stream, data.b.bytes())),
      c_(DeviceBuffer<std::byte>::from_host(stream, data.c.bytes())),
      bias_(DeviceBuffer<std::byte>::from_host(stream, data.bias.bytes())),
      scales_(DeviceBuffer<std::byte>::from_host(stream, data.scales.bytes())),
      d_(DeviceBuffer<std::byte>::from_host(stream, data.d.bytes())),
      pre_activation_(DeviceBuffer<std::byte>::from_host(stream, data.pre_activation.bytes()))
{}

template <class Launch>
void DeviceOperands::dispatch(const Launch& launch)
{
    Epilogue epilogue;
    epilogue.alpha = gemm_.alpha;
    epilogue.beta = gemm_.beta;
    epilogue.activation = gemm_.activation;
    epilogue.gating = gemm_.gating;
    epilogue.fp8_accumulation = gemm_.fp8_accumulation;
    epilogue.f16_accumulation = gemm_.f16_accumulation;
    if (gemm_.bias != BiasAxis::none) {
        const bool per_row = gemm_.bias == BiasAxis::per_row;
        with_addend_type(gemm_.bias_type, [&]<class T>(std::type_identity<T>) {
            const auto vector =
                span_of<const T>(bias_).subspan(static_cast<std::size_t>(guard_elements + gemm_.bias_offset),
                                                static_cast<std::size_t>(per_row ? gemm_.m : gemm_.n));
            epilogue.bias = per_row ? Bias::per_row(vector) : Bias::per_column(vector);
        });
    }
    const auto scale = [&](std::optional<float> value, std::size_t index, std::int64_t count) {
        return value ? span_of<const float>(scales_).subspan(index, static_cast<std::size_t>(count))
                     : DeviceSpan<const float>();
    };
    epilogue.scale_a =
        gemm_.row_scales ? scale(gemm_.scale_a, GemmData::first_scale_vector, gemm_.m) : scale(gemm_.scale_a, 0, 1);
    epilogue.scale_b =
        gemm_.column_scales
            ? scale(gemm_.scale_b, static_cast<std::size_t>(GemmData::first_scale_vector + gemm_.m), gemm_.n)
            : scale(gemm_.scale_b, 1, 1);
    epilogue.scale_d = scale(gemm_.scale_d, 2, 1);
    if (gemm_.amax_d) {
        epilogue.amax_d = span_of<float>(scales_).subspan(3, 1);
    }
    with_input_types(gemm_.input, [&]<class InA, class InB>(std::type_identity<InA>, std::type_identity<InB>) {
        with_output_type(gemm_.output, [&]<class Out>(std::type_identity<Out>) {
            with_addend_type(gemm_.addend_type(), [&]<class AddendType>(std::type_identity<AddendType>) {
                if (gemm_.addend == Addend::separate) {
                    with_order(data_.c_place.row_major, [&](auto order) {
                        epilogue.c = batch_view(span_of<const AddendType>(c_), data_.c_place, order);
                    });
                }
                if (gemm_.pre_activation) {
                    with_order(data_.d_place.row_major, [&](auto order) {
                        epilogue.pre_activation =
                            batch_view(span_of<AddendType>(pre_activation_), data_.pre_activation_place, order);
                    });
                }
            });
            with_order(data_.d_place.row_major, [&](auto d_order) {
                const auto d = batch_view(span_of<Out>(d_), data_.d_place, d_order);
                if (gemm_.addend == Addend::in_place) {
                    epilogue.c = d;
                }
                with_order(data_.a_place.row_major, [&](auto a_order) {
                    with_order(data_.b_place.row_major, [&](auto b_order) {
                        launch(batch_view(span_of<const InA>(a_), data_.a_place, a_order),
                               batch_view(span_of<const InB>(b_), data_.b_place, b_order), d, epilogue);
                    });
                });
            });
        });
    });
}

HostArray DeviceOperands::launch(Variant variant)
{
    reset_d();
    dispatch([&](auto a, auto b, auto d, const Epilogue& epilogue) {
        if (gemm_.batches == 1) {
            Gemm::launch(stream_, a.first(), b.first(), d.first(), epilogue, variant);
        } else {
            Gemm::launch(stream_, a, b, d, epilogue, variant);
        }
    });
    return download();
}

HostArray DeviceOperands::launch(const Enqueue& enqueue)
{
    reset_d();
    dispatch([&](auto a, auto b, auto d, const Epilogue& epilogue) { enqueue({a, b, d}, epilogue); });
    return download();
}

GemmProblem DeviceOperands::problem() const
{
    const auto layout = [](const Placement& place, ElementType type) {
        const auto bytes = static_cast<std::size_t>(place.first) * size_of(type) | 256U;  // buffers start at 256
        return MatrixLayout{place.row_major, place.leading_dimension, place.batch_stride, bytes & (~bytes + 1)};
    };
    GemmProblem problem;
    problem.m = gemm_.m;
    problem.n = gemm_.n;
    problem.k = gemm_.k;
    problem.batches = gemm_.batches;
    problem.input = gemm_.input;
    problem.output = gemm_.output;
    problem.a = layout(data_.a_place, gemm_.input.a);
    problem.b = layout(data_.b_place, gemm_.input.b);
    problem.d = layout(data_.d_place, gemm_.output);
    problem.has_c = gemm_.beta != 0;
    problem.bias = gemm_.bias;
    problem.activation = gemm_.activation;
    problem.gating = gemm_.gating;
    problem.has_pre_activation = gemm_.pre_activation.has_value();
    if (gemm_.pre_activation) {
        problem.pre_activation = layout(data_.pre_activation_place, gemm_.addend_type());
    }
    problem.row_scales = gemm_.has_row_scales();
    problem.column_scales = gemm_.has_column_scales();
    problem.fp8_accumulation = gemm_.fp8_accumulation;
    problem.f16_accumulation = gemm_.f16_accumulation;
    return problem;
}

HostArray DeviceOperands::launch_plan(Variant variant)
{
    reset_d();
    const GemmPlan plan = GemmPlan::prepare(Device(stream_.device()), problem(), variant);
    dispatch([&](auto a, auto b, auto d, const Epilogue& epilogue) { plan.launch(stream_, a, b, d, epilogue); });
    return download();
}

void DeviceOperands::reset_d()
{
    d_.copy_from(data_.d.bytes());
    pre_activation_.copy_from(data_.pre_activation.bytes());
    scales_.copy_from(data_.scales.bytes());
}

float DeviceOperands::download_amax() const
{
    HostArray scales(data_.scales.type(), data_.scales.size());
    scales_.copy_to(scales.bytes());
    return scales.get(3);
}

HostArray DeviceOperands::download_pre_activation() const
{
    HostArray result(data_.pre_activation.type(), data_.pre_activation.size());
    pre_activation_.copy_to(result.bytes());
    return result;
}

HostArray DeviceOperands::download() const
{
    HostArray result(data_.d.type(), data_.d.size());
    d_.copy_to(result.bytes());
    return result;
}

bool takes(Variant variant, const GemmCase& gemm, const GemmData& data)
{
    using kernels::SimtRung;
    const InputTypes input = gemm.input;
    const int capability = Device::current().properties().compute_capability_major;
    if (variant == Variant::hopper) {
        return capability == 9 && input != InputTypes(ElementType::f32) &&
               !kernels::hopper_kernels(size_of(input)).empty();
    }
    if (variant == Variant::mma_sync) {
        return kernels::has_mma_instructions(input, Device::current().properties().compute_capability()) &&
               !kernels::mma_kernels(input).empty();
    }
    if (!is_simt(variant)) {
        return capability == 10 && input != InputTypes(ElementType::f32) &&
               !kernels::blackwell_kernels(size_of(input)).empty();
    }
    const auto runs = [&](SimtRung rung) {
        return inputs_are_aligned(gemm, data, kernels::simt_kernel(rung, input).required_alignment);
    };
    switch (variant) {
        case Variant::simt_tiled: return !is_float8(input) && runs(SimtRung::tiled);
        case Variant::simt_vectorized: return !is_float8(input) && runs(SimtRung::vectorized);
        case Variant::simt_coarsened: return !is_float8(input) && runs(SimtRung::coarsened);
        case Variant::simt_register_blocked: return runs(SimtRung::register_blocked);
        default: return runs(SimtRung::naive);
    }
}

Summation summation_of(Variant variant, const GemmCase& gemm)
{
    const int capability = Device::current().properties().compute_capability_major;
    if (is_simt(variant) || gemm.input == InputTypes(ElementType::f32)) {
        return {};
    }
    const bool may_be_mma_sync = variant == Variant::automatic && gemm.allows_f16_sums();
    if (variant == Variant::mma_sync || may_be_mma_sync || (capability != 9 && capability != 10 && capability != 11)) {
        return mma_sync_summation(gemm.input, gemm.fp8_accumulation, gemm.f16_accumulation);
    }
    return capability == 9 ? hopper_summation(gemm.input, gemm.fp8_accumulation) : tensor_core_summation(gemm.input);
}

void check_all_variants(StreamRef stream, const GemmCase& gemm)
{
    const Guards guards = quick() ? Guards::front_only : Guards::both_sides;
    const GemmData data = GemmData::make(gemm, guards, seed());
    const Reference reference(gemm, data);
    DeviceOperands operands(stream, gemm, data);
    int failures = 0;
    const auto fail = [&](Variant variant, const std::string& what) {
        ++failures;
        report_failure(gemm.size(), fmt::format("{} with {}", gemm.describe(), to_string(variant)), what);
    };
    std::optional<HostArray> chain;  // of the first SIMT variant that ran
    std::optional<HostArray> chain_before_act;
    const auto check_pre_activation = [&](Variant variant) {
        if (!gemm.pre_activation) {
            return;
        }
        const HostArray result = operands.download_pre_activation();
        if (is_simt(variant) && chain_before_act && result.bytes() == chain_before_act->bytes()) {
            return;
        }
        if (const auto wrong = reference.find_wrong_pre_activation(result, summation_of(variant, gemm))) {
            fail(variant, *wrong);
        } else if (is_simt(variant) && chain_before_act) {
            fail(variant, "a pre-activation of other bits than the variants before, though within the bound");
        }
        if (is_simt(variant) && !chain_before_act) {
            chain_before_act = result;
        }
    };
    const auto check = [&](Variant variant, const HostArray& result) {
        check_pre_activation(variant);
        if (gemm.amax_d) {
            if (const auto wrong = reference.find_wrong_amax(operands.download_amax(), summation_of(variant, gemm))) {
                fail(variant, *wrong);
            }
        }
        if (is_simt(variant) && chain && result.bytes() == chain->bytes()) {
            return;
        }
        if (const auto wrong = reference.find_wrong_element(result, summation_of(variant, gemm))) {
            fail(variant, *wrong);
        } else if (is_simt(variant) && chain) {
            fail(variant, "other bits than the variants before, though within the bound");
        }
        if (is_simt(variant) && !chain) {
            chain = result;
        }
    };

    // Many matrices make the library choose a larger tile, which only one rung has.
    const bool one_rung = quick() && gemm.batches > 8;
    for (const Variant variant : all_variants()) {
        if (one_rung && variant != Variant::simt_register_blocked) {
            continue;
        }
        trace(fmt::format("{} with {}", gemm.describe(), to_string(variant)));
        const bool runs = takes(variant, gemm, data);
        try {
            check(variant, operands.launch(variant));
            if (!runs) {
                fail(variant, "ran, though its types or its alignment are not met");
            }
        } catch (const Error& error) {
            if (error.code() != ErrorCode::variant_refused || runs) {
                fail(variant, error.what());
            } else if (operands.download().bytes() != data.d.bytes()) {
                fail(variant, "was refused and wrote D all the same");
            }
        }
    }
    try {
        const HostArray once = operands.launch(Variant::automatic);
        check(Variant::automatic, once);
        if (operands.launch_plan(Variant::automatic).bytes() != once.bytes()) {
            fail(Variant::automatic, "a plan gives other bits than a launch");
        }
    } catch (const Error& error) {
        fail(Variant::automatic, error.what());
    }
    CHECK(failures == 0);
}

}  // namespace tessera::test
