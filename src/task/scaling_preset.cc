// SPDX-License-Identifier: Apache-2.0
#include "task/scaling_preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/suggest.h"
#include "task/feature_rows.h"
#include "task/scaling_workloads.h"

namespace rudderfish {
namespace {

constexpr std::string_view kScalingPresetNames[] = {"gym-hpa-cost", "gym-hpa-latency",
                                                    "graph-gym-hpa-slo"};
constexpr int kFlatMoves = 6;            // Of a deployment, of the graph generation.
constexpr double kCallsPerWeight = 100;  // Calls per second of an edge that weighs 1.

struct DeploymentView {
  const GymHpaReading& reading;
  const GymHpaShares& shares;
  float pods_max;
};
using D = const DeploymentView&;

constexpr std::array<Feature<DeploymentView>, 6> kRawTable{{
    {"num_pods", "pods", 8, [](D v) { return static_cast<float>(v.reading.pods); },
     "replicas asked for"},
    {"desired_replicas", "pods", 8, [](D v) { return static_cast<float>(v.reading.desired); },
     "by CPU and memory, seven to three"},
    {"cpu_usage", "milli-cores", 4000, [](D v) { return static_cast<float>(v.reading.cpu_millis); },
     "of all its pods"},
    {"mem_usage", "MiB", 4000, [](D v) { return static_cast<float>(v.reading.memory_mib); },
     "likewise"},
    {"traffic_in", "kB/s", 2500,
     [](D v) { return static_cast<float>(v.reading.traffic_in_kbytes_per_s); }, "received"},
    {"traffic_out", "kB/s", 2500,
     [](D v) { return static_cast<float>(v.reading.traffic_out_kbytes_per_s); },
     "sent to those it calls"},
}};

constexpr std::array<Feature<DeploymentView>, 4> kNodeTable{{
    {"cpu_ratio", "", 1, [](D v) { return static_cast<float>(v.shares.cpu); },
     "used by its pods, of their limits"},
    {"mem_ratio", "", 1, [](D v) { return static_cast<float>(v.shares.memory); }, "likewise"},
    {"pods_ratio", "", 1, [](D v) { return static_cast<float>(v.reading.pods) / v.pods_max; },
     "that run, of the most a deployment may have"},
    {"desired_ratio", "", 1, [](D v) { return static_cast<float>(v.reading.desired) / v.pods_max; },
     "by CPU or memory, whichever asks for more, likewise"},
}};

struct ActionView {
  const GymHpaMove& move;
};
using A = const ActionView&;

constexpr std::array<Feature<ActionView>, 3> kActionTable{{
    {"change", "pods", 4, [](A v) { return static_cast<float>(v.move.delta); },
     "of its deployment"},
    {"is_more", "", 1, [](A v) { return v.move.delta > 0 ? 1.0F : 0.0F; }, "whether pods come"},
    {"is_fewer", "", 1, [](A v) { return v.move.delta < 0 ? 1.0F : 0.0F; }, "whether pods go"},
}};

template <const auto& kTable>
void WriteDeployments(const ScalingPresetSight& sight, int pods_max, float* row) {
  for (size_t d = 0; d < sight.readings.size(); ++d) {
    WriteRow<kTable, ScalingPresetTask::kWidths.workload>(
        DeploymentView{sight.readings[d], sight.shares[d], static_cast<float>(pods_max)}, row);
    row += ScalingPresetTask::kWidths.workload;
  }
}

}  // namespace

std::span<const std::string_view> ScalingPresetNames() { return kScalingPresetNames; }

std::string_view ScalingPresetName(ScalingPreset preset) {
  return kScalingPresetNames[static_cast<size_t>(preset)];
}

Result<ScalingPreset> ScalingPresetNamed(std::string_view name) {
  const auto* const at =
      std::find(std::begin(kScalingPresetNames), std::end(kScalingPresetNames), name);
  if (at != std::end(kScalingPresetNames))
    return static_cast<ScalingPreset>(at - std::begin(kScalingPresetNames));
  return Invalid("no preset of --task scale is called `{}`{} (there are {})", name,
                 DidYouMean(name, kScalingPresetNames), fmt::join(kScalingPresetNames, ", "));
}

GymHpaGoal GoalOf(ScalingPreset preset) {
  switch (preset) {
    case ScalingPreset::kGymHpaCost:
      return GymHpaGoal::kCost;
    case ScalingPreset::kGymHpaLatency:
      return GymHpaGoal::kLatency;
    case ScalingPreset::kGraphGymHpaSlo:
      break;
  }
  return GymHpaGoal::kSloDistance;
}

const FeatureTable& ScalingPresetTask::Features(ScalingPreset preset) {
  static const auto* raw = new FeatureTable{Describe(kActionTable), {}, Describe(kRawTable), {}};
  static const auto* node = new FeatureTable{Describe(kActionTable), {}, Describe(kNodeTable), {}};
  return SeesGraph(preset) ? *node : *raw;
}

std::string ScalingPresetTask::FeatureHash(ScalingPreset preset) {
  return HashOfFeatures("scaling", Features(preset));
}

ScalingPresetTask::ScalingPresetTask(ScalingPreset preset, const ServedApplication& application,
                                     std::string_view name)
    : preset_(preset), reader_(application, name), calls_(CallsBetweenScaled(application)) {
  const int deployments = reader_.application().count();
  if (SeesGraph(preset)) {
    for (int action = 0; action <= kFlatMoves * deployments; ++action)
      moves_.push_back(GymHpaFlatMove(action));
  } else {
    for (int action = 0; action < kGymHpaMoves * deployments; ++action)
      moves_.push_back(GymHpaPairMove(action / kGymHpaMoves, action % kGymHpaMoves));
  }
  for (const ServedWorkload& workload : application.workloads) {
    if (workload.scaled) bounds_.push_back({workload.replicas_min, workload.replicas_max});
  }
}

void ScalingPresetTask::Look(const GymHpaMetrics& metrics, ScalingPresetSight* sight) const {
  const auto count = static_cast<size_t>(application().count());
  sight->readings.resize(count);
  sight->shares.resize(count);
  sight->calls_per_s.resize(count);
  for (size_t d = 0; d < count; ++d) {
    const int deployment = static_cast<int>(d);
    const double latency_ms = sight->readings[d].latency_ms;
    GymHpaReading& reading = sight->readings[d] = reader_.Read(deployment, metrics);
    reading.latency_ms = latency_ms;
    sight->shares[d] = reader_.SharesOf(deployment, metrics);
    sight->calls_per_s[d] = metrics.calls_per_s[reader_.workload(deployment)];
    if (SeesGraph(preset_)) {
      reading.pods = metrics.ready[reader_.workload(deployment)];
      reading.desired =
          GymHpaDesiredOfLimits(reading.pods, sight->shares[d].cpu, sight->shares[d].memory,
                                bounds_[d].least, bounds_[d].most);
    }
  }
}

void ScalingPresetTask::Encode(const ScalingPresetSight& sight, GraphBatch* batch) const {
  float* row = AddRows(actions(), kWidths.candidate, &batch->candidates);
  CandidateEnds* ends = AddEnds(actions(), batch);
  for (const GymHpaMove& move : moves_) {
    WriteRow<kActionTable, kWidths.candidate>(ActionView{move}, row);
    row += kWidths.candidate;
    // Nothing is done to no deployment.
    *ends++ = {SeesGraph(preset_) && move.delta == 0 ? kNone : move.deployment, kNone, kNone};
  }
  const auto count = static_cast<int32_t>(sight.readings.size());
  row = AddRows(count, kWidths.workload, &batch->workloads);
  if (SeesGraph(preset_)) {
    WriteDeployments<kNodeTable>(sight, application().pods_max, row);
  } else {
    WriteDeployments<kRawTable>(sight, application().pods_max, row);
  }
  std::fill_n(AddRows(1, kWidths.context, &batch->context), kWidths.context, 0.0F);
  for (const GraphEdge& call : calls_) {
    const double per_s = call.weight * sight.calls_per_s[call.b];
    batch->calls.push_back({call.a, call.b, static_cast<float>(per_s / kCallsPerWeight)});
  }
  batch->candidate_begin.push_back(static_cast<int32_t>(batch->ends.size()));
  batch->workload_begin.push_back(batch->workload_begin.back() + count);
  batch->call_begin.push_back(static_cast<int32_t>(batch->calls.size()));
  for (auto* begin : {&batch->node_begin, &batch->placement_begin}) begin->push_back(begin->back());
  ++batch->samples;
}

GymHpaBound ScalingPresetTask::Apply(const GymHpaMove& move, std::span<int> replicas) const {
  const Bounds& bounds = bounds_[move.deployment];
  int& pods = replicas[reader_.workload(move.deployment)];
  const int moved = pods + move.delta;
  if (moved < bounds.least || moved > bounds.most) return GymHpaBound::kPassed;
  pods = moved;
  return GymHpaBound::kKept;
}

}  // namespace rudderfish
