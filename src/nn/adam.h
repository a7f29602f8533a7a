// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nn/aligned.h"
#include "nn/kernel.h"

// Adam (Kingma, Ba: "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1) with the
// gradient first scaled down to a maximal Euclidean norm. Its whole state is steps() and the two
// moments: restored, it goes on to the bit. One thread at a time.

namespace rudderfish::nn {

struct AdamOptions {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-6F;
  float max_gradient_norm = 0.5F;  // 0: no limit.
};

class Adam {
 public:
  explicit Adam(size_t parameters, const AdamOptions& options = {},
                const Kernels& kernels = BestKernels());

  // Moves `weights` and returns the norm of the gradient before it was scaled. A norm that is not
  // finite changes nothing: neither weights nor state.
  float Step(std::span<float> weights, std::span<const float> gradient, float learning_rate);

  const AdamOptions& options() const { return options_; }
  int64_t steps() const { return steps_; }
  std::span<const float> first_moment() const { return first_; }
  std::span<const float> second_moment() const { return second_; }

  // REQUIRES: steps >= 0, moments as long as the parameters.
  void Restore(int64_t steps, std::span<const float> first_moment,
               std::span<const float> second_moment);

 private:
  AdamOptions options_;
  const Kernels* kernels_;
  int64_t steps_ = 0;
  AlignedVector<float> first_, second_;
};

}  // namespace rudderfish::nn
