// SPDX-License-Identifier: Apache-2.0
#include "control/routing_mode_evidence.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace rudderfish {
namespace {

OrderedJson ToRelativeJson(const MeanSum& sum) {
  const std::optional<double> half = sum.half95();
  OrderedJson json{{"count", sum.count}, {"mean", sum.mean()}};
  json["interval95"] =
      half ? OrderedJson{sum.mean() - *half, sum.mean() + *half} : OrderedJson(nullptr);
  return json;
}

}  // namespace

Result<std::vector<RouteEvidence>> RoutingModeEvidence::Read(const KeptMode& now,
                                                             int64_t from) const {
  std::vector<RouteEvidence> all;
  for (const std::string& route : routes_) {
    TRY_ASSIGN(RouteEvidence one,
               routings_->RouteEvidenceOf(route, now.policy, now.objective, from));
    all.push_back(std::move(one));
  }
  return all;
}

Result<std::vector<RouteTrial>> RoutingModeEvidence::ReadTrials(UnixMillis since) const {
  std::vector<RouteTrial> trials;
  for (const std::string& route : routes_) {
    TRY_ASSIGN(RouteTrial one, routings_->RouteTrialOf(route, since));
    trials.push_back(std::move(one));
  }
  return trials;
}

Result<std::optional<std::string>> RoutingModeEvidence::WhyWorse(UnixMillis since) {
  TRY_ASSIGN(const std::vector<RouteTrial> trials, ReadTrials(since));
  for (const RouteTrial& trial : trials) {
    if (const auto worse = rudderfish::WhyWorse(trial))
      return std::optional<std::string>("it did worse than predicted: " + *worse);
  }
  return std::optional<std::string>();
}

Result<std::vector<std::string>> RoutingModeEvidence::Missing(const KeptMode& now, Mode to,
                                                              int64_t from) {
  TRY_ASSIGN(const std::vector<RouteEvidence> all, Read(now, from));
  std::vector<std::string> missing;
  for (const RouteEvidence& one : all) {
    for (std::string& line : WhatIsMissing(one)) missing.push_back(std::move(line));
  }
  if (to < Mode::kEnforce) return missing;
  // A canary acts on some routes only: of the others there is no trial.
  TRY_ASSIGN(std::vector<RouteTrial> trials, ReadTrials(now.since));
  std::erase_if(trials, [](const RouteTrial& one) { return one.done + one.failed == 0; });
  if (now.mode != Mode::kCanary || trials.empty()) {
    missing.emplace_back("a canary: no split has been set in one");
    return missing;
  }
  for (const RouteTrial& trial : trials) {
    for (std::string& line : WhatIsMissing(trial)) missing.push_back(std::move(line));
  }
  return missing;
}

Result<OrderedJson> RoutingModeEvidence::Describe(const KeptMode& now) {
  TRY_ASSIGN(const std::vector<RouteEvidence> all, Read(now, 0));
  OrderedJson json{{"routes", OrderedJson::array()}};
  for (const RouteEvidence& one : all) {
    json["routes"].push_back({{"route", one.route},
                              {"decisions", one.decisions},
                              {"predicted_gain", ToRelativeJson(one.gain)},
                              {"gain_over_baseline", ToRelativeJson(one.over_baseline)},
                              {"model_error", ToRelativeJson(one.error)}});
  }
  if (now.mode < Mode::kCanary) return json;
  TRY_ASSIGN(const std::vector<RouteTrial> trials, ReadTrials(now.since));
  for (size_t i = 0; i < trials.size(); ++i) {
    json["routes"][i]["changes"] = {
        {"set", trials[i].done},
        {"not_set", trials[i].failed},
        {"beyond_predicted", ToRelativeJson(trials[i].beyond_predicted)}};
  }
  return json;
}

}  // namespace rudderfish
