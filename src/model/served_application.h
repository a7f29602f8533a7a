// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cluster/call_graph.h"

// An application under load, as the event simulator runs it and as the model of load believes it:
// who calls whom, how long that takes, how many requests a pod works on at once, how pods start.
//
// A pod has `slots`; a call holds one while it computes, not while it waits for those it calls.
// Calls that find all slots busy wait in line at the pod that they were sent to, or share the slots
// with those who are there. Immutable once made; any thread may read it.

namespace rudderfish {

// How service times spread around their mean, which the call graph gives.
struct ServiceLaw {
  enum class Shape {
    kConstant,          // scv 0.
    kExponential,       // scv 1.
    kLogNormal,         // Any scv above 0.
    kHyperexponential,  // Two exponentials with balanced means; scv above 1.
  };

  Shape shape = Shape::kExponential;
  double scv = 1;  // Squared coefficient of variation: variance / mean^2.

  // 0 is constant, 1 exponential, any other log-normal.
  static ServiceLaw OfScv(double scv);
  bool operator==(const ServiceLaw&) const = default;
};

// Who computes where more calls are at a pod than it has slots. kInLine: who came first; others
// wait (first come, first served). kShared: all of them, each as fast as slots over calls
// (processor sharing); where they are fewer, each holds one slot, as in a line.
enum class Discipline { kInLine, kShared };

// To which pod a call goes. kLeastRequests: to that with the fewest calls of `choices` pods drawn
// at random (power of d choices).
enum class Balancing { kRandom, kRoundRobin, kLeastRequests };

inline constexpr int kNoQueueLimit = 1 << 30;

struct ServedWorkload {
  std::string name;
  int slots = 1;  // Of one pod.
  Discipline discipline = Discipline::kInLine;
  int queue_limit = kNoQueueLimit;  // Calls at one pod beyond its slots; more are refused.
  ServiceLaw service;
  Balancing balancing = Balancing::kRandom;
  int choices = 2;       // Of kLeastRequests.
  int replicas = 1;      // At the start, all of them ready.
  int replicas_min = 1;  // Bounds of scaling.
  int replicas_max = 10;
  double start_low_s = 0, start_high_s = 0;  // Until a pod serves, its image being there; uniform.
  // Of so many nodes, each of the first pods is on one of its own, and pulls the image there unless
  // an earlier pod did; pods beyond find it. Uniform; 0: images are everywhere.
  int image_nodes = 0;
  double pull_low_s = 0, pull_high_s = 0;
  // Readiness probes: from when its image is there until the first, and from one to the next. A pod
  // is ready at the first probe that finds it serving; period 0: as soon as it serves.
  double probe_delay_s = 0, probe_period_s = 0;
  int64_t cpu_millis = 1000;  // Requested by one pod; used where all slots are busy.
  int64_t memory_bytes = 0;   // Requested by one pod; use of it is not simulated.
  bool scaled = true;         // False: it is a client, and has no pods here.

  // From when its image is there until it is ready, if it serves after so long; in the mean; and
  // the longest of all, with its image to be pulled.
  double ReadyAfterS(double serves_s) const;
  double MeanStartS() const;
  double LongestStartS() const;

  bool operator==(const ServedWorkload&) const = default;
};

// How many of the pods pull that are made when there come to be `pods`, where as many nodes of
// ServedWorkload::image_nodes hold the image as `images` says.
inline int PullsOf(int pods, int images, int image_nodes) {
  return std::max(0, std::min(pods, image_nodes) - images);
}

// Of the application as a whole, besides the bounds of its workloads.
struct ScalingLimits {
  int64_t cpu_millis_max = std::numeric_limits<int64_t>::max();  // Of all pods together,
  int64_t pods_max = std::numeric_limits<int64_t>::max();        // and how many they are.
  double cool_down_s = 0;  // After a change nothing changes for so long.

  bool operator==(const ScalingLimits&) const = default;
};

struct ServedApplication {
  std::shared_ptr<const CallGraph> calls;
  std::vector<ServedWorkload> workloads;  // [workload]
  std::vector<double> service_ms;         // [call] Mean of its computing; 0 for roots.
  double network_ms = 0;                  // One way, of each call and each answer.
  double timeout_s = 0;                   // After which the client gives up; 0: never.
  int retries = 0;                        // Attempts after one that failed or timed out,
  double retry_delay_s = 0;               // each so long after it.
  ScalingLimits limits;

  int workload_count() const { return static_cast<int>(workloads.size()); }

  // [workload] Computing of one request, on average over the mix of endpoints, in s; the demand.
  std::vector<double> DemandS() const;
  // [workload] Calls of one request, on average over the mix.
  std::vector<double> CallsPerRequest() const;
  // Requests per second that keep all slots of `replicas` pods of the tightest workload busy.
  double CapacityPerS(const std::vector<int>& replicas) const;
  // Of endpoint `e` among all requests: its rate over the sum of rates.
  std::vector<double> EndpointShares() const;
};

// One workload of one pod that serves one kind of request: a station of queueing theory.
ServedApplication SingleStation(const ServedWorkload& workload, double service_ms);

}  // namespace rudderfish
