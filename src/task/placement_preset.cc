// SPDX-License-Identifier: Apache-2.0
#include "task/placement_preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/suggest.h"
#include "task/placement.h"

namespace rudderfish {
namespace {

constexpr std::array<std::string_view, 6> kPresetNames = {"thesis-ee",    "thesis-lb", "thesis-lc",
                                                          "thesis-el-rl", "drs-code",  "drs-paper"};

constexpr double kUsedFromPods = 1;    // EE: a worker with fewer is unused.
constexpr double kOnAbovePods = 0;     // EL-RL: a worker with more is on.
constexpr int kControlPlaneNodes = 1;  // EL-RL counts it among the nodes.
constexpr double kBytesPerGb = 1e9;    // As in its PromQL.
constexpr double kNetworkKbPerS = 40;  // What DRS takes for full,
constexpr double kDiskKbPerS = 10240;  // likewise.

bool IsOfDrs(PlacementPreset preset) {
  return preset == PlacementPreset::kDrsCode || preset == PlacementPreset::kDrsPaper;
}

double Percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// What it declares, or else what DRS knows of its name.
MeasuredUsage UsageOf(const Workload& workload) {
  MeasuredUsage usage = workload.measured;
  if (usage.transfers()) return usage;
  const presets::DrsRow profile = presets::DrsProfileOf(workload.name);
  usage.received_kb_per_s = profile[2] / 100 * kNetworkKbPerS;
  usage.sent_kb_per_s = profile[3] / 100 * kNetworkKbPerS;
  usage.read_kb_per_s = profile[4] / 100 * kDiskKbPerS;
  usage.written_kb_per_s = profile[5] / 100 * kDiskKbPerS;
  return usage;
}

void AddRates(const MeasuredUsage& pod, presets::DrsUsage* usage) {
  usage->received += pod.received_kb_per_s;
  usage->sent += pod.sent_kb_per_s;
  usage->read += pod.read_kb_per_s;
  usage->written += pod.written_kb_per_s;
}

// Of a pod that requests so much, on a node that has so much.
presets::DrsUsage UsageOn(const Workload& workload, const Resources& node) {
  presets::DrsUsage usage{.cpu = Percent(workload.requests.cpu_millis, node.cpu_millis),
                          .memory = Percent(workload.requests.memory_bytes, node.memory_bytes)};
  AddRates(UsageOf(workload), &usage);
  return usage;
}

presets::DrsRow RowOfPod(const State& state, const Workload& workload) {
  if (!workload.measured.transfers()) {
    const presets::DrsRow known = presets::DrsProfileOf(workload.name);
    if (known != presets::DrsRow{}) return known;
  }
  Resources all;
  int64_t ready = 0;
  for (NodeId node = 0; node < state.nodes.size(); ++node) {
    if (!state.nodes.IsReady(node)) continue;
    all += state.nodes.allocatable[node];
    ++ready;
  }
  ready = std::max<int64_t>(1, ready);
  return presets::Normalised(UsageOn(workload, {all.cpu_millis / ready, all.memory_bytes / ready}));
}

Result<void> CheckHasUsers(const Catalog& catalog, const PlacementLaws& laws,
                           std::span<const int64_t> arriving, std::string_view world) {
  constexpr std::string_view kName = kPresetNames[3];
  if (laws.users == kNone) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: {} looks at how far the users are from a node; say by `arrivals.users` where "
                "they are",
                world, kName);
  }
  for (size_t w = 0; w < arriving.size(); ++w) {
    const Workload& workload = catalog.workloads[w];
    const LatencyLimits& limits = workload.latency_limits;
    if (arriving[w] == 0 || (std::isfinite(limits.soft_ms) && limits.has_hard())) continue;
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: {} ends an episode at a pod without limits of latency; give the workload {} "
                "`latency_soft` and `latency_hard`",
                world, kName, workload.name);
  }
  return {};
}

}  // namespace

std::span<const std::string_view> PlacementPresetNames() { return kPresetNames; }

std::string_view PlacementPresetName(PlacementPreset preset) {
  return kPresetNames[static_cast<size_t>(preset)];
}

Result<PlacementPreset> PlacementPresetNamed(std::string_view name) {
  const auto at = std::find(kPresetNames.begin(), kPresetNames.end(), name);
  if (at != kPresetNames.end()) return static_cast<PlacementPreset>(at - kPresetNames.begin());
  return Invalid("no preset is called `{}`{} (there are {})", name, DidYouMean(name, kPresetNames),
                 fmt::join(kPresetNames, ", "));
}

presets::DqnSettings DqnSettingsOf(PlacementPreset preset) {
  return *presets::DqnSettingsNamed(IsOfDrs(preset) ? "drs" : "thesis");
}

int EpisodeStepsOf(PlacementPreset preset) {
  return IsOfDrs(preset) ? presets::kDrsMaxSteps : presets::kThesisMaxSteps;
}

