// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api_client.h"

// Whether a node would take one pod more that is like a running one, by kube-scheduler's rules
// (model/scheduling_rules.h), with all that the cluster holds now. It lists the cluster with the
// first question and watches it from then on, so that many moves cost the API server one list.
//
// One thread, that of the client.

namespace rudderfish {

class TargetCheck {
 public:
  explicit TargetCheck(kube::ApiClient* client);  // Outlives this.
  ~TargetCheck();
  TargetCheck(const TargetCheck&) = delete;

  // Reads what has come, once a question has been asked; waits for nothing.
  void Poll();

  // Why the node does not take it, in kube-scheduler's words; empty: it does. kNotFound: there is
  // no such pod or node. kUnavailable: what is known of the cluster is too old. The pod's own room
  // stays taken: it goes on until its replacement serves. Waits for the first list, which may not
  // stand still for `limit`.
  Result<std::string> WhyRefuses(const MovedPod& moved, const std::string& node, Duration limit);

 private:
  struct Seen;
  std::unique_ptr<Seen> seen_;
};

}  // namespace rudderfish
