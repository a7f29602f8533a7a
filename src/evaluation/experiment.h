// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/yaml_change.h"
#include "evaluation/evaluation.h"

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

namespace rudderfish {

struct ExperimentVariant {
  std::string name;
  std::vector<YamlChange> changes;  // Of each scenario.
};

struct Experiment {
  std::string name;
  uint64_t seed = 1;
  int episodes = 200;
  std::vector<std::filesystem::path> scenarios;  // At least one; their file names differ.
  std::vector<std::string> policies;             // At least two; the last is the candidate.
  std::vector<ExperimentVariant> variants;       // At least one.

  // All policies as the command line writes them.
  std::string PolicyList() const;
};

struct ExperimentCell {
  int scenario = 0;
  int variant = 0;
  std::string name;  // Of a folder: "continuum-7x21.near".
};

// Messages name file, line, column and key. No other file is read.
Result<Experiment> ParseExperiment(const YamlNode& root);

// In the order in which they are listed, variants within scenarios.
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
};

OrderedJson InputsJson(const ExperimentInputs& provenance);

// What differs, in words; empty if nothing does.
Result<std::string> DifferenceOf(const ExperimentInputs& now, const Json& then,
                                 std::string_view source_name);

}  // namespace rudderfish
