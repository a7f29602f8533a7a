// SPDX-License-Identifier: Apache-2.0
#include "nn/softmax.h"

#include <algorithm>

#include "base/check.h"

namespace rudderfish::nn {

void Softmax(std::span<const int32_t> candidate_begin, std::span<const float> logits,
             std::span<const float> stop, std::span<const uint8_t> allowed,
             std::span<float> log_probabilities, std::span<float> probabilities,
             const Kernels& kernels) {
  if (candidate_begin.size() <= 1) return;
  const size_t questions = candidate_begin.size() - 1,
               alternatives = AlternativeCount(candidate_begin);
  CHECK_EQ(logits.size(), alternatives - questions);
  CHECK_EQ(stop.size(), questions);
  CHECK(allowed.empty() || allowed.size() == alternatives);
  CHECK_EQ(log_probabilities.size(), alternatives);
  CHECK_EQ(probabilities.size(), alternatives);

  size_t at = 0;
  for (size_t q = 0; q < questions; ++q) {
    const auto candidates = static_cast<size_t>(candidate_begin[q + 1] - candidate_begin[q]);
    const std::span<float> scores = log_probabilities.subspan(at, candidates + 1);
    std::copy_n(logits.begin() + static_cast<ptrdiff_t>(at - q), candidates, scores.begin());
    scores.back() = stop[q];
    bool any = allowed.empty();
    if (!allowed.empty()) {
      for (size_t i = 0; i <= candidates; ++i) {
        any |= allowed[at + i] != 0;
        if (allowed[at + i] == 0) scores[i] = kForbidden;
      }
    }
    CHECK(any);
    kernels.log_softmax(static_cast<int>(candidates) + 1, scores.data(), scores.data(),
                        probabilities.data() + at);
    at += candidates + 1;
  }
}

int SampleAlternative(std::span<const float> probabilities, double u) {
  CHECK(!probabilities.empty());
  double cumulative = 0;
  int last_possible = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] <= 0) continue;
    cumulative += static_cast<double>(probabilities[i]);
    last_possible = static_cast<int>(i);
    if (cumulative > u) break;
  }
  return last_possible;  // Also where rounding left the sum below u.
}

int ArgmaxAlternative(std::span<const float> scores) {
  CHECK(!scores.empty());
  return static_cast<int>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

int ArgmaxOrStop(std::span<const float> logits, float stop) {
  if (logits.empty()) return 0;
  const int best = ArgmaxAlternative(logits);
  return logits[static_cast<size_t>(best)] >= stop ? best : static_cast<int>(logits.size());
}

float Entropy(std::span<const float> log_probabilities, std::span<const float> probabilities) {
  CHECK_EQ(log_probabilities.size(), probabilities.size());
  float entropy = 0;
  for (size_t i = 0; i < probabilities.size(); ++i)
    entropy -= probabilities[i] * log_probabilities[i];
  return entropy;
}

}  // namespace rudderfish::nn
