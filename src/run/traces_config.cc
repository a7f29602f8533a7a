// SPDX-License-Identifier: Apache-2.0
#include "run/traces_config.h"

#include <optional>
#include <string_view>

#include "base/units.h"

namespace rudderfish {
namespace {

constexpr double kShortestMs = 1000, kLongestMs = 86'400'000;

Result<void> ReadDuration(YamlMap* map, std::string_view key, Duration* duration) {
  const std::optional<YamlNode> node = map->Optional(key);
  if (!node) return {};
  TRY_ASSIGN(const std::string text, node->AsString());
  const Result<double> ms = ParseDurationMs(text);
  if (!ms) return node->Refuse(ms.error().message);
  if (*ms < kShortestMs || *ms > kLongestMs) return node->Expected("from 1s to 24h");
  *duration = Duration(static_cast<int64_t>(*ms * 1e6));
  return {};
}

}  // namespace

Result<TracesConfig> ParseTraces(const YamlNode& node) {
  TracesConfig traces;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const YamlNode jaeger, map.Required("jaeger"));
  TRY_ASSIGN(traces.jaeger, jaeger.AsString());
  if (traces.jaeger.find('@') != std::string::npos) {
    // Shown nowhere: it may hold a password.
    return jaeger.Refuse("expected an address without user and password");
  }
  if (!traces.jaeger.starts_with("http://") && !traces.jaeger.starts_with("https://"))
    return jaeger.Expected("an address such as http://jaeger:16686");
  TRY(ReadDuration(&map, "window", &traces.window));
  TRY(ReadDuration(&map, "period", &traces.period));
  if (const auto sampled = map.Optional("sampled")) {
    TRY_ASSIGN(traces.sampled, sampled->AsDouble(0, 1));
    if (traces.sampled == 0) return sampled->Expected("above 0");
  }
  TRY(map.Finish());
  return traces;
}

}  // namespace rudderfish
