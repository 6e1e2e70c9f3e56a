// Extended-precision integer arithmetic (PTX ISA 9.7.2): add.cc, addc, sub.cc, subc, mad.cc, madc. The condition code
// is one bit for each lane, Warp::carry.

#include <span>

#include "execute/integer.hpp"
#include "execute/lanewise.hpp"

namespace tessera::emulator::integer {

using ptx::Type;

namespace {

/// `f(carry_in, a, b, ...)` gives the result and the carry out.
template <typename T>
struct Carried {
    T value;
    bool carry;
};

template <CarryUse use, typename T, typename... S, typename F>
[[nodiscard]] Execute with_carry(F)
{
    return [](Warp& warp, const Operation& operation, LaneMask active) -> Step {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            T* const d = warp.row<T>(operation.operand[0]);
            LaneMask carry = warp.carry;
            for_each_lane(active, [&](unsigned lane) {
                const LaneMask bit = LaneMask{1} << lane;
                const bool in = use != CarryUse::out && (carry & bit) != 0;
                const Carried<T> result = F{}(in, warp.row<S>(operation.operand[I + 1])[lane]...);
                d[lane] = result.value;
                if (use != CarryUse::in) {
                    carry = result.carry ? carry | bit : carry & ~bit;
                }
            });
            warp.carry = carry;
        }(std::index_sequence_for<S...>{});
        return Step::next;
    };
}

template <typename T, typename... S, typename F>
[[nodiscard]] Execute with_carry(CarryUse use, F f)
{
    switch (use) {
        case CarryUse::out: return with_carry<CarryUse::out, T, S...>(f);
        case CarryUse::in: return with_carry<CarryUse::in, T, S...>(f);
        case CarryUse::in_out: break;
    }
    return with_carry<CarryUse::in_out, T, S...>(f);
}

template <typename T>
constexpr Carried<T> add_with_carry(bool in, T a, T b)
{
    const auto sum = static_cast<T>(a + b);
    const auto total = static_cast<T>(sum + (in ? 1 : 0));
    return {total, sum < a || total < sum};
}

template <typename T>
constexpr Carried<T> subtract_with_borrow(bool in, T a, T b)
{
    const auto difference = static_cast<T>(a - b);
    const auto total = static_cast<T>(difference - (in ? 1 : 0));
    return {total, a < b || (in && difference == 0)};
}

/// .u32 .s32 .u64 .s64: the types of the CC forms. Signedness matters only for the high half of products.
[[nodiscard]] Type require_carry_type(Decoder& decoder)
{
    const Type type = decoder.require_type();
    if (type != Type::u32 && type != Type::s32 && type != Type::u64 && type != Type::s64) {
        fail_type(decoder, type);
    }
    return type;
}

}  // namespace

void decode_carry(Decoder& decoder, Operation& operation, CarryUse use, bool subtract)
{
    const Type type = require_carry_type(decoder);
    decode_rows(decoder, operation, type, {type, type});
    visit_bits(ptx::size_of(type), [&]<typename T>() {
        operation.execute =
            subtract ? with_carry<T, T, T>(use, [](bool in, T a, T b) { return subtract_with_borrow<T>(in, a, b); })
                     : with_carry<T, T, T>(use, [](bool in, T a, T b) { return add_with_carry<T>(in, a, b); });
    });
}

void decode_mad_carry(Decoder& decoder, Operation& operation, CarryUse use)
{
    const bool high = decoder.take("hi");
    if (!high && !decoder.take("lo")) {
        decoder.fail("needs .lo or .hi");
    }
    const Type type = require_carry_type(decoder);
    decode_rows(decoder, operation, type, {type, type, type});
    visit_integer(type, [&]<typename T>() {
        using U = std::make_unsigned_t<T>;
        operation.execute =
            high ? with_carry<U, T, T, U>(use,
                                          [](bool in, T a, T b, U c) {
                                              return add_with_carry<U>(in, static_cast<U>(high_product(a, b)), c);
                                          })
                 : with_carry<U, T, T, U>(use, [](bool in, T a, T b, U c) {
                       return add_with_carry<U>(in, static_cast<U>(low_product(a, b)), c);
                   });
    });
}

namespace {

void decode_addc(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    decode_carry(decoder, operation, decoder.take("cc") ? CarryUse::in_out : CarryUse::in, false);
}

void decode_subc(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    decode_carry(decoder, operation, decoder.take("cc") ? CarryUse::in_out : CarryUse::in, true);
}

void decode_madc(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::integer;
    decode_mad_carry(decoder, operation, decoder.take("cc") ? CarryUse::in_out : CarryUse::in);
}

constexpr InstructionEntry entries[] = {{"addc", decode_addc}, {"subc", decode_subc}, {"madc", decode_madc}};

}  // namespace

std::span<const InstructionEntry> carry_instructions() { return entries; }

}  // namespace tessera::emulator::integer
