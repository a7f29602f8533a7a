// SPDX-License-Identifier: Apache-2.0
#include "control/migration_mode_evidence.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

OrderedJson InMillisecondsJson(const MeanSum& sum) {
  const std::optional<double> half = sum.half95();
  OrderedJson json{{"count", sum.count}, {"mean_ms", sum.mean()}};
  json["interval95_ms"] =
      half ? OrderedJson{sum.mean() - *half, sum.mean() + *half} : OrderedJson(nullptr);
  json["text"] = InMilliseconds(sum);
  return json;
}

}  // namespace

Result<std::vector<PlanEvidence>> MigrationModeEvidence::Read(const KeptMode& now,
                                                              int64_t from) const {
  TRY_ASSIGN(const std::vector<PlanEvidence> recorded,
             moves_->Plans(now.policy, now.objective, from));
  std::vector<PlanEvidence> all;
  for (const std::string& name : applications_) {
    const auto at = std::find_if(recorded.begin(), recorded.end(),
                                 [&](const auto& one) { return one.application == name; });
    all.push_back(at == recorded.end() ? PlanEvidence{.application = name} : *at);
  }
  return all;
}

Result<std::vector<MoveTrial>> MigrationModeEvidence::ReadTrials(UnixMillis since) const {
  std::vector<MoveTrial> trials;
  for (const std::string& name : applications_) {
    TRY_ASSIGN(MoveTrial trial, moves_->CanaryMoves(name, since));
    trials.push_back(std::move(trial));
  }
  return trials;
}

Result<std::optional<std::string>> MigrationModeEvidence::WhyWorse(UnixMillis since) {
  TRY_ASSIGN(const std::vector<MoveTrial> trials, ReadTrials(since));
  for (const MoveTrial& trial : trials) {
    if (const auto worse = rudderfish::WhyWorse(trial))
      return std::optional<std::string>("it did worse than predicted: " + *worse);
  }
  return std::optional<std::string>();
}

Result<std::vector<std::string>> MigrationModeEvidence::Missing(const KeptMode& now, Mode to,
                                                                int64_t from) {
  TRY_ASSIGN(const std::vector<PlanEvidence> all, Read(now, from));
  std::vector<std::string> missing;
  for (const PlanEvidence& one : all) {
    for (std::string& line : WhatIsMissing(one)) missing.push_back(std::move(line));
  }
  if (to < Mode::kEnforce) return missing;
  if (now.mode != Mode::kCanary) {
    missing.emplace_back("a canary: no pod has been moved in one");
    return missing;
  }
  TRY_ASSIGN(const std::vector<MoveTrial> trials, ReadTrials(now.since));
  for (const MoveTrial& trial : trials) {
    for (std::string& line : WhatIsMissing(trial)) missing.push_back(std::move(line));
  }
  return missing;
}

Result<OrderedJson> MigrationModeEvidence::Describe(const KeptMode& now) {
  TRY_ASSIGN(const std::vector<PlanEvidence> all, Read(now, 0));
  OrderedJson json{{"applications", OrderedJson::array()}};
  for (const PlanEvidence& one : all) {
    json["applications"].push_back({{"application", one.application},
                                    {"plans", one.plans},
                                    {"plans_with_moves", one.gain.count},
                                    {"predicted_gain", InMillisecondsJson(one.gain)},
                                    {"gain_over_baseline", InMillisecondsJson(one.over_baseline)},
                                    {"model_error", InMillisecondsJson(one.error)}});
  }
  if (now.mode < Mode::kCanary) return json;
  TRY_ASSIGN(const std::vector<MoveTrial> trials, ReadTrials(now.since));
  for (size_t i = 0; i < trials.size(); ++i) {
    json["applications"][i]["moves"] = {
        {"moved", trials[i].moved},
        {"not_moved", trials[i].not_moved},
        {"gain_beyond_half_of_predicted", InMillisecondsJson(trials[i].beyond_half)},
        {"model_worse_than_none", InMillisecondsJson(trials[i].worse_than_none)}};
  }
  return json;
}

}  // namespace rudderfish
