#pragma once

/// Helpers for tests of errors.

#include <doctest/doctest.h>

#include <optional>
#include <source_location>
#include <string>
#include <utility>

#include "tessera/error.hpp"

namespace tessera::test {

/// Returns the Error that `work` throws, or nothing.
template <class Work>
std::optional<Error> error_of(Work&& work)
{
    try {
        std::forward<Work>(work)();
    } catch (const Error& error) {
        return error;
    }
    return std::nullopt;
}

/// Returns the whole text of an error, without ", called at FILE:LINE" if that place is `here`. An error that names
/// another place keeps it, so the comparison in the test fails.
inline std::string text_at(const std::optional<Error>& error, const std::source_location& here)
{
    if (!error) {
        return "no error";
    }
    std::string text = error->what();
    const std::string place = ", called at " + std::string(here.file_name()) + ":" + std::to_string(here.line());
    if (const std::size_t found = text.find(place + "\n"); found != std::string::npos) {
        text.erase(found, place.size());
    }
    return text;
}

}  // namespace tessera::test

/// Checks that an expression throws an Error whose text is `expected` and whose caller is this line.
#define CHECK_ERROR(expected, ...)                                                                 \
    CHECK(tessera::test::text_at(tessera::test::error_of([&] { static_cast<void>(__VA_ARGS__); }), \
                                 std::source_location::current()) == (expected))
