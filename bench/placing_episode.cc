// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "evaluation/recorded_placement.h"
#include "policy/placement_policy.h"
#include "policy/registry.h"
#include "scenario/scenario.h"
#include "sim/held_out.h"
#include "sim/lifecycle.h"
#include "sim/placement_run.h"
#include "task/placement.h"

// A held-out episode of a scenario in which pods come and go, for bench/placing_live:
//
//   placing_episode SCENARIO OBJECTIVE SEED EPISODE world             # Nodes and pods, JSON.
//   placing_episode SCENARIO OBJECTIVE SEED EPISODE measure POLICY < RECORD
//   placing_episode SCENARIO OBJECTIVE SEED EPISODE simulate POLICY TIMES
//
// `simulate` draws among nodes that a policy rates as equal, as a scheduler on a cluster does, and
// redraws each time; the simulator itself takes the first of them.
//
// `measure` says what was made of the pods, and of how many the node is one of those that POLICY
// rates best in the state in which the record has it bound: others were decided on another state,
// or seen otherwise. Nothing of it without POLICY.
//
// A record has a line a change, `SECONDS arrived POD`, `SECONDS bound POD NODE` or `SECONDS left
// POD`, and at last `SECONDS end`; the episode's own time, pods and nodes counted from 0.

namespace rudderfish {
namespace {

constexpr double kNsPerSecond = 1e9;

OrderedJson SecondsOf(SimTime time) {
  if (time == kNever) return nullptr;
  return static_cast<double>(time.count()) / kNsPerSecond;
}

// What no cluster of hollow nodes shows as the simulator has it.
Result<void> CheckReplayable(const Scenario& scenario, const State& start) {
  const Arrivals& arrivals = *scenario.arrivals;
  if (start.pods.size() > 0) return Invalid("pods that are there from the start are not replayed");
  if (arrivals.failures || !arrivals.events.empty())
    return Invalid("nodes that fail and latencies that change are not replayed");
  if (arrivals.users != kNone) return Invalid("how far the users are is not replayed");
  for (const Workload& workload : scenario.catalog->workloads) {
    if (workload.devices.count > 0 && workload.devices.millis < kDeviceMillis)
      return Invalid("{} asks for a share of a GPU: a cluster counts them whole", workload.name);
  }
  return {};
}

OrderedJson NodesOf(const State& start) {
  OrderedJson nodes = OrderedJson::array();
  for (NodeId node = 0; node < start.nodes.size(); ++node) {
    const Resources& all = start.nodes.allocatable[node];
    nodes.push_back({{"name", NodeName(start, node)},
                     {"type", start.kind_of(node).name},
                     {"cpu_millis", all.cpu_millis},
                     {"memory_bytes", all.memory_bytes},
                     {"gpus", start.nodes.devices.empty() ? 0 : start.nodes.devices[node].count}});
  }
  return nodes;
}

OrderedJson WorkloadsOf(const Catalog& catalog) {
  OrderedJson workloads = OrderedJson::array();
  for (const Workload& workload : catalog.workloads) {
    OrderedJson types = nullptr;  // Any.
    if (workload.node_kinds != kAnyKind) {
      types = OrderedJson::array();
      for (KindId kind = 0; kind < catalog.kind_count(); ++kind) {
        if (Contains(workload.node_kinds, kind)) types.push_back(catalog.kinds[kind].name);
      }
    }
    workloads.push_back({{"name", workload.name},
                         {"cpu_millis", workload.requests.cpu_millis},
                         {"memory_bytes", workload.requests.memory_bytes},
                         {"gpus", workload.devices.count},
                         {"types", std::move(types)}});
  }
  return workloads;
}

Result<void> PrintWorld(const std::shared_ptr<const Scenario>& scenario, uint64_t seed) {
  Lifecycle world(scenario);
  TRY(world.Start(seed));
  TRY(CheckReplayable(*scenario, world.state()));
  OrderedJson pods = OrderedJson::array();
  for (const EpisodePod& each : PodsOfEpisode(*scenario, seed)) {
    const ArrivingPod& pod = each.pod;
    const bool is_finite = pod.lifetime != kNever;
    pods.push_back(
        {{"workload", pod.workload},
         {"at_s", SecondsOf(pod.at)},
         {"deleted_at_s", SecondsOf(pod.deleted_at)},
         {"bound_for_s", SecondsOf(is_finite ? each.start_delay + pod.lifetime : kNever)}});
  }
  const OrderedJson json{{"scenario", scenario->name},
                         {"nodes", NodesOf(world.state())},
                         {"workloads", WorkloadsOf(*scenario->catalog)},
                         {"pods", std::move(pods)},
                         {"end_s", SecondsOf(scenario->arrivals->until)}};
  std::cout << json.dump() << "\n";
  return {};
}

OrderedJson JsonOf(const LifecycleMetrics& metrics) {
  OrderedJson json = OrderedJson::object();
  for (const MetricRow& row : metrics.Rows()) json[std::string(row.name)] = row.value;
  return json;
}

Result<PlacementPolicy> PolicyOf(std::string name, const Scenario& scenario) {
  if (name.ends_with("-allocated")) name = "mixed:" + name + "=1";
  TRY_ASSIGN(PlacementPolicy policy, MakePlacementPolicy(name, PlacementTask(*scenario.objective)));
  if (!policy.rate) return Invalid("{} does not rate nodes", name);
  return policy;
}

// How many of the choices of a record are its own.
class Agreement {
 public:
  explicit Agreement(const PlacementPolicy& policy) : rater_(policy.rate()) {}

