// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <span>
#include <string>

#include "task/features.h"
#include "task/migration.h"
#include "task/placement.h"
#include "task/scaling.h"
#include "task/scaling_preset.h"

// Prints docs/observation.md from the tables that the encoder itself reads, so that the page cannot
// differ from it.

namespace rudderfish {
namespace {

void PrintTable(const char* title, const char* what, int width,
                std::span<const FeatureDescription> features) {
  std::string text = fmt::format("### {}\n\n{} {} features", title, what, features.size());
  if (width > static_cast<int>(features.size()))
    text += fmt::format(", padded with zeros to {}", width);
  text += ".\n\n| # | name | unit | scale | meaning |\n|---|---|---|---|---|\n";
  int index = 0;
  for (const FeatureDescription& feature : features) {
    text += fmt::format("| {} | `{}` | {} | {:g} | {} |\n", index++, feature.name,
                        feature.unit.empty() ? "–" : feature.unit, feature.scale, feature.meaning);
  }
  fmt::print("{}\n", text);
}

void PrintPreset(const char* name, const char* what, FeaturePreset preset) {
  const MigrationTask task(MigrationOptions{.features = preset});
  const FeatureTable& table = task.features();
  const GraphWidths widths = task.widths();
  fmt::print("## `features: {}`\n\n{}\n\nFeature hash: `{}`.\n\n", name, what, task.FeatureHash());
  PrintTable("Candidate",
             "One row an alternative (pods of one workload on one node are one alternative):",
             widths.candidate, table.candidate);
  PrintTable("Node", "One row a node:", widths.node, table.node);
  PrintTable("Workload", "One row a workload:", widths.workload, table.workload);
  PrintTable("Context", "One row:", widths.context, table.context);
}

void PrintPlacement() {
  fmt::print(
      "## Placement\n\n"
      "Where a pending pod goes (`src/task/placement_features.cc`). A question has candidates and "
      "a context, no other rows. Scores are 0 for the best candidate and -1 in the mean over the "
      "nodes where the pod may run.\n\nFeature hash: `{}`.\n\n",
      PlacementTask::FeatureHash());
  PrintTable("Candidate", "One row for nodes that are equal:", PlacementTask::kWidths.candidate,
             PlacementTask::Features().candidate);
  PrintTable("Context", "One row:", PlacementTask::kWidths.context,
             PlacementTask::Features().context);
}

void PrintPresets() {
  constexpr std::pair<PlacementPreset, const char*> kShown[] = {
      {PlacementPreset::kThesisEe, "thesis-ee, thesis-lb"},
      {PlacementPreset::kThesisLc, "thesis-lc"},
      {PlacementPreset::kThesisElRl, "thesis-el-rl"},
      {PlacementPreset::kDrsCode, "drs-code, drs-paper"}};
  for (const auto& [preset, names] : kShown) {
    fmt::print(
        "## Placement as {}\n\n"
        "What an earlier system saw (`src/task/placement_preset_features.cc`); every node is a "
        "candidate.\n\nFeature hash: `{}`.\n\n",
        names, PlacementTask::FeatureHash(preset));
    const FeatureTable& table = PlacementTask::Features(preset);
    PrintTable("Candidate", "One row a node:", kPresetWidths.candidate, table.candidate);
    if (!table.context.empty())
      PrintTable("Context", "One row:", kPresetWidths.context, table.context);
  }
}

void PrintScaling() {
  fmt::print(
      "## Scaling\n\n"
      "How many pods all workloads of an application are to have (`src/task/scaling_features.cc`). "
      "A question has candidates, which are allocations, and a context; where an encoder is "
      "named, rows of workloads too (`src/task/scaling_workloads.cc`), and *calls* between them, "
      "each with the share of the callee's calls that come from that caller.\n\n"
      "Feature hash: `{}`, with workloads `{}`.\n\n",
      ScalingTask::FeatureHash(), ScalingTask::FeatureHash(ScalingRows::kCallGraph));
  const GraphWidths widths = ScalingTask::Widths(ScalingRows::kCallGraph);
  const FeatureTable& table = ScalingTask::Features(ScalingRows::kCallGraph);
  PrintTable("Candidate", "One row an allocation:", widths.candidate, table.candidate);
  PrintTable("Workload", "One row a workload that is scaled:", widths.workload, table.workload);
  PrintTable("Context", "One row:", widths.context, table.context);
}

void PrintScalingPresets() {
  constexpr std::pair<ScalingPreset, const char*> kShown[] = {
      {ScalingPreset::kGymHpaCost, "gym-hpa-cost, gym-hpa-latency"},
      {ScalingPreset::kGraphGymHpaSlo, "graph-gym-hpa-slo"}};
  for (const auto& [preset, names] : kShown) {
    fmt::print(
        "## Scaling as {}\n\n"
        "What an earlier system saw (`src/task/scaling_preset.cc`); every move of a deployment is "
        "a candidate, and names its deployment. *Calls* say who calls whom, each with its rate, "
        "100 a second weighing 1.\n\nFeature hash: `{}`.\n\n",
        names, ScalingPresetTask::FeatureHash(preset));
    const FeatureTable& table = ScalingPresetTask::Features(preset);
    PrintTable("Candidate", "One row a move:", ScalingPresetTask::kWidths.candidate,
               table.candidate);
    PrintTable("Workload", "One row a deployment:", ScalingPresetTask::kWidths.workload,
               table.workload);
  }
}

}  // namespace
}  // namespace rudderfish

int main() {
  fmt::print(R"(# What a policy network observes

This page lists the numbers that a policy network observes. It is for people who read or extend
the features of a task. The program `observation_doc` writes it from `src/task/*features.cc`.

A migration question reaches the network as one sample of a `GraphBatch`
(`src/base/graph_batch.h`): rows of candidates, nodes and workloads, one row of context, and the
edges that join them: each candidate names its workload, source and target; *placements* say which
share of a workload runs on a node; *calls* say who calls whom, each with weight 1 / number of
endpoints. Each number is divided by its scale and then limited to ±8. No feature names a workload,
a node or a layer in the preset `model`: one set of weights serves other clusters. A checkpoint
carries the hash of the tables it was trained with and is refused where they differ.

)");
  rudderfish::PrintPreset(
      "model",
      "The default: every alternative is described by what the Model predicts of it "
      "(docs/decisions/0002-candidates-described-by-the-model.md).",
      rudderfish::FeaturePreset::kModel);
  rudderfish::PrintPreset("reach-agent",
                          "Only what REACH's own agent sees, to compare learning like for like.",
                          rudderfish::FeaturePreset::kReachAgent);
  rudderfish::PrintPlacement();
  rudderfish::PrintPresets();
  rudderfish::PrintScaling();
  rudderfish::PrintScalingPresets();
}
