/// Instruction descriptors of tcgen05: compared bit by bit with worked values, and every rule tested on both sides.

#include "tessera/device/instruction_descriptor.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using namespace tessera;

namespace {

constexpr auto start = InstructionDescriptor::builder();
template <std::uint32_t M, std::uint32_t N>
constexpr auto bf16_to_f32 = start.shape<M, N>().template a<bf16>().template b<bf16>().template accumulate<f32>();
template <OperandType A, OperandType B, std::uint32_t M, std::uint32_t N>
constexpr auto plain = start.shape<M, N>().template a<A>().template b<B>().template accumulate<f32>();

// What nvcc emits for public kernels, or recomputed by hand from the PTX ISA's table.
constexpr auto f16_to_f32 = start.a<f16>().b<f16>().accumulate<f32>();
static_assert(f16_to_f32.shape<256, 128>().build().bits() == 0x10200010U);
static_assert(f16_to_f32.shape<256, 256>().build().bits() == 0x10400010U);
static_assert(f16_to_f32.shape<128, 128>().build().bits() == 0x08200010U);
static_assert(f16_to_f32.shape<128, 256>().build().bits() == 0x08400010U);
static_assert(f16_to_f32.shape<128, 128>().accumulate<f16>().build().bits() == 0x08200000U);
static_assert(bf16_to_f32<128, 128>.build().bits() == 0x08200490U);
static_assert(bf16_to_f32<128, 256>.build().bits() == 0x08400490U);
static_assert(bf16_to_f32<64, 64>.build().bits() == 0x04100490U);
static_assert(bf16_to_f32<256, 128>.build().bits() == 0x10200490U);
static_assert(bf16_to_f32<256, 256>.build().bits() == 0x10400490U);
static_assert(bf16_to_f32<128, 256>.majors<Major::k, Major::mn>().build().bits() == 0x08410490U);
static_assert(bf16_to_f32<128, 256>.majors<Major::mn, Major::mn>().build().bits() == 0x08418490U);
static_assert(start.shape<128, 128>().a<f32>().b<f32>().accumulate<f32>().build().bits() == 0x08200910U);
static_assert(start.shape<256, 256>().a<f32>().b<f32>().accumulate<f32>().build().bits() == 0x10400910U);
static_assert(plain<OperandType::e4m3, OperandType::e4m3, 128, 128>.build().bits() == 0x08200010U);
static_assert(plain<OperandType::e4m3, OperandType::e4m3, 256, 256>.build().bits() == 0x10400010U);
static_assert(plain<OperandType::e5m2, OperandType::e4m3, 256, 256>.build().bits() == 0x10400090U);
static_assert(plain<OperandType::e4m3, OperandType::e5m2, 256, 256>.build().bits() == 0x10400410U);
static_assert(plain<OperandType::e2m1, OperandType::e2m1, 128, 128>.build().bits() == 0x08201690U);
static_assert(start.shape<128, 256>().a<std::int8_t>().b<std::int8_t>().accumulate<std::int32_t>().build().bits() ==
              0x084004A0U);
static_assert(start.shape<128, 256>().a<std::uint8_t>().b<std::uint8_t>().accumulate<std::int32_t>().build().bits() ==
              0x08400020U);

template <std::uint32_t M, std::uint32_t N>
constexpr auto mxf8 =
    plain<OperandType::e4m3, OperandType::e4m3, M, N>.template block_scale<MmaKind::mxf8f6f4, ScaleType::ue8m0>();
static_assert(mxf8<128, 128>.build().bits() == 0x08A00000U);
static_assert(mxf8<256, 256>.build().bits() == 0x10C00000U);
template <MmaKind Kind, ScaleType Scale, std::uint32_t M, std::uint32_t N>
constexpr auto fp4 = plain<OperandType::e2m1, OperandType::e2m1, M, N>.template block_scale<Kind, Scale>();
static_assert(fp4<MmaKind::mxf4, ScaleType::ue8m0, 128, 128>.build().bits() == 0x08A00480U);
static_assert(fp4<MmaKind::mxf4nvf4, ScaleType::ue4m3, 128, 128>.build().bits() == 0x08200480U);
static_assert(fp4<MmaKind::mxf4nvf4, ScaleType::ue4m3, 256, 256>.build().bits() == 0x10400480U);

// Kind and group are part of the type. They follow from the element types and from M.
static_assert(decltype(bf16_to_f32<256, 128>.build())::spec.kind == MmaKind::f16);
static_assert(decltype(bf16_to_f32<256, 128>.build())::spec.group == CtaGroup::pair);
static_assert(decltype(bf16_to_f32<128, 128>.build())::spec.group == CtaGroup::one);
static_assert(decltype(bf16_to_f32<128, 128>.group<CtaGroup::pair>().build())::spec.group == CtaGroup::pair);
static_assert(decltype(mxf8<128, 128>.build())::spec.kind == MmaKind::mxf8f6f4);

// The bits that are in none of the worked values.
constexpr std::uint32_t base = 0x08200490U;
static_assert(bf16_to_f32<128, 128>.negate<true, false>().build().bits() == (base | 1U << 13));
static_assert(bf16_to_f32<128, 128>.negate<false, true>().build().bits() == (base | 1U << 14));
static_assert(bf16_to_f32<128, 128>.sparse<3>().build().bits() == (base | 7U));
static_assert(bf16_to_f32<128, 128>.weight_stationary<16>().build().bits() == (base | 2U << 30));
static_assert(bf16_to_f32<128, 128>.weight_stationary<32>().build().bits() == (base | 3U << 30));
static_assert(
    start.shape<128, 256>().a<std::int8_t>().b<std::int8_t>().accumulate<std::int32_t>().saturate().build().bits() ==
    0x084004A8U);
static_assert(mxf8<128, 128>.block_scale<MmaKind::mxf8f6f4, ScaleType::ue8m0, 1, 3>().build().bits() ==
              (0x08A00000U | 1U << 29 | 3U << 4));
static_assert(fp4<MmaKind::mxf4, ScaleType::ue8m0, 256, 128>.long_k().build().bits() == (0x10A00480U | 1U << 31));
static_assert(plain<OperandType::e2m3, OperandType::e3m2, 128, 128>.build().bits() ==
              (0x08200010U | 3U << 7 | 4U << 10));

MmaSpec valid_f16()
{
    MmaSpec spec;
    spec.m = 128;
    spec.n = 128;
    return spec;
}

MmaSpec valid_of(MmaKind kind, OperandType type)
{
    MmaSpec spec = valid_f16();
    spec.kind = kind;
    spec.a = type;
    spec.b = type;
    spec.d = kind == MmaKind::i8 ? AccumulatorType::s32 : AccumulatorType::f32;
    spec.scale = is_block_scaled(kind) ? ScaleType::ue8m0 : ScaleType::none;
    return spec;
}

template <class Change>
MmaFault fault_after(MmaSpec spec, Change change)
{
    REQUIRE(find_fault(spec) == MmaFault::none);
    change(spec);
    return find_fault(spec);
}

}  // namespace

