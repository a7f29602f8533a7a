// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/controller.h"
#include "control/evidence.h"
#include "control/mode.h"
#include "control/shadow_cluster.h"
#include "policy/policy.h"
#include "task/task.h"

// One application that is being watched: what is decided for it, when, and what became of it. In
// shadow and advise it plans whenever the cluster has changed, and again after a rest; it decides
// nothing on a state older than the limit, nothing while the journal cannot be written, nothing
// while off.
//
// Not thread safe: the one thread that drives the cluster calls Turn.

namespace rudderfish {

struct ApplicationOptions {
  std::string name;
  std::shared_ptr<const Task> task;
  LatencyLaw law;
  std::shared_ptr<const Policy> policy, baseline;  // No baseline: none is asked for comparison.
  std::string policy_name, objective;              // In the journal; no name: the policy's own.
  GuardOptions guard;
  std::chrono::nanoseconds rest = std::chrono::minutes(10);  // Until an unchanged state is planned.
  std::chrono::nanoseconds staleness = std::chrono::seconds(30);
  EvidenceOptions evidence;
  uint64_t seed = 1;
};

struct ApplicationStatus {
  int64_t plans = 0;      // Ended.
  int64_t decisions = 0;  // Written, those to stay included.
  int64_t moves = 0;      // Recorded.
  std::string problem;    // Why the last turn came to nothing; empty: it did not.
  Terms seen;             // Of the state as it is.
  Terms planned;          // Of what the last plan would have led to, once one has ended.
  int nodes = 0, pods = 0, pending = 0;
};

class ApplicationRun {
 public:
  // The cluster and the journal outlive this.
  ApplicationRun(const ApplicationOptions& options, Cluster* cluster, Journal* journal,
                 EvidenceSink* evidence);
  ApplicationRun(const ApplicationRun&) = delete;

  // Looks, and takes at most one decision. True: the plan goes on, another turn may follow at once.
  // `obstacle`: why nothing may be decided now, though it looks on; kUnavailable then.
  Result<bool> Turn(Mode mode, std::span<const Reading> readings, std::string_view obstacle = "");

  const std::string& name() const { return options_.name; }
  const ApplicationOptions& options() const { return options_; }
  const ApplicationStatus& status() const { return status_; }
  const EvidenceWatch& evidence() const { return evidence_; }
  const State& state() const { return cluster_.real_state(); }

 private:
  Result<bool> Decide();
  void Describe(const State& state);

  ApplicationOptions options_;
  ShadowCluster cluster_;
  EvidenceWatch evidence_;
  Evaluator model_;  // Of what is real; the controller's is of what is imagined.
  uint64_t described_version_ = 0;
  Controller controller_;
  bool planning_ = false;
  std::chrono::nanoseconds plan_ended_at_{0};
  ApplicationStatus status_;
};

}  // namespace rudderfish
