#pragma once

/// Shared by the tests of mistakes: a fixture with operands, and a check of a whole error text.

#include <cstddef>
#include <cstring>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "clean_runtime.hpp"

namespace tessera::test {

struct Mistakes : CleanRuntime {
    Stream stream;
    Stream stream_t4{Device(fake::t4)};
    DeviceBuffer<float> a{stream, 10'000};
    DeviceBuffer<float> b{stream, 10'000};
    DeviceBuffer<float> c{stream, 10'000};
    DeviceBuffer<float> d{stream, 10'000};
};

/// Removes addresses, which differ from run to run.
inline std::string without_addresses(const std::string& text)
{
    return std::regex_replace(text, std::regex("\\b0x[0-9a-f]+"), "0x...");
}

/// A cure follows "try:". A tensor map can break several rules at a time, so its errors have a cure with each rule.
inline bool has_cure(const std::optional<Error>& error)
{
    return error && (!error->cure().empty() || (error->code() == ErrorCode::tensor_map_refused &&
                                                error->message().find(": pad ") != std::string_view::npos));
}

}  // namespace tessera::test

/// Checks that an expression throws an Error whose text, without addresses, is `expected`, which has a cure, and whose
/// caller is this line.
#define CHECK_MISTAKE(expected, ...)                                                                              \
    do {                                                                                                          \
        const auto error = tessera::test::error_of([&] { static_cast<void>(__VA_ARGS__); });                      \
        CHECK(tessera::test::without_addresses(tessera::test::text_at(error, std::source_location::current())) == \
              (expected));                                                                                        \
        CHECK(tessera::test::has_cure(error));                                                                    \
    } while (false)
