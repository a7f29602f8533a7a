// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/rng.h"
#include "model/scaling_limits.h"
#include "sim/scaling_run.h"

// Episodes of scaling on the Model of load. What samples show has the noise of counting that the
// event simulator has by itself: autoscalers act on it.

namespace rudderfish {
namespace {

constexpr double kPieceS = 5;  // In which a load counts as steady.
constexpr uint64_t kCountChance = 1, kUseChance = 2;

// An application on the Model, and what metrics show of it one interval later.
class ModelSampler {
 public:
  ModelSampler(const LoadModel& model, uint64_t seed, int64_t interval_ns)
      : application_(model.laws()->application()),
        interval_ns_(interval_ns),
        counts_(seed, kCountChance),
        uses_(seed, kUseChance),
        made_ns_(application_.workloads.size()),
        pods_(application_.workloads.size()),
        now_(application_.workloads.size()),
        shown_(application_.workloads.size()),
        sights_(application_.workloads.size()) {
    for (size_t w = 0; w < made_ns_.size(); ++w)
      made_ns_[w].assign(model.replicas(static_cast<WorkloadId>(w)), 0);
  }

  // An interval passes.
  void Advance(const RateCurve& curve, double from_s, LoadModel* model) {
    const double interval_s = static_cast<double>(interval_ns_) / 1e9;
    shown_ = now_;
    std::fill(now_.begin(), now_.end(), Seen());
    for (double done = 0; done < interval_s - 1e-9;) {
      const double step = std::min(kPieceS, interval_s - done);
      model->Advance(step, curve.MeanOf(from_s + done, from_s + done + step));
      for (size_t w = 0; w < now_.size(); ++w) {
        const auto id = static_cast<WorkloadId>(w);
        now_[w].calls_per_s += model->calls_per_s(id) * step / interval_s;
        now_[w].busy += model->busy_slots(id) * step / interval_s;
      }
      done += step;
    }
    const double requests = curve.MeanOf(from_s, from_s + interval_s) * interval_s;
    const double seen =
        requests > 0 ? std::max(0.0, 1 + counts_.Normal() / std::sqrt(requests)) : 1;
    for (size_t w = 0; w < now_.size(); ++w) {
      now_[w].calls_per_s *= seen;
      now_[w].ready = model->ready(static_cast<WorkloadId>(w));
    }
  }

  // At the end of interval number `interval`, from 0.
  ScalingQuestion Look(const LoadModel& model, int interval) {
    const int64_t at_ns = (interval + 1) * interval_ns_;
    for (size_t w = 0; w < now_.size(); ++w) LookAt(model, static_cast<WorkloadId>(w), at_ns);
    return {.at_ns = at_ns,
            .sampled_at_ns = at_ns - interval_ns_,
            .window_ns = interval_ns_,
            .has_samples = interval > 0,
            .application = &application_,
            .workloads = sights_};
  }

  // In the last interval, on average.
  double UsedCores() const {
    double cores = 0;
    for (size_t w = 0; w < now_.size(); ++w) {
      const ServedWorkload& workload = application_.workloads[w];
      cores += now_[w].busy * static_cast<double>(workload.cpu_millis) / (1000.0 * workload.slots);
    }
    return cores;
  }

  void Changed(WorkloadId workload, int replicas, int interval) {
    made_ns_[workload].resize(replicas, (interval + 1) * interval_ns_);
  }

 private:
  struct Seen {
    double calls_per_s = 0, busy = 0;
    int ready = 0;
  };

