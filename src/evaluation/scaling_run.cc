// SPDX-License-Identifier: Apache-2.0
#include "evaluation/scaling_run.h"

#include <algorithm>
#include <atomic>
#include <mutex>
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
    simulator.Pods(&seen_);
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
                  .ready = simulator.ready(w)};
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
                         .changes = changes};
  if (sums.completed > 0)
    figures.mean_ms =
        static_cast<double>(sums.response_ns) / 1e6 / static_cast<double>(sums.completed);
  figures.p95_ms = simulator.responses().QuantileS(.95) * 1000;
  figures.p99_ms = simulator.responses().QuantileS(.99) * 1000;
  const ServedApplication& application = simulator.application();
  for (WorkloadId w = 0; w < application.workload_count(); ++w) {
    const double pod_hours = static_cast<double>(simulator.sums(w).pod_ns) / kNsPerHour;
    figures.pod_hours += pod_hours;
    figures.core_hours +=
        pod_hours * static_cast<double>(application.workloads[w].cpu_millis) / 1000;
  }
  return figures;
}

// What ran once, in the place of every member that it stands for. `figures` [load][run][episode],
// `responses` [load][run].
void Gather(const std::vector<int>& run_of, size_t runs, const std::vector<ScalingFigures>& figures,
            const std::vector<ResponseHistogram>& responses, ScalingEvaluation* evaluation) {
  const int episodes = evaluation->episodes;
  for (size_t load = 0; load < evaluation->loads.size(); ++load) {
    for (const ScalingEvaluation::Evaluated& policy : evaluation->policies) {
      ResponseHistogram& all = evaluation->responses.emplace_back();
      for (int member = policy.first; member < policy.first + policy.members; ++member) {
        const size_t ran = load * runs + run_of[member];
        const auto first = figures.begin() + static_cast<ptrdiff_t>(ran) * episodes;
        evaluation->figures.insert(evaluation->figures.end(), first, first + episodes);
        all.Add(responses[ran]);
      }
    }
  }
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
    return static_cast<int64_t>(Mean(amount.values()));
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

ScalingEvaluation EvaluateScaling(const Scenario& scenario, EpisodeUse use,
                                  const std::vector<int>& loads,
                                  const std::vector<NamedScalingPolicy>& policies, int episodes,
                                  uint64_t seed, ThreadPool* pool,
                                  const std::function<void(double)>& progress, ScalingGround ground,
                                  int first_episode) {
  CHECK(scenario.load != nullptr && episodes > 0);
  const Load& load = *scenario.load;
  ScalingEvaluation evaluation{.scenario = scenario.name,
                               .seed = seed,
                               .episodes = episodes,
                               .late_max = LateMaxOf(scenario)};
  for (const int position : loads) evaluation.loads.push_back(load.loads[position].name);
  // Which member of all is run in whose place.
  std::vector<const ScalingPolicy*> runs;
  std::vector<int> run_of;
  for (const NamedScalingPolicy& named : policies) {
    CHECK(!named.members.empty());
    evaluation.policies.push_back({.name = named.name,
                                   .members = static_cast<int>(named.members.size()),
                                   .foresees = named.members[0]->foresees(),
                                   .first = static_cast<int>(run_of.size())});
    for (const auto& member : named.members) {
      const auto at = std::find(runs.begin(), runs.end(), member.get());
      run_of.push_back(static_cast<int>(at - runs.begin()));
      if (at == runs.end()) runs.push_back(member.get());
    }
  }
  const auto application = std::make_shared<const ServedApplication>(ApplicationOf(scenario, 0));
  const auto laws = std::make_shared<const LoadLaws>(application);
  const EpisodeStart start(application);
  const NodePacking nodes = PackingOf(scenario);
  std::vector<std::unique_ptr<EventSimulator>> simulators;
  std::vector<std::unique_ptr<LoadModel>> models;
  for (int i = 0; i < pool->size(); ++i) {
    simulators.push_back(std::make_unique<EventSimulator>(application));
    models.push_back(std::make_unique<LoadModel>(laws));
  }
  const auto per_load = static_cast<int>(runs.size()) * episodes;
  std::vector<ScalingFigures> figures(loads.size() * per_load);
  std::atomic<int> done = 0;
  std::vector<ResponseHistogram> responses(loads.size() * runs.size());
  std::mutex sums;
  pool->ParallelFor(static_cast<int>(figures.size()), [&](int index, int worker) {
    const int position = loads[index / per_load], run = index % per_load / episodes;
    const int episode = index % episodes;
    const ScalingEpisodeDraw draw =
        DrawScalingEpisode(load, use, position, seed, first_episode + episode);
    if (ground == ScalingGround::kModel) {
      figures[index] = RunScalingOnModel(*runs[run], load, *draw.curve, draw.seed, start,
                                         models[worker].get(), &nodes);
    } else {
      figures[index] = RunScaling(*runs[run], load, draw.curve, draw.seed, start,
                                  simulators[worker].get(), nullptr, &nodes);
      const std::lock_guard lock(sums);  // Of whole numbers: their order does not matter.
      responses[index / episodes].Add(simulators[worker]->responses());
    }
    ++done;
    if (worker == 0 && progress)
      progress(static_cast<double>(done) / static_cast<double>(figures.size()));
  });
  Gather(run_of, runs.size(), figures, responses, &evaluation);
  return evaluation;
}

ScalingSums SumsOf(const ScalingEvaluation& evaluation, int policy) {
  ScalingSums sums;
  RatioTally violations;
  const int members = evaluation.policies[policy].members;
  for (int episode = 0; episode < evaluation.episodes; ++episode) {
    int64_t late = 0, requests = 0;
    for (size_t i = 0; i < evaluation.loads.size() * members; ++i) {
      const ScalingFigures& one = evaluation.at(static_cast<int>(i) / members, policy, episode,
                                                static_cast<int>(i) % members);
      sums.core_hours += one.core_hours / (evaluation.episodes * members);
      late += one.violations;
      requests += one.requests;
    }
    violations.Add(static_cast<double>(late), static_cast<double>(requests));
  }
  sums.violation_share = violations.ratio();
  sums.violation_error = violations.standard_error();
  return sums;
}

RunMatrix ScalingRuns(const ScalingEvaluation& evaluation, int load, int policy,
                      double (*figure)(const ScalingFigures&)) {
  RunMatrix runs{.starts = evaluation.episodes, .seeds = evaluation.policies[policy].members};
  for (int i = 0; i < runs.starts; ++i) {
    for (int member = 0; member < runs.seeds; ++member)
      runs.values.push_back(figure(evaluation.at(load, policy, i, member)));
  }
  return runs;
}

ScalingDifference CompareScaling(const ScalingEvaluation& evaluation, int load, int policy,
                                 int baseline) {
  const auto core_hours = [](const ScalingFigures& one) { return one.core_hours; };
  const auto violations = [](const ScalingFigures& one) { return one.violation_share(); };
  const RunMatrix cost = ScalingRuns(evaluation, load, policy, core_hours),
                  base_cost = ScalingRuns(evaluation, load, baseline, core_hours),
                  share = ScalingRuns(evaluation, load, policy, violations),
                  base_share = ScalingRuns(evaluation, load, baseline, violations);
  const BootstrapOptions options{.seed = evaluation.seed};
  return {.core_hours = PairedDifference(cost, base_cost),
          .violation_share = PairedDifference(share, base_share),
          .core_hours_ci95 = BootstrapPairedDifference(cost, base_cost, options),
          .violation_share_ci95 = BootstrapPairedDifference(share, base_share, options)};
}

}  // namespace rudderfish
