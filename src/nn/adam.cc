// SPDX-License-Identifier: Apache-2.0
#include "nn/adam.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace rudderfish::nn {

Adam::Adam(size_t parameters, const AdamOptions& options, const Kernels& kernels)
    : options_(options), kernels_(&kernels), first_(parameters, 0.0F), second_(parameters, 0.0F) {
  CHECK_GE(options.beta1, 0.0F);
  CHECK_LT(options.beta1, 1.0F);
  CHECK_GE(options.beta2, 0.0F);
  CHECK_LT(options.beta2, 1.0F);
  CHECK_GT(options.epsilon, 0.0F);
  CHECK_GE(options.max_gradient_norm, 0.0F);
}

float Adam::Step(std::span<float> weights, std::span<const float> gradient, float learning_rate) {
  CHECK_EQ(weights.size(), first_.size());
  CHECK_EQ(gradient.size(), first_.size());
  const double norm = std::sqrt(kernels_->sum_of_squares(gradient.size(), gradient.data()));
  if (!std::isfinite(norm)) return static_cast<float>(norm);
  ++steps_;
  const auto steps = static_cast<double>(steps_);
  const double limit = options_.max_gradient_norm;
  const AdamStep step{
      .beta1 = options_.beta1,
      .beta2 = options_.beta2,
      .epsilon = options_.epsilon,
      .gradient_scale = limit > 0 && norm > limit ? static_cast<float>(limit / norm) : 1.0F,
      .rate = static_cast<float>(learning_rate /
                                 (1 - std::pow(static_cast<double>(options_.beta1), steps))),
      .second_scale =
          static_cast<float>(1 / (1 - std::pow(static_cast<double>(options_.beta2), steps)))};
  kernels_->adam(weights.size(), step, gradient.data(), first_.data(), second_.data(),
                 weights.data());
  return static_cast<float>(norm);
}

void Adam::Restore(int64_t steps, std::span<const float> first_moment,
                   std::span<const float> second_moment) {
  CHECK_GE(steps, 0);
  CHECK_EQ(first_moment.size(), first_.size());
  CHECK_EQ(second_moment.size(), second_.size());
  steps_ = steps;
  std::copy(first_moment.begin(), first_moment.end(), first_.begin());
  std::copy(second_moment.begin(), second_moment.end(), second_.begin());
}

}  // namespace rudderfish::nn
