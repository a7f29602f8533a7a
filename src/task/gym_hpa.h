// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What graph-gym-hpa and gym-hpa before it observe, do and reward, as plain functions: both
// generations of observations and actions, the rule for desired replicas, and the three goals, to
// the digit. Facts are of their sources; "first" is gym-hpa and the first releases of
// graph-gym-hpa, "graph" its later ones.

namespace rudderfish {

struct GymHpaDeployment {
  std::string name;
  int cpu_request_millis = 100;
  int memory_request_mib = 100;

  // Three quarters of what is requested, rounded down.
  int cpu_target() const { return cpu_request_millis * 3 / 4; }
  int memory_target() const { return memory_request_mib * 3 / 4; }
};

struct GymHpaApplication {
  std::string name;                           // As it stands in file names.
  std::vector<GymHpaDeployment> deployments;  // In the order of columns and actions.
  double latency_cap_ms = 3000;               // Of the goal latency, and its penalty.
  int pods_min = 1, pods_max = 8;             // Of each deployment.

  static const GymHpaApplication& OnlineBoutique();  // 11 deployments.
  static const GymHpaApplication& Redis();           // Leader and follower.

  int count() const { return static_cast<int>(deployments.size()); }
};

// One deployment at one time.
struct GymHpaReading {
  int pods = 1;
  int desired = 1;
  double cpu_millis = 0;  // Of all its pods.
  double memory_mib = 0;
  double traffic_in_kbytes_per_s = 0;  // Labelled kbit/s there.
  double traffic_out_kbytes_per_s = 0;
  double latency_ms = 0;  // The same for all deployments of a time.

  bool operator==(const GymHpaReading&) const = default;
};

// ceil(0.7 ceil(cpu / target) + 0.3 ceil(memory / target)), 0 made 1, at most `pods_max`: first.
int GymHpaDesired(const GymHpaDeployment& deployment, double cpu_millis, double memory_mib,
                  int pods_max);

// The larger of ceil(pods * share / 0.8) by CPU and memory, shares of limits: graph.
int GymHpaDesiredOfLimits(int pods, double cpu_share, double memory_share, int pods_min,
                          int pods_max);

// A change of one deployment; 0: none.
struct GymHpaMove {
  int deployment = 0;
  int delta = 0;

  bool operator==(const GymHpaMove&) const = default;
};

// First: MultiDiscrete([deployments, 15]); 1 to 7 add, 8 to 14 take away 1 to 7.
// REQUIRES: 0 <= move < 15.
inline constexpr int kGymHpaMoves = 15;
GymHpaMove GymHpaPairMove(int deployment, int move);

// Graph: Discrete(1 + 6 deployments); by -3, -2, -1, +1, +2, +3. REQUIRES: within that.
GymHpaMove GymHpaFlatMove(int action);

// Six values a deployment, as the first generation's Box has them: pods, desired, CPU, memory,
// traffic in and out. REQUIRES: room for 6 values of each.
inline constexpr int kGymHpaRawWidth = 6;
void GymHpaRawObservation(std::span<const GymHpaReading> readings, std::span<float> values);

// Four values a deployment, as the graph generation's: CPU and memory over their limits, pods and
// desired over `pods_max`, as fractions. REQUIRES: room for 4 values of each.
inline constexpr int kGymHpaNodeWidth = 4;
struct GymHpaShares {
  double cpu = 0, memory = 0;  // Of limits.
};
void GymHpaNodeObservation(std::span<const GymHpaReading> readings,
                           std::span<const GymHpaShares> shares, int pods_max,
                           std::span<float> values);

enum class GymHpaGoal { kCost, kLatency, kSloDistance };
inline constexpr std::string_view kGymHpaGoals[] = {"cost", "latency", "slo"};

// Whether a move stayed within the bounds of its deployment's pods.
enum class GymHpaBound { kKept, kPassed };

// Rewards of one episode.
class GymHpaReward {
 public:
  // `bound_penalty`: of kSloDistance, for a move beyond the bounds; -0.3 in its newest release, -1
  // before.
  GymHpaReward(const GymHpaApplication& application, GymHpaGoal goal, double bound_penalty = -0.3);

  // The state that the first difference is to.
  void Reset(std::span<const GymHpaReading> readings, double p95_ms);

  // cost      deployments whose pods are those desired; -1 beyond a bound
  // latency   -min(latency of the first deployment, cap); -cap beyond a bound
  // slo       (D' - D) / max(D', D) within [-1, 1], D = 2 min(max(p95 - 300, 0) / 300, 1) +
  //           min(pods / 44, 1), D' that of the step before; `bound_penalty` beyond a bound, where
  //           D' stays
  double Of(std::span<const GymHpaReading> readings, double p95_ms, GymHpaBound bound);

  static double SloDistance(int pods, double p95_ms);

 private:
  GymHpaGoal goal_;
  double latency_cap_ms_, bound_penalty_;
  double distance_ = 3;
};

int GymHpaTotalPods(std::span<const GymHpaReading> readings);

}  // namespace rudderfish
