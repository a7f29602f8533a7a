// SPDX-License-Identifier: Apache-2.0
#include "sim/scaling_run.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"
#include "model/scaling_limits.h"

namespace rudderfish {
namespace {

constexpr double kNsPerHour = 3.6e12;

// What metrics-server and the like would show: use of CPU by pod, calls by workload, each over one
// interval, delivered one interval later.
class ScalingSampler {
 public:
  explicit ScalingSampler(const ServedApplication& application)
      : application_(application),
        pods_of_(application.workloads.size()),
        before_(application.workloads.size()),
        last_(application.workloads.size()),
        sights_(application.workloads.size()) {}

  // Looks at the end of an interval, and gives what is known by now.
  ScalingQuestion Look(const EventSimulator& simulator, int64_t interval_ns) {
    const int64_t at_ns = simulator.now_ns();
    simulator.pods().See(&seen_);
    for (std::vector<HpaPod>& pods : pods_of_) pods.clear();
    for (const PodSight& pod : seen_) {
      Reading& reading = ReadingOf(pod);
      HpaPod& shown = pods_of_[pod.workload].emplace_back();
      shown.ready = pod.ready;
      shown.started_ns = pod.made_ns;
      shown.transition_ns = pod.ready ? pod.ready_ns : pod.made_ns;
      // The sample of the interval before this one, if it was there then.
      const ServedWorkload& workload = application_.workloads[pod.workload];
      if (reading.has_share && pod.ready) {
        shown.cpu_millis = static_cast<int64_t>(reading.share * workload.cpu_millis);
        const Shown& last = last_[pod.workload];
        shown.value_millis =
            static_cast<int64_t>(last.calls_per_s / std::max(1, last.ready) * 1000);
      }
      if (reading.has_busy) {
        reading.share = static_cast<double>(pod.busy_ns - reading.busy_ns) /
                        static_cast<double>(interval_ns * workload.slots);
        reading.has_share = true;
      }
      reading.busy_ns = pod.busy_ns;
      reading.has_busy = true;
    }
    for (WorkloadId w = 0; w < application_.workload_count(); ++w) {
      sights_[w] = {.replicas = simulator.replicas(w),
                    .calls_per_s = last_[w].calls_per_s,
                    .busy_slots = last_[w].busy_slots,
                    .pods = pods_of_[w]};
      const WorkloadSums sums = simulator.sums(w), passed = sums - before_[w];
      before_[w] = sums;
      const auto ns = static_cast<double>(interval_ns);
      // Shown the next time.
      last_[w] = {.calls_per_s = static_cast<double>(passed.calls + passed.refused) * 1e9 / ns,
                  .busy_slots = static_cast<double>(passed.busy_ns) / ns,
                  .ready = simulator.pods().ready(w)};
    }
    const bool has_samples = looks_++ > 0;
    return {.at_ns = at_ns,
            .sampled_at_ns = at_ns - interval_ns,
            .window_ns = interval_ns,
            .has_samples = has_samples,
            .application = &application_,
            .workloads = sights_};
  }

 private:
  struct Reading {
    int64_t made_ns = -1;
    WorkloadId workload = kNone;
    int64_t busy_ns = 0;
    double share = 0;
    bool has_busy = false, has_share = false;
  };
  struct Shown {
    double calls_per_s = 0, busy_slots = 0;
    int ready = 0;
  };

  Reading& ReadingOf(const PodSight& pod) {
    if (static_cast<size_t>(pod.slot) >= readings_.size()) readings_.resize(pod.slot + 1);
    Reading& reading = readings_[pod.slot];
    if (reading.made_ns != pod.made_ns || reading.workload != pod.workload)
      reading = {.made_ns = pod.made_ns, .workload = pod.workload};
    return reading;
  }

  const ServedApplication& application_;
  std::vector<std::vector<HpaPod>> pods_of_;  // [workload]
  std::vector<WorkloadSums> before_;
  std::vector<Shown> last_;  // [workload] Of the interval before.
  std::vector<WorkloadSight> sights_;
  std::vector<PodSight> seen_;
  std::vector<Reading> readings_;  // [slot]
  int looks_ = 0;
};

// What an episode's nodes are in use for, interval by interval.
class SimulatedNodes {
 public:
  explicit SimulatedNodes(const NodePacking* packing) {
    if (packing != nullptr) meter_.emplace(*packing);
  }

  // At the end of an interval.
  void SeeInterval(const EventSimulator& simulator) {
    if (!meter_) return;
    const ServedApplication& application = simulator.application();
    replicas_.resize(application.workloads.size());
    double used_core_ns = 0;
    for (WorkloadId w = 0; w < application.workload_count(); ++w) {
      const ServedWorkload& workload = application.workloads[w];
      replicas_[w] = simulator.replicas(w);
      used_core_ns += static_cast<double>(simulator.sums(w).busy_ns) *
                      static_cast<double>(workload.cpu_millis) / (1000.0 * workload.slots);
    }
    const auto passed_ns = static_cast<double>(simulator.now_ns() - before_ns_);
    if (passed_ns > 0)
      meter_->Add(passed_ns / 1e9, replicas_, (used_core_ns - used_before_) / passed_ns);
    used_before_ = used_core_ns;
    before_ns_ = simulator.now_ns();
  }

  void Write(ScalingFigures* figures) const {
    if (!meter_) return;
    figures->node_hours = meter_->node_hours();
    figures->energy_wh = meter_->energy_wh();
  }

