// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "task/features.h"
#include "task/migration.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;

// What REACH's agent sees of each candidate, node and workload, against the state itself.
TEST(ReachAgentFeatures, SayRoomLayersAndWhereEachWorkloadIs) {
  Rng rng(12);
  const State state = ContinuumWorld({}, &rng);
  const MigrationTask task({.features = FeaturePreset::kReachAgent});
  Evaluator model(LatencyLaw::Reach());
  model.Reset(state);
  ActionSpace space;
  GraphBatch batch;
  batch.widths = task.widths();
  task.Space(&model, {4}, &space);
  task.Encode(&model, {4}, &space, &batch);
  const Placement& placement = model.placement();
  const auto layer = [&](NodeId node) { return state.kind_of(node).layer; };
  const auto cores = [&](NodeId node) { return placement.free(node).cpu_millis / 1000.0; };
  ASSERT_GT(space.count(), 3);
  for (int i = 0; i < space.count(); ++i) {
    const float* row = batch.candidates.data() + i * batch.widths.candidate;
    const auto& [w, from, to] = space.candidates[i].move;
    EXPECT_NEAR(row[0] * 4, cores(from), 1e-4);
    EXPECT_NEAR(row[2] * 4, cores(to), 1e-4);
    for (LayerId at = 0; at < 3; ++at) {
      EXPECT_EQ(row[4 + at], layer(from) == at ? 1 : 0);
      EXPECT_EQ(row[7 + at], layer(to) == at ? 1 : 0);
    }
    for (WorkloadId other = 0; other < 5; ++other) EXPECT_EQ(row[10 + other], other == w ? 1 : 0);
    EXPECT_NEAR(row[15] * 3, placement.on_node(w, from), 1e-5);
    EXPECT_NEAR(row[16] * 3, placement.on_node(w, to), 1e-5);
    EXPECT_EQ(batch.ends[i].workload, w);
    EXPECT_EQ(space.ends.node(batch.ends[i].from).id, from);
    EXPECT_EQ(space.ends.node(batch.ends[i].to).id, to);
  }
  for (int i = 0; i < space.ends.node_count(); ++i) {
    const float* row = batch.nodes.data() + i * batch.widths.node;
    EXPECT_NEAR(row[0] * 4, cores(space.ends.node(i).id), 1e-4);
    EXPECT_EQ(row[2 + layer(space.ends.node(i).id)], 1);
  }
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    const float* row = batch.workloads.data() + w * batch.widths.workload;
    EXPECT_NEAR(row[0] * 5, placement.replicas(w), 1e-5);
    EXPECT_NEAR(row[1] + row[2] + row[3], 1, 1e-5);
  }
  EXPECT_NEAR(batch.context[1] * 10, 4, 1e-5);  // The step.
  EXPECT_EQ(batch.context[2], 1);
}

}  // namespace
}  // namespace rudderfish
