// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/state.h"

// The laws of request latency. One formula with two sets of constants.
//
//   T(call)     = execution(call)
//                 + slowest of its groups, each the sum over the group of [Net(callee) + T(callee)]
//   execution   = mean over the replicas of the execution time on their kind of node, and queueing
//   Net(callee) = mean over the pairs of replicas (a of the caller, b of the callee)
//                 of [hop(a, b) + transfer(a, b)]
//   transfer    = data / min(share(a), share(b))
//   share(p)    = bandwidth - others if others / bandwidth < 0.9, else bandwidth / 10,
//                 where others is the traffic of p's node that is not p's own
//
// `reach` is REACH's simulator (arXiv 2510.06675 and its published code) to the digit, quirks
// included: nodes of one layer are 1 ms apart whatever the configuration says, only the request
// travels, and data counted in gibibytes is divided by megabytes a second and added to
// milliseconds, so that transfer is a millionth of what it should be.
//
// `physical` has the units right: configured latency also within a layer, request and response both
// travel, pods on one node talk over the loopback, and a pod that serves one request at a time
// (processor sharing, M/G/1-PS: sojourn = execution / (1 - utilisation)) queues. Of
// calls in parallel `reach` takes the group that is slowest in the mean; `physical` the mean of the
// slowest reply of each request, which is more where replicas are differently far away
// (model/parallel_calls.h).
//
// Measurements may correct a law: Corrected multiplies each part of the latency by a factor.

namespace rudderfish {

// What each part of a latency is multiplied by.
struct LatencyFactors {
  double execution = 1;
  double network = 1;  // Hops between nodes.
  double transfer = 1;
  double queueing = 1;

  bool operator==(const LatencyFactors&) const = default;
};

struct LatencyLaw {
  std::string_view name;
  bool intra_layer_is_one_ms = false;
  bool response_travels = false;
  bool loopback = false;  // Pods on one node skip the network.
  bool queueing = false;
  bool slowest_of_each = false;  // Of calls in parallel: the mean of maxima, not the reverse.
  double transfer_ms_per_mbyte =
      0;  // Time to send 1 MB at 1 MB/s, in the unit that is added to milliseconds.
  double traffic_per_mbyte = 0;  // What 1 MB/s of payload counts as in a node's bandwidth use.
  // That of transfer is in transfer_ms_per_mbyte.
  double execution_factor = 1, network_factor = 1, queueing_factor = 1;

  static const LatencyLaw& Reach();
  static const LatencyLaw& Physical();
  static Result<LatencyLaw> Named(std::string_view name);
};

// A law whose parts are `factors` times those of `law`; utilisation and bandwidth use stay as they
// are. REQUIRES: the factors are positive and finite.
LatencyLaw Corrected(const LatencyLaw& law, const LatencyFactors& factors);

inline constexpr double kBandwidthKnee = 0.9;   // Above this use by others a pod gets
inline constexpr double kBandwidthFloor = 0.1;  // this share.
inline constexpr double kLoopbackMs = 0.05;     // One way, physical law.
inline constexpr double kQueueingKnee =
    0.95;  // Above this utilisation the curve goes on as its tangent.

// Time between nodes of two kinds, without transfer, in ms: one way or both, as the law says.
double HopMs(const LatencyLaw& law, const Network& network, LayerId from, LayerId to);

// Bandwidth share in MB/s of a pod on a node where others use `others`.
double ShareMbytesPerS(double bandwidth_mbytes_per_s, double others_mbytes_per_s);

// Waiting time in ms of a request that runs `execution_ms` alone, at utilisation rho of its pod.
double QueueingMs(double execution_ms, double rho);

// What a state costs, in parts along the slowest path, averaged over endpoints. latency_ms is the
// sum of the parts.
struct Terms {
  double latency_ms = 0;
  double execution_ms = 0;
  double network_ms = 0;   // Hops.
  double transfer_ms = 0;  // Payload.
  double queueing_ms = 0;

  static constexpr int kCount = 5;
};

// Adds `by` times each term.
inline void AddTerms(const Terms& terms, double by, Terms* sum) {
  sum->latency_ms += by * terms.latency_ms;
  sum->execution_ms += by * terms.execution_ms;
  sum->network_ms += by * terms.network_ms;
  sum->transfer_ms += by * terms.transfer_ms;
  sum->queueing_ms += by * terms.queueing_ms;
}

// Names of the terms in the order of the struct, for journals and JSON.
const std::vector<std::string>& TermNames();
double TermValue(const Terms& terms, int index);

}  // namespace rudderfish