 private:
  std::optional<NodeMeter> meter_;
  std::vector<int> replicas_;  // [workload]
  double used_before_ = 0;     // Core-nanoseconds.
  int64_t before_ns_ = 0;
};

ScalingFigures FiguresOf(const EventSimulator& simulator, int changes) {
  const RequestSums& sums = simulator.requests();
  ScalingFigures figures{.requests = sums.arrived,
                         .violations = sums.violations() + simulator.overdue(),
                         .failures = sums.failed,
                         .unanswered = sums.failed + simulator.overdue(),
                         .changes = changes};
  if (sums.completed > 0)
    figures.mean_ms =
        static_cast<double>(sums.response_ns) / 1e6 / static_cast<double>(sums.completed);
  figures.p95_ms = simulator.responses().QuantileS(.95, figures.unanswered) * 1000;
  figures.p99_ms = simulator.responses().QuantileS(.99, figures.unanswered) * 1000;
  const ServedApplication& application = simulator.application();
  for (WorkloadId w = 0; w < application.workload_count(); ++w) {
    const double pod_hours = static_cast<double>(simulator.sums(w).pod_ns) / kNsPerHour;
    figures.pod_hours += pod_hours;
    figures.core_hours +=
        pod_hours * static_cast<double>(application.workloads[w].cpu_millis) / 1000;
  }
  return figures;
}

}  // namespace

NodePacking PackingOf(const Scenario& scenario) {
  const ServedApplication application = ApplicationOf(scenario, 0);
  std::vector<Resources> requests(application.workloads.size());
  std::vector<uint8_t> is_home(scenario.catalog->layers.size(), 0);
  for (size_t w = 0; w < requests.size(); ++w) {
    if (!application.workloads[w].scaled) continue;
    requests[w] = scenario.catalog->workloads[w].requests;
    for (const LayerId layer : scenario.starts[w].initial_layers) is_home[layer] = 1;
  }
  const auto mean = [](const Distribution& amount) {
    const auto& values = amount.values();
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    return static_cast<int64_t>(sum / static_cast<double>(values.size()));
  };
  std::vector<NodeOffer> offers;
  for (const NodeGroup& group : scenario.node_groups) {
    if (is_home[scenario.catalog->kinds[group.kind].layer] == 0) continue;
    offers.push_back(
        {.allocatable = {mean(group.cpu_millis), mean(group.memory_bytes)},
         .count = group.count,
         .costs = scenario.kind_costs.empty() ? NodeCosts() : scenario.kind_costs[group.kind]});
  }
  return {std::move(offers), std::move(requests)};
}

void NodeMeter::Add(double seconds, std::span<const int> replicas, double used_cores) {
  if (replicas_.empty() || !std::equal(replicas.begin(), replicas.end(), replicas_.begin())) {
    replicas_.assign(replicas.begin(), replicas.end());
    in_use_ = packing_.Pack(replicas);
  }
  const double hours = seconds / 3600;
  node_hours_ += in_use_.nodes * hours;
  energy_wh_ += in_use_.Watts(used_cores) * hours;
}

ScalingFigures RunScaling(const ScalingPolicy& policy, const Load& load,
                          std::shared_ptr<const RateCurve> curve, uint64_t seed,
                          const EpisodeStart& start, EventSimulator* simulator,
                          ScalingWatcher* watcher, const NodePacking* nodes) {
  const ServedApplication& application = simulator->application();
  const std::unique_ptr<ScalingMemory> memory = policy.NewMemory(application);
  ScalingSampler sampler(application);
  // Those who are to know the future see it interval by interval.
  std::vector<double> true_rates;
  const double interval_s = static_cast<double>(load.interval.count()) / 1e9;
  for (int i = 0; int64_t{i} * load.interval.count() < load.duration.count(); ++i)
    true_rates.push_back(curve->MeanOf(i * interval_s, (i + 1) * interval_s));
  const std::span<const int> begin = start.ReplicasFor(*curve);
  simulator->Start(std::move(curve), seed, begin);
  std::vector<int> replicas(application.workloads.size(), 0), now = replicas;
  LimitKeeper limits(application);
  SimulatedNodes in_use(nodes);
  const int64_t interval_ns = load.interval.count();
  int changes = 0;
  for (int64_t at_ns = interval_ns; at_ns < load.duration.count(); at_ns += interval_ns) {
    simulator->AdvanceTo(at_ns);
    in_use.SeeInterval(*simulator);
    if (watcher != nullptr) watcher->SeeInterval(*simulator);
    ScalingQuestion question = sampler.Look(*simulator, interval_ns);
    question.true_rates = true_rates;
    for (size_t w = 0; w < replicas.size(); ++w) now[w] = question.workloads[w].replicas;
    replicas = now;
    policy.Decide(question, memory.get(), replicas);
    limits.Mend(static_cast<double>(at_ns) / 1e9, now, replicas);
    for (WorkloadId w = 0; w < application.workload_count(); ++w) {
      if (!application.workloads[w].scaled || replicas[w] == simulator->replicas(w)) continue;
      simulator->SetReplicas(w, replicas[w]);
      ++changes;
    }
  }
  simulator->AdvanceTo(load.duration.count());
  in_use.SeeInterval(*simulator);
  if (watcher != nullptr) watcher->SeeInterval(*simulator);
  ScalingFigures figures = FiguresOf(*simulator, changes);
  in_use.Write(&figures);
  return figures;
}

ScalingEpisodeDraw DrawScalingEpisode(const Load& load, EpisodeUse use, int position, uint64_t seed,
                                      int episode) {
  const uint64_t key = Rng(seed, static_cast<uint64_t>(episode)).Next64();
  return {key, std::make_shared<const RateCurve>(DrawCurve(load, use, position, key))};
}

}  // namespace rudderfish
