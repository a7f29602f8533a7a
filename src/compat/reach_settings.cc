// SPDX-License-Identifier: Apache-2.0
#include "compat/reach_settings.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "base/one_line.h"
#include "base/units.h"

namespace rudderfish {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr double kLongestPollMs = 3'600'000;

struct EnvValue {
  std::string text, where;  // Where it was read, for messages.
};
using EnvValues = std::map<std::string, EnvValue>;

std::string_view WithoutBlanks(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// What stands behind =, without quotes or the comment after it.
Result<std::string> ValueOf(std::string_view text, const std::string& where) {
  if (text.starts_with('"') || text.starts_with('\'')) {
    const size_t end = text.find(text[0], 1);
    if (end == std::string_view::npos) return Invalid("{}: the quote is not closed", where);
    const std::string_view rest = WithoutBlanks(text.substr(end + 1));
    if (!rest.empty() && !rest.starts_with('#'))
      return Invalid("{}: `{}` follows the quoted value", where, OneLine(rest));
    return std::string(text.substr(1, end - 1));
  }
  const size_t comment = text.find(" #");
  return std::string(WithoutBlanks(text.substr(0, comment)));
}

Result<EnvValues> ReadEnv(std::string_view text, std::string_view source_name) {
  EnvValues values;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = WithoutBlanks(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("export ")) line = WithoutBlanks(line.substr(7));
    const size_t equals = line.find('=');
    const std::string where = fmt::format("{}:{}", source_name, number);
    if (equals == std::string_view::npos || equals == 0)
      return Invalid("{}: expected NAME=VALUE, found `{}`", where, OneLine(line));
    TRY_ASSIGN(std::string value, ValueOf(WithoutBlanks(line.substr(equals + 1)), where));
    values[std::string(WithoutBlanks(line.substr(0, equals)))] = {std::move(value), where};
  }
  return values;
}

Result<double> NumberOf(const EnvValue& value, double low, double high) {
  double number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto read = std::from_chars(value.text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || !(number >= low && number <= high)) {
    return Invalid("{}: expected a number from {:g} to {:g}, found `{}`", value.where, low, high,
                   OneLine(value.text));
  }
  return number;
}

Result<int> WholeNumberOf(const EnvValue& value, int low, int high) {
  int number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto read = std::from_chars(value.text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number < low || number > high) {
    return Invalid("{}: expected an integer from {} to {}, found `{}`", value.where, low, high,
                   OneLine(value.text));
  }
  return number;
}

}  // namespace

Result<ReachSettings> ParseReachSettings(std::string_view text, std::string_view source_name,
                                         const ReachVariable& process) {
  TRY_ASSIGN(EnvValues values, ReadEnv(text, source_name));
  // Nothing: it stands nowhere, or is empty.
  const auto find = [&](const std::string& name) -> std::optional<EnvValue> {
    std::optional<EnvValue> found;
    if (std::optional<std::string> own = process(name)) {
      found = EnvValue{*std::move(own), name};
    } else if (const auto at = values.find(name); at != values.end()) {
      found = EnvValue{at->second.text, fmt::format("{}: {}", at->second.where, name)};
    }
    return found && !found->text.empty() ? found : std::nullopt;
  };
  ReachSettings settings;
  if (const auto value = find("KUBECONFIG")) settings.kubeconfig = value->text;
  for (const auto& [name, url] : {std::pair{"ENTRY_SERVICE_URL", &settings.entry_url},
                                  std::pair{"JAEGER_URL", &settings.jaeger_url}}) {
    const auto value = find(name);
    if (!value) continue;
    if (!value->text.starts_with("http://") && !value->text.starts_with("https://"))
      return Invalid("{}: expected an address http://... or https://...", value->where);
    *url = value->text;
  }
  constexpr std::string_view kTraces = "/api/traces";
  if (settings.jaeger_url.ends_with(kTraces))
    settings.jaeger_url.resize(settings.jaeger_url.size() - kTraces.size());
  if (const auto value = find("POLLING_PERIOD")) {
    const Result<double> ms = ParseDurationMs(value->text);
    if (!ms || *ms < 10 || *ms > kLongestPollMs) {
      return Invalid("{}: expected a duration from 10ms to 1h, such as 1s, found `{}`",
                     value->where, OneLine(value->text));
    }
    settings.polling_period = std::chrono::nanoseconds(static_cast<int64_t>(*ms * 1e6));
  }
  if (const auto value = find("ALPHA")) {
    TRY_ASSIGN(settings.alpha, NumberOf(*value, 0.001, 1));
  }
  if (const auto value = find("MAX_POD_WAITING_RETRIES")) {
    TRY_ASSIGN(settings.waiting_retries, WholeNumberOf(*value, 1, 100'000));
  }
  if (const auto value = find("MAX_STEP")) {
    TRY_ASSIGN(settings.steps_max, WholeNumberOf(*value, 1, 10'000));
  }
  return settings;
}

}  // namespace rudderfish
