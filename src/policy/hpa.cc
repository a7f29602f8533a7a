// SPDX-License-Identifier: Apache-2.0
#include "policy/hpa.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr int64_t kNsPerS = 1'000'000'000;
// Without behavior, replicas at most double, but 4 are always allowed.
constexpr int kUnruledUpFactor = 2, kUnruledUpLeast = 4;

struct HpaTolerance {
  double down, up;

  bool Covers(double ratio) const { return 1 - down <= ratio && ratio <= 1 + up; }
};

HpaTolerance ToleranceOf(const HpaSpec& spec) {
  HpaTolerance tolerance{spec.tolerance, spec.tolerance};
  if (!spec.behavior) return tolerance;
  tolerance.down = spec.behavior->down.tolerance.value_or(spec.tolerance);
  tolerance.up = spec.behavior->up.tolerance.value_or(spec.tolerance);
  return tolerance;
}

// Sums over the pods of one metric, and what is not known of the others.
struct PodGroups {
  int measured = 0;  // With a sample that counts,
  int unready = 0;   // without one that can be trusted yet,
  int missing = 0;   // and without one though they run.
  int64_t sum = 0;   // Of the samples that count.
};

bool IsCpuUnready(const HpaSpec& spec, const HpaSight& sight, const HpaPod& pod) {
  if (pod.started_ns + spec.cpu_initialization_s * kNsPerS > sight.at_ns) {
    // It may still be starting: ready for less than the whole window of the sample.
    return !pod.ready || *sight.cpu_at_ns < pod.transition_ns + sight.cpu_window_ns;
  }
  // It has never been ready.
  return !pod.ready && pod.started_ns + spec.initial_readiness_s * kNsPerS > pod.transition_ns;
}

PodGroups GroupPods(const HpaSpec& spec, const HpaSight& sight, HpaMetric::Source source) {
  PodGroups groups;
  const bool is_cpu = source == HpaMetric::Source::kCpu;
  for (const HpaPod& pod : sight.pods) {
    if (pod.phase == HpaPod::Phase::kGone) continue;
    const std::optional<int64_t>& value = is_cpu ? pod.cpu_millis : pod.value_millis;
    if (pod.phase == HpaPod::Phase::kPending ||
        (value && is_cpu && IsCpuUnready(spec, sight, pod))) {
      ++groups.unready;
    } else if (!value) {
      ++groups.missing;
    } else {
      ++groups.measured;
      groups.sum += *value;
    }
  }
  return groups;
}

// Use over target, in the integers of the controller. REQUIRES: at least one pod.
double UsageRatio(const HpaMetric& metric, const HpaSight& sight, int64_t sum, int pods) {
  const int64_t usage = metric.source == HpaMetric::Source::kCpu
                            ? sum * 100 / (sight.request_millis * pods)
                            : sum / pods;
  return static_cast<double>(usage) / static_cast<double>(metric.target);
}

int CeilOf(double replicas) {
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  return static_cast<int>(std::min(kMost, std::ceil(replicas)));
}

// None if there is no sample that counts.
std::optional<int> ReplicasByPods(const HpaSpec& spec, const HpaMetric& metric,
                                  const HpaSight& sight) {
  const bool is_cpu = metric.source == HpaMetric::Source::kCpu;
  if (is_cpu && !sight.cpu_at_ns) return std::nullopt;
  const PodGroups groups = GroupPods(spec, sight, metric.source);
  if (groups.measured == 0) return std::nullopt;
  const HpaTolerance tolerance = ToleranceOf(spec);
  const double ratio = UsageRatio(metric, sight, groups.sum, groups.measured);
  const bool up_with_unready = groups.unready > 0 && ratio > 1;
  if (!up_with_unready && groups.missing == 0)
    return tolerance.Covers(ratio) ? sight.replicas : CeilOf(ratio * groups.measured);

  // Who is not known counts as idle on the way up, as fully used on the way down; nothing is
  // decided that this turns round.
  int64_t sum = groups.sum;
  int counted = groups.measured;
  if (groups.missing > 0 && ratio != 1) {
    counted += groups.missing;
    if (ratio < 1) {
      const int64_t full = is_cpu
                               ? sight.request_millis * std::max<int64_t>(100, metric.target) / 100
                               : metric.target;
      sum += groups.missing * full;
    }
  }
  if (up_with_unready) counted += groups.unready;
  const double careful = UsageRatio(metric, sight, sum, counted);
  if (tolerance.Covers(careful) || (ratio < 1 && careful > 1) || (ratio > 1 && careful < 1))
    return sight.replicas;
  const int replicas = CeilOf(careful * counted);
  if ((careful < 1 && replicas > sight.replicas) || (careful > 1 && replicas < sight.replicas))
    return sight.replicas;
  return replicas;
}

std::optional<int> ReplicasByMetric(const HpaSpec& spec, const HpaMetric& metric,
                                    const HpaSight& sight) {
  if (metric.source != HpaMetric::Source::kExternal) return ReplicasByPods(spec, metric, sight);
  if (!sight.external_value) return std::nullopt;
  const auto usage = static_cast<double>(*sight.external_value);
  const auto target = static_cast<double>(metric.target);
  if (ToleranceOf(spec).Covers(usage / (target * sight.replicas))) return sight.replicas;
  return CeilOf(usage / target);
}

// The largest of all metrics; none if all are missing, or some are and it would go down.
std::optional<int> ReplicasByMetrics(const HpaSpec& spec, const HpaSight& sight) {
  int replicas = 0, missing = 0;
  for (const HpaMetric& metric : spec.metrics) {
    const std::optional<int> proposed = ReplicasByMetric(spec, metric, sight);
    if (!proposed) {
      ++missing;
    } else {
      replicas = std::max(replicas, *proposed);
    }
  }
  if (missing == static_cast<int>(spec.metrics.size())) return std::nullopt;
  if (missing > 0 && replicas < sight.replicas) return std::nullopt;
  return replicas;
}

