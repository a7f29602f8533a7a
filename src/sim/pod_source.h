// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "scenario/arrivals.h"

// The pods of one stream of a scenario, or of its trace, one after another in time. A pure function
// of the generator it was started with.

namespace rudderfish {

struct ArrivingPod {
  SimTime at{0};
  SimTime deleted_at = kNever;  // Whether it runs by then or not.
  SimTime lifetime = kNever;    // From when it runs.
  WorkloadId workload = 0;
};

class PodSource {
 public:
  // REQUIRES: they outlive the source.
  explicit PodSource(const ArrivalStream* stream) : stream_(stream) {}
  // `drawn`: TraceSource::drawn.
  PodSource(const std::vector<TracePod>* trace, int64_t drawn) : trace_(trace), drawn_(drawn) {}

  // From the beginning.
  void Start(const Rng& rng);

  // False when there is none any more. Times do not run backwards.
  bool Next(ArrivingPod* pod);

 private:
  WorkloadId DrawWorkload();
  bool DrawFromTrace(ArrivingPod* pod);
  void NextOfWaves(ArrivingPod* pod) const;
  void NextOfRolling(ArrivingPod* pod) const;

  const ArrivalStream* stream_ = nullptr;
  const std::vector<TracePod>* trace_ = nullptr;
  int64_t drawn_ = 0;
  Rng rng_{0};
  int64_t number_ = 0;  // Of the next pod.
  SimTime at_{0};       // Of the pod before.
};

}  // namespace rudderfish
