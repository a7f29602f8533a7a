// SPDX-License-Identifier: Apache-2.0
#include "policy/policy_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/suggest.h"
#include "base/units.h"

namespace rudderfish {
namespace {

using Kind = PolicyOption::Kind;

// As an option takes it.
std::string DurationText(double ms) {
  if (ms == 0) return "0s";
  std::string text = FormatDuration(
      std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms)));
  std::erase(text, ' ');
  return text;
}

// NaN where it is none.
double ParsedAs(Kind kind, std::string_view text) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (kind == Kind::kDuration) return ParseDurationMs(text).value_or(kNone);
  if (kind == Kind::kPercent && text.ends_with('%')) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return kNone;
  return kind == Kind::kInteger && value != std::floor(value) ? kNone : value;
}

}  // namespace

std::string_view PolicyOption::KindName() const {
  constexpr std::string_view kNames[] = {"integer",  "number", "percent",
                                         "duration", "word",   "path"};
  return kNames[static_cast<int>(kind)];
}

std::string PolicyOption::RangeText() const {
  switch (kind) {
    case Kind::kInteger:
      return RangeInWords("an integer", static_cast<int64_t>(low), static_cast<int64_t>(high));
    case Kind::kNumber:
      return RangeInWords("a number", low, high);
    case Kind::kPercent:
      return RangeInWords("a percentage", low, high);
    case Kind::kDuration:
      return fmt::format("a duration from {} to {}", DurationText(low), DurationText(high));
    case Kind::kWord:
      return fmt::format("{}", fmt::join(words, " or "));
    case Kind::kPath:
      break;
  }
  return "a run folder or a checkpoint";
}

Result<PolicyOptions::Value> PolicyOptions::ValueOf(const PolicyOption& option,
                                                    std::string_view text) {
  Value value{.is_given = true, .text = std::string(text)};
  if (option.kind == Kind::kPath) return value;
  if (option.kind == Kind::kWord) {
    if (std::find(option.words.begin(), option.words.end(), text) != option.words.end())
      return value;
  } else {
    value.number = ParsedAs(option.kind, text);
    if (value.number >= option.low && value.number <= option.high) return value;
  }
  return Invalid("`{}` is `{}`, expected {}{}", option.key, text, option.RangeText(),
                 DidYouMean(text, option.words));
}

Result<PolicyOptions> PolicyOptions::Read(const PolicySpec& spec,
                                          std::span<const PolicyOption> known) {
  PolicyOptions options;
  options.name_ = spec.name;
  options.text_ = spec.text();
  for (const PolicyOption& option : known) {
    Value& value = options.values_[option.key];
    if (option.fallback.empty()) continue;
    Result<Value> fallback = ValueOf(option, option.fallback);
    CHECK(fallback.has_value());
    value = *std::move(fallback);
    value.is_given = false;
  }
  for (const auto& [key, text] : spec.options) {
    const auto option =
        std::find_if(known.begin(), known.end(),
                     [&key = key](const PolicyOption& one) { return one.key == key; });
    if (option == known.end()) {
      if (known.empty())
        return Invalid("policy `{}`: {} takes no options", options.text_, spec.name);
      std::vector<std::string_view> keys;
      for (const PolicyOption& one : known) keys.push_back(one.key);
      return Invalid("policy `{}`: unknown option `{}`{} (there are {})", options.text_, key,
                     DidYouMean(key, keys), fmt::join(keys, ", "));
    }
    Result<Value> value = ValueOf(*option, text);
    if (!value) return Invalid("policy `{}`: {}", options.text_, value.error().message);
    options.values_[option->key] = *std::move(value);
  }
  return options;
}

const PolicyOptions::Value& PolicyOptions::At(std::string_view key) const {
  const auto at = values_.find(key);
  CHECK(at != values_.end());
  return at->second;
}

}  // namespace rudderfish
