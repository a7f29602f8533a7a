// SPDX-License-Identifier: Apache-2.0
#include "nn/candidate_net.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/support/count_allocations.h"
#include "tests/support/random_batch.h"
#include "tests/support/reference_net.h"

namespace rudderfish::nn {
namespace {

using Floats = std::vector<float>;

struct Outputs {
  Floats logits, stop, value;
};

constexpr GraphWidths kWidths{.candidate = 32, .node = 16, .workload = 16, .context = 16};

// Questions of all kinds: usual, large, without calls, without candidates, without anything.
GraphBatch MixedBatch(uint64_t seed = 5) {
  return RandomBatch(kWidths,
                     {{9, 4, 3, 6, 3},
                      {21, 6, 5, 9, 6},
                      {1, 1, 1, 1, 0},
                      {0, 3, 2, 2, 1},
                      {0, 0, 0, 0, 0},
                      {3, 0, 2, 0, 1},
                      {2, 2, 0, 0, 0}},
                     seed);
}

CandidateNet RandomNet(const NetShape& shape, const Kernels& kernels = BestKernels()) {
  CandidateNet net(shape, kernels);
  Rng rng(7);
  net.Initialize(&rng);
  // Larger heads and biases than a fresh net has, so that every part matters to the outputs.
  for (const NamedTensor& tensor : net.tensors()) {
    if (tensor.rows > 1) continue;
    for (float& value : net.tensor(tensor.name)) value = static_cast<float>(0.3 * rng.Normal());
  }
  return net;
}

Outputs Evaluate(const CandidateNet& net, const GraphBatch& batch, int first, int count,
                 Workspace* workspace) {
  Outputs outputs;
  outputs.logits.resize(
      size_t(batch.candidate_begin[first + count] - batch.candidate_begin[first]));
  outputs.stop.resize(size_t(count));
  outputs.value.resize(size_t(count));
  net.Forward(batch, first, count, workspace, outputs.logits, outputs.stop, outputs.value);
  return outputs;
}

Outputs Evaluate(const CandidateNet& net, const GraphBatch& batch) {
  Workspace workspace;
  return Evaluate(net, batch, 0, batch.samples, &workspace);
}

// Weights of a loss that is linear in the outputs.
Outputs RandomDerivatives(const GraphBatch& batch) {
  Rng rng(11);
  const auto random = [&rng](size_t n) {
    Floats values(n);
    for (float& value : values) value = static_cast<float>(rng.Normal());
    return values;
  };
  return {random(batch.ends.size()), random(size_t(batch.samples)), random(size_t(batch.samples))};
}

Floats GradientOf(const CandidateNet& net, const GraphBatch& batch, const Outputs& derivatives) {
  Workspace workspace;
  Evaluate(net, batch, 0, batch.samples, &workspace);
  Floats gradient(net.parameters().size());
  net.Backward(batch, 0, batch.samples, &workspace, derivatives.logits, derivatives.stop,
               derivatives.value, gradient);
  return gradient;
}

double ReferenceLoss(const ReferenceNet& net, const GraphBatch& batch, const Outputs& weights) {
  double loss = 0;
  for (int s = 0; s < batch.samples; ++s) {
    const ReferenceNet::Outputs outputs = net.Forward(batch, s);
    for (size_t i = 0; i < outputs.logits.size(); ++i) {
      loss += outputs.logits[i] * weights.logits[size_t(batch.candidate_begin[s]) + i];
    }
    loss += outputs.stop * weights.stop[size_t(s)] + outputs.value * weights.value[size_t(s)];
  }
  return loss;
}

struct NetCase {
  Isa isa;
  int hidden;
  int rounds;
  Encoder encoder = Encoder::kRelational;
};

class CandidateNetTest : public testing::TestWithParam<NetCase> {
 protected:
  NetShape Shape() const {
    return {.widths = kWidths,
            .hidden = GetParam().hidden,
            .rounds = GetParam().rounds,
            .encoder = GetParam().encoder};
  }
  CandidateNet Net() const { return RandomNet(Shape(), SelectKernels(GetParam().isa)); }
};

TEST_P(CandidateNetTest, OutputsEqualTheFormulasInDouble) {
  const CandidateNet net = Net();
  const GraphBatch batch = MixedBatch();
  const Outputs outputs = Evaluate(net, batch);
  const ReferenceNet reference(net);
  for (int s = 0; s < batch.samples; ++s) {
    const ReferenceNet::Outputs expected = reference.Forward(batch, s);
    for (size_t i = 0; i < expected.logits.size(); ++i) {
      EXPECT_NEAR(outputs.logits[size_t(batch.candidate_begin[s]) + i], expected.logits[i], 1e-4);
    }
    EXPECT_NEAR(outputs.stop[size_t(s)], expected.stop, 1e-4);
    EXPECT_NEAR(outputs.value[size_t(s)], expected.value, 1e-4);
  }
}

// In float the network's own gradient, in double the differences: what is left is float's rounding.
TEST_P(CandidateNetTest, GradientIsTheCentralDifferenceOfTheFormulas) {
  const CandidateNet net = Net();
  const GraphBatch batch = MixedBatch();
  const Outputs derivatives = RandomDerivatives(batch);
  const Floats gradient = GradientOf(net, batch, derivatives);
  ExpectCentralDifferences(
      net, gradient,
      [&](const ReferenceNet& reference) { return ReferenceLoss(reference, batch, derivatives); },
      2e-4);
}

TEST_P(CandidateNetTest, QuestionDependsOnNothingElseInTheBatchToTheBit) {
  const CandidateNet net = Net();
  const GraphBatch batch = MixedBatch();
  const Outputs together = Evaluate(net, batch);
  for (int s = 0; s < batch.samples; ++s) {
    GraphBatch alone;
    alone.widths = batch.widths;
    alone.Append(batch, s);
    const Outputs outputs = Evaluate(net, alone);
    const auto first = together.logits.begin() + batch.candidate_begin[s];
    EXPECT_EQ(outputs.logits, Floats(first, first + batch.candidate_count(s)));
    EXPECT_EQ(outputs.stop[0], together.stop[size_t(s)]);
    EXPECT_EQ(outputs.value[0], together.value[size_t(s)]);
  }
}

TEST_P(CandidateNetTest, BlocksAndKeepingMakeNoDifferenceToTheBit) {
  const CandidateNet net = Net();
  std::vector<QuestionSize> sizes(3 * CandidateNet::kBlockSamples + 5, {4, 3, 2, 3, 1});
  sizes[7] = {900, 3, 2, 3, 1};
  sizes[8] = {900, 3, 2, 3, 1};
  const GraphBatch batch = RandomBatch(kWidths, sizes, 3);
  const Outputs together = Evaluate(net, batch);
  Workspace forgetful(Workspace::Keep::kNothing);
  const Outputs again = Evaluate(net, batch, 0, batch.samples, &forgetful);
  EXPECT_EQ(again.logits, together.logits);
  EXPECT_EQ(again.stop, together.stop);
  EXPECT_EQ(again.value, together.value);
  const Outputs part = Evaluate(net, batch, 5, 60, &forgetful);
  EXPECT_EQ(part.value, Floats(together.value.begin() + 5, together.value.begin() + 65));
}

TEST_P(CandidateNetTest, AccumulateGradientIsForwardThenBackward) {
  const CandidateNet net = Net();
  const GraphBatch batch = RandomBatch(kWidths, std::vector<QuestionSize>(70, {5, 3, 2, 3, 2}), 3);
  const Outputs expected = Evaluate(net, batch);
  const Floats two_steps = GradientOf(net, batch, expected);  // Of half the sum of squares.
  Workspace workspace;
  Floats one_step(net.parameters().size());
  net.AccumulateGradient(
      batch, 0, batch.samples, &workspace,
      [&](const CandidateNet::Heads& heads) {
        EXPECT_EQ(heads.stop[0], expected.stop[size_t(heads.first)]);
        std::copy(heads.logits.begin(), heads.logits.end(), heads.dlogits.begin());
        std::copy(heads.stop.begin(), heads.stop.end(), heads.dstop.begin());
        std::copy(heads.value.begin(), heads.value.end(), heads.dvalue.begin());
      },
      one_step);
  EXPECT_EQ(one_step, two_steps);
}

TEST_P(CandidateNetTest, GradientIsAddedToWhatIsThere) {
  const CandidateNet net = Net();
  const GraphBatch batch = MixedBatch();
  const Outputs derivatives = RandomDerivatives(batch);
  const Floats once = GradientOf(net, batch, derivatives);
  Workspace workspace;
  Floats twice(once.size());
  for (int i = 0; i < 2; ++i) {
    Evaluate(net, batch, 0, batch.samples, &workspace);
    net.Backward(batch, 0, batch.samples, &workspace, derivatives.logits, derivatives.stop,
                 derivatives.value, twice);
  }
  for (size_t i = 0; i < once.size(); ++i)
    EXPECT_NEAR(twice[i], 2 * once[i], 1e-3 * (1 + std::abs(once[i])));
}

constexpr Encoder kOthers[] = {Encoder::kGcn, Encoder::kGatv2, Encoder::kDeepSets, Encoder::kMlp};

std::vector<NetCase> NetCases() {
  std::vector<NetCase> cases;
  for (const Isa isa : HostIsas()) {
    cases.push_back({isa, 32, 1});
    cases.push_back({isa, 16, 2});
  }
  cases.push_back({HostIsas().back(), 64, 1});
  cases.push_back({HostIsas().back(), 48, 3});
  for (const Encoder encoder : kOthers) {
    cases.push_back({Isa::kPortable, 32, 1, encoder});
    cases.push_back({HostIsas().back(), 32, 2, encoder});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(EveryShape, CandidateNetTest, testing::ValuesIn(NetCases()),
                         [](const auto& info) {
                           return std::string(SelectKernels(info.param.isa).name) + "_h" +
                                  std::to_string(info.param.hidden) + "_r" +
                                  std::to_string(info.param.rounds) + "_" +
                                  std::string(EncoderName(info.param.encoder));
                         });

TEST(CandidateNet, InstructionSetsAgree) {
  const GraphBatch batch = MixedBatch();
  const NetShape shape{.widths = kWidths};
  const Outputs derivatives = RandomDerivatives(batch);
  const CandidateNet portable = RandomNet(shape, SelectKernels(Isa::kPortable));
  const Outputs expected = Evaluate(portable, batch);
  const Floats expected_gradient = GradientOf(portable, batch, derivatives);
  for (const Isa isa : HostIsas()) {
    const CandidateNet net = RandomNet(shape, SelectKernels(isa));
    const Outputs outputs = Evaluate(net, batch);
    const Floats gradient = GradientOf(net, batch, derivatives);
    for (size_t i = 0; i < outputs.logits.size(); ++i)
      EXPECT_NEAR(outputs.logits[i], expected.logits[i], 1e-5);
    for (size_t i = 0; i < outputs.value.size(); ++i) {
      EXPECT_NEAR(outputs.stop[i], expected.stop[i], 1e-5);
      EXPECT_NEAR(outputs.value[i], expected.value[i], 1e-5);
    }
    for (size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_NEAR(gradient[i], expected_gradient[i], 1e-5 * (1 + std::abs(expected_gradient[i])));
    }
  }
}

// perm[i]: where row i of the old table went.
std::vector<int> Permutation(int n, Rng* rng) {
  std::vector<int> perm(static_cast<size_t>(n));
  std::iota(perm.begin(), perm.end(), 0);
  for (int i = n - 1; i > 0; --i) std::swap(perm[size_t(i)], perm[rng->Below(uint32_t(i) + 1)]);
  return perm;
}

template <class Rows>
Rows PermuteRows(const Rows& values, const std::vector<int>& perm, int width) {
  Rows result(values.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    std::copy_n(values.begin() + ptrdiff_t(i) * width, width,
                result.begin() + ptrdiff_t(perm[i]) * width);
  }
  return result;
}

class EncoderTest : public testing::TestWithParam<Encoder> {};

INSTANTIATE_TEST_SUITE_P(Every, EncoderTest,
                         testing::Values(Encoder::kRelational, Encoder::kGcn, Encoder::kGatv2,
                                         Encoder::kDeepSets, Encoder::kMlp),
                         [](const auto& info) { return std::string(EncoderName(info.param)); });

TEST_P(EncoderTest, RelabellingRelabelsTheLogits) {
  const GraphBatch batch = RandomBatch(kWidths, {{15, 6, 5, 9, 5}}, 2);
  Rng rng(4);
  const std::vector<int> candidates = Permutation(15, &rng), nodes = Permutation(6, &rng),
                         workloads = Permutation(5, &rng);
  GraphBatch relabelled = batch;
  relabelled.candidates = PermuteRows(batch.candidates, candidates, kWidths.candidate);
  relabelled.nodes = PermuteRows(batch.nodes, nodes, kWidths.node);
  relabelled.workloads = PermuteRows(batch.workloads, workloads, kWidths.workload);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const CandidateEnds& ends = batch.ends[i];
    relabelled.ends[size_t(candidates[i])] = {workloads[size_t(ends.workload)],
                                              nodes[size_t(ends.from)], nodes[size_t(ends.to)]};
  }
  for (GraphEdge& edge : relabelled.placements)
    edge = {nodes[size_t(edge.a)], workloads[size_t(edge.b)], edge.weight};
  for (GraphEdge& edge : relabelled.calls)
    edge = {workloads[size_t(edge.a)], workloads[size_t(edge.b)], edge.weight};

  const CandidateNet net = RandomNet({.widths = kWidths, .rounds = 2, .encoder = GetParam()});
  const Outputs before = Evaluate(net, batch), after = Evaluate(net, relabelled);
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_NEAR(after.logits[size_t(candidates[i])], before.logits[i], 1e-5);
  }
  EXPECT_NEAR(after.stop[0], before.stop[0], 1e-5);
  EXPECT_NEAR(after.value[0], before.value[0], 1e-5);
}

TEST_P(EncoderTest, AllocatesNothingOnceItHasSeenTheLargestBatch) {
  const CandidateNet net = RandomNet({.widths = kWidths, .encoder = GetParam()});
  const GraphBatch batch = RandomBatch(kWidths, std::vector<QuestionSize>(70, {5, 3, 2, 3, 2}), 3);
  Workspace workspace;
  Outputs outputs = Evaluate(net, batch, 0, batch.samples, &workspace);
  Floats gradient(net.parameters().size());
  const auto loss = [](const CandidateNet::Heads& heads) {
    std::fill(heads.dlogits.begin(), heads.dlogits.end(), 1.0F);
    std::fill(heads.dstop.begin(), heads.dstop.end(), 1.0F);
    std::fill(heads.dvalue.begin(), heads.dvalue.end(), 1.0F);
  };
  const auto everything = [&] {
    net.Forward(batch, 0, batch.samples, &workspace, outputs.logits, outputs.stop, outputs.value);
    net.Backward(batch, 0, batch.samples, &workspace, outputs.logits, outputs.stop, outputs.value,
                 gradient);
    net.AccumulateGradient(batch, 3, 50, &workspace, loss, gradient);
  };
  everything();
  const long before = allocation_count;
  everything();
  EXPECT_EQ(allocation_count, before);
}

// Only what an encoder looks at may matter to it.
TEST_P(EncoderTest, EdgesAndTheirWeightsMatterToThoseThatReadThem) {
  const CandidateNet net = RandomNet({.widths = kWidths, .encoder = GetParam()});
  const GraphBatch batch = MixedBatch();
  GraphBatch heavier = batch;
  for (GraphEdge& edge : heavier.calls) edge.weight *= 2;
  GraphBatch turned = batch;
  for (GraphEdge& edge : turned.calls) std::swap(edge.a, edge.b);
  const Floats before = Evaluate(net, batch).value;
  const bool reads = GetParam() != Encoder::kDeepSets && GetParam() != Encoder::kMlp;
  EXPECT_EQ(Evaluate(net, heavier).value != before, reads);
  EXPECT_EQ(Evaluate(net, turned).value != before, reads);
  GraphBatch other = batch;
  other.workloads[0] += 1;
  // The first question has workloads, which all candidates and pools read.
  EXPECT_NE(Evaluate(net, other).value[0], before[0]);
}

TEST(CandidateNet, UnknownEncoderIsRefusedWithTheNearest) {
  const Result<Encoder> found = EncoderNamed("gatv3");
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().message.find("did you mean `gatv2`?"), std::string::npos);
  for (const std::string_view name : kEncoderNames)
    EXPECT_EQ(EncoderName(*EncoderNamed(name)), name);
}

TEST_P(EncoderTest, TensorsTileTheParametersAtCacheLines) {
  const CandidateNet net({.widths = kWidths, .hidden = 32, .rounds = 2, .encoder = GetParam()});
  size_t end = 0;
  for (const NamedTensor& tensor : net.tensors()) {
    EXPECT_EQ(tensor.offset, (end + 15) / 16 * 16) << tensor.name;
    end = tensor.offset + size_t(tensor.rows) * size_t(tensor.columns);
  }
  EXPECT_EQ(net.parameters().size(), (end + 15) / 16 * 16);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(net.parameters().data()) % 64, 0U);
}

