// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cloud/split_enactor.h"
#include "kube/api_client.h"

// Reads and sets the splits of routes on threads of its own, so that no other decision, and hardly
// another route, waits for a data path that answers slowly. Thread safe, as far as one owner calls
// it.

namespace rudderfish {

class RouteDriver {
 public:
  static constexpr size_t kThreadsMax = 8;

  struct Route {
    std::unique_ptr<kube::ApiClient> client;  // Of the enactor; null: it needs none.
    std::unique_ptr<SplitEnactor> enactor;
  };

  struct Answer {
    size_t route = 0;
    bool is_set = false;               // It was to be set, not only read.
    Result<StandingWeights> standing;  // After it.
    Instant at;
  };

  RouteDriver(std::vector<Route> routes, const Clock* clock);
  ~RouteDriver();
  RouteDriver(const RouteDriver&) = delete;

  // REQUIRES for all: nothing is under way on the route (is_busy).
  void Read(size_t route);
  // Sets what was planned on what was read last. After `until` nothing is sent any more: who leads
  // may have changed.
  void Set(size_t route, SplitPlan plan, Instant until);
  // What still waits to be set is not set any more; its answer says so.
  void DropSets();
  // The exact request. REQUIRES: the route has been read.
  std::string Request(size_t route, const std::vector<int64_t>& weights) const;

  bool is_busy(size_t route) const;
  bool is_idle() const;
  std::optional<Answer> Take();  // One that has ended.

  int64_t weight_sum(size_t route) const { return routes_[route].enactor->weight_sum(); }

 private:
  struct Job {
    size_t route = 0;
    std::optional<SplitPlan> plan;  // None: read.
    Instant until;
  };

  void Work();
  Answer Do(const Job& job);
  void Add(Job job);

  const std::vector<Route> routes_;
  const Clock* clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::deque<Answer> answers_;
  std::vector<bool> busy_;  // [route]
  bool is_ending_ = false;
  std::vector<std::thread> threads_;  // Last: they use the others.
};

}  // namespace rudderfish
