// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "control/scheduler.h"

// A Scheduler before an API server that answers when a test lets it, and a watch that tells what a
// test says.

namespace rudderfish::testing {

inline SchedulingNode SchedulerNode(const std::string& name, int64_t cpu_millis = 1000) {
  SchedulingNode node;
  node.name = name;
  node.labels = {{"kubernetes.io/hostname", name}};
  node.allocatable = {cpu_millis, int64_t{1} << 30};
  node.pods_max = 110;
  return node;
}

class BindingServer final : public PlacementActuator {
 public:
  void Bind(const PodIdentity& pod, const std::string& node, OnDone done) override {
    asked.push_back({pod, node, std::move(done)});
  }
  void LookUp(const PodIdentity& pod, OnFound found) override {
    looked_up.push_back({pod, std::move(found)});
  }
  void TellPlaced(const PodIdentity& pod, const std::string& node) override {
    told.push_back(pod.name + " on " + node);
  }
  void TellWaiting(const PodIdentity& pod, const std::string& message) override {
    ++attempts_told;
    std::string& before = waits[pod.Key() + " " + pod.uid];
    if (std::exchange(before, message) != message) told.push_back(pod.name + ": " + message);
  }
  void TellWaitsNoLonger(const PodIdentity& pod) override {
    waits.erase(pod.Key() + " " + pod.uid);
  }
  void TellOvercommitted(const std::string& node, const std::string& message) override {
    overcommitted.push_back(node + " " + message);
  }
  void TellNameShared(const PodIdentity& pod, const std::string& message) override {
    shared.push_back(pod.name + ": " + message);
  }

  // Answers all that was asked; what was bound first stays. `instead` is told of what is done.
  void Answer(std::optional<BindingOutcome> instead = std::nullopt) {
    const auto all = std::exchange(asked, {});
    for (const Asked& one : all) {
      const bool is_first = bound.emplace(one.pod.Key(), one.node).second;
      one.done(instead.value_or(is_first ? BindingOutcome::kBound : BindingOutcome::kConflict),
               "why");
    }
  }
  // Answers all that was asked, and does none of it.
  void Refuse(BindingOutcome outcome) {
    for (const Asked& one : std::exchange(asked, {})) one.done(outcome, "why");
  }
  // Says where the pods are that were looked up.
  void SayWhereTheyAre() {
    for (const LookedUp& one : std::exchange(looked_up, {})) {
      const std::string key = one.pod.Key();
      PodStanding standing{.is_there = !gone.contains(key), .is_terminating = ending.contains(key)};
      if (const auto at = bound.find(key); at != bound.end()) standing.node = at->second;
      one.found(standing);
    }
  }
  void SayNothing() {
    const Error unheard{ErrorCode::kUnavailable, "503"};
    for (const LookedUp& one : std::exchange(looked_up, {})) one.found(tl::unexpected(unheard));
  }

  struct Asked {
    PodIdentity pod;
    std::string node;
    OnDone done;
  };
  struct LookedUp {
    PodIdentity pod;
    OnFound found;
  };
  std::vector<Asked> asked;
  std::vector<LookedUp> looked_up;
  std::map<std::string, std::string> bound;
  std::set<std::string> gone, ending;
  std::map<std::string, std::string> waits;  // Why, of each pod that does.
  int attempts_told = 0;
  std::vector<std::string> told, shared, overcommitted;
};

class WatchedJournal final : public PlacementJournal {
 public:
  Result<void> AppendPlacements(std::span<PlacementRow> rows,
                                std::span<const PlacementEnd> ends) override {
    if (on_append) on_append();
    return kept_.AppendPlacements(rows, ends);
  }
  const std::vector<PlacementRow>& rows() const { return kept_.rows(); }

  std::function<void()> on_append;

 private:
  MemoryPlacementJournal kept_;
};

class SchedulerTest : public ::testing::Test {
 protected:
  SchedulerTest() { Start(); }

  void Start() {
    scheduler.emplace(SchedulerOptions{}, &clock, *NodeScorerNamed("kube-default"), &server,
                      &journal, [this] { return leads; });
  }

  static std::shared_ptr<PodClass> Shape(int64_t cpu_millis = 100) {
    auto shape = std::make_shared<PodClass>();
    shape->object_namespace = "default";
    shape->amounts.requests = shape->amounts.held = {cpu_millis, 1 << 20};
    shape->scheduler = "rudderfish";
    return shape;
  }
  void See(const std::string& name, std::shared_ptr<const PodClass> shape,
           const std::string& node = "", const std::string& uid = "1") {
    scheduler->PodSeen({{"default", name, uid}, std::move(shape), node});
  }
  void Turn() {
    const Result<bool> turned = scheduler->Turn();
    ASSERT_TRUE(turned.has_value()) << turned.error().message;
  }
  void TurnAfter(Duration time) {
    clock.Advance(time);
    Turn();
  }
  int64_t FreeCpu(const std::string& node) {
    const NodeTable& nodes = scheduler->tables().Rules().nodes();
    return nodes.free(NodeTable::kCpu)[nodes.Find(node)];
  }

  ManualClock clock{Instant(std::chrono::seconds(1000))};
  BindingServer server;
  WatchedJournal journal;
  bool leads = true;
  std::optional<Scheduler> scheduler;
};

}  // namespace rudderfish::testing
