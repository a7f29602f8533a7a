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
             journal_->Plans(now.policy, now.objective, from));
  std::vector<PlanEvidence> all;
  for (const std::string& name : applications_) {
    const auto at = std::find_if(recorded.begin(), recorded.end(),
                                 [&](const auto& one) { return one.application == name; });
    all.push_back(at == recorded.end() ? PlanEvidence{.application = name} : *at);
  }
  return all;
}

Result<std::vector<std::string>> MigrationModeEvidence::Missing(const KeptMode& now, Mode,
                                                                int64_t from) {
  TRY_ASSIGN(const std::vector<PlanEvidence> all, Read(now, from));
  std::vector<std::string> missing;
  for (const PlanEvidence& one : all) {
    for (std::string& line : WhatIsMissing(one)) missing.push_back(std::move(line));
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
  return json;
}

}  // namespace rudderfish
