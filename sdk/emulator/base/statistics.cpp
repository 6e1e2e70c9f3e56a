#include "base/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace tessera::emulator {

namespace {

constexpr std::size_t class_count = static_cast<std::size_t>(InstructionClass::count);
constexpr std::array<std::string_view, class_count> class_names{
    "integer", "floating", "conversion", "memory", "control", "barrier", "shuffle", "tensor", "copy", "other"};

struct Figure {
    std::string_view name;
    std::uint64_t Statistics::*value;
    bool is_largest = false;  ///< of the parts, not their sum
};

constexpr Figure figures[] = {
    {"global_read_bytes", &Statistics::global_read_bytes},
    {"global_write_bytes", &Statistics::global_write_bytes},
    {"shared_read_bytes", &Statistics::shared_read_bytes},
    {"shared_write_bytes", &Statistics::shared_write_bytes},
    {"async_copy_bytes", &Statistics::async_copy_bytes},
    {"tma_load_bytes", &Statistics::tma_load_bytes},
    {"tma_store_bytes", &Statistics::tma_store_bytes},
    {"tma_global_read_bytes", &Statistics::tma_global_read_bytes},
    {"mma_issued", &Statistics::mma_issued},
    {"mma_operand_bytes", &Statistics::mma_operand_bytes},
    {"mma_flops", &Statistics::mma_flops},
    {"barrier_waits", &Statistics::barrier_waits},
    {"barrier_stalls", &Statistics::barrier_stalls},
    {"barrier_polls", &Statistics::barrier_polls},
    {"clusters", &Statistics::clusters},
    {"ctas", &Statistics::ctas},
    {"scheduler_steps", &Statistics::scheduler_steps},
    {"turns", &Statistics::turns},
    {"pct_threads", &Statistics::pct_threads, true},
    {"pct_steps", &Statistics::pct_steps, true},
};

/// "loads+mmas+epilogue", for an index of overlap_steps.
std::string overlap_name(std::size_t index)
{
    std::string name;
    for (const auto& [bit, part] : {std::pair{4U, "loads"}, {2U, "mmas"}, {1U, "epilogue"}}) {
        if ((index & bit) != 0) {
            name += name.empty() ? "" : "+";
            name += part;
        }
    }
    return name.empty() ? "idle" : name;
}

}  // namespace

Statistics& Statistics::operator+=(const Statistics& other) noexcept
{
    for (std::size_t i = 0; i < warp_instructions.size(); ++i) {
        warp_instructions[i] += other.warp_instructions[i];
    }
    for (const Figure& figure : figures) {
        std::uint64_t& sum = this->*figure.value;
        sum = figure.is_largest ? std::max(sum, other.*figure.value) : sum + other.*figure.value;
    }
    for (std::size_t i = 0; i < overlap_steps.size(); ++i) {
        overlap_steps[i] += other.overlap_steps[i];
    }
    return *this;
}

std::string to_text(const Statistics& statistics)
{
    std::string text;
    for (std::size_t i = 0; i < class_count; ++i) {
        text += fmt::format("{:<36}{}\n", fmt::format("warp_instructions.{}", class_names[i]),
                            statistics.warp_instructions[i]);
    }
    for (const Figure& figure : figures) {
        text += fmt::format("{:<36}{}\n", figure.name, statistics.*figure.value);
    }
    for (std::size_t i = 0; i < statistics.overlap_steps.size(); ++i) {
        text += fmt::format("{:<36}{}\n", "overlap_steps." + overlap_name(i), statistics.overlap_steps[i]);
    }
    return text;
}

std::string to_json(const Statistics& statistics)
{
    std::string text = "{\"warp_instructions\": {";
    for (std::size_t i = 0; i < class_count; ++i) {
        text += fmt::format("{}\"{}\": {}", i == 0 ? "" : ", ", class_names[i], statistics.warp_instructions[i]);
    }
    text += "}";
    for (const Figure& figure : figures) {
        text += fmt::format(", \"{}\": {}", figure.name, statistics.*figure.value);
    }
    text += ", \"overlap_steps\": {";
    for (std::size_t i = 0; i < statistics.overlap_steps.size(); ++i) {
        text += fmt::format("{}\"{}\": {}", i == 0 ? "" : ", ", overlap_name(i), statistics.overlap_steps[i]);
    }
    return text + "}}";
}

}  // namespace tessera::emulator
