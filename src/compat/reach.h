// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compat/reach_plans.h"
#include "compat/reach_world.h"
#include "model/latency.h"
#include "net/http_message.h"
#include "policy/policy.h"
#include "task/task.h"

// REACH's policy server (arXiv 2510.06675): POST /get_action, for any number of nodes and pods.
// The request is in compat/reach_request.h; the answer has its server's keys in its order:
//
//   {"is_stop": false, "pod_name": "db-6c4d958f76-5r4vs", "target_node": "tb-edge-vm-4-1"}
//   {"is_stop": true, "pod_name": "", "target_node": ""}
//
// The migrator asks again when it has moved: a placement that an answer led to goes on with that
// answer's plan (compat/reach_plans.h). What cannot be answered is 4xx with {"message", "status":
// "error"}, never 500: 400 malformed, 415 not JSON, 422 of another world than the scenario's.

namespace rudderfish {

struct ReachAnswer {
  std::string pod;  // Empty: stop.
  std::string target_node;

  bool is_stop() const { return pod.empty(); }
};

// Everything one thread needs to answer. Not thread safe.
class ReachAdviser {
 public:
  // All outlive the adviser.
  ReachAdviser(const ReachWorld* world, const LatencyLaw& law, const Task* task,
               const Policy* policy, ReachPlans* plans);
  ~ReachAdviser();

  Result<ReachAnswer> Decide(std::string_view body);

  // What the last successful Decide was asked about.
  const State& state() const { return state_; }

  // What of it the world does not know: a sentence each.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  class MaskedTask;

  const ReachWorld* world_;
  const Policy* policy_;
  ReachPlans* plans_;
  std::vector<std::string> left_out_;
  State state_;
  ReachMask mask_;
  std::unique_ptr<MaskedTask> task_;
  std::unique_ptr<Memory> memory_;
  Evaluator model_;
  ActionSpace space_;
  Answer answer_;
  Decision decision_;
};

std::string ReachAnswerJson(const ReachAnswer& answer);

// The handler of POST /get_action. Called from any thread of a server with `workers` threads.
class ReachServer {
 public:
  // All outlive the server.
  ReachServer(const ReachWorld* world, const LatencyLaw& law, const Task* task,
              const Policy* policy, int workers);

  // Warns of every new reason to refuse and of everything that is left out: once each.
  HttpResponse GetAction(const HttpRequest& request);

 private:
  static constexpr size_t kWarningsMax = 100;

  void WarnOnce(const std::string& what);

  ReachPlans plans_;
  std::mutex mutex_;
  std::set<std::string> warned_;
  std::vector<std::unique_ptr<ReachAdviser>> advisers_;  // [worker]
};

}  // namespace rudderfish
