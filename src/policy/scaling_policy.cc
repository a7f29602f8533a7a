// SPDX-License-Identifier: Apache-2.0
#include "policy/scaling_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policy/lookahead_scaling.h"
#include "policy/policy_makers.h"
#include "policy/shared_ladder.h"

namespace rudderfish {

int WorkloadSight::ready() const {
  return static_cast<int>(std::count_if(pods.begin(), pods.end(), [](const HpaPod& pod) {
    return pod.ready && pod.phase == HpaPod::Phase::kRunning;
  }));
}

namespace {

// Of requests that are late at the rate that minimum replicas are for.
constexpr double kMinimumLateMax = 0.01;

class HoldPolicy final : public ScalingPolicy {
 public:
  std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication&) const override {
    return std::make_unique<ScalingMemory>();
  }
  void Decide(const ScalingQuestion&, ScalingMemory*, std::span<int>) const override {}
};

struct HpaScalingMemory final : ScalingMemory {
  std::vector<HpaSpec> specs;  // [workload]
  std::vector<HpaMemory> memories;
};

// How few replicas an autoscaler may ask for, besides the bounds of the workload.
struct MinimumReplicas {
  int pods = 1;      // Of every workload,
  double per_s = 0;  // and enough for so many requests per second: what an operator writes down
                     // workload by workload, once the application was tried under that load.
};

// An HPA for every workload; they know nothing of each other.
class HpaScalingPolicy final : public ScalingPolicy {
 public:
  // `external_share`: of what a pod can serve; 0 for no such metric.
  HpaScalingPolicy(HpaSpec spec, double external_share, const MinimumReplicas& least)
      : spec_(std::move(spec)), external_share_(external_share), least_(least) {}

  std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication& application) const override {
    auto memory = std::make_unique<HpaScalingMemory>();
    memory->memories.resize(application.workloads.size());
    const std::vector<double> demand = application.DemandS();
    const std::vector<double> calls = application.CallsPerRequest();
    std::shared_ptr<const CapacityLadder> ladder;
    if (least_.per_s > 0) ladder = SharedLadder(application, kMinimumLateMax);
    for (size_t w = 0; w < application.workloads.size(); ++w) {
      const ServedWorkload& workload = application.workloads[w];
      HpaSpec spec = spec_;
      int least = std::max(workload.replicas_min, least_.pods);
      if (ladder != nullptr)
        least = std::max(least, ladder->Replicas(ladder->RungFor(least_.per_s))[w]);
      spec.replicas_min = std::min(least, workload.replicas_max);
      spec.replicas_max = workload.replicas_max;
      if (external_share_ > 0 && demand[w] > 0) {
        const double pod_per_s = workload.slots * calls[w] / demand[w];
        spec.metrics.push_back(
            {HpaMetric::Source::kExternal,
             std::max<int64_t>(1, std::llround(external_share_ * pod_per_s * 1000))});
      }
      memory->specs.push_back(std::move(spec));
    }
    return memory;
  }

  void Decide(const ScalingQuestion& question, ScalingMemory* memory,
              std::span<int> replicas) const override {
    auto* own = static_cast<HpaScalingMemory*>(memory);
    for (size_t w = 0; w < replicas.size(); ++w) {
      const ServedWorkload& workload = question.application->workloads[w];
      if (!workload.scaled || own->specs[w].metrics.empty()) continue;
      const WorkloadSight& seen = question.workloads[w];
      HpaSight sight{.at_ns = question.at_ns,
                     .replicas = seen.replicas,
                     .request_millis = workload.cpu_millis,
                     .cpu_window_ns = question.window_ns,
                     .pods = seen.pods};
      if (question.has_samples) {
        sight.cpu_at_ns = question.sampled_at_ns;
        sight.external_value = std::llround(seen.calls_per_s * 1000);
      }
      replicas[w] = HpaReplicas(own->specs[w], sight, &own->memories[w]);
    }
  }

 private:
  HpaSpec spec_;
  double external_share_;
  MinimumReplicas least_;
};

struct PeakMemory final : ScalingMemory {
  struct Peak {
    int64_t at_ns;
    double pods;
  };
  // [workload] Falling values, in the order of time: the first is the highest of the window.
  std::vector<std::vector<Peak>> peaks;
};

// Enough for the highest use in a window (Rzadca et al., "Autopilot: workload autoscaling at
// Google", EuroSys 2020, §3.1: the peak of a moving window plus a margin).
class PeakPolicy final : public ScalingPolicy {
 public:
  PeakPolicy(double share, int64_t window_ns) : share_(share), window_ns_(window_ns) {}

