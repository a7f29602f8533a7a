// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "base/yaml_change.h"
#include "cluster/state.h"
#include "model/objective.h"
#include "scenario/arrivals.h"
#include "scenario/distribution.h"
#include "scenario/load.h"
#include "scenario/region_world.h"

// A world as data: which nodes and workloads there are, which workload calls which, and what is
// redrawn for each episode. sim/world.h draws States from it. Immutable once loaded; shared by all
// threads.
//
// The format is YAML, described by scenarios/scenario.schema.json, with examples beside it.
// Quantities carry their unit: 700m cores, 2Gi, 500Mbit, 50ms, 0.1MB. Memory suffixes Ki Mi Gi are
// powers of 1024, k M G of 1000, as in Kubernetes; bandwidth and payload count in powers of 1000.

namespace rudderfish {

// Nodes of one kind whose resources are drawn alike. Unless the file names them, they are called
// <kind>-<i>, counted from 1 over all groups.
struct NodeGroup {
  KindId kind = 0;
  int count = 0;
  Distribution cpu_millis;    // Allocatable; a drawn value is floored.
  Distribution memory_bytes;  // The same.
  Distribution background;    // Traffic that is not ours, as a fraction of the bandwidth.
  int devices = 0;            // Of each node.

  bool operator==(const NodeGroup&) const = default;
};

// How a workload starts; the rest of it stands at the same position in Catalog::workloads.
struct WorkloadStart {
  Distribution replicas;                // Integers.
  std::vector<LayerId> initial_layers;  // Where its pods are first placed, ascending.

  bool operator==(const WorkloadStart&) const = default;
};

struct Scenario {
  std::string name;
  uint64_t seed = 1;
  std::string law = "reach";  // LatencyLaw::Named accepts it.
  std::string source_config;  // REACH's name for it, such as 7-21; empty if it is not REACH's.
  std::shared_ptr<const Catalog> catalog;
  std::shared_ptr<const Names> names;  // Of nodes; pods are called by their workload.
  std::vector<NodeGroup> node_groups;
  std::vector<WorkloadStart> starts;     // [workload]
  std::vector<Distribution> latency_ms;  // [from][to], one way, drawn once an episode.
  // Each episode has one of them; there may be none where pods come and go.
  std::vector<std::shared_ptr<const CallGraph>> patterns;
  std::vector<double> pattern_weights;       // [pattern], positive.
  int retry_limit = 100;                     // Draws of an episode before it counts as impossible.
  YamlNode task;                             // Opaque here; null if absent. Task parses it.
  std::vector<NodeCosts> kind_costs;         // [kind]
  std::shared_ptr<const Arrivals> arrivals;  // Null: pods neither come nor go.
  std::optional<Objective> objective;        // Of placement.
  std::shared_ptr<const Load> load;          // Null: there are no requests to serve in time.
  // Regions that requests are sent to; they are then all there is. Null: none.
  std::shared_ptr<const RegionWorld> regions;

  // Whether the question is where pods go that come, rather than which running pod to move.
  bool places_pods() const { return arrivals != nullptr; }
  int node_count() const { return static_cast<int>(names->nodes.size()); }
  int pod_limit() const;                     // Pods of the largest episode.
  std::vector<KindId> KindsOfNodes() const;  // [node]

  // What its start states call it: source_config, or else its name.
  const std::string& config() const { return source_config.empty() ? name : source_config; }

  // Position of a pattern, or kNone.
  int PatternNamed(std::string_view pattern) const;
};

// Bounds on what a file may ask for, so that a slip of the finger does not eat the machine.
inline constexpr int kMaxNodes = 100'000;
inline constexpr int kMaxPods = 1'000'000;
inline constexpr int kMaxReplicas = 65'535;  // Of one workload.
inline constexpr int kMaxLayers = 32;
inline constexpr int kMaxKinds = 64;
inline constexpr int kMaxWorkloads = 10'000;
inline constexpr int kMaxPatterns = 100;
inline constexpr int kMaxCalls = 100'000;  // Of one pattern.

// Messages read "FILE:LINE:COLUMN: `key`: what was expected, what was found, the nearest known".
// ParseScenario opens no other file: a trace that the arrivals name is read by LoadScenario only.
Result<Scenario> ParseScenario(std::string_view text, std::string_view source_name);
Result<Scenario> ParseScenario(const YamlNode& root);
Result<Scenario> LoadScenario(const std::filesystem::path& path);

// The same with values changed before they are read.
Result<Scenario> LoadScenario(const std::filesystem::path& path,
                              std::span<const YamlChange> changes);

// The files that LoadScenario reads, its own first, and their SHA-256 together: what must hold for
// what was found with them.
Result<std::vector<std::filesystem::path>> ScenarioFiles(const std::filesystem::path& path,
                                                         std::span<const YamlChange> changes = {});
Result<std::string> DigestOfScenario(const std::filesystem::path& path);

// An error that names the file if no running pod is moved in it: pods come and go, or there are
// only regions.
Result<void> CheckMovesPods(const Scenario& scenario, std::string_view source_name);

// ParseScenario(ToYaml(s)) equals s.
std::string ToYaml(const Scenario& scenario);

// Why an episode can never be drawn, in words, or empty: a workload that fits on no node of its
// layers, or more requests in all than all nodes can hold. Loaders refuse such scenarios;
// `workload` is whom to blame, kNone for all.
std::string WhyInfeasible(const Scenario& scenario, WorkloadId* workload);

}  // namespace rudderfish
