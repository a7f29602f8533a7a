// SPDX-License-Identifier: Apache-2.0
#include "telemetry/carbon_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/json.h"
#include "base/one_line.h"
#include "base/timestamp.h"
#include "base/wall_time.h"

namespace rudderfish {
namespace {

constexpr double kMostGramsPerKwh = 5000;
constexpr Duration kCarbonDeadline = std::chrono::seconds(10);
constexpr size_t kCarbonBytesMax = 1 << 20;

Result<double> TimeOf(const JsonReader& at) {
  TRY_ASSIGN(const std::string text, at.AsString());
  const std::optional<Date> date = ParseDate(text);
  if (!date) return at.Refuse(fmt::format("`{}` is no date", OneLine(text.substr(0, 60))));
  return std::chrono::duration<double>(date->time_since_epoch()).count();
}

// Of one zone: an object with the names of its parts.
Result<CarbonIntensity> ReadPart(const JsonReader& part, const CarbonZone& zone,
                                 std::string_view name_key, std::string_view value_key,
                                 std::string_view time_key) {
  TRY_ASSIGN(const JsonReader name, part.At(name_key));
  TRY_ASSIGN(const std::string told, name.AsString());
  const std::string& wanted = zone.answer.empty() ? zone.zone : zone.answer;
  if (told != wanted)
    return name.Refuse(fmt::format("the answer is of `{}`, not of `{}`", OneLine(told), wanted));
  CarbonIntensity intensity;
  TRY_ASSIGN(const JsonReader value, part.At(value_key));
  TRY_ASSIGN(intensity.g_per_kwh, value.AsDouble(0, kMostGramsPerKwh));
  TRY_ASSIGN(const JsonReader time, part.At(time_key));
  TRY_ASSIGN(intensity.unix_seconds, TimeOf(time));
  return intensity;
}

std::string PathOf(const CarbonConfig& config, const CarbonZone& zone) {
  const std::string name = PercentEncoded(zone.zone);
  if (config.service == CarbonService::kCarbonAwareSdk)
    return "/emissions/bylocation?location=" + name;
  // Without the second an unknown zone is answered by where the caller seems to be.
  return fmt::format("/carbon-intensity/latest?zone={}&shouldUseFallbackCallerLookup=false", name);
}

}  // namespace

Result<CarbonIntensity> ReadCarbonAnswer(CarbonService service, std::string_view body,
                                         const CarbonZone& zone) {
  TRY_ASSIGN(const Json json, ParseJson(body, "its answer"));
  const JsonReader root(json, "its answer");
  if (service == CarbonService::kElectricityMaps)
    return ReadPart(root, zone, "zone", "carbonIntensity", "datetime");
  TRY_ASSIGN(const std::vector<JsonReader> parts, root.Elements());
  std::optional<CarbonIntensity> newest;
  for (const JsonReader& part : parts) {
    TRY_ASSIGN(const CarbonIntensity one, ReadPart(part, zone, "location", "rating", "time"));
    if (!newest || one.unix_seconds > newest->unix_seconds) newest = one;
  }
  if (!newest) return root.Refuse("it lists no value");
  return *newest;
}

CarbonClient::CarbonClient(CarbonConfig config, const Clock* clock)
    : config_(std::move(config)), clock_(clock) {
  column_.scope = SignalScope::kRegion;
  column_.source = kCarbonServiceNames[static_cast<size_t>(config_.service)];
  while (config_.url.ends_with('/')) config_.url.pop_back();
}

void CarbonClient::Turn() {
  const Instant now = clock_->Now();
  if (http_.in_flight() > 0 || (asked_ && now - *asked_ < config_.period)) return;
  asked_ = now;
  trouble_.clear();
  std::vector<std::string> headers;
  if (!config_.token_file.empty()) {
    const Result<std::string> token = ReadCarbonToken(config_.token_file);  // It may be replaced.
    if (!token) {
      column_.trouble = token.error().message;
      has_changed_ = true;
      return;
    }
    headers.push_back("auth-token: " + *token);
  }
  for (const CarbonZone& zone : config_.zones) Ask(zone, headers);
}

void CarbonClient::Ask(const CarbonZone& zone, const std::vector<std::string>& headers) {
  http_.Start({.url = config_.url + PathOf(config_, zone),
               .headers = headers,
               .deadline = kCarbonDeadline,
               .body_limit_bytes = kCarbonBytesMax,
               .ca_file = config_.ca_file},
              [this, zone](const Result<HttpReply>& reply) { Take(zone, reply); });
}

void CarbonClient::Take(const CarbonZone& zone, const Result<HttpReply>& reply) {
  has_changed_ = true;
  const auto refuse = [&](const std::string& why) {
    if (trouble_.empty()) trouble_ = fmt::format("{}: {}", zone.region, why);
  };
  if (!reply) return refuse(reply.error().message);
  if (reply->status / 100 != 2)
    return refuse(fmt::format("{}: status {}", PublicUrl(config_.url), reply->status));
  const Result<CarbonIntensity> intensity = ReadCarbonAnswer(config_.service, reply->body, zone);
  if (!intensity) return refuse(intensity.error().message);
  // What is announced for later is of now.
  const double age_s =
      std::max(0.0, static_cast<double>(UnixNow()) / 1000 - intensity->unix_seconds);
  column_.values[zone.region] = {.value = intensity->g_per_kwh,
                                 .at = clock_->Now() - std::chrono::duration_cast<Duration>(
                                                           std::chrono::duration<double>(age_s))};
}

bool CarbonClient::Poll() {
  const bool was_under_way = http_.in_flight() > 0;
  const bool is_under_way = http_.Poll(Duration::zero()) > 0;
  if (was_under_way && !is_under_way) {
    column_.trouble = trouble_;
    has_changed_ = true;
  }
  return std::exchange(has_changed_, false);
}

}  // namespace rudderfish
