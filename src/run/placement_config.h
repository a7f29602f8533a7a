// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "control/extender.h"
#include "control/live_policy.h"
#include "control/mode.h"
#include "model/objective.h"
#include "net/server_tls.h"
#include "run/other_cluster.h"

// The sections `decisions.placement` and `extender` of rudderfish.yaml: pods that are given nodes
// by us, and pods that kube-scheduler asks us about. Parts of run/config.h.

namespace rudderfish {

// Who chooses nodes, and by what.
struct PolicyChoice {
  std::string policy;                  // As LivePolicy takes it; paths are complete.
  std::optional<Objective> objective;  // What choices are judged by; absent: as LivePolicy has it.
  std::string type_label = std::string(kNodeTypeLabel);
  double strangeness_max = kStrangenessMax;
  YamlNode policy_node, objective_node;  // Where they are named, for messages; may be null.

  bool operator==(const PolicyChoice& other) const {
    return policy == other.policy && objective == other.objective &&
           type_label == other.type_label && strangeness_max == other.strangeness_max;
  }
};

struct PlacementConfig {
  Mode mode = Mode::kShadow;  // Where it begins; `promote` and `demote` go on from there.
  std::string scheduler_name = "rudderfish";
  PolicyChoice choice{.policy = "kube-default"};
  double canary = 0.1;                                         // Share of pods.
  std::chrono::nanoseconds settle = std::chrono::seconds(30);  // Until a choice is measured.
  int bindings_max = 64;
  // Whose choices count as evidence: schedulers with kube-scheduler's default rules, as pods name
  // them.
  std::vector<std::string> compare = {"default-scheduler"};
  std::vector<NamedCluster> clusters;  // In which pods are placed beside the configuration's own.

  bool operator==(const PlacementConfig&) const = default;
};

struct ExtenderConfig {
  std::string listen = "127.0.0.1:8888";
  PolicyChoice choice{.policy = "most-allocated"};
  std::chrono::nanoseconds timeout = std::chrono::milliseconds(200);  // Answered within it.
  HardLimits limits;
  std::optional<ServerTlsFiles> tls;  // Absent: plain HTTP.

  bool operator==(const ExtenderConfig&) const = default;
};

// The value of `mode`. `off` without quotes is a boolean to tools that go by YAML 1.1, which write
// it as false: that is read as off.
Result<Mode> ReadMode(const YamlNode& node);

// The share that a canary takes; a control group is always left.
Result<double> ReadCanary(const YamlNode& node);

// Relative paths are relative to `folder`. Beside a `placement` the extender chooses as that does,
// as modes are promoted by what was seen of its choices; another choice is refused.
Result<PlacementConfig> ParsePlacement(const YamlNode& node, const std::filesystem::path& folder);
Result<ExtenderConfig> ParseExtender(const YamlNode& node, const std::filesystem::path& folder,
                                     const PolicyChoice* placement);

// Whether the extender's certificates can be used, if it has any.
Result<void> CheckTls(const ExtenderConfig& config);

// Reads what the policy needs; a message names the place in the configuration.
Result<LivePolicy> LoadPolicy(const PolicyChoice& choice);

}  // namespace rudderfish
