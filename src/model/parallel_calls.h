// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/call_graph.h"
#include "cluster/ids.h"
#include "model/latency.h"

// The latency of an endpoint whose calls run in parallel, where a caller waits for the slowest
// reply of each request (LatencyLaw::slowest_of_each): that is more than the slowest of the mean
// replies as soon as replicas are differently far away.
//
// A request chooses a replica of each callee at random. So the reply to a call, as seen from a pod
// on a kind of node, has a distribution over the kinds where the callee runs, and the replies that
// one pod waits for are independent of each other. From the leaves to the root: mean and variance
// of each reply by kind; of groups in parallel, the mean and the variance of the greatest. A group
// of one call is taken as it is distributed, one of several by three points of the normal
// distribution with its mean and variance (Gauss and Hermite's). What waiting for the slowest adds
// to the mean of the group that is waited for counts as network, from where nearly all of it comes.
//
// Allocates nothing after Reset. Not thread safe.

namespace rudderfish {

class Evaluator;

class ParallelCalls {
 public:
  void Reset(const CallGraph& calls, int kinds);

  // As costs and placement of the evaluator are now.
  Terms OfEndpoint(const Evaluator& model, int endpoint);

 private:
  struct Reply {
    Terms mean;
    double variance = 0;  // ms^2
  };
  struct Atom {
    double ms = 0, weight = 0;
    int32_t place = 0, order = 0;  // Of its group; its own.
  };
  struct Group {
    int id = 0;     // Of the call graph.
    int place = 0;  // Among those of the call.
  };

  // A kind where pods of a call's workload run, and which share of them.
  struct Site {
    KindId kind = 0;
    double share = 0;
  };
  struct Sites {
    int32_t first = 0, last = 0;  // Of listed_.
  };

  // Where the call's pods run; without any, all on the first kind.
  void ListSites(const Evaluator& model, CallId call);
  std::span<const Site> SitesOf(CallId call) const {
    return std::span(listed_).subspan(sites_[call].first, sites_[call].last - sites_[call].first);
  }
  // By how much the mean hop of a call is more than its kinds say: pods on one node.
  static double LoopbackMs(const Evaluator& model, CallId call);
  Reply OfCall(const Evaluator& model, CallId call, KindId kind);
  // Seen from a pod on the kind, with the way there and back.
  Reply Seen(const Evaluator& model, CallId call, KindId from) const;
  double HopMs(const Evaluator& model, CallId call, KindId from, KindId to) const;
  Reply OfGroup(const Evaluator& model, int group, KindId from) const;
  void ListAtoms(const Evaluator& model, Group group, KindId from);
  void AddAtom(double ms, double weight, int place);
  Reply Slowest(int groups);  // Of atoms_ and groups_.

  int kinds_ = 0;
  const CallGraph* calls_ = nullptr;
  std::vector<Reply> replies_;         // [call][kind] of the call's pod; where one is
  std::vector<double> fixed_ms_;       // [call] transfer and loopback
  std::vector<double> loopback_ms_;    // [call]
  std::vector<Sites> sites_;           // [call]
  std::vector<Site> listed_;           // Of all calls of the endpoint that is looked at.
  std::vector<Reply> groups_;          // Of the call that is looked at.
  std::vector<Atom> atoms_;            // Of its groups.
  std::vector<double> below_, first_;  // [its group] share of atoms so far; how often it is slowest
};

}  // namespace rudderfish
