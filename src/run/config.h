// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cron.h"
#include "base/result.h"
#include "base/yaml.h"
#include "cluster/application.h"
#include "control/guard.h"
#include "control/mode.h"
#include "run/leaving_nodes.h"
#include "run/move_driver.h"
#include "run/placement_config.h"
#include "run/routing_config.h"
#include "run/traces_config.h"
#include "task/migration.h"

// rudderfish.yaml: which cluster the controller watches, what of it, who decides, how far it may
// go. The format is described by examples/config.schema.json, with examples beside it. Paths are
// relative to the folder of the file. Immutable once loaded.

namespace rudderfish {

// One of: a live cluster, as kubectl finds it; or a simulated one, to try things out.
struct ClusterConfig {
  std::filesystem::path kubeconfig;   // Empty: as kubectl finds it.
  std::string context;                // Empty: the current one.
  std::filesystem::path scenario;     // Simulated, if not empty.
  uint64_t seed = 1;                  // Of the simulated state.
  std::chrono::nanoseconds drift{0};  // How often somebody moves a pod of it; 0: never.

  bool is_simulated() const { return !scenario.empty(); }
  bool operator==(const ClusterConfig&) const = default;
};

// What may be looked at and judged; all else is as if it were not there.
struct ScopeConfig {
  std::vector<std::string> namespaces;  // Empty: those of the applications.
  LabelSelector pods;

  bool operator==(const ScopeConfig&) const = default;
};

// The section `decisions.migration`: running pods that would be better elsewhere.
// What becomes of the factors by which measured changes differ from the predicted ones.
enum class Correction { kShow, kApply };

struct MigrationConfig {
  Mode mode = Mode::kShadow;            // Where it begins; `promote` and `demote` go on from there.
  std::string policy = "greedy";        // As MakePolicy takes it.
  std::string baseline;                 // Asked for comparison; empty: none.
  YamlNode policy_node, baseline_node;  // Where they are named, for messages.
  std::optional<MigrationOptions> objective;  // Absent: a scenario's own, or the defaults.
  GuardOptions budgets{.horizon = std::chrono::minutes(10),
                       .return_cooldown = std::chrono::hours(1),
                       .moves_per_hour = {.application = 60}};
  Correction correction = Correction::kShow;
  Evacuate evacuate = Evacuate::kDraining;
  std::vector<TimeWindow> windows;  // In which pods are moved; none: always.
  double canary = 0.25;             // Share of the workloads.
  MoveDriver::Options moves;
  std::chrono::nanoseconds interval = std::chrono::seconds(5);  // Between two looks.
  std::chrono::nanoseconds rest =
      std::chrono::minutes(10);  // Until an unchanged state is replanned.
};

struct JournalConfig {
  std::filesystem::path path;
  std::chrono::seconds retention = std::chrono::hours(24 * 30);
  int64_t size_bytes = int64_t{256} << 20;

  bool operator==(const JournalConfig&) const = default;
};

struct ServerConfig {
  std::string listen;            // IP:PORT or unix:PATH; empty: no server.
  std::filesystem::path socket;  // For the command line.

  bool operator==(const ServerConfig&) const = default;
};

// Who of several instances decides: the holder of a Lease.
struct LeaderElectionConfig {
  std::string lease_namespace, lease_name;  // Empty: there is one instance, which always decides.
  std::chrono::nanoseconds duration = std::chrono::seconds(15);

  bool is_on() const { return !lease_name.empty(); }
  bool operator==(const LeaderElectionConfig&) const = default;
};

struct Config {
  std::filesystem::path path;
  ClusterConfig cluster;
  ScopeConfig scope;
  std::vector<std::filesystem::path> applications;  // Files; of a simulated cluster there are none.
  YamlNode signals;                                 // Null if absent.
  TracesConfig traces;
  std::optional<PlacementConfig> placement;  // Of `decisions`: the kinds that this process decides.
  std::optional<MigrationConfig> migration;
  std::optional<RoutingConfig> routing;
  std::optional<ExtenderConfig> extender;
  JournalConfig journal;
  ServerConfig server;
  LeaderElectionConfig leader_election;
  bool places() const { return placement.has_value() || extender.has_value(); }
  // Whether there is an API server to talk to; routes of other data paths need none.
  bool has_cluster() const {
    return !cluster.is_simulated() &&
           (places() || migration || leader_election.is_on() || !control_name.empty() ||
            (routing && routing->NeedsCluster()));
  }
  std::string control_namespace, control_name;  // Of the ConfigMap that holds it back; may be none.
  // Of `cluster`: nothing is decided on what was seen longer ago.
  std::chrono::nanoseconds staleness = std::chrono::seconds(30);
};

// Messages read as those of ParseScenario. Looks at no other file.
Result<Config> ParseConfig(std::string_view text, const std::filesystem::path& path);
Result<Config> LoadConfig(const std::filesystem::path& path);
// The text of a configuration file. kNotFound says how to name another, or to make one.
Result<std::string> ReadConfigText(const std::filesystem::path& path);

// By default: in the folder of the file, and beside the journal.
inline constexpr std::string_view kJournalName = "rudderfish.db";
std::filesystem::path SocketBeside(std::filesystem::path journal);

// What differs between two configurations and cannot change while the program runs, in words;
// empty if nothing does.
std::string WhatNeedsARestart(const Config& before, const Config& after);

}  // namespace rudderfish
