// SPDX-License-Identifier: Apache-2.0
#include "nn/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/random_batch.h"

namespace rudderfish::nn {
namespace {

using Floats = std::vector<float>;

class AdamTest : public testing::TestWithParam<Isa> {
 protected:
  const Kernels& k_ = SelectKernels(GetParam());
};

// By hand, gradient 1 then 3, rate 0.1: m = 0.1, v = 0.001, both corrected to 1: step 0.1. Then m =
// 0.39, corrected 0.39 / 0.19; v = 0.000999 + 0.009 = 0.009999, corrected 0.009999 / 0.001999.
TEST_P(AdamTest, FirstTwoStepsAreThoseComputedByHand) {
  Adam adam(1, {.epsilon = 1e-12F, .max_gradient_norm = 0}, k_);
  Floats w = {5};
  EXPECT_EQ(adam.Step(w, Floats{1}, 0.1F), 1);
  EXPECT_NEAR(w[0], 4.9, 1e-6);
  EXPECT_EQ(adam.Step(w, Floats{3}, 0.1F), 3);
  EXPECT_NEAR(w[0], 4.9 - 0.1 * (0.39 / 0.19) / std::sqrt(0.009999 / 0.001999), 1e-5);
  EXPECT_NEAR(adam.first_moment()[0], 0.39, 1e-6);
  EXPECT_NEAR(adam.second_moment()[0], 0.009999, 3e-7);  // 0.999 is not a float.
  EXPECT_EQ(adam.steps(), 2);
}

TEST_P(AdamTest, EpsilonIsAddedToTheRoot) {
  Adam adam(1, {.epsilon = 1, .max_gradient_norm = 0}, k_);
  Floats w = {0};
  adam.Step(w, Floats{2}, 0.1F);
  EXPECT_NEAR(w[0], -0.1 * 2 / (2 + 1), 1e-6);
}

TEST_P(AdamTest, GradientIsScaledDownToTheNorm) {
  const int n = 37;
  Adam clipped(n, {.max_gradient_norm = 0.5F}, k_), scaled(n, {.max_gradient_norm = 0}, k_);
  Floats w1(n, 1.0F), w2(n, 1.0F), gradient(n), smaller(n);
  for (int i = 0; i < n; ++i) gradient[size_t(i)] = 0.1F * static_cast<float>(i - 9);
  const float norm = clipped.Step(w1, gradient, 0.01F);
  double squares = 0;
  for (const float g : gradient) squares += double{g} * g;
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-4);
  for (int i = 0; i < n; ++i) smaller[size_t(i)] = gradient[size_t(i)] * 0.5F / norm;
  scaled.Step(w2, smaller, 0.01F);
  for (int i = 0; i < n; ++i) {
    EXPECT_NEAR(clipped.first_moment()[size_t(i)], scaled.first_moment()[size_t(i)], 1e-7);
    EXPECT_NEAR(w1[size_t(i)], w2[size_t(i)], 1e-6);
  }
}

TEST_P(AdamTest, GradientBelowTheNormIsLeftAlone) {
  Adam clipped(2, {.max_gradient_norm = 0.5F}, k_), free(2, {.max_gradient_norm = 0}, k_);
  Floats w1(2), w2(2);
  clipped.Step(w1, Floats{0.3F, -0.3F}, 0.1F);
  free.Step(w2, Floats{0.3F, -0.3F}, 0.1F);
  EXPECT_EQ(w1, w2);
}

TEST_P(AdamTest, RestoredStateGoesOnToTheBit) {
  Adam whole(20, {}, k_), restored(20, {}, k_);
  Floats w(20, 1.0F), gradient(20);
  for (int step = 0; step < 3; ++step) {
    for (size_t i = 0; i < 20; ++i)
      gradient[i] = std::sin(static_cast<float>(i) + static_cast<float>(step));
    whole.Step(w, gradient, 0.01F);
  }
  Floats w2 = w;
  restored.Restore(whole.steps(), whole.first_moment(), whole.second_moment());
  whole.Step(w, gradient, 0.01F);
  restored.Step(w2, gradient, 0.01F);
  EXPECT_EQ(w, w2);
  EXPECT_EQ(restored.steps(), 4);
}

TEST_P(AdamTest, GradientThatIsNotFiniteChangesNothing) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Adam adam(2, {}, k_);
    Floats w = {1, 2};
    EXPECT_FALSE(std::isfinite(adam.Step(w, Floats{1, bad}, 0.1F)));
    EXPECT_EQ(w, (Floats{1, 2}));
    EXPECT_EQ(adam.steps(), 0);
    EXPECT_EQ(adam.first_moment()[0], 0);
  }
}

TEST_P(AdamTest, FindsTheMinimumOfABowl) {
  Adam adam(2, {.max_gradient_norm = 0}, k_);
  Floats w = {3, -2};
  for (int i = 0; i < 3000; ++i) adam.Step(w, Floats{w[0] - 1, 10 * (w[1] - 2)}, 0.01F);
  EXPECT_NEAR(w[0], 1, 1e-2);
  EXPECT_NEAR(w[1], 2, 1e-2);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, AdamTest, testing::ValuesIn(HostIsas()), [](const auto& info) {
  return std::string(SelectKernels(info.param).name);
});

}  // namespace
}  // namespace rudderfish::nn
