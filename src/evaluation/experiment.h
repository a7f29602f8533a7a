// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/yaml_change.h"
#include "cluster/task_kind.h"
#include "evaluation/evaluation.h"
#include "evaluation/published.h"
#include "model/objective.h"
#include "policy/policy_spec.h"

// An experiment: policies that are compared in several scenarios, each as it is and with some of
// its values changed. Every scenario in every variant is a cell, which is evaluated by itself: from
// that many held-out starts of the one seed, every policy from the same ones.
//
//   experiment: distance-to-cloud
//   seed: 1
//   episodes: 200
//   scenarios: [scenarios/continuum-7x21.yaml]
//   policies: [stay, greedy, learned=policies/continuum.safetensors]
//   variants:
//     as-shipped: {}
//     near: {latency.edge.cloud: 10ms}
//
// Of scaling, the cells are every load of every scenario; what is compared may be found within the
// experiment, load by load: an autoscaler by calibration, a network by training.
//
//   experiment: scaling-six-loads
//   task: scale
//   episodes: 150
//   scenarios: [scenarios/online-boutique.yaml]
//   loads: [steady, diurnal]
//   violations: 0.01
//   calibrate: {episodes: 64}
//   train: {steps: 1000000, seeds: 5, algorithm: ppo, encoder: gcn}
//   policies: [static=calibrated-static, mpc=calibrated-mpc, hpa=calibrated, learned=trained]
//
// Of placement, the cells are every scenario with arrivals for every objective in every variant;
// for each, networks may be trained within the experiment.
//
//   experiment: placing-drs
//   task: place
//   episodes: 20
//   scenarios: [scenarios/drs-even.yaml]
//   objectives: {balance: balance, both: {balance: 1, energy: 0.5}}
//   train: {steps: 65536, seeds: 5, algorithm: ppo}
//   policies: [greedy, lc=trained-thesis-lc, "mixed:greedy=1,run=trained", learned=trained]
//
// Of routing, the cells are every variant of the scenario's regions at every place, which is a list
// of regions. Calibration and training see the first place alone; the others are new to what they
// find.
//
//   experiment: multicloud-two-tiers
//   task: route
//   episodes: 100
//   scenarios: [scenarios/multicloud-16.yaml]
//   region_variants: [spot, full]
//   places: {home: [aws-us-east-1, gcp-us-west1], all: []}
//   calibrate: {settings: 256, episodes: 16}
//   train: {steps: 1000000, seeds: 5}
//   policies: [lp=calibrated-lp, mpc=calibrated-mpc, learned=trained]
//
// Beside these may stand what earlier works have published (published.h).

namespace rudderfish {

struct ExperimentVariant {
  std::string name;
  std::vector<YamlChange> changes;  // Of each scenario.
};

struct ScalingExperiment {
  std::vector<std::string> loads;        // Of every scenario; at least one.
  std::optional<double> violations_max;  // None: the limit of each scenario.
  int calibration_episodes = 64;         // Also of validation.
  int64_t train_steps = 1'000'000;
  int train_seeds = 5;
  std::string algorithm = "ppo";  // One of kAlgorithms.
  std::string encoder;            // One of kEncoders; empty: the network sees no call graph.

  // What `train --algorithm` and `--encoder` know.
  static constexpr std::array<std::string_view, 4> kAlgorithms = {"ppo", "dqn", "a2c",
                                                                  "recurrent-ppo"};
  static constexpr std::array<std::string_view, 5> kEncoders = {"relational", "gcn", "gatv2",
                                                                "deepsets", "mlp"};

  // What stands for the autoscaler, the look-ahead and the constant replicas that are calibrated,
  // and for the networks that are trained.
  static constexpr std::string_view kCalibrated = "calibrated", kCalibratedMpc = "calibrated-mpc",
                                    kCalibratedStatic = "calibrated-static", kTrained = "trained";
  static constexpr std::array<std::string_view, 4> kFoundWithin = {kCalibrated, kCalibratedMpc,
                                                                   kCalibratedStatic, kTrained};
};

struct NamedObjective {
  std::string name;
  Objective objective;
};

struct PlacementExperiment {
  std::vector<NamedObjective> objectives;  // None: each scenario's own.
  int64_t train_steps = 65'536;
  int64_t es_steps = 8'000'000;  // Of `es`: its steps are much cheaper, and it needs more.
  int train_seeds = 5;
  std::string algorithm = "ppo";  // One of kAlgorithms.
  std::vector<PublishedWork> published;

