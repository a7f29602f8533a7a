// SPDX-License-Identifier: Apache-2.0
#include "nn/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/rng.h"

namespace rudderfish::nn {
namespace {

using Floats = std::vector<float>;

struct Distribution {
  Floats log_probabilities, probabilities;
};

Distribution Of(const std::vector<int32_t>& begin, const Floats& logits, const Floats& stop,
                const std::vector<uint8_t>& allowed = {}) {
  Distribution d{Floats(AlternativeCount(begin)), Floats(AlternativeCount(begin))};
  Softmax(begin, logits, stop, allowed, d.log_probabilities, d.probabilities);
  return d;
}

TEST(Softmax, StopIsTheLastAlternativeOfEachQuestion) {
  const std::vector<int32_t> begin = {
      4, 6, 6, 7};  // Two candidates, none, one; counted on from an earlier question.
  EXPECT_EQ(AlternativeCount(begin), 6U);
  const float ln2 = std::log(2.0F);
  const Distribution d = Of(begin, {0, ln2, 0}, {0, 5, ln2});
  const Floats expected = {0.25F, 0.5F, 0.25F, 1, 1 / 3.0F, 2 / 3.0F};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(d.probabilities[i], expected[i], 1e-6);
    EXPECT_NEAR(d.log_probabilities[i], std::log(expected[i]), 1e-6);
  }
}

TEST(Softmax, MaskedAlternativesHaveNoProbability) {
  const Distribution d = Of({0, 3}, {1, 100, 1}, {100}, {1, 0, 1, 0});
  EXPECT_EQ(d.probabilities, (Floats{0.5F, 0, 0.5F, 0}));
  EXPECT_EQ(d.log_probabilities[1], kForbidden);
  EXPECT_EQ(d.log_probabilities[3], kForbidden);
  EXPECT_NEAR(Entropy(d.log_probabilities, d.probabilities), std::log(2.0F), 1e-6);
}

TEST(Softmax, LargeScoresNeitherOverflowNorVanish) {
  const Distribution d = Of({0, 2}, {1e6F, 1e6F}, {-1e6F});
  EXPECT_NEAR(d.probabilities[0], 0.5, 1e-6);
  EXPECT_EQ(d.probabilities[2], 0);
  EXPECT_NEAR(d.log_probabilities[2], -2e6F - std::log(2.0F), 0.5F);
}

TEST(Softmax, QuestionDependsOnNoOtherToTheBit) {
  Rng rng(8);
  const std::vector<int32_t> begin = {0, 20, 57};
  Floats logits(57);
  for (float& logit : logits) logit = static_cast<float>(rng.Normal());
  const Distribution both = Of(begin, logits, {0.5F, 0.25F});
  const Distribution second = Of({0, 37}, Floats(logits.begin() + 20, logits.end()), {0.25F});
  EXPECT_EQ(std::memcmp(second.log_probabilities.data(), both.log_probabilities.data() + 21,
                        38 * sizeof(float)),
            0);
  EXPECT_EQ(
      std::memcmp(second.probabilities.data(), both.probabilities.data() + 21, 38 * sizeof(float)),
      0);
}

TEST(Softmax, NoQuestionsAreFine) { EXPECT_TRUE(Of({}, {}, {}).probabilities.empty()); }

TEST(SoftmaxDeathTest, QuestionWithEverythingMaskedIsABug) {
  EXPECT_DEATH(Of({0, 1}, {0}, {0}, {0, 0}), "any");
}

TEST(SampleAlternative, TakesTheFirstWhoseCumulativeProbabilityExceedsU) {
  const Floats p = {0.25F, 0, 0.5F, 0.25F};
  EXPECT_EQ(SampleAlternative(p, 0), 0);
  EXPECT_EQ(SampleAlternative(p, 0.2499), 0);
  EXPECT_EQ(SampleAlternative(p, 0.25), 2);
  EXPECT_EQ(SampleAlternative(p, 0.7499), 2);
  EXPECT_EQ(SampleAlternative(p, 0.75), 3);
}

TEST(SampleAlternative, NeverTakesWhatHasNoProbability) {
  EXPECT_EQ(SampleAlternative(Floats{0, 1, 0}, 0), 1);
  EXPECT_EQ(SampleAlternative(Floats{0.5F, 0.4999F, 0}, 0.99999),
            1);  // Where the sum is rounded below u.
}

TEST(SampleAlternative, FrequenciesAreTheProbabilities) {
  Rng rng(3);
  const Floats p = {0.1F, 0.6F, 0.3F};
  std::vector<int> count(3);
  for (int i = 0; i < 20000; ++i) ++count[size_t(SampleAlternative(p, rng.Uniform()))];
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(count[i] / 20000.0, p[i], 0.015);
}

TEST(Argmax, TakesTheLowestIndexOfEquals) {
  EXPECT_EQ(ArgmaxAlternative(Floats{1, 3, 3}), 1);
  EXPECT_EQ(ArgmaxOrStop(Floats{1, 3, 3}, 2), 1);
  EXPECT_EQ(ArgmaxOrStop(Floats{1, 3}, 3), 1);
  EXPECT_EQ(ArgmaxOrStop(Floats{1, 3}, 4), 2);
  EXPECT_EQ(ArgmaxOrStop(Floats{}, -4), 0);
}

TEST(Entropy, OfEqualAlternativesIsTheLogarithmOfTheirNumber) {
  const Distribution d = Of({0, 7}, Floats(7, 2.0F), {2.0F});
  EXPECT_NEAR(Entropy(d.log_probabilities, d.probabilities), std::log(8.0F), 1e-6);
}

}  // namespace
}  // namespace rudderfish::nn
