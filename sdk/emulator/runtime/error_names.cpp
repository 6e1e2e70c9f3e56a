#include "runtime/error_names.hpp"

#include <algorithm>
#include <iterator>

namespace tessera::emulator {

namespace {

struct Entry {
    int code;
    const char* name;
    const char* text;
};

constexpr Entry entries[] = {
#define TESSERA_CUDA_ERROR(code, name, text) {code, #name, text},
#include "runtime/errors.def"
#undef TESSERA_CUDA_ERROR
};

const Entry* find(int code) noexcept
{
    const Entry* entry = std::ranges::lower_bound(entries, code, {}, &Entry::code);
    return entry != std::end(entries) && entry->code == code ? entry : nullptr;
}

}  // namespace

const char* error_name(int code) noexcept
{
    const Entry* entry = find(code);
    return entry == nullptr ? nullptr : entry->name;
}

const char* error_text(int code) noexcept
{
    const Entry* entry = find(code);
    return entry == nullptr ? nullptr : entry->text;
}

std::optional<int> find_error(std::string_view name) noexcept
{
    const Entry* entry = std::ranges::find_if(entries, [&](const Entry& e) { return name == e.name; });
    return entry == std::end(entries) ? std::nullopt : std::optional(entry->code);
}

}  // namespace tessera::emulator
