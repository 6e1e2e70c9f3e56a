#include "machine/instruction_descriptor.hpp"

#include <fmt/format.h>

#include <optional>

namespace tessera::emulator {
namespace {

constexpr std::uint32_t field(std::uint32_t bits, unsigned low, unsigned width) noexcept
{
    return (bits >> low) & ((1u << width) - 1);
}

std::optional<MmaElement> element_of(MmaKind kind, unsigned code) noexcept
{
    switch (kind) {
        case MmaKind::f16:
            return code == 0   ? std::optional{MmaElement::f16}
                   : code == 1 ? std::optional{MmaElement::bf16}
                               : std::nullopt;
        case MmaKind::tf32: return code == 2 ? std::optional{MmaElement::tf32} : std::nullopt;
        case MmaKind::i8:
            return code == 0 ? std::optional{MmaElement::u8} : code == 1 ? std::optional{MmaElement::s8} : std::nullopt;
        case MmaKind::f8f6f4:
        case MmaKind::mxf8f6f4:
            switch (code) {
                case 0: return MmaElement::e4m3;
                case 1: return MmaElement::e5m2;
                case 3: return MmaElement::e2m3;
                case 4: return MmaElement::e3m2;
                case 5: return MmaElement::e2m1;
                default: return std::nullopt;
            }
        case MmaKind::mxf4:
        case MmaKind::mxf4nvf4: return code == 1 ? std::optional{MmaElement::e2m1} : std::nullopt;
    }
    return std::nullopt;
}

std::string_view codes_of(MmaKind kind) noexcept
{
    switch (kind) {
        case MmaKind::f16: return "0 F16, 1 BF16";
        case MmaKind::tf32: return "2 TF32";
        case MmaKind::i8: return "0 U8, 1 S8";
        case MmaKind::f8f6f4:
        case MmaKind::mxf8f6f4: return "0 E4M3, 1 E5M2, 3 E2M3, 4 E3M2, 5 E2M1";
        default: return "1 E2M1";
    }
}

/// Keeps only the first problem.
class Problems {
public:
    Problems(std::uint32_t bits, MmaKind kind) : bits_(bits), kind_(kind) {}
    template <typename... Args>
    void require(bool condition, fmt::format_string<Args...> format, Args&&... args)
    {
        if (!condition && text.empty()) {
            text = fmt::format("instruction descriptor {:#010x} of kind::{}: {}", bits_, name_of(kind_),
                               fmt::format(format, std::forward<Args>(args)...));
        }
    }
    std::string text;

private:
    std::uint32_t bits_;
    MmaKind kind_;
};

unsigned k_of(MmaKind kind, bool sparse) noexcept
{
    unsigned k = 32;
    switch (kind) {
        case MmaKind::f16: k = 16; break;
        case MmaKind::tf32: k = 8; break;
        case MmaKind::mxf4:
        case MmaKind::mxf4nvf4: k = 64; break;
        default: break;
    }
    return sparse ? 2 * k : k;
}

DataPath data_path_of(const MmaForm& form, unsigned m) noexcept
{
    if (form.cta_group == 2) {
        return m == 256 ? DataPath::a : form.sparse ? DataPath::c : DataPath::b;
    }
    if (form.weight_stationary) {
        return m == 32 ? DataPath::g : m == 64 ? DataPath::e : DataPath::d;
    }
    return m == 64 ? DataPath::f : DataPath::d;
}

void check_shape(const MmaForm& form, const InstructionDescriptor& d, Problems& problems)
{
    const unsigned m = d.m, n = d.n;
    if (form.weight_stationary) {
        problems.require(m == 32 || m == 64 || m == 128,
                         "M is {} (bits 24-28 hold M >> 4); with .ws it is 32, 64 or 128", m);
        problems.require(n == 64 || n == 128 || (n == 256 && !form.sparse),
                         "N is {} (bits 17-22 hold N >> 3); with .ws it is 64, 128{}", n,
                         form.sparse ? " (sparse)" : " or 256");
        return;
    }
    if (form.cta_group == 2) {
        const bool only_256 = is_block_scaled(form.kind) && form.sparse;
        problems.require(m == 256 || (m == 128 && !only_256),
                         "M is {}; with cta_group::2 it is the M of the pair: {}{}", m, only_256 ? "256" : "128 or 256",
                         m == 64 ? " (64 rows per CTA are written as 128)" : "");
        const unsigned step = form.kind == MmaKind::i8 ? 32 : 16;
        problems.require(n >= step && n <= 256 && n % step == 0,
                         "N is {}; with cta_group::2 it is {} to 256 in steps of {}", n, step, step);
    } else {
        problems.require(m != 256, "M is 256, which needs cta_group::2; one CTA computes at most 128 rows");
        problems.require(m == 128 || (m == 64 && !is_block_scaled(form.kind)),
                         "M is {} (bits 24-28 hold M >> 4); with cta_group::1 it is {}", m,
                         is_block_scaled(form.kind) ? "128" : "64 or 128");
        problems.require(n >= 8 && n <= 256, "N is {} (bits 17-22 hold N >> 3); it is 8 to 256", n);
        if (form.kind == MmaKind::i8) {
            problems.require(n == 8 || n == 24 || n % 16 == 0,
                             "N is {}; it is 8, 16, 24, 32, and from there to 256 in steps of 16", n);
        }
    }
    const bool bytes = bits_of(d.b) <= 8;
    if (d.b_major == Major::mn && bytes) {
        const unsigned step = form.cta_group == 2 ? 32 : 16;
        problems.require(n % step == 0, "N is {}; an N-major B of 8-bit elements takes multiples of {}", n, step);
    }
}

}  // namespace

std::string_view name_of(MmaKind kind) noexcept
{
    switch (kind) {
        case MmaKind::f16: return "f16";
        case MmaKind::tf32: return "tf32";
        case MmaKind::f8f6f4: return "f8f6f4";
        case MmaKind::i8: return "i8";
        case MmaKind::mxf8f6f4: return "mxf8f6f4";
        case MmaKind::mxf4: return "mxf4";
        case MmaKind::mxf4nvf4: return "mxf4nvf4";
    }
    return "";
}

std::string_view name_of(MmaElement element) noexcept
{
    switch (element) {
        case MmaElement::f16: return "f16";
        case MmaElement::bf16: return "bf16";
        case MmaElement::tf32: return "tf32";
        case MmaElement::e4m3: return "e4m3";
        case MmaElement::e5m2: return "e5m2";
        case MmaElement::e2m3: return "e2m3";
        case MmaElement::e3m2: return "e3m2";
        case MmaElement::e2m1: return "e2m1";
        case MmaElement::u8: return "u8";
        case MmaElement::s8: return "s8";
    }
    return "";
}

numerics::Format format_of(MmaElement element) noexcept
{
    switch (element) {
        case MmaElement::bf16: return numerics::Format::bf16;
        case MmaElement::tf32: return numerics::Format::tf32;
        case MmaElement::e4m3: return numerics::Format::e4m3;
        case MmaElement::e5m2: return numerics::Format::e5m2;
        case MmaElement::e2m3: return numerics::Format::e2m3;
        case MmaElement::e3m2: return numerics::Format::e3m2;
        case MmaElement::e2m1: return numerics::Format::e2m1;
        default: return numerics::Format::f16;
    }
}

DecodedInstructionDescriptor decode_instruction_descriptor(std::uint32_t bits, const MmaForm& form)
{
    DecodedInstructionDescriptor decoded;
    InstructionDescriptor& d = decoded.descriptor;
    Problems problems(bits, form.kind);
    const bool scaled = is_block_scaled(form.kind);
    const bool four_bit = form.kind == MmaKind::mxf4 || form.kind == MmaKind::mxf4nvf4;

    // These fields are in the same place in all forms.
    const bool sparse = field(bits, 2, 1) != 0;
    problems.require(sparse == form.sparse, "bit 2 says {}, but the instruction {} .sp", sparse ? "sparse" : "dense",
                     form.sparse ? "has" : "has no");
    problems.require(field(bits, 6, 1) == 0, "bit 6 is reserved and must be 0");
    const unsigned a_code = field(bits, 7, 3), b_code = four_bit ? field(bits, 10, 2) : field(bits, 10, 3);
    const auto a = element_of(form.kind, a_code), b = element_of(form.kind, b_code);
    problems.require(a.has_value(), "A type (bits 7-9) is {}, which this kind does not support; its codes are {}",
                     a_code, codes_of(form.kind));
    problems.require(b.has_value(), "B type (bits 10-12) is {}, which this kind does not support; its codes are {}",
                     b_code, codes_of(form.kind));
    d.a = a.value_or(MmaElement::f16);
    d.b = b.value_or(d.a);
    d.negate_a = field(bits, 13, 1) != 0;
    d.negate_b = field(bits, 14, 1) != 0;
    d.a_major = field(bits, 15, 1) != 0 ? Major::mn : Major::k;
    d.b_major = field(bits, 16, 1) != 0 ? Major::mn : Major::k;
    d.n = field(bits, 17, 6) << 3;
    d.k = k_of(form.kind, form.sparse);

    if (scaled) {
        d.d = MmaSum::f32;
        d.m = field(bits, 27, 2) << 7;
        d.sfb_id = field(bits, 4, 2);
        d.sfa_id = field(bits, 29, 2);
        d.scale_ue8m0 = field(bits, 23, 1) != 0;
        problems.require(field(bits, 0, 2) == 0 && field(bits, 3, 1) == 0,
                         "bits 0-1 and 3 are reserved in block-scaled kinds and must be 0");
        problems.require(field(bits, 24, 3) == 0,
                         "bits 24-26 are reserved in block-scaled kinds and must be 0 (bits 27-28 hold M >> 7)");
        problems.require(d.scale_ue8m0 || form.kind == MmaKind::mxf4nvf4,
                         "scale type (bit 23) is 0 (UE4M3), which only kind::mxf4nvf4 supports");
        problems.require(d.scale_ue8m0 || form.scales == 4,
                         "UE4M3 scales (bit 23 is 0) need one scale per 16 elements (.scale_vec::4X, .block16)");
        if (four_bit) {
            problems.require(field(bits, 12, 1) == 0, "bit 12 is reserved and must be 0");
            problems.require(field(bits, 31, 1) == 0, "bit 31 selects K = 96, which exists on sm_103a only");
            problems.require(d.a_major == Major::k && d.b_major == Major::k,
                             "bits 15 and 16 must be 0: 4-bit operands are K-major only");
        } else {
            problems.require(field(bits, 31, 1) == 0, "bit 31 is reserved and must be 0");
        }
        const unsigned step = form.scales == 0 ? 1 : form.scales;
        problems.require(d.sfa_id % step == 0 && d.sfa_id + step <= 4,
                         "scale factor id of A (bits 29-30) is {}; with {} scales per row it is a multiple of {} "
                         "within the 4 bytes of a word",
                         d.sfa_id, step, step);
        problems.require(d.sfb_id % step == 0 && d.sfb_id + step <= 4,
                         "scale factor id of B (bits 4-5) is {}; with {} scales per row it is a multiple of {} within "
                         "the 4 bytes of a word",
                         d.sfb_id, step, step);
    } else {
        d.m = field(bits, 24, 5) << 4;
        d.sparsity_selector = field(bits, 0, 2);
        d.saturate = field(bits, 3, 1) != 0;
        d.max_shift = field(bits, 30, 2) == 0 ? 0 : 4u << field(bits, 30, 2);
        problems.require(!d.saturate || form.kind == MmaKind::i8, "bit 3 (saturate) is for kind::i8 only");
        const unsigned d_code = field(bits, 4, 2);
        switch (form.kind) {
            case MmaKind::i8:
                problems.require(d_code == 2, "D type (bits 4-5) is {}; kind::i8 has 2, S32", d_code);
                break;
            case MmaKind::tf32:
                problems.require(d_code == 1, "D type (bits 4-5) is {}; kind::tf32 has 1, F32", d_code);
                break;
            default:
                problems.require(d_code <= 1, "D type (bits 4-5) is {}; this kind has 0 F16 and 1 F32", d_code);
                break;
        }
        d.d = d_code == 0 ? MmaSum::f16 : d_code == 2 ? MmaSum::s32 : MmaSum::f32;
        problems.require(form.kind != MmaKind::i8 || (!d.negate_a && !d.negate_b),
                         "kind::i8 has no negation: bits 13 and 14 must be 0");
        problems.require(field(bits, 23, 1) == 0, "bit 23 is reserved and must be 0");
        problems.require(field(bits, 29, 1) == 0, "bit 29 is reserved and must be 0");
        problems.require(d.max_shift == 0 || form.weight_stationary,
                         "bits 30-31 (maximum shift of B) are for .ws only");
        problems.require(form.sparse || d.sparsity_selector == 0, "bits 0-1 (sparsity selector) are for .sp only");
        problems.require(
            !form.sparse || d.sparsity_selector == 0 || form.kind == MmaKind::f16 || form.kind == MmaKind::tf32,
            "the sparsity selector (bits 0-1) must be 0 for this kind");
    }
    d.data_path = data_path_of(form, d.m);
    check_shape(form, d, problems);
    if (form.shift_a) {
        problems.require(d.m == (form.cta_group == 2 ? 256u : 128u), "M is {}; .ashift needs M = {}", d.m,
                         form.cta_group == 2 ? 256 : 128);
    }
    if (form.a_in_tensor_memory) {
        problems.require(d.a_major == Major::k, "bit 15 says M-major, but A in tensor memory is K-major only");
    }
    decoded.problem = problems.text;
    return decoded;
}

}  // namespace tessera::emulator
