#include "execute/builtins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>

#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "machine/memory_access.hpp"
#include "machine/warp.hpp"
#include "program/call.hpp"

namespace tessera::emulator {

namespace {

/// Argument number `index` of a call, in `lane`.
[[nodiscard]] std::uint64_t argument(Warp& warp, const CallPayload& call, std::size_t index, unsigned lane)
{
    const Frame& frame = *warp.split().frame;
    const CallArgument& place = call.arguments[index];
    std::uint64_t value = 0;
    std::memcpy(&value, frame.parameters.data() + std::size_t{lane} * frame.function->parameter_bytes + place.offset,
                std::min(place.size, 8U));
    return value;
}

void set_result(Warp& warp, const CallPayload& call, unsigned lane, std::uint64_t value)
{
    if (call.results.empty()) {
        return;
    }
    Frame& frame = *warp.split().frame;
    const CallArgument& place = call.results.front();
    std::memcpy(frame.parameters.data() + std::size_t{lane} * frame.function->parameter_bytes + place.offset, &value,
                std::min(place.size, 8U));
}

template <typename T>
[[nodiscard]] T load(Warp& warp, const Operation& operation, std::uint64_t address, unsigned lane, const char* what)
{
    T value;
    std::memcpy(&value, locate(warp, operation, {.what = what}, address, sizeof(T), sizeof(T), lane), sizeof(T));
    return value;
}

[[nodiscard]] std::string load_string(Warp& warp, const Operation& operation, std::uint64_t address, unsigned lane,
                                      const char* what)
{
    std::string text;
    for (char c = 0; (c = load<char>(warp, operation, address + text.size(), lane, what)) != 0;) {
        text += c;
        if (text.size() > 1 << 20) {
            warp.fault(operation, FindingKind::invalid_operand, error_illegal_address, 1u << lane,
                       fmt::format("{}: the string has no terminator within 1 MiB", what));
        }
    }
    return text;
}

/// Formats one lane's printf. The arguments are in memory in order, each aligned to its size (CUDA C++ programming
/// guide "Formatted Output").
[[nodiscard]] std::string format(Warp& warp, const Operation& operation, const std::string& text,
                                 std::uint64_t arguments, unsigned lane)
{
    std::string out;
    std::uint64_t at = arguments;
    const auto next = [&]<typename T>(T) {
        at = (at + sizeof(T) - 1) / sizeof(T) * sizeof(T);
        const T value = load<T>(warp, operation, at, lane, "printf");
        at += sizeof(T);
        return value;
    };
    const auto print = [&](const std::string& specification, auto... values) {
        char buffer[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
        const int length = std::snprintf(buffer, sizeof buffer, specification.c_str(), values...);
#pragma GCC diagnostic pop
        out.append(buffer, static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(sizeof buffer) - 1)));
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        if (i + 1 < text.size() && text[i + 1] == '%') {
            out += '%';
            ++i;
            continue;
        }
        std::string specification = "%";
        std::size_t j = i + 1;
        bool wide = false;
        for (; j < text.size() && std::isalpha(static_cast<unsigned char>(text[j])) == 0; ++j) {
            specification += text[j] == '*' ? std::to_string(next(std::int32_t{})) : std::string(1, text[j]);
        }
        for (; j < text.size() && std::strchr("hlLqjzt", text[j]) != nullptr; ++j) {
            wide = wide || text[j] != 'h';  // l, ll, z ... are 64 bits in device code
        }
        if (j >= text.size()) {
            out += specification;
            break;
        }
        const char conversion = text[j];
        switch (conversion) {
            case 'd':
            case 'i':
                if (wide) {
                    print(specification + "lld", static_cast<long long>(next(std::int64_t{})));
                } else {
                    print(specification + "d", next(std::int32_t{}));
                }
                break;
            case 'u':
            case 'x':
            case 'X':
            case 'o':
                if (wide) {
                    print(specification + "ll" + conversion, static_cast<unsigned long long>(next(std::uint64_t{})));
                } else {
                    print(specification + conversion, next(std::uint32_t{}));
                }
                break;
            case 'c': print(specification + "c", next(std::int32_t{})); break;
            case 'p': print(specification + "p", std::bit_cast<void*>(next(std::uint64_t{}))); break;
            case 's': {
                const std::uint64_t pointer = next(std::uint64_t{});
                print(specification + "s",
                      pointer == 0 ? "(null)" : load_string(warp, operation, pointer, lane, "printf %s").c_str());
                break;
            }
            case 'a':
            case 'A':
            case 'e':
            case 'E':
            case 'f':
            case 'F':
            case 'g':
            case 'G': print(specification + conversion, next(double{})); break;
            default: out += text.substr(i, j - i + 1); break;
        }
        i = j;
    }
    return out;
}

Step execute_printf(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!warp.cluster.may_meet()) {
        return Step::later;
    }
    const auto& call = operation.as<CallPayload>();
    for_each_lane(active, [&](unsigned lane) {
        const std::string text = load_string(warp, operation, argument(warp, call, 0, lane), lane, "printf");
        warp.cluster.grid.print(format(warp, operation, text, argument(warp, call, 1, lane), lane));
        set_result(warp, call, lane, text.size());
    });
    warp.cluster.progress();
    return Step::next;
}

