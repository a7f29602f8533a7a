// SPDX-License-Identifier: Apache-2.0
#include "learn/scaling_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "model/load_model.h"

namespace rudderfish {
namespace {

constexpr uint64_t kLimitKey = 0x6D6F737470;  // Of the episodes; the letters "mostp".
constexpr int kLimitEpisodes = 4;
constexpr double kRateStepS = 5;      // In which a load counts as steady.
constexpr double kMissedByFar = 1.5;  // Times the limit.
// At so small a share of its capacity an application is as good as idle.
constexpr double kIdleUse = 0.01, kIdleS = 60;

class LimitCheck {
 public:
  LimitCheck(const Scenario& scenario, const CapacityLadder& ladder,
             std::shared_ptr<const LoadLaws> laws)
      : scenario_(scenario),
        ladder_(ladder),
        model_(std::move(laws), {.responses = LoadModelOptions::Responses::kNotKept}),
        highest_(ladder.rungs() - 1),
        allowed_(ladder.HighestWithin(ladder.application().limits)) {}

  Result<void> Check(int position, double late_max) {
    const double late = LateShare(position, allowed_);
    if (late <= kMissedByFar * late_max) return {};
    return Fail(
        ErrorCode::kFailedPrecondition,
        "{}: the load {} cannot be kept to {}: on the Model {:.3g} % are late or failed with "
        "all the pods that there may be, {} at most, at up to {:.4g} requests/s; {}",
        scenario_.name, scenario_.load->loads[position].name,
        GoalText({}, scenario_.load->limit, *scenario_.patterns[0], late_max), 100 * late,
        ladder_.pods(allowed_), peak_per_s_, WhatToRaise(position, late_max));
  }

 private:
  // Of the requests of all episodes.
  double LateShare(int position, int rung) {
    const Load& load = *scenario_.load;
    const double duration_s = static_cast<double>(load.duration.count()) / 1e9;
    double requests = 0, late = 0;
    peak_per_s_ = 0;
    for (int episode = 0; episode < kLimitEpisodes; ++episode) {
      const uint64_t seed = Rng(scenario_.seed, kLimitKey, static_cast<uint64_t>(episode)).Next64();
      const RateCurve curve = DrawCurve(load, EpisodeUse::kLearning, position, seed);
      model_.Start(ladder_.Replicas(rung));
      for (double from_s = 0; from_s < duration_s; from_s += kRateStepS) {
        const double upto_s = std::min(from_s + kRateStepS, duration_s);
        const double per_s = curve.MeanOf(from_s, upto_s);
        model_.Advance(upto_s - from_s, per_s);
        peak_per_s_ = std::max(peak_per_s_, per_s);
      }
      requests += model_.outcome().requests;
      late += model_.outcome().late + model_.outcome().failed;
    }
    return requests > 0 ? late / requests : 0;
  }

  double IdleLateShare() {
    model_.Start(ladder_.Replicas(highest_));
    model_.Advance(kIdleS, kIdleUse * ladder_.CapacityPerS(highest_));
    return model_.outcome().violation_share();
  }

  std::string WhatToRaise(int position, double late_max) {
    const double peak_per_s = peak_per_s_;  // LateShare finds it again.
    const double idle = IdleLateShare();
    if (idle > late_max) {
      return fmt::format(
          "{:.3g} % occur at very low rates, where more pods do not help: raise {}", 100 * idle,
          scenario_.load->limit.response_ms > 0 ? "the limit"
                                                : "`qos` of the endpoints, or the limit");
    }
    if (allowed_ < highest_ && LateShare(position, highest_) <= kMissedByFar * late_max)
      return "raise `load.quota`, or the limit";
    const ServedApplication& application = ladder_.application();
    const std::vector<double> demand_s = application.DemandS();
    const std::span<const int> most = ladder_.Replicas(highest_);
    WorkloadId busiest = kNone;
    double most_use = -1;
    for (WorkloadId w = 0; w < application.workload_count(); ++w) {
      const ServedWorkload& workload = application.workloads[w];
      if (!workload.scaled || most[w] <= 0) continue;
      const double use = peak_per_s * demand_s[w] / (most[w] * workload.slots);
      if (use > most_use) busiest = w;
      most_use = std::max(most_use, use);
    }
    CHECK(busiest != kNone);  // Else there is nothing to scale, and nothing that is late.
    return fmt::format(
        "raise `load.pods.{}.replicas`, {} at most now, which then are {:.0f} % busy{}, or the "
        "limit",
        application.workloads[busiest].name, most[busiest], 100 * most_use,
        allowed_ < highest_ ? ", and `load.quota`" : "");
  }

  const Scenario& scenario_;
  const CapacityLadder& ladder_;
  LoadModel model_;
  int highest_, allowed_;  // Rungs: of all pods, and of those within the quota.
  double peak_per_s_ = 0;  // Of the load that was run last.
};

}  // namespace

Result<void> CheckLimitCanBeMet(const Scenario& scenario, const std::vector<int>& loads,
                                double late_max, const CapacityLadder& ladder,
                                const std::shared_ptr<const LoadLaws>& laws) {
  CHECK(scenario.load != nullptr);
  LimitCheck check(scenario, ladder, laws);
  for (const int position : loads) TRY(check.Check(position, late_max));
  return {};
}

Result<void> CheckLimitCanBeMet(const Scenario& scenario, const std::vector<int>& loads,
                                double late_max) {
  CHECK(scenario.load != nullptr);
  const auto application = std::make_shared<const ServedApplication>(ApplicationOf(scenario, 0));
  return CheckLimitCanBeMet(scenario, loads, late_max, CapacityLadder(application, late_max),
                            std::make_shared<const LoadLaws>(application));
}

}  // namespace rudderfish