TEST_CASE("exactly the allowed M and N of each kind are accepted, for one CTA and for a pair")
{
    struct Row {
        MmaKind kind;
        OperandType type;
    };
    for (const auto& [kind, type] : {Row{MmaKind::f16, OperandType::f16}, Row{MmaKind::tf32, OperandType::tf32},
                                     Row{MmaKind::f8f6f4, OperandType::e5m2}, Row{MmaKind::i8, OperandType::s8},
                                     Row{MmaKind::mxf8f6f4, OperandType::e4m3}, Row{MmaKind::mxf4, OperandType::e2m1},
                                     Row{MmaKind::mxf4nvf4, OperandType::e2m1}}) {
        for (const CtaGroup group : {CtaGroup::one, CtaGroup::pair}) {
            MmaSpec spec = valid_of(kind, type);
            spec.group = group;
            for (spec.m = 0; spec.m <= 512; spec.m += 16) {
                const bool wide = group == CtaGroup::pair ? spec.m == 256 : spec.m == 64 && !is_block_scaled(kind);
                CHECK((find_fault(spec) == MmaFault::none) == (spec.m == 128 || wide));
            }
            spec.m = 128;
            for (spec.n = 0; spec.n <= 272; spec.n += 4) {
                const std::uint32_t n = spec.n;
                bool valid = n > 0 && n <= 256 && n % (group == CtaGroup::one ? 8 : 16) == 0;
                if (kind == MmaKind::i8) {
                    valid = valid && (group == CtaGroup::one ? n <= 32 || n % 16 == 0 : n % 32 == 0);
                }
                CHECK((find_fault(spec) == MmaFault::none) == valid);
            }
        }
    }
}

