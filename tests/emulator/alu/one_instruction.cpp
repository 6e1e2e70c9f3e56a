// The type-independent parts of one_instruction.hpp.

#include "one_instruction.hpp"

#include <algorithm>
#include <stdexcept>

namespace tessera::emulator::test {
namespace {

/// Puts `guard` before each of the statements of `text`, which end with ';'.
std::string guard_statements(const std::string& text, const std::string& guard)
{
    std::string result;
    std::size_t start = 0;
    while (start < text.size()) {
        const std::size_t end = std::min(text.find(';', start), text.size() - 1);
        result += guard + text.substr(start, end + 1 - start);
        start = end + 1;
    }
    return result;
}

/// A kernel that loads a, b, c, e, f of thread i from its parameters, runs `instruction` and stores d. d starts with
/// all bits set. guarded: only the odd lanes execute it, so the other lanes show whether it leaves them unchanged.
std::string kernel_text(const std::string& instruction, const std::string& d_type, std::size_t d_size,
                        const std::vector<detail::Column>& operands, const Surroundings& around, bool guarded)
{
    std::string parameters = ".param .u64 out";
    std::string loads;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const std::string name(1, static_cast<char>('a' + static_cast<int>(i) + (i >= 3 ? 1 : 0)));  // a b c e f
        const std::string type = operands[i].type;
        parameters += ", .param .u64 in" + std::to_string(i);
        loads += " .reg ." + type + " " + name + ";\n ld.param.u64 %at, [in" + std::to_string(i) +
                 "]; mad.wide.u32 %at, %i, " + std::to_string(operands[i].size) + ", %at; ld.global." + type + " " +
                 name + ", [%at];\n";
    }
    std::string initial;
    if (d_type == "f32" || d_type == "f64") {
        initial = " mov." + d_type + " d, " + (d_type == "f32" ? "0fFFFFFFFF" : "0dFFFFFFFFFFFFFFFF") + ";\n";
    } else if (d_type == "b8") {
        initial = " cvt.u8.u32 d, 255;\n";
    } else {
        initial = " mov." + d_type + " d, -1;\n";
    }
    return module_text(around.target,
                       ".visible .entry k(" + parameters +
                           ")\n{\n .reg .pred p, q, r, %guard; .reg .b32 %i, %odd, t<4>; .reg .b64 %at; .reg ." +
                           d_type + " d;\n mov.u32 %i, %ctaid.x; mov.u32 %odd, %tid.x; mad.lo.u32 %i, %i, 32, %odd;\n" +
                           loads + initial + " and.b32 %odd, %odd, 1; setp.ne.u32 %guard, %odd, 0;\n " + around.before +
                           "\n " + (guarded ? guard_statements(instruction, " @%guard ") : instruction) + "\n " +
                           around.after + "\n ld.param.u64 %at, [out]; mad.wide.u32 %at, %i, " +
                           std::to_string(d_size) + ", %at; st.global." + d_type + " [%at], d;\n ret;\n}\n");
}

/// Value `i` as hexadecimal digits, for messages.
std::string hex(const detail::Column& column, std::size_t i)
{
    std::string text;
    for (std::size_t at = (i + 1) * column.size; at > i * column.size; --at) {  // little-endian
        const auto byte = std::to_integer<unsigned>(column.bytes[at - 1]);
        text += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    }
    return text;
}

std::size_t count_of(const std::vector<detail::Column>& operands)
{
    return operands.at(0).bytes.size() / operands.at(0).size;
}

}  // namespace

namespace detail {

std::vector<std::byte> run_columns(const std::string& instruction, const char* d_type, std::size_t d_size,
                                   const std::vector<Column>& operands, const Surroundings& around, bool guarded)
{
    PtxRun run(kernel_text(instruction, d_type, d_size, operands, around, guarded), around.device);
    const std::size_t count = count_of(operands);
    const std::size_t blocks = (count + 31) / 32;
    const std::size_t threads = blocks * 32;
    std::vector<std::uint64_t> addresses{run.uninitialized(threads * d_size)};
    for (const Column& column : operands) {
        std::vector<std::byte> bytes = column.bytes;  // the other threads of the last warp repeat the first value
        bytes.reserve(threads * column.size);
        while (bytes.size() < threads * column.size) {
            bytes.push_back(bytes[bytes.size() % column.size]);
        }
        addresses.push_back(run.buffer(bytes));
    }
    std::vector<PtxRun::Argument> arguments;
    for (const std::uint64_t& address : addresses) {
        arguments.push_back({&address, sizeof address});
    }
    const LaunchResult result = run.launch_with("k", {.grid = {static_cast<std::uint32_t>(blocks), 1, 1}}, arguments);
    if (result.code != 0) {
        throw std::runtime_error(instruction + ": " + result.message);
    }
    return run.read<std::byte>(addresses[0], count * d_size);
}

void check_columns(const std::string& instruction, const std::vector<Column>& operands, const Column& expected,
                   const Surroundings& around)
{
    for (const bool guarded : {false, true}) {
        Column want = expected;
        const std::size_t count = count_of(operands);
        for (std::size_t i = 0; guarded && i < count; i += 2) {
            std::fill_n(want.bytes.begin() + static_cast<std::ptrdiff_t>(i * want.size), want.size, std::byte{0xFF});
        }
        const Column values{want.type, want.size,
                            run_columns(instruction, want.type, want.size, operands, around, guarded)};
        std::size_t wrong = 0;
        std::string first;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t at = i * want.size;
            if (std::memcmp(&want.bytes[at], &values.bytes[at], want.size) != 0 && wrong++ == 0) {
                for (const Column& column : operands) {
                    first += hex(column, i) + " ";
                }
                first += "gives " + hex(values, i) + ", expected " + hex(want, i) + (guarded ? " (guarded)" : "");
            }
        }
        INFO(instruction << ": " << first);
        CHECK(wrong == 0);
    }
}

}  // namespace detail

std::string refusal(const std::string& instruction, const std::string& target, const std::string& device)
{
    PtxRun run(module_text(target,
                           ".visible .entry k()\n{\n .reg .b16 %rs<8>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 "
                           "%f<8>; .reg .f64 %fd<8>;"
                           " .reg .pred %p<8>; .reg .b128 %rq<4>; .reg .b8 %rb<4>;\n " +
                               instruction + "\n ret;\n}\n"),
               device);
    return run.module().find_kernel("k")->load_error;
}

}  // namespace tessera::emulator::test
