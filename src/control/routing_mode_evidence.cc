// SPDX-License-Identifier: Apache-2.0
#include "control/routing_mode_evidence.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

OrderedJson ToRelativeJson(const MeanSum& sum) {
  const std::optional<double> half = sum.half95();
  OrderedJson json{{"count", sum.count}, {"mean", sum.mean()}};
  json["interval95"] =
      half ? OrderedJson{sum.mean() - *half, sum.mean() + *half} : OrderedJson(nullptr);
  return json;
}

// Of each route, an empty one where nothing was recorded.
template <class Record>
std::vector<Record> OfRoutes(const std::vector<std::string>& routes,
                             const std::vector<Record>& recorded) {
  std::vector<Record> all;
  for (const std::string& name : routes) {
    const auto at = std::find_if(recorded.begin(), recorded.end(),
                                 [&](const Record& one) { return one.route == name; });
    all.push_back(at == recorded.end() ? Record{.route = name} : *at);
  }
  return all;
}

}  // namespace

Result<std::optional<std::string>> RoutingModeEvidence::WhyWorse(UnixMillis since) {
  TRY_ASSIGN(const std::vector<RouteTrial> recorded, journal_->RouteTrials(since));
  for (const RouteTrial& trial : OfRoutes(routes_, recorded)) {
    if (const auto worse = rudderfish::WhyWorse(trial))
      return std::optional<std::string>("the canary did worse than predicted: " + *worse);
  }
  return std::optional<std::string>();
}

// A canary acts on some routes only: of the others there is no trial.
Result<std::vector<std::string>> RoutingModeEvidence::Missing(const KeptMode& now, Mode to,
                                                              int64_t from) {
  TRY_ASSIGN(const std::vector<RouteEvidence> recorded,
             journal_->RouteEvidenceOf(now.policy, now.objective, from));
  std::vector<std::string> missing;
  for (const RouteEvidence& one : OfRoutes(routes_, recorded)) {
    for (std::string& line : WhatIsMissing(one)) missing.push_back(std::move(line));
  }
  if (to < Mode::kEnforce) return missing;
  TRY_ASSIGN(const std::vector<RouteTrial> trials, journal_->RouteTrials(now.since));
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
  TRY_ASSIGN(const std::vector<RouteEvidence> recorded,
             journal_->RouteEvidenceOf(now.policy, now.objective, 0));
  OrderedJson json{{"routes", OrderedJson::array()}};
  for (const RouteEvidence& one : OfRoutes(routes_, recorded)) {
    json["routes"].push_back({{"route", one.route},
                              {"decisions", one.decisions},
                              {"predicted_gain", ToRelativeJson(one.gain)},
                              {"gain_over_baseline", ToRelativeJson(one.over_baseline)},
                              {"model_error", ToRelativeJson(one.error)}});
  }
  if (now.mode < Mode::kCanary) return json;
  TRY_ASSIGN(const std::vector<RouteTrial> trials, journal_->RouteTrials(now.since));
  const std::vector<RouteTrial> all = OfRoutes(routes_, trials);
  for (size_t i = 0; i < all.size(); ++i) {
    json["routes"][i]["changes"] = {{"set", all[i].done},
                                    {"not_set", all[i].failed},
                                    {"beyond_predicted", ToRelativeJson(all[i].beyond_predicted)}};
  }
  return json;
}

}  // namespace rudderfish
