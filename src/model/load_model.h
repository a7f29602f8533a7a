// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/gamma_law.h"
#include "model/gamma_table.h"
#include "model/load_laws.h"
#include "model/pod_crew.h"
#include "model/served_application.h"

// What we believe of an application under load, without chance: how many calls are at its pods, how
// long requests take, how many are late, what it costs; also through bursts beyond what it can
// serve. Its time does not depend on how many requests come.
//
// Calls at pods: model/pod_crew.h. Responses of a request are sums over its calls, each of which
// waits in line, or takes longer where slots are shared (model/queueing.h), maxima over parallel
// groups, taken as gamma distributed. Where all pods are near their equilibrium, or will
// soon be, one step covers all the time asked for; else steps are short.
//
// For look-ahead, models that share their laws copy each other's state. Nothing is allocated after
// construction. One thread. Times in s.

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
  LoadOutcome operator-(const LoadOutcome& other) const;
};

struct LoadModelOptions {
  // The length of a step while calls are far from equilibrium: coarser is faster. 1 s agrees with
  // the event simulator as docs/load.md says; 3 s costs a third and is some percent off in bursts.
  double step_s = 1;
  // Whether a histogram of responses is kept, for ResponseQuantileS: most of the time of a step in
  // which little happens.
  enum class Responses { kKept, kNotKept };
  Responses responses = Responses::kKept;
};

class LoadModel {
 public:
  explicit LoadModel(std::shared_ptr<const ServedApplication> application,
                     const LoadModelOptions& options = {});
  // Many models of one application share its laws.
  explicit LoadModel(std::shared_ptr<const LoadLaws> laws, const LoadModelOptions& options = {});

  // All pods ready, no calls, no outcome: so many pods of each workload; if `replicas` is
  // empty, as many as ServedWorkload::replicas says.
  void Start(std::span<const int> replicas = {});

  // The state of another: from then on both do the same. REQUIRES: they share their laws, and both
  // keep responses or neither does.
  void CopyFrom(const LoadModel& other);

  // Time passes in which so many requests come.
  void Advance(double seconds, double requests_per_s);

  // As EventSimulator::SetReplicas; new pods are ready after the mean of their delay.
  void SetReplicas(WorkloadId workload, int replicas);
  int replicas(WorkloadId workload) const { return crews_[workload].replicas(); }
  int ready(WorkloadId workload) const { return crews_[workload].ready(); }

  // Calls at its pods, computing ones included.
  double backlog(WorkloadId workload) const { return crews_[workload].present(); }
  // On average over the last Advance.
  double calls_per_s(WorkloadId workload) const { return lately_[workload].calls_per_s; }
  double busy_slots(WorkloadId workload) const { return lately_[workload].busy; }
  // Of who comes now: their wait at one of its pods, their response.
  double wait_s(WorkloadId workload) const { return crews_[workload].wait_s(); }
  const GammaLaw& response(size_t endpoint) const { return responses_[endpoint]; }

  const LoadOutcome& outcome() const { return outcome_; }  // Since Start.
  bool keeps_responses() const { return !histogram_.empty(); }
  // Of the requests since Start. REQUIRES: responses are kept.
  double ResponseQuantileS(double share) const;
  double now_s() const { return now_s_; }

  const std::shared_ptr<const LoadLaws>& laws() const { return laws_; }

 private:
  struct Lately {
    double calls_per_s = 0, busy = 0;
  };

  double NextReadyS() const;
  void Join();
  void Flow(double requests_per_s);
  void FlowByCalls(double requests_per_s);
  void Step(double seconds, double requests_per_s, PodCrew::Pace pace);
  void Count(double seconds, double requests_per_s);
  double KeptOf(const EndpointLaw& endpoint) const;
  GammaLaw ResponseOf(size_t endpoint);
  GammaLaw ResponseByCalls(const Endpoint& endpoint);
  GammaLaw ResponseOfCall(CallId id) const;
  GammaLaw Slowest(std::span<const GammaLaw> groups) const;

  std::shared_ptr<const LoadLaws> laws_;
  LoadModelOptions options_;
  const GammaTable* gamma_;

  // What CopyFrom copies.
  std::vector<PodCrew> crews_;       // [workload]
  std::vector<Lately> lately_;       // [workload]
  std::vector<GammaLaw> responses_;  // [endpoint]
  std::vector<double> histogram_;    // Of responses: ResponseBuckets; empty if they are not kept.
  LoadOutcome outcome_;
  double now_s_ = 0;
  double attempts_ = 1;          // For each request, lately.
  double next_ready_s_ = 0;      // Of all crews.
  double pods_ = 0, cores_ = 0;  // Of all crews, starting pods too.
  bool all_pass_ = true;         // As many calls leave each crew as come.

  // Of the moment.
  bool some_refuse_ = false;               // Some crew does.
  std::vector<double> arrivals_;           // [workload] Calls per second.
  std::vector<double> flow_;               // [call] Calls per second that leave.
  std::vector<GammaLaw> below_;            // [call] Its groups; then its whole response.
  std::vector<GammaTable::Place> places_;  // [endpoint]
};

}  // namespace rudderfish
