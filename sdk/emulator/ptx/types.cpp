// Names and sizes of the fundamental types.

#include <array>

#include "ptx/ast.hpp"

namespace tessera::emulator::ptx {
namespace {

struct TypeFacts {
    std::string_view name;
    std::size_t size;
};

/// In the order of the enumerators of Type.
constexpr std::array<TypeFacts, static_cast<std::size_t>(Type::surfref) + 1> facts{{
    {"", 0},       {"pred", 0},   {"b8", 1},      {"b16", 2},    {"b32", 4},        {"b64", 8},     {"b128", 16},
    {"u8", 1},     {"u16", 2},    {"u32", 4},     {"u64", 8},    {"s8", 1},         {"s16", 2},     {"s32", 4},
    {"s64", 8},    {"f16", 2},    {"f16x2", 4},   {"bf16", 2},   {"bf16x2", 4},     {"f32", 4},     {"f64", 8},
    {"f32x2", 8},  {"tf32", 4},   {"e4m3", 1},    {"e5m2", 1},   {"e4m3x2", 2},     {"e5m2x2", 2},  {"e2m3x2", 2},
    {"e3m2x2", 2}, {"e2m1x2", 1}, {"ue8m0x2", 2}, {"e2m3", 1},   {"e3m2", 1},       {"e2m1", 1},    {"u16x2", 4},
    {"s16x2", 4},  {"u8x4", 4},   {"s8x4", 4},    {"texref", 8}, {"samplerref", 8}, {"surfref", 8},
}};

}  // namespace

std::size_t size_of(Type type) noexcept { return facts[static_cast<std::size_t>(type)].size; }

std::string_view name_of(Type type) noexcept { return facts[static_cast<std::size_t>(type)].name; }

std::optional<Type> type_named(std::string_view name) noexcept
{
    for (std::size_t i = 1; i < facts.size(); ++i) {
        if (facts[i].name == name) {
            return static_cast<Type>(i);
        }
    }
    return std::nullopt;
}

std::uint64_t Variable::size() const noexcept
{
    std::uint64_t bytes = std::uint64_t{vector_width} * size_of(type);
    for (const std::uint64_t extent : extents) {
        bytes *= extent;
    }
    return bytes;
}

}  // namespace tessera::emulator::ptx
