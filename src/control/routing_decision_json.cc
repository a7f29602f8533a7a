// SPDX-License-Identifier: Apache-2.0
#include "control/routing_decision_json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace rudderfish {
namespace {

OrderedJson NumberOrNull(const std::optional<double>& number) {
  return number && std::isfinite(*number) ? OrderedJson(*number) : OrderedJson(nullptr);
}

Result<std::optional<double>> NumberOrNone(const JsonReader& object, std::string_view key) {
  TRY_ASSIGN(const auto found, object.Find(key));
  if (!found) return std::optional<double>();
  TRY_ASSIGN(const double number, found->AsDouble());
  return std::optional(number);
}

Result<std::string> WordsAt(const JsonReader& object, std::string_view key) {
  TRY_ASSIGN(const JsonReader text, object.At(key));
  return text.AsString();
}

Result<double> ShareAt(const JsonReader& object, std::string_view key) {
  TRY_ASSIGN(const JsonReader share, object.At(key));
  return share.AsDouble();
}

Result<RoutedRegion> RegionFrom(const JsonReader& json) {
  RoutedRegion region;
  TRY_ASSIGN(region.region, WordsAt(json, "region"));
  TRY_ASSIGN(region.now, ShareAt(json, "now"));
  TRY_ASSIGN(region.wanted, ShareAt(json, "wanted"));
  TRY_ASSIGN(region.allowed, ShareAt(json, "allowed"));
  TRY_ASSIGN(region.baseline, ShareAt(json, "baseline"));
  TRY_ASSIGN(const JsonReader healthy, json.At("healthy"));
  TRY_ASSIGN(region.is_healthy, healthy.AsBool());
  TRY_ASSIGN(const JsonReader parts, json.At("one_more"));
  TRY_ASSIGN(const std::vector<JsonReader> list, parts.Elements());
  for (const JsonReader& part : list) {
    if (part.IsNull()) {
      region.one_more.push_back(std::numeric_limits<double>::infinity());
      continue;
    }
    TRY_ASSIGN(const double number, part.AsDouble());
    region.one_more.push_back(number);
  }
  return region;
}

Result<std::optional<RoutedCapacity>> CapacityFrom(const JsonReader& json) {
  TRY_ASSIGN(const auto found, json.Find("capacity"));
  if (!found) return std::optional<RoutedCapacity>();
  RoutedCapacity capacity;
  TRY_ASSIGN(const JsonReader unit, found->At("unit"));
  TRY_ASSIGN(capacity.unit, unit.AsString());
  const std::pair<std::string_view, int*> fields[] = {
      {"now", &capacity.now}, {"wanted", &capacity.wanted}, {"allowed", &capacity.allowed}};
  for (const auto& [key, field] : fields) {
    TRY_ASSIGN(const JsonReader number, found->At(key));
    TRY_ASSIGN(const int64_t count, number.AsInt(0, 1'000'000));
    *field = static_cast<int>(count);
  }
  return std::optional(std::move(capacity));
}

Result<void> ReadRouteLists(const JsonReader& json, RoutingDecision* decision) {
  TRY_ASSIGN(const JsonReader regions, json.At("regions"));
  TRY_ASSIGN(const std::vector<JsonReader> list, regions.Elements());
  for (const JsonReader& one : list) {
    TRY_ASSIGN(RoutedRegion region, RegionFrom(one));
    decision->regions.push_back(std::move(region));
  }
  TRY_ASSIGN(const JsonReader reasons, json.At("reasons"));
  TRY_ASSIGN(const std::vector<JsonReader> texts, reasons.Elements());
  for (const JsonReader& one : texts) {
    TRY_ASSIGN(std::string reason, one.AsString());
    decision->reasons.push_back(std::move(reason));
  }
  return {};
}

}  // namespace