  std::unique_ptr<ScalingMemory> NewMemory(const ServedApplication& application) const override {
    auto memory = std::make_unique<PeakMemory>();
    memory->peaks.resize(application.workloads.size());
    return memory;
  }

  void Decide(const ScalingQuestion& question, ScalingMemory* memory,
              std::span<int> replicas) const override {
    if (!question.has_samples) return;
    auto* own = static_cast<PeakMemory*>(memory);
    for (size_t w = 0; w < replicas.size(); ++w) {
      const ServedWorkload& workload = question.application->workloads[w];
      if (!workload.scaled) continue;
      const double pods = question.workloads[w].busy_slots / (share_ * workload.slots);
      std::vector<PeakMemory::Peak>& peaks = own->peaks[w];
      while (!peaks.empty() && peaks.back().pods <= pods) peaks.pop_back();
      peaks.push_back({question.at_ns, pods});
      std::erase_if(peaks, [&](const PeakMemory::Peak& peak) {
        return peak.at_ns <= question.at_ns - window_ns_;
      });
      const int wanted = static_cast<int>(std::ceil(peaks.front().pods - 1e-9));
      replicas[w] = std::clamp(wanted, workload.replicas_min, workload.replicas_max);
    }
  }

 private:
  double share_;
  int64_t window_ns_;
};

HpaBehavior BehaviorOf(const PolicyOptions& options) {
  HpaBehavior behavior;
  const std::string& policies = options.Text("policies");
  if (policies == "fast") behavior.up.limits = {{HpaLimit::Kind::kPercent, 900, 15}};
  if (policies == "gentle") behavior.down.limits = {{HpaLimit::Kind::kPods, 1, 60}};
  behavior.up.stabilization_s = options.Seconds("up");
  behavior.down.stabilization_s = options.Seconds("down");
  return behavior;
}

MinimumReplicas MinimumOf(const PolicyOptions& options) {
  return {.pods = options.Integer("min"), .per_s = options.Number("min-rate")};
}

LookaheadScalingOptions ForesightOf(const PolicyOptions& options,
                                    LookaheadScalingOptions::Sight sight) {
  return {.sight = sight,
          .horizon_s = static_cast<double>(options.Seconds("horizon")),
          .price = options.Number("price")};
}

}  // namespace

Result<std::unique_ptr<ScalingPolicy>> MakeHold(const PolicyOptions&) {
  return std::make_unique<HoldPolicy>();
}

Result<std::unique_ptr<ScalingPolicy>> MakeHpa(const PolicyOptions& options) {
  HpaSpec spec;
  spec.tolerance = options.Number("tolerance");
  spec.behavior = BehaviorOf(options);
  if (options.IsGiven("cpu") || !options.IsGiven("rate"))
    spec.metrics.push_back({HpaMetric::Source::kCpu, std::llround(options.Number("cpu"))});
  if (options.IsGiven("rate")) {
    spec.metrics.push_back({HpaMetric::Source::kPods, std::llround(options.Number("rate") * 1000)});
  }
  return std::make_unique<HpaScalingPolicy>(spec, 0, MinimumOf(options));
}

Result<std::unique_ptr<ScalingPolicy>> MakeKeda(const PolicyOptions& options) {
  HpaSpec spec;
  spec.behavior = BehaviorOf(options);
  return std::make_unique<HpaScalingPolicy>(spec, options.Number("share"), MinimumOf(options));
}

Result<std::unique_ptr<ScalingPolicy>> MakeAutopilot(const PolicyOptions& options) {
  return std::make_unique<PeakPolicy>(options.Number("share"),
                                      int64_t{1'000'000'000} * options.Seconds("window"));
}

Result<std::unique_ptr<ScalingPolicy>> MakeMpc(const PolicyOptions& options) {
  LookaheadScalingOptions made = ForesightOf(options, LookaheadScalingOptions::Sight::kForecast);
  made.headroom = options.Number("headroom");
  made.season_s = options.Seconds("season");
  return std::make_unique<LookaheadScalingPolicy>(made);
}

Result<std::unique_ptr<ScalingPolicy>> MakeClairvoyant(const PolicyOptions& options) {
  return std::make_unique<LookaheadScalingPolicy>(
      ForesightOf(options, LookaheadScalingOptions::Sight::kTruth));
}

Result<std::unique_ptr<ScalingPolicy>> MakeStatic(const PolicyOptions& options) {
  return std::make_unique<StaticScalingPolicy>(options.Number("violations") / 100,
                                               options.Number("rate"));
}

}  // namespace rudderfish