TEST_CASE("each rule is reported when only it is broken")
{
    const MmaSpec plain_f16 = valid_f16();
    const MmaSpec fp8 = valid_of(MmaKind::f8f6f4, OperandType::e4m3);
    const MmaSpec integer = valid_of(MmaKind::i8, OperandType::s8);
    const MmaSpec scaled = valid_of(MmaKind::mxf8f6f4, OperandType::e4m3);
    const MmaSpec scaled_fp4 = valid_of(MmaKind::mxf4, OperandType::e2m1);

    CHECK(fault_after(plain_f16, [](auto& s) { s.b = OperandType::tf32; }) == MmaFault::types);
    CHECK(fault_after(scaled_fp4, [](auto& s) { s.b = OperandType::e4m3; }) == MmaFault::types);
    CHECK(fault_after(plain_f16, [](auto& s) { s.b = OperandType::bf16; }) == MmaFault::mixed_16_bit);
    CHECK(fault_after(fp8, [](auto& s) { s.b = OperandType::e5m2; }) == MmaFault::none);
    CHECK(fault_after(plain_f16, [](auto& s) { s.d = AccumulatorType::s32; }) == MmaFault::accumulator);
    CHECK(fault_after(valid_of(MmaKind::tf32, OperandType::tf32), [](auto& s) { s.d = AccumulatorType::f16; }) ==
          MmaFault::accumulator);
    CHECK(fault_after(valid_of(MmaKind::f16, OperandType::bf16), [](auto& s) { s.d = AccumulatorType::f16; }) ==
          MmaFault::accumulator);
    CHECK(fault_after(integer, [](auto& s) { s.d = AccumulatorType::f32; }) == MmaFault::accumulator);
    CHECK(fault_after(scaled, [](auto& s) { s.d = AccumulatorType::f16; }) == MmaFault::accumulator);
    CHECK(fault_after(fp8, [](auto& s) { s.d = AccumulatorType::f16; }) == MmaFault::none);
    CHECK(fault_after(scaled, [](auto& s) { s.sparse = true, s.group = CtaGroup::pair; }) == MmaFault::m);
    CHECK(fault_after(fp8, [](auto& s) { s.b_major = Major::mn, s.n = 24; }) == MmaFault::n_transposed_8_bit);
    CHECK(fault_after(fp8, [](auto& s) { s.b_major = Major::mn, s.n = 48; }) == MmaFault::none);
    CHECK(fault_after(fp8, [](auto& s) { s.b_major = Major::mn, s.n = 48, s.group = CtaGroup::pair; }) ==
          MmaFault::n_transposed_8_bit);
    CHECK(fault_after(plain_f16, [](auto& s) { s.b_major = Major::mn, s.n = 24; }) == MmaFault::none);
    CHECK(fault_after(scaled_fp4, [](auto& s) { s.a_major = Major::mn; }) == MmaFault::major_4_bit);
    CHECK(fault_after(fp8, [](auto& s) { s.a = OperandType::e3m2, s.a_major = Major::mn; }) == MmaFault::major_4_bit);
    CHECK(fault_after(fp8, [](auto& s) { s.a = OperandType::e3m2, s.b_major = Major::mn; }) == MmaFault::none);
    CHECK(fault_after(plain_f16, [](auto& s) { s.form = MmaForm::tensor_memory_a, s.a_major = Major::mn; }) ==
          MmaFault::major_tensor_memory);
    CHECK(fault_after(integer, [](auto& s) { s.negate_b = true; }) == MmaFault::negated_integers);
    CHECK(fault_after(plain_f16, [](auto& s) { s.negate_b = true; }) == MmaFault::none);
    CHECK(fault_after(plain_f16, [](auto& s) { s.saturate = true; }) == MmaFault::saturated_floats);
    CHECK(fault_after(plain_f16, [](auto& s) { s.sparsity_selector = 1; }) == MmaFault::selector);
    CHECK(fault_after(plain_f16, [](auto& s) { s.sparse = true, s.sparsity_selector = 4; }) == MmaFault::selector);
    CHECK(fault_after(scaled, [](auto& s) { s.sparse = true, s.sparsity_selector = 1; }) == MmaFault::selector);
    CHECK(fault_after(scaled, [](auto& s) { s.form = MmaForm::weight_stationary; }) == MmaFault::weight_stationary);
    CHECK(fault_after(plain_f16, [](auto& s) { s.form = MmaForm::weight_stationary, s.group = CtaGroup::pair; }) ==
          MmaFault::weight_stationary);
    CHECK(fault_after(plain_f16, [](auto& s) { s.form = MmaForm::weight_stationary, s.m = 32; }) == MmaFault::none);
    CHECK(fault_after(plain_f16, [](auto& s) { s.form = MmaForm::weight_stationary, s.n = 96; }) ==
          MmaFault::weight_stationary_shape);
    CHECK(fault_after(plain_f16, [](auto& s) { s.form = MmaForm::weight_stationary, s.n = 256, s.sparse = true; }) ==
          MmaFault::weight_stationary_shape);
    CHECK(fault_after(plain_f16, [](auto& s) { s.reuse_shift = 8; }) == MmaFault::reuse_shift);
    CHECK(fault_after(plain_f16, [](auto& s) { s.form = MmaForm::weight_stationary, s.reuse_shift = 12; }) ==
          MmaFault::reuse_shift);
    CHECK(fault_after(plain_f16, [](auto& s) { s.scale = ScaleType::ue8m0; }) == MmaFault::scale_type);
    CHECK(fault_after(scaled, [](auto& s) { s.scale = ScaleType::ue4m3; }) == MmaFault::scale_type);
    CHECK(fault_after(scaled, [](auto& s) { s.a_scale_id = 4; }) == MmaFault::scale_id);
    CHECK(fault_after(scaled_fp4, [](auto& s) { s.b_scale_id = 1; }) == MmaFault::scale_id);
    CHECK(fault_after(plain_f16, [](auto& s) { s.b_scale_id = 1; }) == MmaFault::scale_id);
    CHECK(fault_after(scaled_fp4, [](auto& s) { s.long_k = true; }) == MmaFault::long_k);
    CHECK(fault_after(scaled, [](auto& s) { s.long_k = true, s.m = 256, s.group = CtaGroup::pair; }) ==
          MmaFault::long_k);
}

TEST_CASE("K of one instruction is 32 bytes of 8-bit or wider elements, and twice that if sparse")
{
    CHECK(instruction_k(valid_f16()) == 16);
    CHECK(instruction_k(valid_of(MmaKind::tf32, OperandType::tf32)) == 8);
    CHECK(instruction_k(valid_of(MmaKind::f8f6f4, OperandType::e2m1)) == 32);
    CHECK(instruction_k(valid_of(MmaKind::i8, OperandType::u8)) == 32);
    CHECK(instruction_k(valid_of(MmaKind::mxf8f6f4, OperandType::e4m3)) == 32);
    MmaSpec fp4_spec = valid_of(MmaKind::mxf4, OperandType::e2m1);
    CHECK(instruction_k(fp4_spec) == 64);
    fp4_spec.sparse = true;
    CHECK(instruction_k(fp4_spec) == 128);
    fp4_spec.sparse = false;
    fp4_spec.long_k = true;
    CHECK(instruction_k(fp4_spec) == 96);
}
