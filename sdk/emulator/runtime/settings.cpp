#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace tessera::emulator {

namespace {

class Reader {
public:
    Reader(const std::function<const char*(const char*)>& get, std::vector<std::string>& errors)
        : get_(get), errors_(errors)
    {}

    [[nodiscard]] std::optional<std::string_view> text(const char* name) const
    {
        const char* value = get_(name);
        return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string_view>(value);
    }

    template <class Number>
    void number(const char* name, Number& into)
    {
        if (const auto value = text(name)) {
            const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), into);
            if (error != std::errc{} || end != value->data() + value->size()) {
                refuse(name, *value, "a number");
            }
        }
    }

    void flag(const char* name, bool& into)
    {
        if (const auto value = text(name)) {
            if (*value != "0" && *value != "1") {
                refuse(name, *value, "0 or 1");
            }
            into = *value == "1";
        }
    }

    /// One of `names`; their order is that of the enumerators.
    template <class Enumeration>
    void choice(const char* name, std::initializer_list<std::string_view> names, Enumeration& into)
    {
        const auto value = text(name);
        if (!value) {
            return;
        }
        int index = 0;
        for (const std::string_view candidate : names) {
            if (candidate == *value) {
                into = static_cast<Enumeration>(index);
                return;
            }
            ++index;
        }
        refuse(name, *value, fmt::format("one of {}", fmt::join(names, ", ")));
    }

    /// Several of `names` with commas; each sets its flag.
    void list(const char* name, std::initializer_list<std::pair<std::string_view, bool*>> names)
    {
        std::string_view rest = text(name).value_or("");
        while (!rest.empty()) {
            const std::size_t comma = rest.find(',');
            const std::string_view word = rest.substr(0, comma);
            rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
            bool known = false;
            std::string all;
            for (const auto& [candidate, flag] : names) {
                all += (all.empty() ? "" : ", ") + std::string(candidate);
                known = known || candidate == word;
                *flag = *flag || candidate == word;
            }
            if (!known) {
                refuse(name, word, "one or more of " + all);
            }
        }
    }

    /// "json:PATH" and the like. False if the variable is not there.
    bool output(const char* name, OutputFormat& format, std::string& path)
    {
        const auto value = text(name);
        if (!value) {
            return false;
        }
        const std::size_t colon = value->find(':');
        const std::string_view word = value->substr(0, colon);
        if (word == "json") {
            format = OutputFormat::json;
        } else if (word != "text" && word != "1") {
            refuse(name, *value, "text, json, text:PATH or json:PATH");
        }
        path = colon == std::string_view::npos ? "" : value->substr(colon + 1);
        return true;
    }

    void refuse(const char* name, std::string_view value, std::string_view wanted)
    {
        errors_.push_back(fmt::format("{} is \"{}\"; it must be {}", name, value, wanted));
    }

private:
    const std::function<const char*(const char*)>& get_;
    std::vector<std::string>& errors_;
};

std::string known_devices()
{
    std::string list;
    for (const DeviceModel& model : device_models()) {
        list += (list.empty() ? "" : ", ") + model.key;
    }
    return list;
}

}  // namespace

Settings read_settings(const std::function<const char*(const char*)>& get)
{
    Settings settings;
    Reader reader(get, settings.errors);
    std::string_view devices = reader.text("TESSERA_EMU_DEVICE").value_or("b200");
    while (!devices.empty()) {
        const std::size_t comma = devices.find(',');
        const std::string_view key = devices.substr(0, comma);
        devices = comma == std::string_view::npos ? std::string_view() : devices.substr(comma + 1);
        if (const DeviceModel* model = find_device_model(key)) {
            settings.devices.push_back(model);
        } else {
            reader.refuse("TESSERA_EMU_DEVICE", key, "a device, or several separated by commas: " + known_devices());
        }
    }
    reader.number("TESSERA_EMU_SEED", settings.options.seed);
    reader.choice("TESSERA_EMU_SCHEDULE", {"in-order", "random", "adversarial"}, settings.options.schedule);
    reader.choice("TESSERA_EMU_NUMERICS", {"exact", "fast"}, settings.options.numerics);
    reader.flag("TESSERA_EMU_CHECK", settings.options.check);
    reader.list("TESSERA_EMU_ALSO", {{"same-value-race", &settings.options.same_value_races},
                                     {"exit-before-read", &settings.options.exits_before_read}});
    reader.flag("TESSERA_EMU_STRICT", settings.options.strict);
    reader.number("TESSERA_EMU_THREADS", settings.options.threads);
    reader.number("TESSERA_EMU_HANG_LIMIT", settings.options.hang_limit);
    reader.output("TESSERA_EMU_REPORT", settings.report_format, settings.report_path);
    if (reader.text("TESSERA_EMU_STATISTICS").value_or("0") != "0") {
        settings.statistics =
            reader.output("TESSERA_EMU_STATISTICS", settings.statistics_format, settings.statistics_path);
    }
    settings.faults = reader.text("TESSERA_EMU_FAIL").value_or("");
    return settings;
}

}  // namespace tessera::emulator
