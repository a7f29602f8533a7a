// SPDX-License-Identifier: Apache-2.0
#include "nn/layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "tests/support/random_batch.h"

namespace rudderfish::nn {
namespace {

using Floats = std::vector<float>;

// loss = Σ c · relu(X W + b) in double: what the layer's gradients are compared with by central
// differences.
struct DenseLoss {
  int m, inputs, outputs;
  std::vector<double> x, w, b, c;

  double Value() const {
    double loss = 0;
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < outputs; ++j) {
        double y = b[size_t(j)];
        for (int k = 0; k < inputs; ++k)
          y += x[size_t(i * inputs + k)] * w[size_t(k * outputs + j)];
        loss += c[size_t(i * outputs + j)] * std::max(y, 0.0);
      }
    }
    return loss;
  }

  double Derivative(double* by) {
    constexpr double kStep = 1e-6;
    const double at = *by;
    *by = at + kStep;
    const double above = Value();
    *by = at - kStep;
    const double below = Value();
    *by = at;
    return (above - below) / (2 * kStep);
  }
};

class DenseLayersTest : public testing::TestWithParam<Isa> {};

TEST_P(DenseLayersTest, GradientsAreCentralDifferences) {
  const int m = 7, inputs = 16, outputs = 32;
  Rng rng(3);
  const auto random = [&rng](int n) {
    Floats values(static_cast<size_t>(n));
    for (float& value : values) value = static_cast<float>(rng.Normal());
    return values;
  };
  const Kernels& kernels = SelectKernels(GetParam());
  const Floats x = random(m * inputs), w = random(inputs * outputs), b = random(outputs),
               c = random(m * outputs);
  DenseLoss loss{m,
                 inputs,
                 outputs,
                 {x.begin(), x.end()},
                 {w.begin(), w.end()},
                 {b.begin(), b.end()},
                 {c.begin(), c.end()}};
  const DenseShape shape{inputs, outputs};
  DenseProfile profile;
  const DenseLayers dense(kernels, &profile);

  Floats y(static_cast<size_t>(m * outputs)), dy = c, dw(w.size()), db(b.size()), dx(x.size()),
                                              wt(w.size());
  dense.Forward(m, shape, {x.data(), inputs}, w.data(), b.data(), Activation::kRelu,
                {y.data(), outputs});
  kernels.relu_backward(m, outputs, y.data(), outputs, dy.data(), outputs);
  dense.WeightGradient(m, shape, {x.data(), inputs}, {dy.data(), outputs}, dw.data());
  dense.BiasGradient(m, shape, {dy.data(), outputs}, db.data());
  kernels.transpose(inputs, outputs, w.data(), wt.data());
  dense.InputGradient(m, shape, {dy.data(), outputs}, wt.data(), Initial::kZero,
                      {dx.data(), inputs});

  for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(dw[i], loss.Derivative(&loss.w[i]), 2e-4);
  for (size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(db[i], loss.Derivative(&loss.b[i]), 2e-4);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(dx[i], loss.Derivative(&loss.x[i]), 2e-4);
}

TEST_P(DenseLayersTest, ForwardOntoAddsToWhatIsThere) {
  const Floats x(16, 1.0F), w(16 * 16, 0.5F);
  Floats y(16, -10.0F);
  DenseProfile profile;
  DenseLayers(SelectKernels(GetParam()), &profile)
      .ForwardOnto(1, {16, 16}, {x.data(), 16}, w.data(), Activation::kNone, {y.data(), 16});
  EXPECT_EQ(y, Floats(16, -2.0F));
}

TEST_P(DenseLayersTest, ProfileCountsTheWorkOfItsProductsWhenOn) {
  const Floats x(48, 1.0F), w(48 * 16, 0.5F);
  Floats y(16);
  DenseProfile profile;
  const DenseLayers dense(SelectKernels(GetParam()), &profile);
  dense.Forward(1, {48, 16}, {x.data(), 48}, w.data(), nullptr, Activation::kNone, {y.data(), 16});
  EXPECT_EQ(profile.flops, 0);
  profile.state = DenseProfile::State::kOn;
  dense.Forward(1, {48, 16}, {x.data(), 48}, w.data(), nullptr, Activation::kNone, {y.data(), 16});
  EXPECT_EQ(profile.flops, 2 * 48 * 16);
  EXPECT_GE(profile.seconds, 0);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, DenseLayersTest, testing::ValuesIn(HostIsas()),
                         [](const auto& info) {
                           return std::string(SelectKernels(info.param).name);
                         });

}  // namespace
}  // namespace rudderfish::nn
