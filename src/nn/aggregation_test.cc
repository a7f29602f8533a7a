// SPDX-License-Identifier: Apache-2.0
#include "nn/aggregation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

// Messages worked out by hand; whole networks with each encoder are judged in
// candidate_net_test.cc and candidate_net_golden_test.cc.

namespace rudderfish::nn {
namespace {

constexpr int kColumns = 16;

TEST(Attend, TwoNeighboursWorkedOutByHand) {
  // Only the first column has a score: s = 2. x L is 1 and -1 there, x R 0.5, e 0.25; the edges
  // weigh 2 and 0.
  std::vector<float> sources(2 * kColumns), listeners(kColumns), edge(kColumns), score(kColumns);
  sources[0] = 1;
  sources[kColumns] = -1;
  sources[1] = 10;
  sources[kColumns + 1] = 20;
  listeners[0] = 0.5;
  edge[0] = 0.25;
  score[0] = 2;
  const std::vector<Edge> edges = {{.a = 0, .b = 0, .weight = 2}, {.a = 0, .b = 1, .weight = 0}};
  const AttentionEdges at{.count = 2,
                          .edges = edges.data(),
                          .target = EdgeEnd::kA,
                          .hidden = kColumns,
                          .targets = 1,
                          .sources = sources.data(),
                          .listeners = listeners.data(),
                          .edge_weight = edge.data(),
                          .score = score.data()};
  std::vector<float> shares(2), largest(1), sums(1), message(kColumns);
  Attend(at, shares.data(), largest.data(), sums.data(), {message.data(), kColumns});
  // Scores: 2 (1 + 0.5 + 2 * 0.25) = 4 and 2 * 0.2 (-1 + 0.5) = -0.2.
  const double first = 1 / (1 + std::exp(-0.2 - 4));
  EXPECT_NEAR(shares[0], first, 1e-6);
  EXPECT_NEAR(shares[0] + shares[1], 1, 1e-6);
  EXPECT_NEAR(message[0], first - (1 - first), 1e-5);
  EXPECT_NEAR(message[1], 10 * first + 20 * (1 - first), 1e-4);
  EXPECT_EQ(message[2], 0);
}

TEST(Aggregation, GcnDividesByTheRootsOfBothDegrees) {
  // Workload 0 calls 1 by an edge of 3: degrees 4 and 4, so 3 / 4 is heard, both ways.
  const Block block = [] {
    Block one;
    one.samples = 1;
    one.workloads = 2;
    one.calls = 1;
    return one;
  }();
  DenseProfile profile;
  const DenseLayers dense(BestKernels(), &profile);
  Aggregation gcn(Encoder::kGcn, kColumns, 1, nullptr, BestKernels(), dense);
  Carver size(nullptr);
  gcn.Carve(block, &size);
  AlignedVector<std::byte> memory(size.used());
  Carver carver(memory.data());
  const std::vector<int32_t> none = {0, 0}, two = {0, 2};
  std::vector<Edge> calls = {{.a = 0, .b = 1, .weight = 3}};
  gcn.Enter({.block = block,
             .node_begin = none.data(),
             .workload_begin = two.data(),
             .calls = calls.data()},
            gcn.Carve(block, &carver));
  gcn.Prepare();
  EXPECT_FLOAT_EQ(calls[0].weight, 0.75F);
  AlignedVector<float> workloads(2 * 4 * kColumns);
  workloads[0] = 8;
  workloads[4 * kColumns] = 4;
  AlignedVector<float> nodes(2 * kColumns);  // Of none.
  gcn.Forward(0, nullptr, {{nodes.data(), 2 * kColumns}, {workloads.data(), 4 * kColumns}});
  EXPECT_FLOAT_EQ(workloads[4 * kColumns + 2 * kColumns], 6);  // The callee of its caller,
  EXPECT_FLOAT_EQ(workloads[3 * kColumns], 3);                 // the caller of its callee.
  EXPECT_FLOAT_EQ(workloads[2 * kColumns], 0);
}

}  // namespace
}  // namespace rudderfish::nn
