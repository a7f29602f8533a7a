// SPDX-License-Identifier: Apache-2.0
#include "control/placement_mode_evidence.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

OrderedJson JsonOf(const MeanSum& sum) {
  const std::optional<double> half = sum.half95();
  OrderedJson json{{"count", sum.count}, {"mean", sum.mean()}};
  json["interval95"] =
      half ? OrderedJson{sum.mean() - *half, sum.mean() + *half} : OrderedJson(nullptr);
  json["text"] = InMillionths(sum);
  return json;
}

OrderedJson JsonOf(const GroupEvidence& group) {
  return {{"pods", group.pods},
          {"failed_or_evicted", group.bad},
          {"measured_change", JsonOf(group.change)}};
}

OrderedJson JsonOf(const ShadowEvidence& shadow) {
  return {{"decisions", shadow.decisions()},
          {"rules_equal", shadow.equal},
          {"rules_different", shadow.different},
          {"rules_unclear", shadow.unclear},
          {"unmodelled", shadow.unmodelled},
          {"same_choice", shadow.same_choice},
          {"differences", shadow.differences},
          {"newest_difference", shadow.difference},
          {"predicted_gain", JsonOf(shadow.gain)},
          {"model_error", JsonOf(shadow.error)},
          {"started", shadow.started},
          {"failed", shadow.failed},
          {"evicted", shadow.evicted}};
}

}  // namespace

Result<std::unique_ptr<PlacementModeEvidence>> PlacementModeEvidence::Open(
    Options options, SqlitePlacements* placements) {
  TRY(placements->Evidence());
  return std::unique_ptr<PlacementModeEvidence>(
      new PlacementModeEvidence(std::move(options), placements));
}

EvidenceQuestion PlacementModeEvidence::QuestionFrom(const KeptMode& now, int64_t number) const {
  return {.policy = now.policy,
          .objective = now.objective,
          .cluster = options_.cluster,
          .schedulers = options_.schedulers,
          .from = number};
}

Result<PlacementModeEvidence::Evidence> PlacementModeEvidence::Read(const KeptMode& now,
                                                                    int64_t from) const {
  Evidence evidence;
  TRY_ASSIGN(const EvidenceTable* const table, placements_->Evidence());
  evidence.shadow = table->Shadowed(QuestionFrom(now, from));
  if (now.mode == Mode::kCanary) evidence.trial = table->Trial(now.since, options_.cluster);
  if (!evidence.shadow.differences.empty()) {
    TRY_ASSIGN(evidence.shadow.difference,
               placements_->DifferenceInWords(evidence.shadow.differences.front()));
  }
  return evidence;
}

Result<std::vector<std::string>> PlacementModeEvidence::Missing(const KeptMode& now, Mode to,
                                                                int64_t from) {
  TRY_ASSIGN(const Evidence evidence, Read(now, from));
  return WhatIsMissing(to, evidence.shadow, evidence.trial);
}

Result<std::optional<std::string>> PlacementModeEvidence::WhyWorse(UnixMillis since) {
  TRY_ASSIGN(const EvidenceTable* const table, placements_->Evidence());
  std::optional<std::string> worse = rudderfish::WhyWorse(table->Trial(since, options_.cluster));
  if (worse) *worse = "the canary did worse than its control group: " + *worse;
  return worse;
}

// Those that count, and those that placed pods next to them.
Result<OrderedJson> PlacementModeEvidence::SchedulersJson(const KeptMode& now) const {
  TRY_ASSIGN(const EvidenceTable* const table, placements_->Evidence());
  EvidenceQuestion question = QuestionFrom(now, 0);
  question.schedulers.clear();
  OrderedJson json = OrderedJson::array();
  for (const SchedulerEvidence& one : table->ByScheduler(question)) {
    const auto& named = options_.schedulers;
    json.push_back({{"scheduler", one.scheduler},
                    {"counts", std::find(named.begin(), named.end(), one.scheduler) != named.end()},
                    {"decisions", one.decisions()},
                    {"rules_equal", one.equal},
                    {"rules_different", one.different},
                    {"rules_unclear", one.unclear},
                    {"unmodelled", one.unmodelled}});
  }
  return json;
}

Result<OrderedJson> PlacementModeEvidence::Describe(const KeptMode& now) {
  TRY_ASSIGN(const Evidence evidence, Read(now, 0));
  OrderedJson json{{"shadowed", JsonOf(evidence.shadow)}};
  TRY_ASSIGN(json["schedulers"], SchedulersJson(now));
  if (now.mode != Mode::kCanary) return json;
  json["canary"] = {{"share", options_.canary},
                    {"canary", JsonOf(evidence.trial.canary)},
                    {"control", JsonOf(evidence.trial.control)}};
  return json;
}

}  // namespace rudderfish
