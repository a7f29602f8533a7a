// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

// The HorizontalPodAutoscaler of Kubernetes (autoscaling/v2), decision by decision: what its
// controller would set the replicas of one workload to. Facts from the controller of Kubernetes
// v1.36, whose decisions in tests/golden/hpa this equals.
//
// Integers are those of the controller: milli-cores, thousandths of a metric's unit, nanoseconds.

namespace rudderfish {

struct HpaMetric {
  enum class Source {
    kCpu,       // Mean use of CPU over what pods request, in percent.
    kPods,      // Mean over pods, in thousandths.
    kExternal,  // A sum over all pods, of which each is to have so much; in thousandths.
  };

  Source source = Source::kCpu;
  int64_t target = 80;

  bool operator==(const HpaMetric&) const = default;
};

struct HpaLimit {  // "policies" in Kubernetes.
  enum class Kind { kPods, kPercent };

  Kind kind = Kind::kPercent;
  int value = 100;
  int period_s = 15;

  bool operator==(const HpaLimit&) const = default;
};

// How fast replicas may change in one direction.
struct HpaRules {
  enum class Select { kMax, kMin, kDisabled };

  int stabilization_s = 0;
  Select select = Select::kMax;
  std::optional<double> tolerance;  // The controller's, if absent.
  std::vector<HpaLimit> limits;

  bool operator==(const HpaRules&) const = default;
};

struct HpaBehavior {
  // Kubernetes' defaults: up by 4 pods or by 100 % in 15 s; down by 100 % in 15 s, to the highest
  // of what was recommended in 300 s.
  HpaRules up{.limits = {{HpaLimit::Kind::kPods, 4, 15}, {HpaLimit::Kind::kPercent, 100, 15}}};
  HpaRules down{.stabilization_s = 300, .limits = {{HpaLimit::Kind::kPercent, 100, 15}}};

  bool operator==(const HpaBehavior&) const = default;
};

struct HpaSpec {
  int replicas_min = 1, replicas_max = 10;
  std::vector<HpaMetric> metrics;  // The largest answer counts. At least one.
  std::optional<HpaBehavior> behavior;

  // Of the controller, by its flags.
  double tolerance = 0.1;
  int downscale_stabilization_s = 300;  // Where there is no behavior.
  int cpu_initialization_s = 300;
  int initial_readiness_s = 30;

  bool operator==(const HpaSpec&) const = default;
};

// A pod as the controller and metrics-server see it.
struct HpaPod {
  enum class Phase { kPending, kRunning, kGone };  // kGone: failed, or being deleted.

  Phase phase = Phase::kRunning;
  bool ready = true;
  int64_t started_ns = 0;
  int64_t transition_ns = 0;            // When it became ready or unready.
  std::optional<int64_t> cpu_millis;    // Used; none: no sample.
  std::optional<int64_t> value_millis;  // Of the metric kPods.
};

struct HpaSight {
  int64_t at_ns = 0;
  int replicas = 1;                  // Asked for now.
  int64_t request_millis = 1000;     // CPU of one pod.
  std::optional<int64_t> cpu_at_ns;  // When the samples of CPU were taken; none: there are none.
  int64_t cpu_window_ns = 0;         // Over which.
  std::optional<int64_t> external_value;  // In thousandths.
  std::span<const HpaPod> pods;
};

// What the controller remembers of one workload.
struct HpaMemory {
  struct Recommendation {
    int64_t at_ns;
    int replicas;
  };
  struct Change {
    int64_t at_ns;
    int replicas;
  };

  std::vector<Recommendation> recommendations;
  std::vector<Change> ups, downs;  // Changes made, as positive numbers.
};

// The replicas that the controller sets, having remembered what it needs of this. Times must not go
// backwards. Allocates nothing once memory holds the longest window.
int HpaReplicas(const HpaSpec& spec, const HpaSight& sight, HpaMemory* memory);

}  // namespace rudderfish
