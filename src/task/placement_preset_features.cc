// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "task/feature_rows.h"
#include "task/placement.h"
#include "task/placement_preset.h"

// What a network sees of a placement question as an earlier system did: values as theirs, each
// divided by a scale, since raw ones made their learning diverge.

namespace rudderfish {
namespace {

using Worker = const WorkerSight&;

struct PodSight {
  const presets::DrsRow& row;
};

float PodsOf(Worker worker) { return static_cast<float>(worker.pods); }
float ConnectionsOf(Worker worker) { return static_cast<float>(worker.connections); }
float CpuPercentOf(Worker worker) { return static_cast<float>(worker.cpu_percent); }
float MemoryFreeOf(Worker worker) { return static_cast<float>(worker.memory_free_gb); }
float LatencyOf(Worker worker) { return static_cast<float>(worker.latency_ms); }
template <int kMetric>
float DrsMetricOf(Worker worker) {
  return static_cast<float>(worker.drs[kMetric]);
}
template <int kMetric>
float PodMetricOf(const PodSight& pod) {
  return static_cast<float>(pod.row[kMetric]);
}

constexpr std::array<Feature<WorkerSight>, 1> kSeenByEe{{
    {"worker_pods", "pods", 16, PodsOf, "pods on the node"},
}};
constexpr std::array<Feature<WorkerSight>, 1> kSeenByLc{{
    {"worker_connections", "connections", 64, ConnectionsOf, "established TCP connections"},
}};
constexpr std::array<Feature<WorkerSight>, 4> kSeenByElRl{{
    {"worker_pods", "pods", 16, PodsOf, "pods on the node"},
    {"worker_cpu", "%", 100, CpuPercentOf, "its CPU that is in use"},
    {"worker_memory_free", "GB", 16, MemoryFreeOf, "its memory that is left"},
    {"worker_latency", "ms", 50, LatencyOf, "round trip to the users"},
}};
constexpr std::array<Feature<WorkerSight>, 6> kSeenByDrs{{
    {"drs_cpu", "of 100", 100, DrsMetricOf<0>, "CPU in use, 25 % being 100"},
    {"drs_memory", "of 100", 100, DrsMetricOf<1>, "memory in use"},
    {"drs_received", "of 100", 100, DrsMetricOf<2>, "network, 40 KB/s being 100"},
    {"drs_sent", "of 100", 100, DrsMetricOf<3>, "likewise"},
    {"drs_read", "of 100", 100, DrsMetricOf<4>, "disk, 10,240 KB/s being 100"},
    {"drs_written", "of 100", 100, DrsMetricOf<5>, "likewise"},
}};
constexpr std::array<Feature<PodSight>, 6> kPodSeenByDrs{{
    {"pod_cpu", "of 100", 100, PodMetricOf<0>, "of the pod's profile"},
    {"pod_memory", "of 100", 100, PodMetricOf<1>, "likewise"},
    {"pod_received", "of 100", 100, PodMetricOf<2>, "likewise"},
    {"pod_sent", "of 100", 100, PodMetricOf<3>, "likewise"},
    {"pod_read", "of 100", 100, PodMetricOf<4>, "likewise"},
    {"pod_written", "of 100", 100, PodMetricOf<5>, "likewise"},
}};

template <const auto& kTable>
void WriteWorkers(const PlacementSpace& space, float* row) {
  for (const PlacementCandidate& candidate : space.candidates) {
    WriteRow<kTable, kPresetWidths.candidate>(
        space.sight.workers[static_cast<size_t>(candidate.node)], row);
    row += kPresetWidths.candidate;
  }
}

}  // namespace

const FeatureTable& PresetFeatures(PlacementPreset preset) {
  static const auto* ee = new FeatureTable{Describe(kSeenByEe), {}, {}, {}};
  static const auto* lc = new FeatureTable{Describe(kSeenByLc), {}, {}, {}};
  static const auto* el_rl = new FeatureTable{Describe(kSeenByElRl), {}, {}, {}};
  static const auto* drs = new FeatureTable{Describe(kSeenByDrs), {}, {}, Describe(kPodSeenByDrs)};
  switch (preset) {
    case PlacementPreset::kThesisEe:
    case PlacementPreset::kThesisLb:
      return *ee;
    case PlacementPreset::kThesisLc:
      return *lc;
    case PlacementPreset::kThesisElRl:
      return *el_rl;
    default:
      return *drs;
  }
}

void EncodePreset(PlacementPreset preset, const PlacementSpace& space, GraphBatch* batch) {
  float* row = AddRows(space.count(), kPresetWidths.candidate, &batch->candidates);
  CandidateEnds* ends = AddEnds(space.count(), batch);
  std::fill_n(ends, space.count(), CandidateEnds{kNone, kNone, kNone});
  float* context = AddRows(1, kPresetWidths.context, &batch->context);
  std::fill_n(context, kPresetWidths.context, 0.0f);
  switch (preset) {
    case PlacementPreset::kThesisEe:
    case PlacementPreset::kThesisLb:
      return WriteWorkers<kSeenByEe>(space, row);
    case PlacementPreset::kThesisLc:
      return WriteWorkers<kSeenByLc>(space, row);
    case PlacementPreset::kThesisElRl:
      return WriteWorkers<kSeenByElRl>(space, row);
    default:
      break;
  }
  WriteWorkers<kSeenByDrs>(space, row);
  WriteRow<kPodSeenByDrs, kPresetWidths.context>(PodSight{space.sight.pod}, context);
}

}  // namespace rudderfish
