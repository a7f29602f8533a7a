// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "nn/candidate_net.h"
#include "nn/checkpoint.h"
#include "nn/safetensors.h"
#include "tests/support/random_batch.h"
#include "tests/support/source_path.h"

// The network against tests/golden/candidate_net.safetensors, which tests/golden/nn_reference.py
// computed in NumPy and the published safetensors package wrote.

namespace rudderfish::nn {
namespace {

using Floats = std::vector<float>;

const SafetensorsFile& Golden() {
  static const SafetensorsFile* const file = [] {
    auto read = SafetensorsFile::Read(SourcePath("tests/golden/candidate_net.safetensors"));
    CHECK(read.has_value());
    return new SafetensorsFile(*std::move(read));
  }();
  return *file;
}

template <class T>
std::vector<T> Values(const std::string& name) {
  auto values = Golden().Values<T>(name);
  CHECK(values.has_value());
  return *std::move(values);
}

FloatRows Rows(const std::string& name) {
  const std::vector<float> values = Values<float>(name);
  return {values.begin(), values.end()};
}

GraphBatch GoldenBatch(const std::string& prefix, const GraphWidths& widths) {
  GraphBatch batch;
  batch.widths = widths;
  batch.candidate_begin = Values<int32_t>(prefix + "candidate_begin");
  batch.node_begin = Values<int32_t>(prefix + "node_begin");
  batch.workload_begin = Values<int32_t>(prefix + "workload_begin");
  batch.placement_begin = Values<int32_t>(prefix + "placement_begin");
  batch.call_begin = Values<int32_t>(prefix + "call_begin");
  batch.samples = static_cast<int>(batch.candidate_begin.size()) - 1;
  batch.candidates = Rows(prefix + "candidates");
  batch.nodes = Rows(prefix + "nodes");
  batch.workloads = Rows(prefix + "workloads");
  batch.context = Rows(prefix + "context");
  const auto ends = Values<int32_t>(prefix + "ends");
  for (size_t i = 0; i < ends.size(); i += 3)
    batch.ends.push_back({ends[i], ends[i + 1], ends[i + 2]});
  const auto edges = [&](const std::string& indices, const std::string& weights,
                         std::vector<GraphEdge>* out) {
    const auto index = Values<int32_t>(prefix + indices);
    const auto weight = Values<float>(prefix + weights);
    for (size_t i = 0; i < weight.size(); ++i)
      out->push_back({index[2 * i], index[2 * i + 1], weight[i]});
  };
  edges("placements", "placement_weights", &batch.placements);
  edges("calls", "call_weights", &batch.calls);
  return batch;
}

void ExpectNear(const Floats& actual, const Floats& expected, const std::string& name) {
  ASSERT_EQ(actual.size(), expected.size()) << name;
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 5e-5 * (1 + std::abs(expected[i]))) << name << " " << i;
  }
}

class GoldenTest : public testing::TestWithParam<std::tuple<std::string, Isa>> {};

TEST_P(GoldenTest, OutputsAndGradientsAreThoseOfNumPy) {
  const std::string prefix = std::get<0>(GetParam()) + ".";
  const auto shape = StoredNetShape(Golden(), prefix + "net.");
  ASSERT_TRUE(shape.has_value()) << shape.error().message;
  CandidateNet net(*shape, SelectKernels(std::get<1>(GetParam())));
  const auto loaded = LoadNet(Golden(), &net, prefix + "net.");
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const GraphBatch batch = GoldenBatch(prefix, shape->widths);

  Workspace workspace;
  Floats logits(batch.ends.size()), stop(size_t(batch.samples)), value(stop.size()),
      gradient(net.parameters().size());
  net.Forward(batch, 0, batch.samples, &workspace, logits, stop, value);
  ExpectNear(logits, Values<float>(prefix + "logits"), "logits");
  ExpectNear(stop, Values<float>(prefix + "stop"), "stop");
  ExpectNear(value, Values<float>(prefix + "value"), "value");
  net.Backward(batch, 0, batch.samples, &workspace, Values<float>(prefix + "dlogits"),
               Values<float>(prefix + "dstop"), Values<float>(prefix + "dvalue"), gradient);
  for (const NamedTensor& tensor : net.tensors()) {
    const auto first = gradient.begin() + static_cast<ptrdiff_t>(tensor.offset);
    ExpectNear(Floats(first, first + tensor.rows * tensor.columns),
               Values<float>(prefix + "gradient." + tensor.name), tensor.name);
  }
}

class GoldenMemoryTest : public testing::TestWithParam<Isa> {};

TEST_P(GoldenMemoryTest, OutputsAndGradientsThroughTimeAreThoseOfNumPy) {
  const std::string prefix = "gru.";
  const auto shape = StoredNetShape(Golden(), prefix + "net.");
  ASSERT_TRUE(shape.has_value()) << shape.error().message;
  CandidateNet net(*shape, SelectKernels(GetParam()));
  const auto loaded = LoadNet(Golden(), &net, prefix + "net.");
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const GraphBatch batch = GoldenBatch(prefix, shape->widths);
  const Floats before = Values<float>(prefix + "before");
  const auto wanted = [&](const char* name) { return Values<float>(prefix + name); };

  Workspace workspace;
  Floats gradient(net.parameters().size());
  net.AccumulateSequenceGradient(
      batch, {.lanes = 2, .before = before, .fresh = std::vector<uint8_t>{0, 1, 0, 1, 0, 0}},
      &workspace,
      [&](const CandidateNet::Heads& heads) {
        ExpectNear({heads.logits.begin(), heads.logits.end()}, wanted("logits"), "logits");
        ExpectNear({heads.stop.begin(), heads.stop.end()}, wanted("stop"), "stop");
        ExpectNear({heads.value.begin(), heads.value.end()}, wanted("value"), "value");
        const Floats dlogits = wanted("dlogits"), dstop = wanted("dstop"),
                     dvalue = wanted("dvalue");
        std::copy(dlogits.begin(), dlogits.end(), heads.dlogits.begin());
        std::copy(dstop.begin(), dstop.end(), heads.dstop.begin());
        std::copy(dvalue.begin(), dvalue.end(), heads.dvalue.begin());
      },
      gradient);
  for (const NamedTensor& tensor : net.tensors()) {
    const auto first = gradient.begin() + static_cast<ptrdiff_t>(tensor.offset);
    ExpectNear(Floats(first, first + tensor.rows * tensor.columns),
               Values<float>(prefix + "gradient." + tensor.name), tensor.name);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, GoldenMemoryTest, testing::ValuesIn(HostIsas()),
                         [](const auto& info) {
                           return std::string(SelectKernels(info.param).name);
                         });

INSTANTIATE_TEST_SUITE_P(EveryIsa, GoldenTest,
                         testing::Combine(testing::Values("one", "two", "gcn", "gatv2", "deepsets",
                                                          "mlp"),
                                          testing::ValuesIn(HostIsas())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  SelectKernels(std::get<1>(info.param)).name;
                         });

}  // namespace
}  // namespace rudderfish::nn
