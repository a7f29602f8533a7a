// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "task/features.h"
#include "task/migration.h"
#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using testing::ContinuumWorld;
using testing::RandomWorld;

void ExpectRow(const float* row, const std::vector<double>& values, int width) {
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(row[i], std::min(values[i], 8.0), 1e-4) << i;
  for (int i = static_cast<int>(values.size()); i < width; ++i) EXPECT_EQ(row[i], 0);
}

struct Seen {
  Seen(const State& start, int step) : state(start), model(LatencyLaw::Reach()) {
    model.Reset(state);
    const MigrationTask task({.features = FeaturePreset::kReachAgent});
    batch.widths = task.widths();
    task.Space(&model, {step}, &space);
    task.Encode(&model, {step}, &space, &batch);
  }
  double Cores(NodeId node) const { return state.nodes.free[node].cpu_millis / 1000.0; }
  double Gib(NodeId node) const { return state.nodes.free[node].memory_bytes / 1073741824.0; }
  double In(NodeId node, LayerId layer) const { return state.kind_of(node).layer == layer; }

  State state;
  Evaluator model;
  ActionSpace space;
  GraphBatch batch;
};

// Each number of each row against the state itself.
void ExpectRows(const Seen& seen, int step) {
  const GraphWidths& widths = seen.batch.widths;
  const Placement& placement = seen.model.placement();
  for (int i = 0; i < seen.space.count(); ++i) {
    const auto& [w, from, to] = seen.space.candidates[i].move;
    std::vector<double> values{seen.Cores(from) / 4, seen.Gib(from) / 8, seen.Cores(to) / 4,
                               seen.Gib(to) / 8};
    for (LayerId layer = 0; layer < 3; ++layer) values.push_back(seen.In(from, layer));
    for (LayerId layer = 0; layer < 3; ++layer) values.push_back(seen.In(to, layer));
    for (WorkloadId other = 0; other < 5; ++other) values.push_back(other == w ? 1 : 0);
    values.push_back(placement.on_node(w, from) / 3.0);
    values.push_back(placement.on_node(w, to) / 3.0);
    ExpectRow(seen.batch.candidates.data() + i * widths.candidate, values, widths.candidate);
    EXPECT_EQ(seen.batch.ends[i].workload, w);
    EXPECT_EQ(seen.space.ends.node(seen.batch.ends[i].from).id, from);
    EXPECT_EQ(seen.space.ends.node(seen.batch.ends[i].to).id, to);
  }
  for (int row = 0; row < placement.node_count(); ++row) {
    const NodeId node = seen.space.ends.node(row).id;
    ExpectRow(seen.batch.nodes.data() + row * widths.node,
              {seen.Cores(node) / 4, seen.Gib(node) / 8, seen.In(node, 0), seen.In(node, 1),
               seen.In(node, 2)},
              widths.node);
  }
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    const int replicas = placement.replicas(w);
    std::vector<double> values{replicas / 5.0, 0, 0, 0};
    for (NodeId node = 0; node < placement.node_count(); ++node) {
      const LayerId layer = seen.state.kind_of(node).layer;
      if (layer < 3 && replicas > 0)
        values[1 + layer] += 1.0 * placement.on_node(w, node) / replicas;
    }
    ExpectRow(seen.batch.workloads.data() + w * widths.workload, values, widths.workload);
  }
  const int layers = seen.state.catalog->layer_count();
  ExpectRow(seen.batch.context.data(),
            {seen.state.network.LatencyMs(layers - 1, 0) / 250, step / 10.0, 1}, widths.context);
}

TEST(ReachAgentFeatures, SayRoomLayersAndWhereEachWorkloadIs) {
  for (int seed = 0; seed < 40 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 13);
    const State state = seed % 2 == 0 ? ContinuumWorld({}, &rng) : RandomWorld(&rng);
    ExpectRows(Seen(state, seed % 7), seed % 7);
  }
}

}  // namespace
}  // namespace rudderfish