Result<void> CheckPresetSuits(PlacementPreset preset, const Catalog& catalog,
                              const PlacementLaws& laws, std::span<const int64_t> arriving,
                              std::string_view world) {
  const auto any = [&](auto&& of) {
    for (size_t w = 0; w < arriving.size(); ++w) {
      if (arriving[w] > 0 && of(catalog.workloads[w])) return true;
    }
    return false;
  };
  if (preset == PlacementPreset::kThesisElRl) return CheckHasUsers(catalog, laws, arriving, world);
  if (preset == PlacementPreset::kThesisLc &&
      !any([](const Workload& one) { return one.measured.connections > 0; })) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: {} looks at connections, and no pod that comes has any; give its workload "
                "`measured: {{connections: N}}`",
                world, PlacementPresetName(preset));
  }
  if (IsOfDrs(preset) && !any([](const Workload& one) { return UsageOf(one).transfers(); })) {
    return Fail(
        ErrorCode::kFailedPrecondition,
        "{}: {} looks at what pods transfer, and none that comes does; give its workload "
        "`measured: {{received_kb_per_s: N, ...}}`, or a name with video, net or disk in it",
        world, PlacementPresetName(preset));
  }
  return {};
}

void PresetSight::Look(PlacementPreset preset, const PlacementQuestion& question) {
  const State& state = question.state;
  const int nodes = state.nodes.size();
  workers.resize(static_cast<size_t>(nodes));
  for (NodeId node = 0; node < nodes; ++node) {
    const Resources& all = state.nodes.allocatable[node];
    const Resources& free = state.nodes.free[node];
    WorkerSight& worker = workers[static_cast<size_t>(node)];
    worker = {.pods = static_cast<double>(question.totals.PodsOn(node)),
              .cpu_percent = Percent(all.cpu_millis - free.cpu_millis, all.cpu_millis),
              .memory_free_gb = static_cast<double>(free.memory_bytes) / kBytesPerGb,
              .latency_ms = question.totals.NodeUserMs(node)};
    worker.usage.cpu = worker.cpu_percent;
    worker.usage.memory = Percent(all.memory_bytes - free.memory_bytes, all.memory_bytes);
  }
  if (preset != PlacementPreset::kThesisLc && !IsOfDrs(preset)) return;
  const std::vector<Workload>& workloads = state.catalog->workloads;
  of_workload_.resize(workloads.size());
  for (size_t w = 0; w < workloads.size(); ++w) of_workload_[w] = UsageOf(workloads[w]);
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    const NodeId node = state.pods.node[pod];
    if (node == kNone) continue;
    const MeasuredUsage& usage = of_workload_[static_cast<size_t>(state.pods.workload[pod])];
    WorkerSight& worker = workers[static_cast<size_t>(node)];
    worker.connections += usage.connections;
    AddRates(usage, &worker.usage);
  }
  if (!IsOfDrs(preset)) return;
  for (WorkerSight& worker : workers) worker.drs = presets::Normalised(worker.usage);
  pod = RowOfPod(state, workloads[static_cast<size_t>(question.workload)]);
}

presets::Reward PresetJudge::JudgeDrs(const PlacementQuestion& question,
                                      const PlacementSpace& space, NodeId node) {
  const State& state = question.state;
  rows_.clear();
  for (NodeId at = 0; at < state.nodes.size(); ++at) {
    if (!state.nodes.IsReady(at)) continue;
    const WorkerSight& worker = space.sight.workers[static_cast<size_t>(at)];
    if (at != node) {
      rows_.push_back(worker.drs);
      continue;
    }
    const presets::DrsUsage added =
        UsageOn(state.catalog->workloads[static_cast<size_t>(question.workload)],
                state.nodes.allocatable[at]);
    presets::DrsUsage usage = worker.usage;
    for (double presets::DrsUsage::*field :
         {&presets::DrsUsage::cpu, &presets::DrsUsage::memory, &presets::DrsUsage::received,
          &presets::DrsUsage::sent, &presets::DrsUsage::read, &presets::DrsUsage::written}) {
      usage.*field += added.*field;
    }
    rows_.push_back(presets::Normalised(usage));
  }
  return {preset_ == PlacementPreset::kDrsCode ? presets::DrsCodeReward(rows_)
                                               : presets::DrsPaperReward(rows_, {}),
          false};
}

presets::Reward PresetJudge::Judge(const PlacementQuestion& question, const PlacementSpace& space,
                                   NodeId node) {
  const State& state = question.state;
  CHECK(state.nodes.IsReady(node));
  CHECK_EQ(space.sight.workers.size(), static_cast<size_t>(state.nodes.size()));
  if (IsOfDrs(preset_)) return JudgeDrs(question, space, node);
  const auto value =
      preset_ == PlacementPreset::kThesisLc ? &WorkerSight::connections : &WorkerSight::pods;
  int choice = 0;
  values_.clear();
  for (NodeId at = 0; at < state.nodes.size(); ++at) {
    if (!state.nodes.IsReady(at)) continue;
    if (at == node) choice = static_cast<int>(values_.size());
    values_.push_back(space.sight.workers[static_cast<size_t>(at)].*value);
  }
  switch (preset_) {
    case PlacementPreset::kThesisEe:
      return presets::EnergyEfficient(values_, choice, kUsedFromPods);
    case PlacementPreset::kThesisLb:
      return presets::LoadBalancing(values_, choice);
    case PlacementPreset::kThesisLc:
      return presets::LeastConnections(values_, choice);
    default:
      break;
  }
  return presets::EnergyAndLatency(
      {.nodes = state.nodes.size() + kControlPlaneNodes, .threshold = kOnAbovePods}, values_,
      space.sight.workers[static_cast<size_t>(node)].latency_ms,
      state.catalog->workloads[static_cast<size_t>(question.workload)].latency_limits);
}

}  // namespace rudderfish
