// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "model/forecast.h"
#include "model/load_model.h"
#include "policy/scaling_policy.h"

// Scaling by look-ahead: what the model of load believes of the coming minutes is tried for many
// numbers of replicas, and the cheapest is taken; a violation has a price. All workloads at once.
// What comes is forecast from the requests that came (`mpc`: model-predictive control), or known
// (`clairvoyant`): no strict bound on what any policy can do, since its model and its search are as
// those of `mpc`, but near to one.

namespace rudderfish {

struct LookaheadScalingOptions {
  enum class Sight { kForecast, kTruth };

  Sight sight = Sight::kForecast;
  double horizon_s = 90;  // Replicas are taken to stay for so long.
  double price = 1;       // Of a request late or failed, in core-seconds.
  double headroom = 0.9;  // Half of the weight is on rates at this quantile of the forecast's
                          // errors, half on its median.
  double season_s = 0;    // Period of the load; 0: none.
};

class LookaheadScalingPolicy final : public ScalingPolicy {
 public:
  explicit LookaheadScalingPolicy(const LookaheadScalingOptions& options) : options_(options) {}

  std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication& application) const override;
  void Decide(const ScalingQuestion& question, ScalingMemory* memory,
              std::span<int> replicas) const override;
  bool foresees() const override {
    return options_.sight == LookaheadScalingOptions::Sight::kTruth;
  }

 private:
  LookaheadScalingOptions options_;
};

// The replicas that, never changed, keep violations within a limit at least cost: `static`. For one
// rate they are a rung of the CapacityLadder. For the true rates of the episode they are found on
// the model of load before the first decision: from nearly too few, pods are added one at a time
// where they save most violations for their cost; where nothing keeps the limit, up to all there
// can be.
class StaticScalingPolicy final : public ScalingPolicy {
 public:
  // `requests_per_s` 0: the true rates; where those are not known either, it holds what there is.
  StaticScalingPolicy(double violations_max, double requests_per_s)
      : violations_max_(violations_max), requests_per_s_(requests_per_s) {}

  std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication& application) const override;
  void Decide(const ScalingQuestion& question, ScalingMemory* memory,
              std::span<int> replicas) const override;
  bool foresees() const override { return requests_per_s_ <= 0; }

 private:
  double violations_max_, requests_per_s_;
};

}  // namespace rudderfish
