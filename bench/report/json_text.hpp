#pragma once

/// The pieces that JSON reports are made of.

#include <string>
#include <string_view>
#include <vector>

#include "report/report.hpp"

namespace tessera::bench {

/// Returns a JSON string, quoted and escaped.
std::string text_value(std::string_view text);

/// Returns a JSON number of six digits; `null` for infinity and NaN, which JSON does not have.
std::string number(double value);

/// Returns the items with commas between, each on a line of its own after `indent`.
std::string joined(const std::vector<std::string>& items, std::string_view indent);

/// Returns an object with a member for each fact.
std::string object_of_facts(const Environment& environment);

}  // namespace tessera::bench