Step execute_assert(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& call = operation.as<CallPayload>();
    const auto lane = static_cast<unsigned>(std::countr_zero(active));
    const auto text = [&](std::size_t index) {
        return load_string(warp, operation, argument(warp, call, index, lane), lane, "assert");
    };
    const Dim3 thread = position(std::uint64_t{warp.index} * warp_size + lane, warp.cluster.grid.request.block);
    warp.fault(operation, FindingKind::assertion, error_assert, active,
               fmt::format("{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed.", text(1),
                           static_cast<std::uint32_t>(argument(warp, call, 2, lane)), text(3), warp.cta.id.x,
                           warp.cta.id.y, warp.cta.id.z, thread.x, thread.y, thread.z, text(0)));
}

Step execute_malloc(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!warp.cluster.may_meet()) {
        return Step::later;
    }
    const auto& call = operation.as<CallPayload>();
    const LaunchRequest& request = warp.cluster.grid.request;
    for_each_lane(active, [&](unsigned lane) {
        const std::uint64_t size = argument(warp, call, 0, lane);
        set_result(warp, call, lane,
                   size == 0 ? 0 : warp.cluster.grid.memory.allocate_on_heap(size, request.device, request.heap_limit));
    });
    warp.cluster.progress();
    return Step::next;
}

Step execute_free(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!warp.cluster.may_meet()) {
        return Step::later;
    }
    const auto& call = operation.as<CallPayload>();
    for_each_lane(active, [&](unsigned lane) {
        const std::uint64_t address = argument(warp, call, 0, lane);
        if (address != 0 && !warp.cluster.grid.memory.free_on_heap(address)) {
            warp.fault(operation, FindingKind::invalid_operand, error_illegal_address, 1u << lane,
                       fmt::format("free of {:#x}, which is not a pointer that device malloc returned", address));
        }
    });
    warp.cluster.progress();
    return Step::next;
}

/// The handle of a conditional node is the address of its value (see the emulated runtime).
Step execute_set_conditional(Warp& warp, const Operation& operation, LaneMask active)
{
    const auto& call = operation.as<CallPayload>();
    for_each_lane(active, [&](unsigned lane) {
        const auto value = static_cast<std::uint32_t>(argument(warp, call, 1, lane));
        const MemoryAccess store{.space = Space::global,
                                 .direction = Direction::write,
                                 .order = {Semantics::volatile_access, Scope::sys},
                                 .what = "cudaGraphSetConditional"};
        std::memcpy(locate(warp, operation, store, argument(warp, call, 0, lane), sizeof value, sizeof value, lane),
                    &value, sizeof value);
    });
    warp.cluster.progress();
    return Step::next;
}

}  // namespace

const BuiltinFunction* builtin_function(std::string_view name) noexcept
{
    constexpr MemoryEffect reads{.space = Space::generic};
    constexpr MemoryEffect sets{.space = Space::global,
                                .direction = Direction::write,
                                .bytes = 4,
                                .order = {Semantics::volatile_access, Scope::sys}};
    static const BuiltinFunction functions[] = {
        {.name = "vprintf",
         .execute = execute_printf,
         .arguments = 2,
         .memory = reads,
         .meets_clusters = true,
         .prints = true},
        {.name = "__assertfail", .execute = execute_assert, .arguments = 4, .memory = reads},
        {.name = "malloc", .execute = execute_malloc, .arguments = 1, .meets_clusters = true, .uses_heap = true},
        {.name = "free", .execute = execute_free, .arguments = 1, .meets_clusters = true, .uses_heap = true},
        {.name = "cudaGraphSetConditional", .execute = execute_set_conditional, .arguments = 2, .memory = sets},
    };
    const auto* const found = std::ranges::find(functions, name, &BuiltinFunction::name);
    return found == std::end(functions) ? nullptr : found;
}

}  // namespace tessera::emulator
