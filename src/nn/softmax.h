// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nn/kernel.h"

// From scores to choices. The alternatives of a question are its candidates in order and then stop,
// so n candidates make n + 1 alternatives; those of several questions lie one after another without
// gaps. An alternative that is masked has log-probability kForbidden and probability 0. Any thread.

namespace rudderfish::nn {

// Alternatives of the questions that candidate_begin (questions + 1 entries) describes.
inline size_t AlternativeCount(std::span<const int32_t> candidate_begin) {
  return candidate_begin.empty()
             ? 0
             : static_cast<size_t>(candidate_begin.back() - candidate_begin.front()) +
                   candidate_begin.size() - 1;
}

// Log-softmax of every question. `logits` begins with the first candidate of the first question,
// `stop` has one entry a question; `allowed` has one entry an alternative, or is empty where all
// are. REQUIRES: each question allows at least one; both outputs hold
// AlternativeCount(candidate_begin).
void Softmax(std::span<const int32_t> candidate_begin, std::span<const float> logits,
             std::span<const float> stop, std::span<const uint8_t> allowed,
             std::span<float> log_probabilities, std::span<float> probabilities,
             const Kernels& kernels = BestKernels());

// The first alternative whose cumulative probability, summed in order, exceeds u. REQUIRES: u in
// [0, 1), one question.
int SampleAlternative(std::span<const float> probabilities, double u);

// The lowest index of the largest. REQUIRES: not empty.
int ArgmaxAlternative(std::span<const float> scores);

// -Σ p log p, in nats.
float Entropy(std::span<const float> log_probabilities, std::span<const float> probabilities);

// One question, without a buffer for probabilities: argmax over `logits` and `stop`, the index of
// stop being logits.size().
int ArgmaxOrStop(std::span<const float> logits, float stop);

}  // namespace rudderfish::nn
