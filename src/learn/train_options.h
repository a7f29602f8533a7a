// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "base/yaml_writer.h"
#include "learn/dqn.h"
#include "learn/evolution.h"
#include "learn/ppo.h"
#include "learn/rollout.h"
#include "learn/routing_training.h"
#include "nn/encoder.h"
#include "policy/neural_scaling.h"
#include "task/placement_preset.h"
#include "task/scaling.h"
#include "task/scaling_preset.h"

// All that decides what a run of training computes, besides its scenarios. Written into config.yaml
// of the run folder in full, defaults included, and read from there by --resume. Plain values.

namespace rudderfish {

// kRecurrentPpo: PPO of a network that remembers the questions before. kEvolution: of placing, and
// of scaling regions.
enum class Algorithm { kPpo, kDqn, kA2c, kRecurrentPpo, kEvolution };

std::string_view AlgorithmName(Algorithm algorithm);
Result<Algorithm> AlgorithmNamed(std::string_view name);

// The rule to beat, and what it came to when it was calibrated.
struct ScalingRival {
  std::string policy;  // As MakeScalingPolicy reads it.
  ScalingRecord record;
  int episodes = 0;   // Of each load,
  uint64_t seed = 1;  // of the calibration.
  // Share of late requests; above the limit where no rule keeps it. 0: as AllowedAgainst its own.
  double allowed = 0;

  bool operator==(const ScalingRival&) const = default;
};

// What a network may have at most, where an autoscaler has so much: the limit, but hardly more than
// that has. A network is to be cheaper by being better, not by being late.
inline double AllowedAgainst(double violation_share, double violations_max) {
  return std::min(violations_max, violation_share + 0.0005);
}

// Where it is scaling that is to be learned.
struct ScalingTraining {
  double violations_max = 0.01;       // Share of requests that may be late or failed.
  std::vector<std::string> loads;     // Of the scenario; empty: all.
  std::optional<ScalingRival> rival;  // None: one is chosen among few.
  ScalingRows rows = ScalingRows::kRungs;
  // Scales as that system did, at whatever price: rows, limit and rival are not asked. None: as we
  // do.
  std::optional<ScalingPreset> preset;

  bool operator==(const ScalingTraining&) const = default;
};

struct TrainOptions {
  Algorithm algorithm = Algorithm::kPpo;
  std::optional<ScalingTraining> scaling;  // None: what the scenario asks.
  std::optional<RoutingTraining> routing;  // Likewise.
  std::optional<PlacementPreset> preset;   // Places pods as that system did; none: as we do.

  // How long: environment steps if that is above 0, else seconds of the clock. Results of a run by
  // steps do not depend on the clock.
  int64_t steps = 0;
  double seconds = 60;

  // A run or checkpoint whose network is begun with; empty: a fresh one. With no steps and no time
  // nothing is learned, and the network is judged as it is (ScalingVerdict).
  std::string from;

  uint64_t seed = 1;
  int threads =
      1;  // Changes nothing but the time it takes; not part of the configuration that is kept.

  int hidden = 32;                                 // Of the network: a multiple of 16.
  int rounds = 1;                                  // Of message passing,
  nn::Encoder encoder = nn::Encoder::kRelational;  // by which rows hear of each other.

  // One environment in so many plays at twice the scenario's size, so that the policy learns what
  // stays the same when a cluster grows; 0: none.
  int enlarge_every = 4;

  int64_t evaluate_every = 65536;  // Steps between evaluations on the validation starts.
  int validation_starts = 128;     // Of each scenario.
  double save_every_seconds = 5;

  RolloutOptions rollout;  // Of PPO, recurrent or not, and of A2C.
  PpoOptions ppo;          // Likewise; A2C has no use for epochs, minibatches and the clip.
  DqnOptions dqn;
  EvolutionOptions es;

  bool by_steps() const { return steps > 0; }
  bool only_judges() const { return !from.empty() && steps == 0 && seconds == 0; }
};

// What suits the placing of pods: few environments that each see much of a long episode, small
// steps away from the mix of scores that learning starts with.
void UsePlacementDefaults(TrainOptions* options);

// Placing pods as an earlier system did: its DQN as published, one environment that acts and learns
// in turn, its length of an episode and of a run (10,000 steps where it names none). Its network's
// width becomes the nearest that ours can have.
void UsePreset(PlacementPreset preset, TrainOptions* options);

// What suits scaling: a prior that trusts the Model, evaluations that take little of the time.
void UseScalingDefaults(TrainOptions* options);

// Scaling as an earlier system did, by an algorithm that it had: one environment, its episodes, the
// figures of its library, its width of a network and, where it had one, its kind of message
// passing; 5,000 steps. After UseScalingDefaults.
void UseScalingPreset(ScalingPreset preset, Algorithm algorithm, TrainOptions* options);

// What suits the scaling of regions: an evolution strategy, and fresh episodes to validate on.
void UseRoutingDefaults(TrainOptions* options);

// What suits A2C: to learn from short rollouts, often.
void UseA2cDefaults(TrainOptions* options);

// What suits an evolution strategy: as steps are pods placed in whole episodes, rarer evaluations.
void UseEvolutionDefaults(TrainOptions* options);

// What no run can be made of, in words that name the option.
Result<void> CheckTrainOptions(const TrainOptions& options);

// The fields of a configuration, inside an open map, and back. An absent field keeps its default.
void WriteTrainOptions(const TrainOptions& options, YamlWriter* out);
Result<TrainOptions> ReadTrainOptions(YamlMap* map);

// Options that decide what a run computes, one a line: those that may change when it is resumed
// made equal.
std::vector<std::string> FixedOptions(TrainOptions options);

}  // namespace rudderfish
