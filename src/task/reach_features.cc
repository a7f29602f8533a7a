// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "base/check.h"
#include "task/feature_rows.h"
#include "task/features.h"

namespace rudderfish {
namespace {

// What REACH's agent observes (newest generation): free CPU and memory and layer of nodes, where
// each pod is, the latency from client to cloud, the step. Its network knows pods and nodes by
// position; ours is told which workload.
struct ReachView {
  const QuestionSummary& q;
  const Candidate* c = nullptr;
  int from = kNone, to = kNone;  // Rows of its nodes.
  int node = kNone;              // Row.
  WorkloadId workload = kNone;
};
using R = const ReachView&;
template <int kLayer>
float FromLayer(R v) {
  return v.q.layer(v.from) == kLayer ? 1.0f : 0.0f;
}
template <int kLayer>
float ToLayer(R v) {
  return v.q.layer(v.to) == kLayer ? 1.0f : 0.0f;
}
template <int kWorkload>
float IsWorkload(R v) {
  return v.c->move.workload == kWorkload ? 1.0f : 0.0f;
}
constexpr std::array<Feature<ReachView>, 17> kReachCandidate{{
    {"from_free_cpu", "cores", 4, [](R v) { return Cores(v.q.node(v.from).free_millis); },
     "free CPU of the source"},
    {"from_free_memory", "GiB", 8, [](R v) { return Gib(v.q.node(v.from).free_bytes); },
     "free memory of the source"},
    {"to_free_cpu", "cores", 4, [](R v) { return Cores(v.q.node(v.to).free_millis); },
     "free CPU of the target"},
    {"to_free_memory", "GiB", 8, [](R v) { return Gib(v.q.node(v.to).free_bytes); },
     "free memory of the target"},
    {"from_layer_0", "", 1, FromLayer<0>, "whether the source is in the first layer"},
    {"from_layer_1", "", 1, FromLayer<1>, "in the second"},
    {"from_layer_2", "", 1, FromLayer<2>, "in the third"},
    {"to_layer_0", "", 1, ToLayer<0>, "whether the target is in the first layer"},
    {"to_layer_1", "", 1, ToLayer<1>, "in the second"},
    {"to_layer_2", "", 1, ToLayer<2>, "in the third"},
    {"workload_0", "", 1, IsWorkload<0>, "whether the pod is of the first workload"},
    {"workload_1", "", 1, IsWorkload<1>, "of the second"},
    {"workload_2", "", 1, IsWorkload<2>, "of the third"},
    {"workload_3", "", 1, IsWorkload<3>, "of the fourth"},
    {"workload_4", "", 1, IsWorkload<4>, "of the fifth"},
    {"pods_on_from", "pods", 3, [](R v) { return static_cast<float>(v.c->pods); },
     "pods of the workload on the source"},
    {"pods_on_to", "pods", 3,
     [](R v) {
       return static_cast<float>(v.q.placement->on_node(v.c->move.workload, v.c->move.to));
     },
     "on the target"},
}};
constexpr std::array<Feature<ReachView>, 5> kReachNode{{
    {"free_cpu", "cores", 4, [](R v) { return Cores(v.q.node(v.node).free_millis); }, "free CPU"},
    {"free_memory", "GiB", 8, [](R v) { return Gib(v.q.node(v.node).free_bytes); }, "free memory"},
    {"layer_0", "", 1, [](R v) { return v.q.layer(v.node) == 0 ? 1.0f : 0.0f; }, "first layer"},
    {"layer_1", "", 1, [](R v) { return v.q.layer(v.node) == 1 ? 1.0f : 0.0f; }, "second layer"},
    {"layer_2", "", 1, [](R v) { return v.q.layer(v.node) == 2 ? 1.0f : 0.0f; }, "third layer"},
}};
constexpr std::array<Feature<ReachView>, 4> kReachWorkload{{
    {"replicas", "pods", 5,
     [](R v) { return static_cast<float>(v.q.workload(v.workload).replicas); }, "replicas"},
    {"share_layer_0", "", 1, [](R v) { return v.q.ShareOnLayer(v.workload, 0); },
     "share on the first layer"},
    {"share_layer_1", "", 1, [](R v) { return v.q.ShareOnLayer(v.workload, 1); }, "on the second"},
    {"share_layer_2", "", 1, [](R v) { return v.q.ShareOnLayer(v.workload, 2); }, "on the third"},
}};
constexpr std::array<Feature<ReachView>, 3> kReachContext{{
    {"client_cloud_latency", "ms", 250, [](R v) { return v.q.client_cloud_ms; },
     "latency from the last layer to the first"},
    {"step", "steps", 10, [](R v) { return static_cast<float>(v.q.step); },
     "decisions already taken"},
    {"one", "", 1, [](R) { return 1.0f; }, "constant"},
}};

}  // namespace

const FeatureTable& MigrationFeatures::ReachAgent() {
  static const FeatureTable table{Describe(kReachCandidate), Describe(kReachNode),
                                  Describe(kReachWorkload), Describe(kReachContext)};
  return table;
}

void MigrationFeatures::WriteReachAgent(Evaluator* model, int step, ActionSpace* space,
                                        GraphBatch* batch) {
  const GraphWidths& widths = batch->widths;
  CHECK(widths == kMigrationWidths);
  QuestionSummary& q = space->summary;
  q.Update(model, {}, Question{step}, space->ends, space->candidates);
  const MoveEnds& ends = space->ends;
  float* row = AddRows(space->count(), widths.candidate, &batch->candidates);
  CandidateEnds* joined = AddEnds(space->count(), batch);
  for (const Candidate& c : space->candidates) {
    const int from = ends.row(c.move.from), to = ends.row(c.move.to);
    *joined++ = {c.move.workload, from, to};
    WriteRow<kReachCandidate, kMigrationWidths.candidate>(
        ReachView{.q = q, .c = &c, .from = from, .to = to}, row);
    row += widths.candidate;
  }
  row = AddRows(q.node_count(), widths.node, &batch->nodes);
  for (int i = 0; i < q.node_count(); ++i, row += widths.node) {
    WriteRow<kReachNode, kMigrationWidths.node>(ReachView{.q = q, .node = i}, row);
  }
  row = AddRows(q.workload_count(), widths.workload, &batch->workloads);
  for (WorkloadId w = 0; w < q.workload_count(); ++w, row += widths.workload) {
    WriteRow<kReachWorkload, kMigrationWidths.workload>(ReachView{.q = q, .workload = w}, row);
  }
  WriteRow<kReachContext, kMigrationWidths.context>(ReachView{.q = q},
                                                    AddRows(1, widths.context, &batch->context));
  CloseSample(q, batch);
}

}  // namespace rudderfish
