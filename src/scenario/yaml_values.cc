// SPDX-License-Identifier: Apache-2.0
#include "scenario/yaml_values.h"

#include <charconv>
#include <cmath>

#include "base/units.h"
#include "scenario/scenario.h"

namespace rudderfish {
namespace {

constexpr std::string_view kTo = " to ";

constexpr int64_t kMostCpuMillis = 1'000'000'000;
constexpr int64_t kMostMemoryBytes = int64_t{1} << 50;
constexpr double kMostPayloadMbytes = 1e9;

std::string_view Trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

template <class Number>
bool ToNumber(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Result<double> ParseCores(std::string_view text) {
  TRY_ASSIGN(const int64_t millis, ParseCpuMillis(text, Rounding::kDown));
  if (millis > kMostCpuMillis)
    return Invalid("expected at most {} cores, found \"{}\"", kMostCpuMillis / 1000, text);
  return static_cast<double>(millis);
}

Result<double> ParseMemory(std::string_view text) {
  TRY_ASSIGN(const int64_t bytes, ParseMemoryBytes(text, Rounding::kDown));
  if (bytes > kMostMemoryBytes)
    return Invalid("expected at most 1024Ti of memory, found \"{}\"", text);
  return static_cast<double>(bytes);
}

Result<double> ParseLatencyMs(std::string_view text) {
  TRY_ASSIGN(const double ms, ParseDurationMs(text));
  if (ms > kMostLatencyMs)
    return Invalid("expected at most {}s, found \"{}\"", kMostLatencyMs / 1000, text);
  return ms;
}

Result<double> ParseFraction(std::string_view text) {
  double fraction = 0;
  if (!ToNumber(text, &fraction) || !(fraction >= 0 && fraction <= 1)) {
    return Invalid("expected a fraction from 0 to 1, found \"{}\"", text);
  }
  return fraction;
}

Result<double> ParseReplicas(std::string_view text) {
  int replicas = 0;
  if (!ToNumber(text, &replicas) || replicas < 1 || replicas > kMaxReplicas) {
    return Invalid("expected an integer from 1 to {}, found \"{}\"", kMaxReplicas, text);
  }
  return replicas;
}

Result<double> ParsePayloadMbytes(std::string_view text) {
  TRY_ASSIGN(const double bytes, ParseDataSizeBytes(text));
  if (bytes > kMostPayloadMbytes * 1e6) {
    return Invalid("expected at most {}MB, found \"{}\"", kMostPayloadMbytes, text);
  }
  // Bandwidths have the same units and are counted in megabytes: 0.1MB is 0.1, to the bit.
  return ParseBandwidthMbytesPerS(text);
}

Result<double> QuantityOf(const YamlNode& node, QuantityParser parse) {
  TRY_ASSIGN(const std::string text, node.AsString());
  Result<double> value = parse(text);
  if (!value) return node.Refuse(value.error().message);
  return *value;
}

Result<Distribution> DistributionOf(const YamlNode& node, QuantityParser parse) {
  if (node.IsList()) {
    TRY_ASSIGN(const std::vector<YamlNode> items, node.AsList());
    if (items.empty())
      return node.Refuse("expected at least one value to choose from, found an empty list");
    std::vector<double> values;
    for (const YamlNode& item : items) {
      TRY_ASSIGN(const double value, QuantityOf(item, parse));
      values.push_back(value);
    }
    return Distribution::Choice(std::move(values));
  }
  if (!node.IsScalar())
    return node.Expected("a value, a range such as 1 to 5, or a list to choose from");
  TRY_ASSIGN(const std::string text, node.AsString());
  const size_t to = text.find(kTo);
  if (to == std::string::npos) {
    TRY_ASSIGN(const double value, QuantityOf(node, parse));
    return Distribution::Constant(value);
  }
  const Result<double> low = parse(Trim(std::string_view(text).substr(0, to)));
  const Result<double> high = parse(Trim(std::string_view(text).substr(to + kTo.size())));
  if (!low) return node.Refuse(low.error().message);
  if (!high) return node.Refuse(high.error().message);
  if (*low > *high) return node.Refuse(fmt::format("the range \"{}\" ends below its start", text));
  return Distribution::Uniform(*low, *high);
}

bool IsName(std::string_view text) {
  if (text.empty() || text.size() > 200) return false;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return false;
  }
  return true;
}

Result<std::string> NameOf(const YamlNode& node) {
  TRY_ASSIGN(std::string name, node.AsString());
  if (!IsName(name)) return node.Expected(kNameInWords);
  return name;
}

}  // namespace rudderfish
