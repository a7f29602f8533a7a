// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/gamma_law.h"
#include "model/served_application.h"

// What we believe of an application under load, without chance: how many calls are at its pods, how
// long requests take, how many are late, what it costs; also through bursts beyond what it can
// serve. Its time does not depend on how many requests come.
//
// The calls at a pod follow the pointwise stationary fluid flow: dL/dt = lambda - C rho(L), where
// rho(L) is the utilisation at which L calls are there in equilibrium (W.-P. Wang, D. Tipper, S.
// Banerjee, "A simple approximation for modeling nonstationary queues", INFOCOM 1996). It is exact
// in equilibrium, and a fluid in overload; backlog carries over by itself. The variance follows the
// linear noise about it: dV/dt = 2 C rho'(L) (V_stationary(L) - V). Equilibria: model/queueing.h.
// Responses of a request are sums over its calls, maxima over parallel groups, taken as gamma
// distributed. Times in s.

namespace rudderfish {

// Of one interval or many.
struct LoadOutcome {
  double requests = 0;
  double late = 0;            // Answered, but after the endpoint's qos.
  double failed = 0;          // Refused, or timed out in every attempt.
  double response_sum_s = 0;  // Of all requests.
  double pod_s = 0, core_s = 0;

  double mean_s() const { return requests > 0 ? response_sum_s / requests : 0; }
  double violation_share() const { return requests > 0 ? (late + failed) / requests : 0; }
};

class LoadModel {
 public:
  explicit LoadModel(std::shared_ptr<const ServedApplication> application);

  // All pods of `ServedWorkload::replicas` ready, nobody there, no outcome.
  void Start();

  // Time passes in which so many requests come. Steps of at most `kStepS`.
  void Advance(double seconds, double requests_per_s);

  // As EventSimulator::SetReplicas; new pods are ready after the mean of their delay.
  void SetReplicas(WorkloadId workload, int replicas);
  int replicas(WorkloadId workload) const;
  int ready(WorkloadId workload) const;

  double backlog(WorkloadId workload) const;      // Calls at its pods, computing ones included.
  double calls_per_s(WorkloadId workload) const;  // Lately.
  double busy_slots(WorkloadId workload) const;   // Lately, of all pods together.

  const LoadOutcome& outcome() const { return outcome_; }  // Since Start.
  double ResponseQuantileS(double share) const;            // Of the requests since Start.

  static constexpr double kStepS = 1;

 private:
  // Pods in equal state.
  struct Cohort {
    int pods = 0;
    double present = 0, variance = 0;  // Calls at one pod.
  };
  struct Starting {
    int pods = 0;
    double ready_s = 0;
  };

  // Equilibria of one pod by utilisation.
  struct Equilibria {
    std::vector<double> present, variance, waits;  // Calls there, and P(wait > 0).
    int pods = -1;                                 // For so many pods; -1: not made.
  };

  struct Crew {  // The pods of one workload.
    std::vector<Cohort> ready;
    std::vector<Starting> starting;
    Equilibria equilibria;
    double service_s = 0, service_scv = 1;  // Of its mix of calls.
    double arrivals_per_s = 0, passes = 1;  // Calls that come; which share of them leaves,
    double passes_most = 1;                 // at most.
    double busy = 0;
    double refused_share = 0;
    double wait_s = 0, wait_variance_s2 = 0;  // Of who comes now.
  };

  struct Moments {
    double mean = 0, variance = 0;
  };

  void Step(double seconds, double requests_per_s);
  void Flow(double requests_per_s);
  void MakeEquilibria(const ServedWorkload& workload, Crew* crew) const;
  void Pass(const ServedWorkload& workload, double seconds, Crew* crew) const;
  Moments ResponseOf(const Endpoint& endpoint);
  static Moments Slowest(std::span<const Moments> groups);
  void Count(double requests, const Moments& response, double refused, double qos_s);

  std::shared_ptr<const ServedApplication> application_;
  std::vector<double> shares_;  // [endpoint]
  std::vector<Crew> crews_;     // [workload]
  std::vector<double> flow_;    // [call] Calls per second.
  std::vector<Moments> below_;  // [call] Its groups; then its whole response.
  double now_s_ = 0;
  double attempts_ = 1;  // For each request, lately.
  LoadOutcome outcome_;
  std::vector<double> histogram_;  // Of responses, in buckets of equal ratio.
};

}  // namespace rudderfish
