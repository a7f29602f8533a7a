// SPDX-License-Identifier: Apache-2.0
#include "policy/registry.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/sha256.h"
#include "base/suggest.h"
#include "policy/checkpoint.h"
#include "policy/neural_routing.h"
#include "policy/neural_scaling.h"
#include "policy/policy_table.h"
#include "policy/walks.h"

namespace rudderfish {
namespace {

// Null for a path.
Result<const PolicyRow*> RowOf(const PolicySpec& spec, TaskKind task) {
  if (spec.name.empty() && ReadsLikeAPath(spec.bare_path)) return nullptr;
  const std::vector<std::string_view> names = PolicyNamesOf(task);
  const std::string known =
      fmt::format("the policies of the task {} are {}; a run or a checkpoint is given by its path",
                  TaskName(task), fmt::join(names, ", "));
  if (spec.name.empty()) {
    const std::string_view word =
        std::string_view(spec.bare_path).substr(0, spec.bare_path.find(':'));
    return Fail(ErrorCode::kNotFound, "no policy, run folder or checkpoint is called `{}`{} ({})",
                word, DidYouMean(word, names), known);
  }
  const PolicyRow* row = FindPolicy(task, spec.name);
  if (row != nullptr) return row;
  return Fail(ErrorCode::kNotFound, "policy `{}` is not for the task {} ({})", spec.name,
              TaskName(task), known);
}

// The policy of a row by its maker, or the one at a path.
template <class Made, class Maker, class Load, class... Rest>
Result<Made> MakeOf(const PolicySpec& spec, TaskKind task, Load load, const Rest&... rest) {
  TRY_ASSIGN(const PolicyRow* row, RowOf(spec, task));
  if (row == nullptr) return load(spec.bare_path);
  TRY_ASSIGN(const PolicyOptions options, PolicyOptions::Read(spec, row->options));
  return std::get<Maker>(row->maker)(options, rest...);
}

}  // namespace

Result<void> CheckPolicy(const PolicySpec& spec, TaskKind task) {
  TRY_ASSIGN(const PolicyRow* row, RowOf(spec, task));
  if (row != nullptr) TRY(PolicyOptions::Read(spec, row->options));
  return {};
}

Result<std::unique_ptr<Policy>> MakePolicy(const PolicySpec& spec, const Task& task) {
  const auto load = [&](const std::filesystem::path& path) { return LoadWalkPolicy(path, task); };
  return MakeOf<std::unique_ptr<Policy>, MoveMaker>(spec, TaskKind::kMove, load, task);
}

Result<std::unique_ptr<Policy>> MakePolicy(std::string_view text, const Task& task) {
  TRY_ASSIGN(const PolicySpec spec, ParsePolicySpec(text));
  return MakePolicy(spec, task);
}

Result<PlacementPolicy> MakePlacementPolicy(const PolicySpec& spec, const PlacementTask& task,
                                            std::optional<PlacementScore> left_out) {
  const auto load = [&](const std::string& path) {
    return LoadedPlacement(path, path, task, PlacementMix{});
  };
  return MakeOf<PlacementPolicy, PlaceMaker>(spec, TaskKind::kPlace, load, task, left_out);
}

Result<PlacementPolicy> MakePlacementPolicy(std::string_view text, const PlacementTask& task,
                                            std::optional<PlacementScore> left_out) {
  TRY_ASSIGN(const PolicySpec spec, ParsePolicySpec(text));
  return MakePlacementPolicy(spec, task, left_out);
}

Result<std::unique_ptr<ScalingPolicy>> MakeScalingPolicy(const PolicySpec& spec) {
  const auto load = [](const std::filesystem::path& path) { return LoadNeuralScaling(path); };
  return MakeOf<std::unique_ptr<ScalingPolicy>, ScaleMaker>(spec, TaskKind::kScale, load);
}

Result<std::unique_ptr<ScalingPolicy>> MakeScalingPolicy(std::string_view text) {
  TRY_ASSIGN(const PolicySpec spec, ParsePolicySpec(text));
  return MakeScalingPolicy(spec);
}

Result<std::unique_ptr<RoutingPolicy>> MakeRoutingPolicy(const PolicySpec& spec) {
  using Made = std::unique_ptr<RoutingPolicy>;
  const auto load = [](const std::filesystem::path& path) { return LoadNeuralRouting(path); };
  return MakeOf<Made, RouteMaker>(spec, TaskKind::kRoute, load);
}

Result<std::unique_ptr<RoutingPolicy>> MakeRoutingRule(std::string_view text) {
  TRY_ASSIGN(const PolicySpec spec, ParsePolicySpec(text));
  if (spec.name.empty())
    return Invalid("{}: expected a policy by its name, such as lp, and not a path", text);
  return MakeRoutingPolicy(spec);
}

Result<std::string> NameOfPolicy(std::string_view text) {
  TRY_ASSIGN(const PolicySpec spec, ParsePolicySpec(text));
  if (spec.path().empty()) return std::string(text);
  TRY_ASSIGN(const std::filesystem::path checkpoint, CheckpointOf(spec.path()));
  TRY_ASSIGN(const std::string content, ReadFile(checkpoint));
  return fmt::format("{}@{}", text, Sha256Hex(content).substr(0, kDigestTold));
}

}  // namespace rudderfish
