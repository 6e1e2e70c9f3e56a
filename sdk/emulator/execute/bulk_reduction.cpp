// The element-wise operations of cp.reduce.async.bulk and its tensor form (PTX ISA 9.7.9.25.5.2, 9.7.9.27.1.3).

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "execute/bulk_transfer.hpp"
#include "numerics/float_ops.hpp"

namespace tessera::emulator {

namespace {

using ptx::Type;

/// Applies Function::apply(old, value) to each element, atomically: another cluster may do the same at the same time.
template <typename Word, typename Function>
void reduce(std::byte* target, const std::byte* source, std::size_t bytes)
{
    for (std::size_t at = 0; at + sizeof(Word) <= bytes; at += sizeof(Word)) {
        Word value;
        std::memcpy(&value, source + at, sizeof value);
        const std::atomic_ref<Word> element(*reinterpret_cast<Word*>(target + at));
        Word old = element.load(std::memory_order_relaxed);
        while (!element.compare_exchange_weak(old, Function::apply(old, value), std::memory_order_relaxed)) {
        }
    }
}

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Add {
    template <typename Word>
    static Word apply(Word old, Word value)
    {
        return old + value;
    }
};
struct And {
    template <typename Word>
    static Word apply(Word old, Word value)
    {
        return old & value;
    }
};
struct Or {
    template <typename Word>
    static Word apply(Word old, Word value)
    {
        return old | value;
    }
};
struct Xor {
    template <typename Word>
    static Word apply(Word old, Word value)
    {
        return old ^ value;
    }
};
struct Minimum {
    template <typename Word>
    static Word apply(Word old, Word value)
    {
        return value < old ? value : old;
    }
};
struct Maximum {
    template <typename Word>
    static Word apply(Word old, Word value)
    {
        return value > old ? value : old;
    }
};
struct Increment {
    static u32 apply(u32 old, u32 limit) { return old >= limit ? 0 : old + 1; }
};
struct Decrement {
    static u32 apply(u32 old, u32 limit) { return old == 0 || old > limit ? limit : old - 1; }
};
// An H200 flushes subnormal numbers only if the tensor map's type requests it.
template <bool ftz>
struct AddF32 {
    static u32 apply(u32 old, u32 value)
    {
        return std::bit_cast<u32>(numerics::add(std::bit_cast<float>(old), std::bit_cast<float>(value), {.ftz = ftz}));
    }
};
struct AddF64 {
    static u64 apply(u64 old, u64 value)
    {
        return std::bit_cast<u64>(numerics::add_rn(std::bit_cast<double>(old), std::bit_cast<double>(value)));
    }
};
struct AddF16 {
    static u16 apply(u16 old, u16 value) { return numerics::add_f16(old, value); }
};
struct AddBf16 {
    static u16 apply(u16 old, u16 value) { return numerics::add_bf16(old, value); }
};
struct MinimumF16 {
    static u16 apply(u16 old, u16 value) { return numerics::minimum_f16(old, value, {}); }
};
struct MaximumF16 {
    static u16 apply(u16 old, u16 value) { return numerics::maximum_f16(old, value, {}); }
};
struct MinimumBf16 {
    static u16 apply(u16 old, u16 value) { return numerics::minimum_bf16(old, value, {}); }
};
struct MaximumBf16 {
    static u16 apply(u16 old, u16 value) { return numerics::maximum_bf16(old, value, {}); }
};

struct Entry {
    std::string_view name;
    Type type;
    Reduce function;
};

constexpr std::array entries{
    Entry{"add", Type::u32, reduce<u32, Add>},
    Entry{"add", Type::s32, reduce<u32, Add>},
    Entry{"add", Type::u64, reduce<u64, Add>},
    Entry{"add", Type::f16, reduce<u16, AddF16>},
    Entry{"add", Type::bf16, reduce<u16, AddBf16>},
    Entry{"add", Type::f32, reduce<u32, AddF32<false>>},
    Entry{"add", Type::f64, reduce<u64, AddF64>},
    Entry{"min", Type::u32, reduce<u32, Minimum>},
    Entry{"min", Type::s32, reduce<std::int32_t, Minimum>},
    Entry{"min", Type::u64, reduce<u64, Minimum>},
    Entry{"min", Type::s64, reduce<std::int64_t, Minimum>},
    Entry{"min", Type::f16, reduce<u16, MinimumF16>},
    Entry{"min", Type::bf16, reduce<u16, MinimumBf16>},
    Entry{"max", Type::u32, reduce<u32, Maximum>},
    Entry{"max", Type::s32, reduce<std::int32_t, Maximum>},
    Entry{"max", Type::u64, reduce<u64, Maximum>},
    Entry{"max", Type::s64, reduce<std::int64_t, Maximum>},
    Entry{"max", Type::f16, reduce<u16, MaximumF16>},
    Entry{"max", Type::bf16, reduce<u16, MaximumBf16>},
    Entry{"inc", Type::u32, reduce<u32, Increment>},
    Entry{"dec", Type::u32, reduce<u32, Decrement>},
    Entry{"and", Type::b32, reduce<u32, And>},
    Entry{"and", Type::b64, reduce<u64, And>},
    Entry{"or", Type::b32, reduce<u32, Or>},
    Entry{"or", Type::b64, reduce<u64, Or>},
    Entry{"xor", Type::b32, reduce<u32, Xor>},
    Entry{"xor", Type::b64, reduce<u64, Xor>},
};

}  // namespace

Reduce find_reduction(std::string_view name, Type type)
{
    for (const Entry& entry : entries) {
        if (entry.name == name && entry.type == type) {
            return entry.function;
        }
    }
    return nullptr;
}

Reduce find_reduction(std::string_view name, TensorElement element)
{
    const bool bitwise = name == "and" || name == "or" || name == "xor";
    switch (element) {
        case TensorElement::u32: return find_reduction(name, bitwise ? Type::b32 : Type::u32);
        case TensorElement::s32: return find_reduction(name, bitwise ? Type::b32 : Type::s32);
        case TensorElement::u64: return find_reduction(name, bitwise ? Type::b64 : Type::u64);
        case TensorElement::s64: return find_reduction(name, Type::s64);  // min and max only
        case TensorElement::f16: return find_reduction(name, Type::f16);
        case TensorElement::bf16: return find_reduction(name, Type::bf16);
        case TensorElement::f32:
        case TensorElement::tf32: return find_reduction(name, Type::f32);
        case TensorElement::f32_ftz:
        case TensorElement::tf32_ftz: return name == "add" ? reduce<u32, AddF32<true>> : nullptr;
        case TensorElement::f64: return find_reduction(name, Type::f64);
        default: return nullptr;
    }
}

}  // namespace tessera::emulator
