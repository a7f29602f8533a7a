// SPDX-License-Identifier: Apache-2.0
#include "telemetry/carbon_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/files.h"
#include "base/units.h"

namespace rudderfish {
namespace {

constexpr double kShortestPeriodMs = 1000, kLongestPeriodMs = 86'400'000;
constexpr size_t kLongestZone = 200;

Result<std::string> CarbonUrl(const YamlNode& node) {
  TRY_ASSIGN(std::string url, node.AsString());
  // Shown nowhere: it may hold a password.
  if (url.find('@') != std::string::npos)
    return node.Refuse("expected an address without user and password");
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return node.Expected("an address such as https://api.electricitymaps.com/v3");
  if (url.find_first_of("?#\n\r ") != std::string::npos)
    return node.Expected("an address without a query");
  return url;
}

Result<std::string> ZoneName(const YamlNode& node) {
  TRY_ASSIGN(std::string name, node.AsString());
  if (name.empty() || name.size() > kLongestZone)
    return node.Expected(fmt::format("a name of 1 to {} letters", kLongestZone));
  return name;
}

// The service's name of a region: DE, or {zone: eastus, answer: PJM}.
Result<CarbonZone> ZoneFrom(const std::string& region, const YamlNode& node) {
  CarbonZone zone{.region = region, .zone = "", .answer = ""};
  if (!node.IsMap()) {
    TRY_ASSIGN(zone.zone, ZoneName(node));
    return zone;
  }
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const YamlNode asked, map.Required("zone"));
  TRY_ASSIGN(zone.zone, ZoneName(asked));
  if (const auto answer = map.Optional("answer")) {
    TRY_ASSIGN(zone.answer, ZoneName(*answer));
  }
  TRY(map.Finish());
  return zone;
}

}  // namespace

Result<CarbonConfig> ParseCarbonConfig(const YamlNode& node, const std::filesystem::path& folder) {
  CarbonConfig config;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const YamlNode service, map.Required("service"));
  TRY_ASSIGN(const std::string name, service.AsString());
  const auto* const at =
      std::find(std::begin(kCarbonServiceNames), std::end(kCarbonServiceNames), name);
  if (at == std::end(kCarbonServiceNames))
    return service.Expected(fmt::format("one of {}", fmt::join(kCarbonServiceNames, ", ")));
  config.service = static_cast<CarbonService>(at - std::begin(kCarbonServiceNames));
  TRY_ASSIGN(const YamlNode url, map.Required("url"));
  TRY_ASSIGN(config.url, CarbonUrl(url));
  TRY_ASSIGN(const std::string token, map.OptionalString("token_file", ""));
  if (!token.empty()) config.token_file = folder / token;
  TRY_ASSIGN(const std::string ca, map.OptionalString("ca_file", ""));
  if (!ca.empty()) config.ca_file = (folder / ca).string();
  if (const auto period = map.Optional("period")) {
    TRY_ASSIGN(const std::string text, period->AsString());
    const Result<double> ms = ParseDurationMs(text);
    if (!ms || *ms < kShortestPeriodMs || *ms > kLongestPeriodMs)
      return period->Expected("a duration from 1s to 24h");
    config.period = Duration(static_cast<int64_t>(*ms * 1e6));
  }
  TRY_ASSIGN(const YamlNode zones, map.Required("zones"));
  TRY_ASSIGN(YamlMap named, zones.AsMap());
  for (const auto& [region, value] : named.Entries()) {
    TRY_ASSIGN(CarbonZone zone, ZoneFrom(region, value));
    config.zones.push_back(std::move(zone));
  }
  if (config.zones.empty()) return zones.Expected("a zone of the service for each region");
  TRY(map.Finish());
  return config;
}

Result<std::string> ReadCarbonToken(const std::filesystem::path& path) {
  TRY_ASSIGN(std::string token, ReadFile(path));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' '))
    token.pop_back();
  const bool is_plain =
      !token.empty() && token.size() < 4096 &&
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (!is_plain) return Invalid("{}: expected one token and nothing else", path.string());
  return token;
}

}  // namespace rudderfish