  void LookAt(const LoadModel& model, WorkloadId w, int64_t at_ns) {
    const ServedWorkload& workload = application_.workloads[w];
    const Seen& seen = shown_[w];
    std::vector<HpaPod>& pods = pods_[w];
    pods.clear();
    const double interval_s = static_cast<double>(interval_ns_) / 1e9;
    const double share = seen.ready > 0 ? seen.busy / (seen.ready * workload.slots) : 0;
    const double served = seen.calls_per_s * interval_s / std::max(1, seen.ready);
    const double noise = served > 0 ? std::sqrt((1 + workload.service.scv) / served) : 0;
    const double delay_s = model.laws()->crew(w).start_delay_s;
    for (size_t i = 0; workload.scaled && i < made_ns_[w].size(); ++i) {
      HpaPod& pod = pods.emplace_back();
      pod.ready = static_cast<int>(i) < model.ready(w);
      pod.started_ns = made_ns_[w][i];
      pod.transition_ns = pod.started_ns + (pod.ready ? std::llround(delay_s * 1e9) : 0);
      if (!pod.ready || pod.started_ns > at_ns - 3 * interval_ns_) continue;
      const double use = std::clamp(share * (1 + noise * uses_.Normal()), 0.0, 1.0);
      pod.cpu_millis = static_cast<int64_t>(use * static_cast<double>(workload.cpu_millis));
      pod.value_millis = static_cast<int64_t>(seen.calls_per_s / std::max(1, seen.ready) * 1000);
    }
    sights_[w] = {.replicas = model.replicas(w),
                  .calls_per_s = seen.calls_per_s,
                  .busy_slots = seen.busy,
                  .pods = pods};
  }

  const ServedApplication& application_;
  int64_t interval_ns_;
  Rng counts_, uses_;
  std::vector<std::vector<int64_t>> made_ns_;  // [workload][pod] The oldest first.
  std::vector<std::vector<HpaPod>> pods_;      // [workload]
  std::vector<Seen> now_, shown_;              // [workload]
  std::vector<WorkloadSight> sights_;
};

}  // namespace

ScalingFigures RunScalingOnModel(const ScalingPolicy& policy, const Load& load,
                                 const RateCurve& curve, uint64_t seed, const EpisodeStart& start,
                                 LoadModel* model, const NodePacking* nodes) {
  const ServedApplication& application = model->laws()->application();
  const std::unique_ptr<ScalingMemory> memory = policy.NewMemory(application);
  const int64_t interval_ns = load.interval.count();
  const double interval_s = static_cast<double>(interval_ns) / 1e9;
  const auto intervals = static_cast<int>((load.duration.count() + interval_ns - 1) / interval_ns);
  std::vector<double> true_rates;
  for (int i = 0; i < intervals; ++i)
    true_rates.push_back(curve.MeanOf(i * interval_s, (i + 1) * interval_s));
  model->Start(start.ReplicasFor(curve));
  ModelSampler sampler(*model, seed, interval_ns);
  std::vector<int> replicas(application.workloads.size(), 0), now = replicas;
  LimitKeeper limits(application);
  std::optional<NodeMeter> meter;
  if (nodes != nullptr) meter.emplace(*nodes);
  int changes = 0;
  for (int i = 0; i < intervals; ++i) {
    sampler.Advance(curve, i * interval_s, model);
    for (size_t w = 0; w < now.size(); ++w) now[w] = model->replicas(static_cast<WorkloadId>(w));
    if (meter) meter->Add(interval_s, now, sampler.UsedCores());
    if (i + 1 == intervals) break;
    ScalingQuestion question = sampler.Look(*model, i);
    question.true_rates = true_rates;
    for (size_t w = 0; w < replicas.size(); ++w) now[w] = question.workloads[w].replicas;
    replicas = now;
    policy.Decide(question, memory.get(), replicas);
    limits.Mend((i + 1) * interval_s, now, replicas);
    for (WorkloadId w = 0; w < application.workload_count(); ++w) {
      if (!application.workloads[w].scaled || replicas[w] == model->replicas(w)) continue;
      model->SetReplicas(w, replicas[w]);
      sampler.Changed(w, replicas[w], i);
      ++changes;
    }
  }
  const LoadOutcome& outcome = model->outcome();
  return {.requests = std::llround(outcome.requests),
          .violations = std::llround(outcome.late + outcome.failed),
          .failures = std::llround(outcome.failed),
          .pod_hours = outcome.pod_s / 3600,
          .core_hours = outcome.core_s / 3600,
          .node_hours = meter ? meter->node_hours() : 0,
          .energy_wh = meter ? meter->energy_wh() : 0,
          .changes = changes,
          .mean_ms = 1000 * outcome.mean_s(),
          .p95_ms = model->keeps_responses() ? 1000 * model->ResponseQuantileS(.95) : 0,
          .p99_ms = model->keeps_responses() ? 1000 * model->ResponseQuantileS(.99) : 0};
}

}  // namespace rudderfish
