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
#include "evaluation/evaluation.h"
#include "evaluation/published.h"
#include "model/objective.h"

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
//   task: scaling
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
//   task: placement
//   episodes: 20
//   scenarios: [scenarios/drs-even.yaml]
//   objectives: {balance: balance, both: {balance: 1, energy: 0.5}}
//   train: {steps: 65536, seeds: 5, algorithm: ppo}
//   policies: [greedy, lc=trained-thesis-lc, mix=mixed:greedy=1+trained, learned=trained]
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

  // What is trained for a policy that is written `trained` (by `algorithm`), `trained-dqn`,
  // `trained-thesis-lc` or `mixed:SCORES+` and one of these; nothing for any other.
  struct Trained {
    std::string_view recipe;  // One of kAlgorithms, or of the presets of `train --preset`.
    std::string_view before;  // What it is mixed with, as in "mixed:most-allocated=1+"; or empty.
  };
  std::optional<Trained> TrainedFor(std::string_view policy) const;
};

struct Experiment {
  std::string name;
  uint64_t seed = 1;
  int episodes = 200;
  std::vector<std::filesystem::path> scenarios;  // At least one; their file names differ.
  std::vector<std::string> policies;             // At least two; the last is the candidate.
  std::vector<ExperimentVariant> variants;       // At least one.
  std::optional<ScalingExperiment> scaling;      // `task: scaling`.
  std::optional<PlacementExperiment> placement;  // `task: placement`.

  // Whether a policy is this, under its own name or another.
  bool Names(std::string_view policy) const;

  // All policies as the command line writes them.
  std::string PolicyList() const;
};

struct ExperimentCell {
  int scenario = 0;
  int variant = 0;
  int load = 0;       // Of ScalingExperiment::loads.
  int objective = 0;  // Of PlacementExperiment::objectives; nothing there without any.
  // Of a folder: "continuum-7x21.near", "drs-even.balance.as-shipped"; of scaling
  // "online-boutique.steady", and where a variant changes something "online-boutique.steady.tight".
  std::string name;
};

// Messages name file, line, column and key. No other file is read. `quoting`: whether it is whole.
Result<Experiment> ParseExperiment(const YamlNode& root, Quoting quoting = Quoting::kAll);

// In the order in which they are listed, variants within scenarios (and objectives, or loads).
std::vector<ExperimentCell> CellsOf(const Experiment& experiment);

// The candidate against every other policy of a cell, each pair from the same starts:
//   [{"scenario","variant","metric","unit","candidate","baseline","candidate_iqm","baseline_iqm",
//     "difference","difference_ci95":[lo,hi],"probability_of_improvement","starts","seeds",
//     "better":true|false|null}, ...]
// `better` is null where the interval holds 0 or there are too few starts to say.
OrderedJson PairsOf(const Evaluation& evaluation, std::string_view scenario,
                    std::string_view variant);

// A table of all pairs, aligned; ends with a newline.
std::string PairsTable(const OrderedJson& pairs);

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
