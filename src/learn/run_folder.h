// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "learn/train_options.h"
#include "scenario/scenario.h"

// A run of training on disk:
//
//   config.yaml          options in full, provenance, digests of the scenarios: marks a run
//   scenario.yaml        the scenario as given; scenario-1.yaml, -2.yaml ... if there are several
//   metrics.csv          results, a row an iteration: equal runs by steps write equal bytes
//   timing.csv           the clock's part of the same iterations (run_tables.h)
//   events.out.tfevents* the same for TensorBoard; one file a process
//   best.safetensors     the network that did best on the validation starts
//   last.safetensors     the network with all that is needed to go on
//   train.log            what happened when, in seconds
//   seed-1/, seed-2/ ... runs of their own, and summary.csv, if several seeds were asked for
//
// Checkpoints and summaries are replaced atomically; tables grow and are cut back to the checkpoint
// by --resume.

namespace rudderfish {

struct RunPaths {
  std::filesystem::path folder;

  std::filesystem::path config() const { return folder / "config.yaml"; }
  std::filesystem::path metrics() const { return folder / "metrics.csv"; }
  std::filesystem::path timing() const { return folder / "timing.csv"; }
  std::filesystem::path best() const { return folder / "best.safetensors"; }
  std::filesystem::path last() const { return folder / "last.safetensors"; }
  std::filesystem::path log() const { return folder / "train.log"; }
  std::filesystem::path summary() const { return folder / "summary.csv"; }
  std::filesystem::path scenario(int index, int count) const;
  RunPaths seed(int number) const {
    return {folder / ("seed-" + std::to_string(number))};
  }  // From 1.
};

// A scenario with the text it was read from.
struct TrainScenario {
  std::shared_ptr<const Scenario> scenario;
  std::string text;
  std::string traces_sha256;  // Of the files that it names; empty if it names none.

  // `objective`: in place of the scenario's own; `changes`: of other values. Text with a trace
  // names its files in full.
  static Result<TrainScenario> Open(const std::filesystem::path& path,
                                    const std::optional<Objective>& objective = {},
                                    std::span<const YamlChange> changes = {});
  std::string Digest() const;  // SHA-256 of what it means, not of comments and layout.
};

struct Provenance {
  std::string version;  // Of the program.
  std::string command;  // As it was typed.
};

// What config.yaml holds.
struct RunConfig {
  TrainOptions options;
  Provenance provenance;
  std::vector<std::string> scenario_digests;
};

bool HasRun(const std::filesystem::path& folder);  // A run, or seeds of one.
int SeedFolders(
    const std::filesystem::path& folder);  // How many seed-N there are; 0 for a run of one seed.
Result<RunConfig> ReadRunConfig(const RunPaths& paths);
Result<std::vector<TrainScenario>> ReadRunScenarios(const RunPaths& paths);

// Makes the folder with scenarios and configuration; the configuration last.
Result<void> WriteRunFolder(const RunPaths& paths, const TrainOptions& options,
                            const Provenance& provenance,
                            const std::vector<TrainScenario>& scenarios);

}  // namespace rudderfish