  void Take(const PlacementQuestion& question, NodeId node) {
    const std::span<const double> rates = rater_->Rate(question, {});
    const int32_t chosen = rater_->space().candidate_of[node];
    ++all_;
    if (chosen == kNone) return;
    agreed_ += rates[chosen] == *std::max_element(rates.begin(), rates.end()) ? 1 : 0;
  }

  double share() const { return all_ == 0 ? 1 : static_cast<double>(agreed_) / all_; }

 private:
  std::unique_ptr<PlacementRater> rater_;
  int agreed_ = 0, all_ = 0;
};

Result<void> PrintMeasured(const std::shared_ptr<const Scenario>& scenario, uint64_t seed,
                           const std::optional<PlacementPolicy>& policy) {
  std::optional<Agreement> agreement;
  if (policy) agreement.emplace(*policy);
  std::vector<RecordedChange> record;
  double seconds = 0;
  for (std::string what; std::cin >> seconds >> what;) {
    RecordedChange change{.at = SimTime(static_cast<int64_t>(seconds * kNsPerSecond))};
    if (what == "end") {
      TRY_ASSIGN(const LifecycleMetrics metrics,
                 MeasureRecorded(scenario, seed, record, change.at,
                                 [&](const PlacementQuestion& question, NodeId node) {
                                   if (agreement) agreement->Take(question, node);
                                 }));
      OrderedJson json = JsonOf(metrics);
      if (agreement) json["agreed"] = agreement->share();
      std::cout << json.dump() << "\n";
      return {};
    }
    const std::string where = fmt::format("standard input:{}", record.size() + 1);
    if (what == "arrived") {
      change.kind = RecordedChange::Kind::kArrived;
    } else if (what == "bound") {
      change.kind = RecordedChange::Kind::kBound;
    } else if (what == "left") {
      change.kind = RecordedChange::Kind::kLeft;
    } else {
      return Invalid("{}: expected arrived, bound, left or end, found `{}`", where, what);
    }
    if (!(std::cin >> change.pod) || (what == "bound" && !(std::cin >> change.node)))
      return Invalid("{}: expected the number of a pod, where it is bound also of a node", where);
    record.push_back(change);
  }
  return Invalid("the record has no end");
}

// The best, among equals any (control/scheduler.h).
NodeId ChooseAsLive(PlacementRater* rater, const PlacementQuestion& question, Rng* rng) {
  const std::span<const double> rates = rater->Rate(question, {});
  const std::vector<int32_t>& candidate_of = rater->space().candidate_of;
  NodeId chosen = kNone;
  double most = 0;
  uint32_t equals = 0;
  for (NodeId node = 0; node < question.state.nodes.size(); ++node) {
    if (candidate_of[node] == kNone) continue;
    const double rate = rates[candidate_of[node]];
    if (chosen == kNone || rate > most) {
      chosen = node;
      most = rate;
      equals = 1;
    } else if (rate == most && rng->Below(++equals) == 0) {
      chosen = node;
    }
  }
  return chosen;
}

Result<void> PrintSimulated(const std::shared_ptr<const Scenario>& scenario, uint64_t seed,
                            const PlacementPolicy& policy, int times) {
  Lifecycle world(scenario);
  OrderedJson all = OrderedJson::array();
  for (int i = 0; i < times; ++i) {
    const std::shared_ptr<PlacementRater> rater = policy.rate();
    Rng rng(static_cast<uint64_t>(i));
    const PlacementRule rule = [&](const PlacementQuestion& question) {
      return ChooseAsLive(rater.get(), question, &rng);
    };
    TRY_ASSIGN(const LifecycleMetrics metrics, RunPlacement(rule, seed, &world));
    all.push_back(JsonOf(metrics));
  }
  std::cout << all.dump() << "\n";
  return {};
}

Result<void> Run(const std::vector<std::string>& words) {
  TRY_ASSIGN(Scenario loaded, LoadScenario(words[0]));
  TRY_ASSIGN(loaded.objective, ParseObjectiveText(words[1], "OBJECTIVE"));
  if (loaded.arrivals == nullptr) return Invalid("{}: no pods come and go in it", words[0]);
  const auto scenario = std::make_shared<const Scenario>(std::move(loaded));
  const auto number = [&](size_t i) { return std::strtoull(words[i].c_str(), nullptr, 10); };
  const uint64_t seed = Rng(number(2), kHeldOutStream + number(3)).Next64();
  if (words[4] == "world") return PrintWorld(scenario, seed);
  std::optional<PlacementPolicy> policy;
  if (words.size() > 5) {
    TRY_ASSIGN(policy, PolicyOf(words[5], *scenario));
  }
  if (words[4] == "measure") return PrintMeasured(scenario, seed, policy);
  return PrintSimulated(scenario, seed, *policy, static_cast<int>(number(6)));
}

int Main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool simulates = words.size() == 7 && words[4] == "simulate";
  const bool shows = words.size() == 5 && words[4] == "world";
  const bool measures = (words.size() == 5 || words.size() == 6) && words[4] == "measure";
  if (!simulates && !shows && !measures) {
    std::cerr << "placing_episode SCENARIO OBJECTIVE SEED EPISODE "
                 "world|measure [POLICY]|simulate POLICY TIMES\n";
    return 2;
  }
  const Result<void> done = Run(words);
  if (!done) std::cerr << done.error().message << "\n";
  return done ? 0 : 1;
}

}  // namespace
}  // namespace rudderfish

int main(int argc, char** argv) { return rudderfish::Main(argc, argv); }
