// SPDX-License-Identifier: Apache-2.0
#include "scenario/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"

namespace rudderfish {
namespace {

Distribution Seen(const std::set<double>& values) {
  return Distribution::Choice({values.begin(), values.end()});
}

Distribution SeenRange(const std::set<double>& values) {
  return Distribution::Uniform(*values.begin(), *values.rbegin());
}

// `count` of the same noun, all as long as the longest, so that their order is that of their
// numbers.
std::string Numbered(const char* noun, size_t number, size_t count) {
  return fmt::format("{}-{:0{}}", noun, number, std::to_string(count).size());
}

std::shared_ptr<const Catalog> AnonymousCatalog(const Catalog& catalog) {
  Catalog made = catalog;
  for (size_t i = 0; i < made.layers.size(); ++i) {
    made.layers[i].name = Numbered("layer", i + 1, made.layers.size());
  }
  std::vector<std::string> types;
  for (size_t i = 0; i < made.kinds.size(); ++i) {
    made.kinds[i].name = Numbered("type", i + 1, made.kinds.size());
    const auto known = std::find(types.begin(), types.end(), made.kinds[i].cpu_type);
    const size_t number = known - types.begin();
    if (known == types.end()) types.push_back(made.kinds[i].cpu_type);
    made.kinds[i].cpu_type = fmt::format("cpu-{}", number + 1);
  }
  for (size_t i = 0; i < made.workloads.size(); ++i) {
    made.workloads[i].name = Numbered("workload", i + 1, made.workloads.size());
  }
  return std::make_shared<const Catalog>(std::move(made));
}

void MakeAnonymous(std::vector<State>* states) {
  CallGraph calls = *states->back().calls;
  calls.name = "calls";
  for (size_t i = 0; i < calls.endpoints.size(); ++i) {
    calls.endpoints[i].name = Numbered("endpoint", i + 1, calls.endpoints.size());
  }
  auto names = std::make_shared<Names>();
  const size_t nodes = states->back().names->nodes.size();
  for (size_t i = 0; i < nodes; ++i) names->nodes.push_back(Numbered("node", i + 1, nodes));
  const auto shared = std::make_shared<const CallGraph>(std::move(calls));
  for (State& state : *states) {
    state.catalog = AnonymousCatalog(*state.catalog);
    state.calls = shared;
    state.names = names;
  }
}

class ProfileMaker {
 public:
  explicit ProfileMaker(const std::vector<State>& states)
      : states_(states), last_(states.back()), catalog_(*last_.catalog) {}

  Scenario Make(std::string name, std::string law) {
    scenario_.name = std::move(name);
    scenario_.law = std::move(law);
    auto names = std::make_shared<Names>();
    names->nodes = last_.names->nodes;
    scenario_.names = std::move(names);
    AddNodes();
    AddWorkloads();
    scenario_.catalog = std::make_shared<const Catalog>(catalog_);
    for (size_t cell = 0; cell < last_.network.latency_ms.size(); ++cell) {
      scenario_.latency_ms.push_back(
          SeenRange(Values([&](const State& state) { return state.network.latency_ms[cell]; })));
    }
    scenario_.patterns = {last_.calls};
    scenario_.pattern_weights = {1.0};
    return std::move(scenario_);
  }

 private:
  template <class Value>
  std::set<double> Values(Value value) const {
    std::set<double> values;
    for (const State& state : states_) values.insert(static_cast<double>(value(state)));
    return values;
  }

  // Neighbours that are alike form a group, so that the order of the nodes stays.
  void AddNodes() {
    for (NodeId node = 0; node < last_.nodes.size(); ++node) {
      NodeGroup group{.kind = last_.nodes.kind[node], .count = 1};
      const auto allocatable = [&](const State& s) { return s.nodes.allocatable[node]; };
      group.cpu_millis =
          Seen(Values([&](const State& state) { return allocatable(state).cpu_millis; }));
      group.memory_bytes =
          Seen(Values([&](const State& state) { return allocatable(state).memory_bytes; }));
      const double bandwidth = catalog_.kinds[group.kind].bandwidth_mbytes_per_s;
      group.background = SeenRange(Values([&](const State& state) {
        return std::min(1.0, state.nodes.background_mbytes_per_s[node] / bandwidth);
      }));
      if (!scenario_.node_groups.empty()) {
        NodeGroup& before = scenario_.node_groups.back();
        group.count = before.count;
        if (group == before) {
          ++before.count;
          continue;
        }
        group.count = 1;
      }
      scenario_.node_groups.push_back(std::move(group));
    }
  }

  void AddWorkloads() {
    const int workloads = catalog_.workload_count();
    std::vector<std::set<double>> replicas(workloads);
    std::vector<std::set<LayerId>> layers(workloads);
    for (const State& state : states_) {
      std::vector<int> count(workloads, 0);
      for (PodId pod = 0; pod < state.pods.size(); ++pod) {
        const WorkloadId workload = state.pods.workload[pod];
        ++count[workload];
        layers[workload].insert(state.kind_of(state.pods.node[pod]).layer);
      }
      for (WorkloadId w = 0; w < workloads; ++w) replicas[w].insert(count[w]);
    }
    for (WorkloadId w = 0; w < workloads; ++w) {
      WorkloadStart start{.replicas = Seen(replicas[w]),
                          .initial_layers = {layers[w].begin(), layers[w].end()}};
      catalog_.workloads[w].replicas_max = static_cast<int>(start.replicas.max());
      scenario_.starts.push_back(std::move(start));
    }
  }

  const std::vector<State>& states_;
  const State& last_;
  Catalog catalog_;
  Scenario scenario_;
};

}  // namespace

Result<Profile> MakeProfile(std::vector<State> states, std::string name, std::string law,
                            ProfileNames names) {
  CHECK(!states.empty());
  Profile profile;
  const std::vector<std::string> nodes = states.back().names->nodes;
  const auto other = std::remove_if(states.begin(), states.end(), [&](const State& state) {
    return state.names->nodes != nodes || state.nodes.kind != states.back().nodes.kind;
  });
  profile.left_out = static_cast<int>(states.end() - other);
  states.erase(other, states.end());
  if (names == ProfileNames::kAnonymous) MakeAnonymous(&states);
  profile.scenario = ProfileMaker(states).Make(std::move(name), std::move(law));
  // What was made must be what is read: a scenario that does not load is of no use.
  const Result<Scenario> read = ParseScenario(ToYaml(profile.scenario), "profile");
  if (!read) {
    return Fail(ErrorCode::kFailedPrecondition, "no scenario can be made of what was seen: {}",
                read.error().message);
  }
  profile.starts = std::move(states);
  return profile;
}

}  // namespace rudderfish
