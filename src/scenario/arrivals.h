// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cluster/ids.h"

// Pods that come and go: the part `arrivals:` of a scenario. Pods arrive in streams that are drawn,
// or from a trace; nodes are lost and come back, latencies change, at given times or by chance.
// What runs it: sim/lifecycle.h. Immutable once read.
//
// Times are simulated, in ns from the start of an episode.

namespace rudderfish {

using SimTime = std::chrono::nanoseconds;

inline constexpr SimTime kNever = SimTime::max();
inline constexpr SimTime kLongest{1'000'000'000'000'000'000};  // Of what is drawn: 31 years.

// A span of time, drawn.
//
//   20s   10s to 30s   {exponential: 20s}   {normal: [20s, 1s]}    a normal one is never below 0
struct TimeLaw {
  enum class Shape { kConstant, kUniform, kExponential, kNormal };

  Shape shape = Shape::kConstant;
  SimTime a{0};  // The constant, the least, the mean.
  SimTime b{0};  // The most, the standard deviation.

  static TimeLaw Constant(SimTime time) { return {Shape::kConstant, time, time}; }

  SimTime Draw(Rng* rng) const;
  double MeanNs() const;  // Of what is drawn.
  bool operator==(const TimeLaw&) const = default;
};

struct ArrivalStream {
  // When the pods of a stream arrive, and are deleted:
  // kSpaced   one every `interval`; each runs for `lifetime`.
  // kWaves    `pods` of them `interval` apart; `hold` after the last all are deleted, whether they
  //           run or not; `pause` later the next wave.
  // kRolling  `pods` of them `interval` apart; then, for ever: the oldest is deleted, after `hold`
  //           a new one arrives, after `pause` the next is deleted.
  enum class Shape { kSpaced, kWaves, kRolling };

  Shape shape = Shape::kSpaced;
  std::vector<WorkloadId> workloads;  // One after another in turn, or drawn if there are weights.
  std::vector<double> weights;        // Of workloads, positive; empty: in turn.
  SimTime start{0};                   // Of the first pod, which does not wait for `interval`.
  TimeLaw interval;                   // Constant but for kSpaced.
  std::optional<TimeLaw> lifetime;    // From when a pod runs until it has finished; none: for ever.
  int64_t count = 0;                  // Of pods in all; 0: no limit.
  int pods = 0;                       // Of kWaves and kRolling.
  SimTime hold{0}, pause{0};          // Of kWaves and kRolling.

  bool operator==(const ArrivalStream&) const = default;
};

// Something that happens to the world at a given time.
struct WorldEvent {
  enum class Kind { kLoseNode, kReturnNode, kLatency };

  SimTime at{0};
  Kind kind = Kind::kLatency;
  NodeId node = kNone;               // Of the first two.
  LayerId from = kNone, to = kNone;  // Of kLatency; one way.
  double latency_ms = 0;

  bool operator==(const WorldEvent&) const = default;
};

// Every node fails by itself: `every` after it was last well, for `down`.
struct NodeFailures {
  TimeLaw every, down;

  bool operator==(const NodeFailures&) const = default;
};

// What becomes of the pods of a lost node.
enum class LostPods { kPend, kGone };  // Pend again, as a ReplicaSet has it; or are gone.

// Where recorded pods and nodes are read from; docs/arrivals.md describes the formats.
struct TraceSource {
  std::string format;        // "openb"
  std::string pods_file;     // Relative to the scenario's; empty: none.
  std::string nodes_file;    // The same.
  double time_warp = 1;      // Pods arrive so many times faster than recorded,
  double lifetime_warp = 1;  // and run for so many times less.
  int64_t drawn = 0;         // Pods of an episode, drawn from those recorded; 0: all, as recorded.

  bool operator==(const TraceSource&) const = default;
};

struct TracePod {
  SimTime at{0};
  SimTime lifetime = kNever;  // From when it runs.
  WorkloadId workload = 0;

  bool operator==(const TracePod&) const = default;
};

struct Arrivals {
  std::vector<ArrivalStream> streams;
  TimeLaw start_delay;     // From when a pod is bound until it runs.
  SimTime until = kNever;  // The end of an episode; kNever: when no pod is left.
  LayerId users = kNone;   // Where the users are, for node-user latency.
  LostPods lost_pods = LostPods::kPend;
  std::optional<NodeFailures> failures;
  std::vector<WorldEvent> events;                           // By time.
  TraceSource trace;                                        // No files: none.
  std::shared_ptr<const std::vector<TracePod>> trace_pods;  // By time; null: no trace was read.
  // The scenario's workloads and groups of nodes from here on are the trace's; kNone: none are.
  int first_trace_workload = kNone, first_trace_group = kNone;

  bool has_trace() const { return !trace.pods_file.empty(); }
};

// Pods of a stream that arrive in an episode that ends then, in the mean; of an interval that is
// drawn, nearly. Infinitely many where time does not go on.
double ExpectedPods(const ArrivalStream& stream, SimTime until);

// Pods by workload that arrive in an episode, relative to each other in whole numbers: for what
// pods to expect (model/fragmentation.h). [workload]
std::vector<int64_t> PopularityOfWorkloads(const Arrivals& arrivals, int workloads);

}  // namespace rudderfish
