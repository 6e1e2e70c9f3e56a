#pragma once

/// What every function of the C ABI is wrapped in: no exception leaves it, and its text is kept for the thread.

#include <fmt/format.h>

#include <source_location>

#include "tessera.h"

namespace tessera::c {

/// The place of a C program's call is not known.
inline constexpr std::source_location nowhere{};

/// Keeps the exception that is being handled as the thread's latest failure of `function`.
tessera_status keep_failure(const char* function) noexcept;

/// Calls `body`; returns success, or the status of what it threw.
template <class Body>
tessera_status guarded(const char* function, const Body& body) noexcept
{
    try {
        body();
        return TESSERA_SUCCESS;
    } catch (...) {
        return keep_failure(function);
    }
}

[[noreturn]] void raise_refusal(const char* cure, fmt::string_view message, fmt::format_args values);

/// Refuses an argument that only the C ABI can be given.
template <class... Values>
[[noreturn]] void refuse(const char* cure, fmt::format_string<Values...> message, const Values&... values)
{
    raise_refusal(cure, message, fmt::make_format_args(values...));
}

/// Refuses a pointer that must not be NULL.
template <class Pointee>
void require_pointer(Pointee* pointer, const char* name)
{
    if (pointer == nullptr) {
        refuse("an address", "{} is NULL", name);
    }
}

}  // namespace tessera::c
