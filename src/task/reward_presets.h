// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "cluster/catalog.h"

// Rewards and rules of when an episode ends of earlier systems that placed pods, to the digit. None
// of them is a sum of terms of the Model: they count ranks and end episodes. What their networks
// saw is in task/placement_preset.h. For new work use model/objective.h.
//
//   S. Matranga, "Orchestrating tasks in the cloud continuum with reinforcement learning" (thesis,
//   Politecnico di Torino): EE (MA in its code), LB (LA), LC, EL-RL (P0)
//   Jian et al., "DRS", Software: Practice and Experience 54(10), 2024: its code's and its paper's
//
// Where the thesis' code left a value undefined (EE and LB in an empty cluster, LC's neighbour of
// the node it meant), the rule of its text holds. Pure functions.

namespace rudderfish::presets {

struct Reward {
  double reward = 0;
  bool terminated = false;

  bool operator==(const Reward&) const = default;
};

// Beyond the rules below, an episode of the thesis is cut off after so many steps, one of DRS after
// so many; that is truncation.
inline constexpr int kThesisMaxSteps = 200;
inline constexpr int kDrsMaxSteps = 100;

// EE: all pods on as few workers as possible. `pods`: of each worker, before the choice. Ends when
// the choice is not the worker with the most pods (the first of them; in an empty cluster any will
// do). Else 10 times the share of workers with fewer than `threshold` pods (1 in the thesis, 5 in
// its code), truncated to an integer: 0, 3, 6 or 10 for three workers.
Reward EnergyEfficient(std::span<const double> pods, int choice, double threshold);

// LB: +10 for the first worker with the fewest pods, -1 and the end for the first with the most, 0
// for any other. Where all are equal, the first is both: +10 and the end.
Reward LoadBalancing(std::span<const double> pods, int choice);

// LC: 1 - fewest / most connections of a worker, 0 where there are none; never ends an episode but
// by the choice of another than the one with the fewest.
Reward LeastConnections(std::span<const double> connections, int choice);

// EL-RL: r1 + r2 + r3 with on = workers with more than `threshold` pods and
//   r1 = (nodes - on) / nodes, where nodes counts the control plane
//   r2 = pods of all workers / on / 50, 0 if on = 0; more than 1 beyond 50 pods a worker
//   r3 = 0 and the end above the hard limit, 1/2 above the soft one, else 1; 0 and the end without
//        either limit
struct EnergyLatency {
  int nodes = 0;         // Control plane included.
  double threshold = 5;  // As in its code; an active worker has at least one pod in its text: 0.
};
inline constexpr double kPodsOfAFullWorker = 50;
Reward EnergyAndLatency(const EnergyLatency& rule, std::span<const double> pods,
                        double chosen_latency_ms, const LatencyLimits& limits);

// What DRS measures of a node, in its units: percent, percent, KB/s four times.
struct DrsUsage {
  double cpu = 0, memory = 0, received = 0, sent = 0, read = 0, written = 0;
};
inline constexpr int kDrsMetrics = 6;
using DrsRow = std::array<double, kDrsMetrics>;  // 0 to 100, rounded to two decimals.

// cpu * 4, memory, network / 40 * 100, disk / 10240 * 100, each at most 100.
DrsRow Normalised(const DrsUsage& usage);

// Of pods whose name contains video, net or disk; zeros for any other. Normalised already.
DrsRow DrsProfileOf(std::string_view pod_name);

// Its code's: minus the sum over the six metrics of their population standard deviation over the
// nodes; -300 at the worst, where half of the nodes is at 100 and half at 0.
double DrsCodeReward(std::span<const DrsRow> nodes);

// Its paper's: alpha * mean utilisation - beta * sum of weight * standard deviation, all of
// fractions of 1. The mean is over nodes and metrics.
struct DrsPaperWeights {
  double alpha = 1, beta = 1;
  DrsRow weight = {1, 1, 1, 1, 1, 1};
};
double DrsPaperReward(std::span<const DrsRow> nodes, const DrsPaperWeights& weights);

// The DQN of each system, as published; `train` takes them as presets.
struct DqnSettings {
  std::string_view name;
  int64_t total_steps = 0;
  double learning_rate = 0;
  int buffer = 0, batch = 0, learning_starts = 0, train_frequency = 0;
  double gamma = 0;
  int target_copy_steps = 0;  // In steps of the environment for the thesis, of learning for DRS.
  double epsilon_start = 0, epsilon_end = 0, exploration_fraction = 0;
  std::array<int, 2> hidden{};  // Widths; 0: no such layer.
};

// "thesis" and "drs", or the nearest of them in the message.
Result<DqnSettings> DqnSettingsNamed(std::string_view name);

}  // namespace rudderfish::presets