// Between the least recommended in the window of going up and the most in that of going down.
int Stabilized(const HpaSpec& spec, const HpaSight& sight, int desired, HpaMemory* memory) {
  const int64_t up_ns = spec.behavior ? spec.behavior->up.stabilization_s * kNsPerS : 0;
  const int64_t down_ns =
      (spec.behavior ? spec.behavior->down.stabilization_s : spec.downscale_stabilization_s) *
      kNsPerS;
  std::erase_if(memory->recommendations, [&](const HpaMemory::Recommendation& one) {
    return one.at_ns < sight.at_ns - std::max(up_ns, down_ns);
  });
  int up = desired, down = desired;
  for (const HpaMemory::Recommendation& one : memory->recommendations) {
    const int64_t age_ns = sight.at_ns - one.at_ns;
    if (age_ns < up_ns) up = std::min(up, one.replicas);
    // The end of the window counts only where there is no behavior.
    if (age_ns < down_ns || (!spec.behavior && age_ns == down_ns))
      down = std::max(down, one.replicas);
  }
  memory->recommendations.push_back({sight.at_ns, desired});
  if (!spec.behavior) return down;
  return std::min(std::max(sight.replicas, up), down);
}

int ChangedWithin(int period_s, const HpaSight& sight,
                  const std::vector<HpaMemory::Change>& changes) {
  int sum = 0;
  for (const HpaMemory::Change& change : changes) {
    if (change.at_ns > sight.at_ns - period_s * kNsPerS) sum += change.replicas;
  }
  return sum;
}

// How many there were when the period began decides how many there may be at its end.
int RuledLimit(const HpaRules& rules, bool is_up, const HpaSight& sight, const HpaMemory& memory) {
  if (rules.select == HpaRules::Select::kDisabled) return sight.replicas;
  const bool widest = rules.select == HpaRules::Select::kMax;
  const bool take_larger = widest == is_up;
  int result = take_larger ? std::numeric_limits<int>::min() : std::numeric_limits<int>::max();
  for (const HpaLimit& limit : rules.limits) {
    const int at_start = sight.replicas - ChangedWithin(limit.period_s, sight, memory.ups) +
                         ChangedWithin(limit.period_s, sight, memory.downs);
    int proposed = 0;
    if (limit.kind == HpaLimit::Kind::kPods) {
      proposed = at_start + (is_up ? limit.value : -limit.value);
    } else if (is_up) {
      proposed = static_cast<int>(std::ceil(at_start * (1 + limit.value / 100.0)));
    } else {
      proposed = static_cast<int>(at_start * (1 - limit.value / 100.0));
    }
    result = take_larger ? std::max(result, proposed) : std::min(result, proposed);
  }
  return result;
}

int Limited(const HpaSpec& spec, const HpaSight& sight, int desired, const HpaMemory& memory) {
  if (!spec.behavior) {
    const int most = std::max(kUnruledUpFactor * sight.replicas, kUnruledUpLeast);
    if (desired < spec.replicas_min) return spec.replicas_min;
    return std::min(desired, std::min(spec.replicas_max, most));
  }
  if (desired > sight.replicas) {
    const int limit = RuledLimit(spec.behavior->up, true, sight, memory);
    return std::min(desired, std::min(spec.replicas_max, std::max(limit, sight.replicas)));
  }
  if (desired < sight.replicas) {
    const int limit = RuledLimit(spec.behavior->down, false, sight, memory);
    return std::max(desired, std::max(spec.replicas_min, std::min(limit, sight.replicas)));
  }
  return desired;
}

int LongestPeriodS(const HpaRules& rules) {
  int longest = 0;
  for (const HpaLimit& limit : rules.limits) longest = std::max(longest, limit.period_s);
  return longest;
}

void RememberChange(const HpaSpec& spec, const HpaSight& sight, int replicas, HpaMemory* memory) {
  if (!spec.behavior || replicas == sight.replicas) return;
  const int64_t longest_ns =
      std::max(LongestPeriodS(spec.behavior->up), LongestPeriodS(spec.behavior->down)) * kNsPerS;
  for (std::vector<HpaMemory::Change>* changes : {&memory->ups, &memory->downs}) {
    std::erase_if(*changes, [&](const HpaMemory::Change& change) {
      return change.at_ns <= sight.at_ns - longest_ns;
    });
  }
  auto& changes = replicas > sight.replicas ? memory->ups : memory->downs;
  changes.push_back({sight.at_ns, std::abs(replicas - sight.replicas)});
}

}  // namespace

int HpaReplicas(const HpaSpec& spec, const HpaSight& sight, HpaMemory* memory) {
  CHECK(!spec.metrics.empty() && sight.request_millis > 0);
  if (memory->recommendations.empty())
    memory->recommendations.push_back({sight.at_ns, sight.replicas});
  int replicas = sight.replicas;
  if (sight.replicas == 0) return 0;  // Switched off.
  if (sight.replicas > spec.replicas_max) {
    replicas = spec.replicas_max;
  } else if (sight.replicas < spec.replicas_min) {
    replicas = spec.replicas_min;
  } else {
    const std::optional<int> desired = ReplicasByMetrics(spec, sight);
    if (!desired) return sight.replicas;
    replicas = Limited(spec, sight, Stabilized(spec, sight, *desired, memory), *memory);
  }
  RememberChange(spec, sight, replicas, memory);
  return replicas;
}

}  // namespace rudderfish
