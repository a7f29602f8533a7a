// SPDX-License-Identifier: Apache-2.0
#include "base/graph_batch.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

// One question of `size` candidates, `size` + 1 nodes and one workload; all numbers start with
// `tag`.
void AddQuestion(GraphBatch* batch, int size, float tag) {
  for (int c = 0; c < size; ++c) {
    batch->ends.push_back({.workload = 0, .from = c, .to = c + 1});
    batch->candidates.insert(batch->candidates.end(), 16, tag + static_cast<float>(c));
  }
  batch->candidate_begin.push_back(batch->candidate_begin.back() + size);
  batch->nodes.insert(batch->nodes.end(), 16 * (size + 1), tag);
  batch->node_begin.push_back(batch->node_begin.back() + size + 1);
  batch->workloads.insert(batch->workloads.end(), 16, tag);
  batch->workload_begin.push_back(batch->workload_begin.back() + 1);
  batch->placements.push_back({.a = size, .b = 0, .weight = tag});
  batch->placement_begin.push_back(batch->placement_begin.back() + 1);
  batch->call_begin.push_back(batch->call_begin.back());
  batch->context.insert(batch->context.end(), 16, tag);
  ++batch->samples;
}

GraphBatch Empty() {
  return {.widths = {.candidate = 16, .node = 16, .workload = 16, .context = 16}};
}

TEST(GraphBatch, AppendCopiesAQuestionWithItsLocalIndices) {
  GraphBatch source = Empty();
  AddQuestion(&source, 2, 10);
  AddQuestion(&source, 3, 20);
  GraphBatch target = Empty();
  target.Append(source, 1);
  target.Append(source, 0);
  GraphBatch expected = Empty();
  AddQuestion(&expected, 3, 20);
  AddQuestion(&expected, 2, 10);
  EXPECT_EQ(target.samples, 2);
  EXPECT_EQ(target.candidate_count(0), 3);
  EXPECT_EQ(target.candidate_count(1), 2);
  EXPECT_EQ(target.candidates, expected.candidates);
  EXPECT_EQ(target.nodes, expected.nodes);
  EXPECT_EQ(target.workloads, expected.workloads);
  EXPECT_EQ(target.context, expected.context);
  EXPECT_EQ(target.node_begin, expected.node_begin);
  EXPECT_EQ(target.call_begin, expected.call_begin);
  EXPECT_EQ(target.ends[3].to, 1);
  EXPECT_EQ(target.placements[1].a, 2);
}

TEST(GraphBatch, ClearKeepsItsMemory) {
  GraphBatch batch = Empty();
  AddQuestion(&batch, 5, 1);
  const float* memory = batch.candidates.data();
  batch.Clear();
  EXPECT_EQ(batch.samples, 0);
  EXPECT_EQ(batch.candidate_begin, std::vector<int32_t>{0});
  EXPECT_TRUE(batch.nodes.empty());
  AddQuestion(&batch, 5, 2);
  EXPECT_EQ(batch.candidates.data(), memory);
}

TEST(GraphBatchDeathTest, RefusesOtherWidths) {
  GraphBatch source = Empty();
  AddQuestion(&source, 1, 1);
  GraphBatch target = Empty();
  target.widths.node = 32;
  EXPECT_DEATH(target.Append(source, 0), "CHECK failed");
}

}  // namespace
}  // namespace rudderfish
