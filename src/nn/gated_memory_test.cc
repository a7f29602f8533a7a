// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/candidate_net.h"
#include "tests/support/count_allocations.h"
#include "tests/support/random_batch.h"
#include "tests/support/reference_net.h"

// Networks that remember: forward question by question, gradients through time.

namespace rudderfish::nn {
namespace {

using FloatVector = std::vector<float>;

constexpr GraphWidths kNarrow{.candidate = 16, .node = 16, .workload = 16, .context = 16};
constexpr int kLanes = 3, kSteps = 4;

// Three episodes side by side; the second one restarts at the third step, all begin at the first.
const std::vector<uint8_t> kFresh = {0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};

GraphBatch EpisodesBatch() {
  std::vector<QuestionSize> sizes;
  for (int i = 0; i < kLanes * kSteps; ++i) sizes.push_back({3 + i % 4, 2 + i % 2, 3, 3, 2});
  return RandomBatch(kNarrow, sizes, 9);
}

CandidateNet RememberingNet(Isa isa, Encoder encoder = Encoder::kRelational) {
  CandidateNet net(
      {.widths = kNarrow, .hidden = 16, .encoder = encoder, .recurrence = Recurrence::kGated},
      SelectKernels(isa));
  Rng rng(17);
  net.Initialize(&rng);
  for (const NamedTensor& tensor : net.tensors()) {
    if (tensor.rows > 1) continue;
    for (float& value : net.tensor(tensor.name)) value = static_cast<float>(0.3 * rng.Normal());
  }
  return net;
}

FloatVector NormalValues(size_t n, uint64_t seed) {
  Rng rng(seed);
  FloatVector values(n);
  for (float& value : values) value = static_cast<float>(rng.Normal());
  return values;
}

// What a loss that is linear in all outputs weighs them with.
struct LinearLoss {
  FloatVector logits, stop, value;

  explicit LinearLoss(const GraphBatch& batch)
      : logits(NormalValues(batch.ends.size(), 1)),
        stop(NormalValues(size_t(batch.samples), 2)),
        value(NormalValues(size_t(batch.samples), 3)) {}

  void operator()(const CandidateNet::Heads& heads) const {
    std::copy(logits.begin(), logits.end(), heads.dlogits.begin());
    std::copy(stop.begin(), stop.end(), heads.dstop.begin());
    std::copy(value.begin(), value.end(), heads.dvalue.begin());
  }