std::string ToJson(const RoutingDecision& decision) {
  OrderedJson regions = OrderedJson::array();
  for (const RoutedRegion& one : decision.regions) {
    OrderedJson parts = OrderedJson::array();
    for (const double part : one.one_more) parts.push_back(NumberOrNull(part));
    regions.push_back({{"region", one.region},
                       {"now", one.now},
                       {"wanted", one.wanted},
                       {"allowed", one.allowed},
                       {"baseline", one.baseline},
                       {"healthy", one.is_healthy},
                       {"one_more", std::move(parts)}});
  }
  return OrderedJson{
      {"route", decision.route},
      {"target", decision.target},
      {"mode", decision.mode},
      {"policy", decision.policy},
      {"baseline", decision.baseline},
      {"objective", decision.objective},
      {"regions", std::move(regions)},
      {"capacity", decision.capacity ? OrderedJson{{"unit", decision.capacity->unit},
                                                   {"now", decision.capacity->now},
                                                   {"wanted", decision.capacity->wanted},
                                                   {"allowed", decision.capacity->allowed}}
                                     : OrderedJson(nullptr)},
      {"reasons", decision.reasons},
      {"takes_back", decision.takes_back},
      {"gain", NumberOrNull(decision.gain)},
      {"gain_over_baseline", NumberOrNull(decision.gain_over_baseline)},
      {"predicted_now_ms", NumberOrNull(decision.predicted_now_ms)},
      {"predicted_ms", NumberOrNull(decision.predicted_ms)},
      {"measured_now_ms", NumberOrNull(decision.measured_now_ms)},
      {"demand_per_s", NumberOrNull(decision.demand_per_s)},
      {"request", decision.request},
      {"allowed", decision.verdict.allowed},
      {"reason", decision.verdict.reason}}
      .dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<RoutingDecision> RoutingDecisionFrom(std::string_view json, std::string_view source_name) {
  TRY_ASSIGN(const Json parsed, ParseJson(json, source_name));
  const JsonReader reader(parsed, source_name);
  RoutingDecision decision;
  TRY_ASSIGN(decision.route, WordsAt(reader, "route"));
  TRY_ASSIGN(decision.target, WordsAt(reader, "target"));
  TRY_ASSIGN(decision.mode, WordsAt(reader, "mode"));
  TRY_ASSIGN(decision.policy, WordsAt(reader, "policy"));
  TRY_ASSIGN(decision.baseline, WordsAt(reader, "baseline"));
  TRY_ASSIGN(decision.objective, WordsAt(reader, "objective"));
  TRY(ReadRouteLists(reader, &decision));
  TRY_ASSIGN(decision.capacity, CapacityFrom(reader));
  TRY_ASSIGN(const auto gain, NumberOrNone(reader, "gain"));
  decision.gain = gain.value_or(0);
  TRY_ASSIGN(decision.gain_over_baseline, NumberOrNone(reader, "gain_over_baseline"));
  TRY_ASSIGN(const auto predicted_now, NumberOrNone(reader, "predicted_now_ms"));
  decision.predicted_now_ms = predicted_now.value_or(0);
  TRY_ASSIGN(const auto predicted, NumberOrNone(reader, "predicted_ms"));
  decision.predicted_ms = predicted.value_or(0);
  TRY_ASSIGN(decision.measured_now_ms, NumberOrNone(reader, "measured_now_ms"));
  TRY_ASSIGN(const auto demand, NumberOrNone(reader, "demand_per_s"));
  decision.demand_per_s = demand.value_or(0);
  TRY_ASSIGN(decision.request, WordsAt(reader, "request"));
  TRY_ASSIGN(const JsonReader takes_back, reader.At("takes_back"));
  TRY_ASSIGN(decision.takes_back, takes_back.AsBool());
  TRY_ASSIGN(const JsonReader allowed, reader.At("allowed"));
  TRY_ASSIGN(decision.verdict.allowed, allowed.AsBool());
  TRY_ASSIGN(decision.verdict.reason, WordsAt(reader, "reason"));
  return decision;
}

}  // namespace rudderfish
