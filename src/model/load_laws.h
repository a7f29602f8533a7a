// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "model/served_application.h"

// What of an application under load does not change with time: equilibria of its pods by
// utilisation, in tables, and the calls of its endpoints as sums. Made once (some ms) and shared by
// all LoadModels of the application. Immutable. Times in s.

namespace rudderfish {

// A pod in equilibrium (model/queueing.h).
struct PodPoint {
  double utilisation = 0;
  double present = 0, variance = 0;  // Of the calls at it.
  // P(wait > 0). Where calls share: for what probability of an exponential wait it has the variance
  // that the extra time of a call has.
  double waits = 0;
};

// Points by utilisation, dense at both ends, where waits vanish and where they grow without bound:
// 0; kLowIntervals - 1 equal ratios from kLeast on; then 1 - 10^(-4 i / kHighIntervals), i from 1.
// Straight lines between them.
class PodEquilibria {
 public:
  static constexpr int kLowIntervals = 23, kHighIntervals = 160;
  static constexpr int kIntervals = kLowIntervals + kHighIntervals - 1;
  static constexpr double kLeast = 1e-4;
  static constexpr double kFull = 0.9999;  // From here on calls only add up.

  static double UtilisationAt(int interval);  // Where it begins; or, kIntervals, where all end.

  // Where on the table: an interval, and how far into it.
  struct Place {
    int interval = 0;
    double share = 0;

    bool beyond() const { return interval >= kIntervals; }
  };

  // [interval] at UtilisationAt, and the end of the last.
  explicit PodEquilibria(std::vector<PodPoint> points);

  // `near` is an interval to look at first, whichever; the place does not depend on it.
  Place AtUtilisation(double utilisation, int near = 0) const;  // REQUIRES: below kFull.
  Place AtPresent(double present, int near) const;
  PodPoint At(const Place& place) const;
  double UtilisationPerCall(const Place& place) const;  // The slope there.

 private:
  int IntervalOfUtilisation(double utilisation) const;
  int IntervalOfPresent(double present) const;

  std::vector<PodPoint> points_;
};

// Asked some times for each workload and step of a model, so without a call.
inline PodEquilibria::Place PodEquilibria::AtUtilisation(double utilisation, int near) const {
  near = std::clamp(near, 0, kIntervals - 1);
  if (!(points_[near].utilisation <= utilisation && utilisation < points_[near + 1].utilisation))
    near = IntervalOfUtilisation(utilisation);
  const double low = points_[near].utilisation, high = points_[near + 1].utilisation;
  return {near, std::clamp((utilisation - low) / (high - low), 0.0, 1.0)};
}

[[gnu::always_inline]] inline PodEquilibria::Place PodEquilibria::AtPresent(double present,
                                                                            int near) const {
  if (present <= 0) return {};
  if (present >= points_[kIntervals].present) return {kIntervals, 0};
  near = std::clamp(near, 0, kIntervals - 1);
  if (!(points_[near].present <= present && present < points_[near + 1].present))
    near = IntervalOfPresent(present);
  const double low = points_[near].present, high = points_[near + 1].present;
  return {near, (present - low) / (high - low)};
}

[[gnu::always_inline]] inline PodPoint PodEquilibria::At(const Place& place) const {
  if (place.beyond()) return points_[kIntervals];
  const PodPoint& low = points_[place.interval];
  const PodPoint& high = points_[place.interval + 1];
  const auto between = [&](double a, double b) { return a + place.share * (b - a); };
  return {.utilisation = between(low.utilisation, high.utilisation),
          .present = between(low.present, high.present),
          .variance = between(low.variance, high.variance),
          .waits = between(low.waits, high.waits)};
}

inline double PodEquilibria::UtilisationPerCall(const Place& place) const {
  const int interval = std::min(place.interval, kIntervals - 1);
  const PodPoint& low = points_[interval];
  const PodPoint& high = points_[interval + 1];
  return (high.utilisation - low.utilisation) / (high.present - low.present);
}

// Of one workload.
struct CrewLaw {
  double service_s = 0, service_scv = 1;  // Of its mix of calls; service_s 0: it is never called.
  double slots = 1;
  double capacity_per_s = 0;  // Of one pod: slots / service_s.
  double most_present = 0;    // At one pod; more are refused.
  bool shared = false;        // Discipline::kShared.
  // Calls that leave while slots do the work of one call: 1 where they stand in line. Of those who
  // share slots all have been begun, and what is left of them is the mean rest of a service: 2 / (1
  // + scv). So calls go to their equilibrium as work does, which no discipline changes.
  double turnover = 1;
  double passes_most = 1;  // What leaves its line over what comes, at most.
  double calls_per_request = 0;
  double start_delay_s = 0;  // On average, of a pod whose image is there,
  double pull_s = 0;         // and pulling it.
  int image_nodes = 0;       // As ServedWorkload::image_nodes.
  double cores = 0;          // Requested by one pod.
  bool scaled = false;

  // That of so many pods that share the calls; beyond 32, of nearly so many. REQUIRES: pods >= 1,
  // service_s > 0.
  const PodEquilibria& EquilibriaOf(int pods) const;

  std::vector<PodEquilibria> equilibria;  // One, where pods know nothing of each other.
};

// The response of an endpoint without parallel calls: a sum over waits, and over what sharing adds.
struct EndpointLaw {
  struct Visit {  // Of pods where calls stand in line.
    int workload = 0;
    double count = 0;
  };
  struct SharedVisit {  // Of pods whose slots calls share: a call stays longer by its own service.
    int workload = 0;
    double count = 0;
    // Sums over its calls: of their mean service, mean squared service and variance of service.
    double service_s = 0, square_s2 = 0, own_variance_s2 = 0;
  };

  double share = 0;  // Of all requests.
  double log_qos = 0;
  double mean_s = 0, variance_s2 = 0;  // Of computing and network.
  bool parallel = false;               // Has calls in parallel: the sum does not hold.
  std::vector<Visit> visits;
  std::vector<SharedVisit> shared_visits;
};

class LoadLaws {
 public:
  explicit LoadLaws(std::shared_ptr<const ServedApplication> application);

  const ServedApplication& application() const { return *application_; }
  const CrewLaw& crew(WorkloadId workload) const { return crews_[workload]; }
  const EndpointLaw& endpoint(size_t endpoint) const { return endpoints_[endpoint]; }
  // Whose leaving brings a call: its caller, or the call before it in its group; kNone of a root.
  CallId bringer(CallId call) const { return bringers_[call]; }
  int crew_count() const { return static_cast<int>(crews_.size()); }
  size_t endpoint_count() const { return endpoints_.size(); }
  double log_timeout() const { return log_timeout_; }  // Infinite where there is none.

 private:
  CrewLaw CrewOf(WorkloadId workload, double calls, double demand_s) const;
  EndpointLaw EndpointOf(size_t endpoint, double share) const;

  std::shared_ptr<const ServedApplication> application_;
  std::vector<CrewLaw> crews_;  // [workload]
  std::vector<EndpointLaw> endpoints_;
  std::vector<CallId> bringers_;  // [call]
  double log_timeout_ = 0;
};

}  // namespace rudderfish
