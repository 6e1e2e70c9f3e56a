#include "runtime/fault_injection.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <stdexcept>

#include "runtime/error_names.hpp"

namespace tessera::emulator {

namespace {

std::optional<unsigned> to_number(std::string_view text)
{
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

[[noreturn]] void refuse(std::string_view part, std::string_view why)
{
    throw std::invalid_argument(fmt::format(
        "\"{}\" is not a call to fail: {}. Write cudaMalloc:3=cudaErrorMemoryAllocation for the third call of "
        "cudaMalloc, or 17=cudaErrorUnknown for the 17th call of any name",
        part, why));
}

}  // namespace

void FaultInjection::plan(std::string_view text)
{
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        const std::string_view part = text.substr(0, comma);
        text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos) {
            refuse(part, "the '=' is missing");
        }
        std::string_view call = part.substr(0, equals);
        const std::string_view error = part.substr(equals + 1);
        std::optional<int> code = find_error(error);
        if (!code) {
            if (const auto number = to_number(error); number && error_name(static_cast<int>(*number)) != nullptr) {
                code = static_cast<int>(*number);
            }
        }
        if (!code || *code == 0) {
            refuse(part, fmt::format("there is no error \"{}\"", error));
        }
        std::string name;
        if (const std::size_t colon = call.find(':'); colon != std::string_view::npos) {
            name = call.substr(0, colon);
            call.remove_prefix(colon + 1);
        }
        const auto n = to_number(call);
        if (!n || *n == 0) {
            refuse(part, fmt::format("\"{}\" is not a count from 1", call));
        }
        fail(std::move(name), *n, *code);
    }
}

void FaultInjection::fail(std::string name, unsigned n, int code)
{
    const std::scoped_lock lock(mutex_);
    faults_.push_back({std::move(name), n, code});
}

int FaultInjection::next(std::string_view name)
{
    const std::scoped_lock lock(mutex_);
    ++calls_;
    int code = 0;
    for (Fault& fault : faults_) {
        if (fault.left > 0 && (fault.name.empty() || fault.name == name) && --fault.left == 0 && code == 0) {
            code = fault.code;
        }
    }
    return code;
}

void FaultInjection::clear()
{
    const std::scoped_lock lock(mutex_);
    faults_.clear();
    calls_ = 0;
}

unsigned long FaultInjection::calls() const
{
    const std::scoped_lock lock(mutex_);
    return calls_;
}

}  // namespace tessera::emulator