  double Of(const ReferenceNet& net, const GraphBatch& batch, const FloatVector& before) const {
    std::vector<ReferenceNet::Row> memory;
    for (int lane = 0; lane < kLanes; ++lane)
      memory.emplace_back(before.begin() + lane * 16, before.begin() + (lane + 1) * 16);
    double loss = 0;
    for (int s = 0; s < batch.samples; ++s) {
      ReferenceNet::Row& remembered = memory[size_t(s % kLanes)];
      if (kFresh[size_t(s)] != 0) std::fill(remembered.begin(), remembered.end(), 0.0);
      const ReferenceNet::Outputs outputs = net.Forward(batch, s, &remembered);
      for (size_t i = 0; i < outputs.logits.size(); ++i)
        loss += outputs.logits[i] * logits[size_t(batch.candidate_begin[size_t(s)]) + i];
      loss += outputs.stop * stop[size_t(s)] + outputs.value * value[size_t(s)];
    }
    return loss;
  }
};

class GatedMemoryTest : public testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(EveryIsa, GatedMemoryTest, testing::ValuesIn(HostIsas()),
                         [](const auto& info) {
                           return std::string(SelectKernels(info.param).name);
                         });

TEST_P(GatedMemoryTest, GradientThroughTimeIsTheCentralDifferenceOfTheFormulas) {
  const GraphBatch batch = EpisodesBatch();
  const LinearLoss loss(batch);
  const FloatVector before = NormalValues(kLanes * 16, 4);
  for (const Encoder encoder : {Encoder::kRelational, Encoder::kGatv2}) {
    const CandidateNet net = RememberingNet(GetParam(), encoder);
    Workspace workspace;
    FloatVector gradient(net.parameters().size());
    net.AccumulateSequenceGradient(batch, {kLanes, before, kFresh}, &workspace, loss, gradient);
    ExpectCentralDifferences(
        net, gradient,
        [&](const ReferenceNet& reference) { return loss.Of(reference, batch, before); }, 3e-4);
  }
}

TEST_P(GatedMemoryTest, QuestionByQuestionIsTheSameAsAllAtOnceToTheBit) {
  const GraphBatch batch = EpisodesBatch();
  const CandidateNet net = RememberingNet(GetParam());
  const FloatVector before = NormalValues(kLanes * 16, 4);
  Workspace workspace, other(Workspace::Keep::kNothing);
  FloatVector gradient(net.parameters().size()), seen;
  net.AccumulateSequenceGradient(
      batch, {kLanes, before, kFresh}, &workspace,
      [&](const CandidateNet::Heads& heads) {
        seen.assign(heads.logits.begin(), heads.logits.end());
        seen.insert(seen.end(), heads.value.begin(), heads.value.end());
        for (const auto& d : {heads.dlogits, heads.dstop, heads.dvalue})
          std::fill(d.begin(), d.end(), 0.0F);
      },
      gradient);
  EXPECT_TRUE(std::all_of(gradient.begin(), gradient.end(), [](float g) { return g == 0; }));

  FloatVector memory = before, logits(batch.ends.size()), values(size_t(batch.samples)), stop(1);
  for (int s = 0; s < batch.samples; ++s) {
    const std::span<float> remembered(memory.data() + (s % kLanes) * 16, 16);
    if (kFresh[size_t(s)] != 0) std::fill(remembered.begin(), remembered.end(), 0.0F);
    net.Forward(batch, s, 1, &other,
                std::span(logits).subspan(size_t(batch.candidate_begin[size_t(s)]),
                                          size_t(batch.candidate_count(s))),
                stop, std::span(values).subspan(size_t(s), 1), remembered);
  }
  logits.insert(logits.end(), values.begin(), values.end());
  EXPECT_EQ(logits, seen);
  EXPECT_NE(memory, before);
}

TEST(GatedMemory, WhatWasSeenBeforeMattersUntilItIsForgotten) {
  const GraphBatch batch = EpisodesBatch();
  const CandidateNet net = RememberingNet(BestKernels().isa);
  Workspace workspace(Workspace::Keep::kNothing);
  const auto value_of = [&](FloatVector memory) {
    FloatVector logits(size_t(batch.candidate_count(0))), stop(1), value(1);
    net.Forward(batch, 0, 1, &workspace, logits, stop, value, memory);
    return value[0];
  };
  EXPECT_EQ(value_of(FloatVector(16)), value_of(FloatVector(16)));
  EXPECT_NE(value_of(FloatVector(16)), value_of(NormalValues(16, 8)));
}

TEST(GatedMemory, AllocatesNothingOnceItHasSeenTheLargestBatch) {
  const GraphBatch batch = EpisodesBatch();
  const LinearLoss loss(batch);
  const FloatVector before(kLanes * 16);
  const CandidateNet net = RememberingNet(BestKernels().isa);
  Workspace workspace;
  FloatVector gradient(net.parameters().size());
  net.AccumulateSequenceGradient(batch, {kLanes, before, kFresh}, &workspace, loss, gradient);
  const long allocations = allocation_count;
  net.AccumulateSequenceGradient(batch, {kLanes, before, kFresh}, &workspace, loss, gradient);
  EXPECT_EQ(allocation_count, allocations);
}

TEST(GatedMemoryDeathTest, NetThatRemembersMustBeToldWhat) {
  const GraphBatch batch = EpisodesBatch();
  const CandidateNet net = RememberingNet(BestKernels().isa);
  Workspace workspace;
  FloatVector logits(size_t(batch.candidate_count(0))), stop(1), value(1);
  EXPECT_DEATH(net.Forward(batch, 0, 1, &workspace, logits, stop, value), "memory");
}

}  // namespace
}  // namespace rudderfish::nn
