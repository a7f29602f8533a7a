// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "policy/neural.h"
#include "sim/problem.h"

// What `bench` measures beside learn/train_bench.h: how fast a network answers, how much of the
// machine its products use, and how both grow with the world. Wall time on one core.

namespace rudderfish {

// The network that is measured.
struct BenchPolicy {
  std::shared_ptr<const NeuralPolicy> policy;
  std::string origin;  // The checkpoint, or that its weights are fresh: they take as long.

  // The given run or checkpoint, else the one that comes with the program, else fresh weights.
  static Result<BenchPolicy> Open(const std::optional<std::string>& path, const Task& task);
};

struct DecideTimes {
  double p50_us = 0;
  double p99_us = 0;
  int64_t decisions = 0;
  double mean_candidates = 0;
};

// One decision: from a state that the Model knows to the answer; alternatives, features and network
// included. Plays episodes drawn from the scenario for `seconds`, after a warm-up; at least
// `decisions_min` decisions.
Result<DecideTimes> MeasureDecisions(const Problem& problem, const Policy& policy, double seconds,
                                     int decisions_min);

struct KernelRates {
  double gflops = 0;
  double peak_gflops = 0;  // Of multiply-adds in registers, measured in between.
};

// Dense products, forward and backward, as training does them. Both figures are the best of many
// slices: neighbours can only make a slice slower.
Result<KernelRates> MeasureKernels(const Problem& problem, const nn::CandidateNet& net,
                                   double seconds);

struct Machine {
  std::string cpu;
  int cores = 1;
  double load = 0;  // Mean number of running threads over the last minute.
};

Machine ThisMachine();

}  // namespace rudderfish
