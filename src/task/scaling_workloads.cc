// SPDX-License-Identifier: Apache-2.0
#include "task/scaling_workloads.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "task/feature_rows.h"
#include "task/scaling.h"

namespace rudderfish {
namespace {

struct WorkloadView {
  const ScalingHistory& h;
  const ScalingSpace& space;
  const ScalingWorkloads::Part& part;
};
using W = const WorkloadView&;

int PodsOf(W v, int rung) { return v.h.ladder().Replicas(rung)[v.part.workload]; }
int PodsAsked(W v) { return PodsOf(v, v.h.rung_asked()); }
int PodsReady(W v) { return PodsOf(v, v.h.rung_ready()); }
int PodsNeeded(W v) { return PodsOf(v, v.space.needed_rung); }

float UseOf(W v, double requests_per_s, int pods) {
  return static_cast<float>(requests_per_s * v.part.demand_s / (v.part.slots * std::max(1, pods)));
}
float ShareOf(double part, double whole) {
  return whole > 0 ? static_cast<float>(part / whole) : 0.0F;
}

constexpr std::array<Feature<WorkloadView>, 14> kWorkloadTable{{
    {"use_near", "", 0.5F, [](W v) { return UseOf(v, v.h.near_per_s(), PodsReady(v)); },
     "of the pods that serve, in the next interval"},
    {"use_far", "", 0.5F, [](W v) { return UseOf(v, v.h.far_per_s(), PodsAsked(v)); },
     "of all that are asked for, when they are ready"},
    {"use_needed", "", 0.5F, [](W v) { return UseOf(v, v.h.far_per_s(), PodsNeeded(v)); },
     "then, if there were as many as are needed"},
    {"pods_missing", "log", 0.25F,
     [](W v) {
       return std::log(static_cast<float>(std::max(1, PodsNeeded(v))) /
                       static_cast<float>(std::max(1, PodsAsked(v))));
     },
     "pods needed for the rate that is expected, over those asked for"},
    {"starting", "", 1, [](W v) { return 1 - ShareOf(PodsReady(v), std::max(1, PodsAsked(v))); },
     "share of its pods that do not serve yet"},
    {"grain", "", 1, [](W v) { return 1 / static_cast<float>(std::max(1, PodsNeeded(v))); },
     "a pod's share of the pods needed"},
    {"cost_share", "", 0.25F,
     [](W v) {
       return ShareOf(v.part.cores * PodsNeeded(v), v.h.ladder().cores(v.space.needed_rung));
     },
     "of what is needed, cores of its pods among those of all"},
    {"demand_share", "", 0.25F, [](W v) { return static_cast<float>(v.part.demand_share); },
     "of the computing for a request that is its own"},
    {"calls", "log calls", 1, [](W v) { return std::log1p(static_cast<float>(v.part.calls)); },
     "of one request"},
    {"is_entry", "", 1, [](W v) { return v.part.is_entry ? 1.0F : 0.0F; },
     "whether clients call it"},
    {"start", "intervals", 4, [](W v) { return static_cast<float>(v.part.start_intervals); },
     "from when a pod is asked for until it serves"},
    {"slots", "log", 2, [](W v) { return std::log1p(static_cast<float>(v.part.slots)); },
     "requests that a pod serves at the same time"},
    {"is_next", "", 1,
     [](W v) {
       const int next = std::min(v.space.needed_rung + 1, v.h.ladder().rungs() - 1);
       return PodsOf(v, next) > PodsNeeded(v) ? 1.0F : 0.0F;
     },
     "whether the next pod would be its own"},
    {"is_most", "", 1, [](W v) { return PodsAsked(v) >= v.part.replicas_max ? 1.0F : 0.0F; },
     "whether it may have no more"},
}};

}  // namespace

std::vector<GraphEdge> CallsBetweenScaled(const ServedApplication& application) {
  std::vector<int> position(application.workloads.size(), kNone);
  std::vector<double> calls_of;  // [position] Of one request.
  const std::vector<double> calls = application.CallsPerRequest();
  for (size_t w = 0; w < application.workloads.size(); ++w) {
    if (!application.workloads[w].scaled) continue;
    position[w] = static_cast<int>(calls_of.size());
    calls_of.push_back(calls[w]);
  }
  const CallGraph& graph = *application.calls;
  const std::vector<double> shares = application.EndpointShares();
  std::vector<double> along(calls_of.size() * calls_of.size());  // Calls of one request.
  for (size_t e = 0; e < graph.endpoints.size(); ++e) {
    for (CallId id = graph.endpoints[e].root + 1; id < graph.endpoints[e].end; ++id) {
      const int caller = position[graph.calls[graph.calls[id].caller].workload];
      const int callee = position[graph.calls[id].workload];
      if (caller == kNone || callee == kNone || caller == callee) continue;
      along[caller * calls_of.size() + callee] += shares[e];
    }
  }
  std::vector<GraphEdge> edges;
  for (size_t i = 0; i < along.size(); ++i) {
    const int caller = static_cast<int>(i / calls_of.size());
    const int callee = static_cast<int>(i % calls_of.size());
    if (along[i] > 0) edges.push_back({caller, callee, ShareOf(along[i], calls_of[callee])});
  }
  return edges;
}

std::vector<FeatureDescription> ScalingWorkloads::Features() { return Describe(kWorkloadTable); }

ScalingWorkloads::ScalingWorkloads(std::shared_ptr<const CapacityLadder> ladder, double interval_s)
    : ladder_(std::move(ladder)), calls_(CallsBetweenScaled(ladder_->application())) {
  const ServedApplication& application = ladder_->application();
  const std::vector<double> demand = application.DemandS(), calls = application.CallsPerRequest();
  const ApplicationEntries entries(application);
  double demand_of_all = 0;
  for (size_t w = 0; w < application.workloads.size(); ++w) {
    const ServedWorkload& workload = application.workloads[w];
    if (!workload.scaled) continue;
    demand_of_all += demand[w];
    parts_.push_back({.workload = static_cast<int>(w),
                      .demand_s = demand[w],
                      .calls = calls[w],
                      .cores = static_cast<double>(workload.cpu_millis) / 1000,
                      .slots = workload.slots,
                      .replicas_max = workload.replicas_max,
                      .start_intervals = workload.MeanStartS() / interval_s,
                      .is_entry = entries.is_entry[w] != 0});
  }
  for (Part& part : parts_) part.demand_share = ShareOf(part.demand_s, demand_of_all);
}

void ScalingWorkloads::Encode(const ScalingHistory& history, const ScalingSpace& space,
                              GraphBatch* batch) const {
  float* row = AddRows(static_cast<int>(parts_.size()), kWidth, &batch->workloads);
  for (const Part& part : parts_) {
    WriteRow<kWorkloadTable, kWidth>(WorkloadView{history, space, part}, row);
    row += kWidth;
  }
  batch->calls.insert(batch->calls.end(), calls_.begin(), calls_.end());
  batch->workload_begin.push_back(batch->workload_begin.back() +
                                  static_cast<int32_t>(parts_.size()));
  batch->call_begin.push_back(static_cast<int32_t>(batch->calls.size()));
}

}  // namespace rudderfish