TEST(CandidateNet, InitializeScalesWeightsByFanInAndLeavesBiasesZero) {
  CandidateNet net(
      {.widths = {.candidate = 48, .node = 32, .workload = 32, .context = 96}, .hidden = 64});
  Rng rng(1);
  net.Initialize(&rng);
  const auto deviation = [&](std::string_view name) {
    double squares = 0;
    for (const float value : net.tensor(name)) squares += double{value} * value;
    return std::sqrt(squares / double(net.tensor(name).size()));
  };
  EXPECT_NEAR(deviation("candidate.weight"), 1.4 / std::sqrt(48), 0.01);
  EXPECT_NEAR(deviation("score.weight"), 1.2 / 8, 0.01);
  EXPECT_NEAR(deviation("logit.weight"), 0.05 / 8, 0.002);
  EXPECT_NEAR(deviation("value.weight"), 0.1, 0.03);
  for (const char* name :
       {"candidate.bias", "context.bias", "logit.skip", "stop.bias", "value.bias"}) {
    EXPECT_EQ(deviation(name), 0) << name;
  }
}

TEST_P(EncoderTest, FlopsAreThoseOfItsProducts) {
  const GraphBatch batch = MixedBatch();
  const CandidateNet net = RandomNet({.widths = kWidths, .rounds = 2, .encoder = GetParam()});
  Workspace workspace;
  workspace.profile.state = DenseProfile::State::kOn;
  Evaluate(net, batch, 0, batch.samples, &workspace);
  EXPECT_EQ(workspace.profile.flops, net.ForwardFlops(batch));
}

TEST(CandidateNetDeathTest, EndOutsideItsOwnQuestionIsABug) {
  GraphBatch batch = MixedBatch();
  batch.ends[0].to = 4;  // The first node of the next question.
  const CandidateNet net = RandomNet({.widths = kWidths});
  EXPECT_DEATH(Evaluate(net, batch), "valid");
}

TEST(CandidateNetDeathTest, BackwardWithoutItsForwardIsABug) {
  const GraphBatch batch = MixedBatch();
  const CandidateNet net = RandomNet({.widths = kWidths});
  Workspace workspace;
  const Outputs outputs = Evaluate(net, batch, 0, 2, &workspace);
  Floats gradient(net.parameters().size());
  EXPECT_DEATH(
      net.Backward(batch, 1, 2, &workspace, outputs.logits, outputs.stop, outputs.value, gradient),
      "first");
}

}  // namespace
}  // namespace rudderfish::nn
