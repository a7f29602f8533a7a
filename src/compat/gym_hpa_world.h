// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "compat/gym_hpa_table.h"

// The world that gym-hpa makes of recorded observations: no load and no time, each step draws a row
// among those that are like the state. Which rows are alike, two ways:
//
//   kLast         as the original does: only the pods of the last deployment count, since every
//                 deployment's choice of rows overwrites that of the one before
//   kProgressive  as its graph generation mends it: deployment by deployment, rows are kept that
//                 have its pods and its change of pods; where there are none, its pods; where there
//                 are none, all
//
// Otherwise as meant, not as done there: Reset draws a row, not noise, and the first action counts;
// the same seed gives the same episode; an episode ends after its last step and not before.

namespace rudderfish {

enum class GymHpaSampling { kProgressive, kLast };
inline constexpr std::string_view kGymHpaSamplings[] = {"progressive", "last"};

struct GymHpaWorldOptions {
  GymHpaSampling sampling = GymHpaSampling::kProgressive;
  GymHpaGoal goal = GymHpaGoal::kCost;
  int steps = 25;  // Of an episode.
};

struct GymHpaStep {
  double reward = 0;
  bool beyond_bound = false;  // The move was not made.
  bool over = false;
};

class GymHpaWorld {
 public:
  // Both outlive the world. REQUIRES: as many deployments in both.
  GymHpaWorld(const GymHpaApplication* application, const GymHpaTable* table,
              const GymHpaWorldOptions& options);

  void Reset(uint64_t seed);

  // A move of 0 is none. REQUIRES: Reset; not over.
  GymHpaStep Step(const GymHpaMove& move);

  const std::vector<GymHpaReading>& readings() const { return readings_; }
  int steps() const { return steps_; }
  bool IsLegal(const GymHpaMove& move) const;

 private:
  void Observe();
  // The rows of `from` that are like one deployment; may be none.
  std::vector<int> Alike(int deployment, const std::vector<int>& from) const;

  const GymHpaApplication* application_;
  const GymHpaTable* table_;
  GymHpaWorldOptions options_;
  GymHpaReward reward_;
  Rng rng_{0};
  std::vector<int> before_;  // [deployment] Pods before the last move.
  std::vector<GymHpaReading> readings_;
  int steps_ = 0;
};

}  // namespace rudderfish
