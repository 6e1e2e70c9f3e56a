/// The C ABI's errors: each thread keeps the text of its latest failure.

#include <new>
#include <string>

#include "base/precompiled.hpp"  // the one copy of fmt's formatter
#include "c/guard.hpp"
#include "tessera/error.hpp"

namespace tessera::c {
namespace {

struct Failure {
    std::string text;
    const char* shown = "";
    int cuda_status = 0;
};

Failure& last_failure() noexcept
{
    thread_local Failure failure;
    return failure;
}

constexpr const char* no_memory = "the host has no memory left";

tessera_status keep(const char* function, tessera_status status, std::string_view message, std::string_view cure,
                    int cuda_status) noexcept
{
    Failure& last = last_failure();
    last.cuda_status = cuda_status;
    try {
        last.text = fmt::format("tessera: {} in {}\n  {}{}{}", tessera_status_name(status), function, message,
                                cure.empty() ? "" : "\n  try: ", cure);
        last.shown = last.text.c_str();
    } catch (...) {
        last.shown = no_memory;
    }
    return status;
}

}  // namespace

tessera_status keep_failure(const char* function) noexcept
{
    try {
        throw;
    } catch (const Error& error) {
        return keep(function, static_cast<tessera_status>(error.code()), error.message(), error.cure(),
                    error.cuda_status());
    } catch (const std::bad_alloc&) {
        return keep(function, TESSERA_OUT_OF_MEMORY, no_memory, "", 0);
    } catch (const std::exception& error) {
        return keep(function, TESSERA_UNKNOWN_FAILURE, error.what(), "", 0);
    } catch (...) {
        return keep(function, TESSERA_UNKNOWN_FAILURE, "something that is no std::exception was thrown", "", 0);
    }
}

void raise_refusal(const char* cure, fmt::string_view message, fmt::format_args values)
{
    detail::raise(ErrorCode::invalid_argument, "", nowhere, fmt::vformat(message, values), cure);
}

}  // namespace tessera::c

// A name is a literal, which ends with 0.
const char* tessera_status_name(tessera_status status)
{
    switch (status) {
        case TESSERA_SUCCESS: return "success";
        case TESSERA_UNKNOWN_FAILURE: return "unknown_failure";
        default: return tessera::to_string(static_cast<tessera::ErrorCode>(status)).data();
    }
}

const char* tessera_last_error() { return tessera::c::last_failure().shown; }

int tessera_last_cuda_error() { return tessera::c::last_failure().cuda_status; }