  // What `train --algorithm` knows for placing.
  static constexpr std::array<std::string_view, 3> kAlgorithms = {"ppo", "dqn", "es"};

  // What is trained for a policy whose path is `trained` (by `algorithm`), `trained-dqn` or
  // `trained-thesis-lc`: one of kAlgorithms, or of the presets of `train --preset`. Nothing for any
  // other.
  std::optional<std::string_view> RecipeFor(const PolicySpec& policy) const;
};

struct NamedPlace {
  std::string name;
  std::vector<std::string> regions;  // Empty: all of the scenario.
};

struct RoutingExperiment {
  std::vector<std::string> region_variants;  // Of every scenario; at least one.
  std::vector<NamedPlace> places;            // At least one; the first is learned in.
  int calibration_settings = 256;
  int calibration_episodes = 16;
  int64_t train_steps = 1'000'000;
  int train_seeds = 5;

  // What is calibrated for a policy whose path is `calibrated-NAME`: the policy NAME of this task.
  // Nothing for any other.
  static std::optional<std::string_view> CalibratedFor(const PolicySpec& policy);

  // What is learned for a policy whose path is `trained`, `trained-route` or `trained-scale`: both
  // tiers, "route,scale", or one of them. Nothing for any other.
  static std::optional<std::string_view> TiersFor(const PolicySpec& policy);
};

struct Experiment {
  std::string name;
  TaskKind task = TaskKind::kMove;
  uint64_t seed = 1;
  int episodes = 200;
  std::vector<std::filesystem::path> scenarios;  // At least one; their file names differ.
  std::vector<NamedPolicySpec> policies;         // At least two; the last is the candidate.
  std::vector<ExperimentVariant> variants;       // At least one.
  std::optional<ScalingExperiment> scaling;      // `task: scale`.
  std::optional<PlacementExperiment> placement;  // `task: place`.
  std::optional<RoutingExperiment> routing;      // `task: route`.

  // Whether a policy has this path, which may stand for what is found within the experiment.
  bool Names(std::string_view path) const;
  std::vector<NamedPolicySpec> Given() const;  // All others.
};

struct ExperimentCell {
  int scenario = 0;
  int variant = 0;
  int load = 0;       // Of ScalingExperiment::loads.
  int objective = 0;  // Of PlacementExperiment::objectives; nothing there without any.
  int region_variant = 0, place = 0;  // Of RoutingExperiment.
  // Of a folder: "continuum-7x21.near", "drs-even.balance.as-shipped"; of scaling
  // "online-boutique.steady", and where a variant changes something "online-boutique.steady.tight";
  // of routing "multicloud-16.spot.home", without the place if there is one alone.
  std::string name;
};

// Messages name file, line, column and key. No other file is read. `quoting`: whether it is whole.
Result<Experiment> ParseExperiment(const YamlNode& root, Quoting quoting = Quoting::kAll);

// In the order in which they are listed, variants within scenarios (and objectives, loads, or
// variants of regions and places).
std::vector<ExperimentCell> CellsOf(const Experiment& experiment);

// What an experiment's results depend on: `version` of the program, the experiment's own text, and
// of each file it names the digest.
struct ExperimentInputs {
  std::string version;
  std::string experiment;                                  // Its text, changes included.
  std::vector<std::pair<std::string, std::string>> files;  // Path, SHA-256.
  uint64_t seed = 1;  // What it draws with, whether the text names one or not.
};

OrderedJson InputsJson(const ExperimentInputs& provenance);

// What differs, in words; empty if nothing does.
Result<std::string> DifferenceOf(const ExperimentInputs& now, const Json& then,
                                 std::string_view source_name);

}  // namespace rudderfish
