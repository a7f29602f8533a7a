// SPDX-License-Identifier: Apache-2.0
#include "control/move_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/rng.h"

namespace rudderfish {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A namespace with one ReplicaSet behind one Service, whose controllers take one step at a time:
// what kube-controller-manager, kube-scheduler with the admission policy, and kubelets do.
class FakeMoveCluster {
 public:
  explicit FakeMoveCluster(int wanted) : wanted_(wanted) {
    for (int i = 0; i < wanted; ++i) {
      Create("");
      pods_.back().pod.node = i % 2 == 0 ? "a" : "b";
    }
    for (int i = 0; i < 10; ++i) Settle();
  }

  struct Held {
    MovedPod pod;
    std::string annotation;  // Of the move.
    std::string replaces;
    bool is_owned = true;
    int ready_in = 2;
    int gone_in = -1;  // Steps; below 0: it does not end.
  };

  // One step of each controller.
  void Settle() {
    now += 500;
    for (Held& one : pods_) {
      if (one.gone_in > 0) --one.gone_in;
      const bool runs = !one.pod.node.empty() && !fails.contains(one.pod.node);
      if (one.pod.node.empty()) {
        const size_t slash = one.replaces.find('/');
        const std::string node = slash == std::string::npos ? "a" : one.replaces.substr(slash + 1);
        if (node == full) {
          one.pod.unschedulable = "Insufficient cpu";
        } else {
          one.pod.node = node;
        }
      } else if (runs && one.ready_in > 0) {
        one.pod.is_ready = --one.ready_in == 0;
      }
      if (!runs) one.pod.is_ready = false;
    }
    std::erase_if(pods_, [](const Held& one) { return one.gone_in == 0; });
    Reconcile();
    endpoints_.clear();
    for (const Held& one : pods_) {
      if (FindLabel(one.pod.labels, "app") != nullptr && !one.pod.node.empty())
        endpoints_.push_back(one.pod);
    }
  }

  MoveView View(const std::string& uid, const PodMove& move) const {
    MoveView view;
    view.can_pin = true;
    view.pin = pin;
    view.has_replica_set = true;
    view.wanted = wanted_;
    view.replica_set_selector = {{"app", "web"}, {"pod-template-hash", "h"}};
    view.target_trouble = target_trouble;
    MoveView::Service service{.name = "web", .selector = {{"app", "web"}}};
    for (const MovedPod& pod : endpoints_) {
      service.endpoints.push_back(pod.id.uid);
      if (pod.is_ready) service.ready.push_back(pod.id.uid);
    }
    view.services = {service};
    int serving = 0;
    for (const Held& one : pods_) {
      if (one.pod.id.uid == uid) {
        view.pod = one.pod;
        if (!one.annotation.empty()) view.move = *PodMoveOf(one.annotation);
      }
      const bool counts = FindLabel(one.pod.labels, "app") != nullptr && one.pod.serves();
      serving += counts ? 1 : 0;
      if (!one.is_owned || one.pod.is_terminating) continue;
      view.replicas.push_back(one.pod);
      view.ready += one.pod.is_ready ? 1 : 0;
      if (!move.id.empty() && one.replaces == move.Pin()) view.replacement = one.pod;
    }
    if (view.pod && FindLabel(view.pod->labels, "app") != nullptr)
      view.budgets = {{.name = "web", .allowed = serving - wanted_, .is_current = true}};
    return view;
  }

  Held* Find(const std::string& uid) {
    for (Held& one : pods_) {
      if (one.pod.id.uid == uid) return &one;
    }
    return nullptr;
  }

  void Write(const MoveAction& action, const std::string& uid, PodMove* move) {
    Held* pod = Find(uid);
    switch (action.write) {
      case MoveWrite::kPin:
        pin = move->Pin();
        return;
      case MoveWrite::kUnpin:
        pin.clear();
        return;
      case MoveWrite::kDetach:
      case MoveWrite::kDrain:
        for (const std::string& key : action.remove) {
          move->removed.emplace_back(key, *FindLabel(pod->pod.labels, key));
          std::erase_if(pod->pod.labels, [&](const auto& label) { return label.first == key; });
        }
        move->step = action.step;
        break;
      case MoveWrite::kAbort:
        move->aborting = action.why;
        move->step = MoveStep::kAbort;
        break;
      case MoveWrite::kRestore:
        for (const auto& label : move->removed) pod->pod.labels.push_back(label);
        std::sort(pod->pod.labels.begin(), pod->pod.labels.end());
        pod->annotation.clear();
        return;
      case MoveWrite::kEvict:
        pod->pod.is_terminating = true;
        pod->gone_in = silent.contains(pod->pod.node) ? -1 : 3;
        return;
      case MoveWrite::kNone:
        return;
    }
    pod->annotation = PodMoveText(*move);
  }

  int Serving() const {
    int count = 0;
    for (const Held& one : pods_) {
      count += FindLabel(one.pod.labels, "app") != nullptr && one.pod.serves() ? 1 : 0;
    }
    return count;
  }
  // Nothing of any move is left, and there are as many pods as are wanted.
  bool IsClean() const {
    return pin.empty() && static_cast<int>(pods_.size()) == wanted_ &&
           std::all_of(pods_.begin(), pods_.end(), [](const Held& one) {
             return one.annotation.empty() && one.is_owned && one.pod.labels.size() == 2;
           });
  }
  const std::vector<Held>& pods() const { return pods_; }
  void Scale(int wanted) { wanted_ = wanted; }
  int wanted() const { return wanted_; }
  void Kill(const std::string& uid) {
    if (Held* pod = Find(uid)) {
      pod->pod.is_terminating = true;
      pod->gone_in = silent.contains(pod->pod.node) ? -1 : 2;
    }
  }

  // Its containers end, and it stays.
  void End(const std::string& uid) {
    if (Held* pod = Find(uid)) pod->pod.has_ended = true;
  }

  std::string pin, target_trouble, full;
  std::set<std::string> fails;   // Nodes on which pods are not Ready.
  std::set<std::string> silent;  // Nodes that end no pod.
  UnixMillis now = 1000;

 private:
  void Create(const std::string& replaces) {
    Held one;
    one.pod.id = {"shop", "web-" + std::to_string(++made_), "uid-" + std::to_string(made_)};
    one.pod.labels = {{"app", "web"}, {"pod-template-hash", "h"}};
    one.replaces = replaces;
    pods_.push_back(std::move(one));
  }

  // The ReplicaSet: releases, adopts, creates, deletes the youngest.
  void Reconcile() {
    int owned = 0;
    for (Held& one : pods_) {
      one.is_owned = one.pod.labels.size() == 2;
      // It counts no pod that has ended, and deletes its own.
      if (one.is_owned && one.pod.has_ended && one.gone_in < 0) {
        one.pod.is_terminating = true;
        one.gone_in = 2;
      }
      owned += one.is_owned && !one.pod.is_terminating ? 1 : 0;
    }
    for (; owned < wanted_; ++owned) Create(pin);
    for (auto one = pods_.rbegin(); owned > wanted_ && one != pods_.rend(); ++one) {
      if (!one->is_owned || one->pod.is_terminating) continue;
      one->pod.is_terminating = true;
      one->gone_in = 2;
      --owned;
    }
  }

  int wanted_, made_ = 0;
  std::vector<Held> pods_;
  std::vector<MovedPod> endpoints_;
};

PodMove MoveTo(const std::string& target, UnixMillis now) {
  return {.id = "m1",
          .target = target,
          .target_hostname = target,
          .replica_set = "web-h",
          .replica_set_uid = "rs",
          .workload = "Deployment/web",
          .begun = now,
          .deadline = now + 60'000};
}

// Runs a move of the first pod to its end. `meddle` is called before each step; `restarts`: the
// driver forgets all but what the cluster holds.
std::optional<MoveOutcome> RunMove(FakeMoveCluster* cluster,
                                   const std::function<void(int step)>& meddle,
                                   const std::function<bool()>& restarts, int* least_serving) {
  const std::string uid = cluster->pods()[0].pod.id.uid;
  PodMove move = MoveTo("c", cluster->now);
  cluster->Find(uid)->annotation = PodMoveText(move);
  MoveMemory memory;
  for (int step = 0; step < 1000; ++step) {
    if (meddle) meddle(step);
    const MoveView view = cluster->View(uid, move);
    if (view.move) move = *view.move;
    const MoveAction action = NextMoveAction(move, view, MoveOptions{}, cluster->now, &memory);
    if (action.outcome) return action.outcome;
    cluster->Write(action, uid, &move);
    if (action.write == MoveWrite::kEvict) memory.has_evicted = true;
    if (least_serving != nullptr) *least_serving = std::min(*least_serving, cluster->Serving());
    cluster->Settle();
    if (least_serving != nullptr) *least_serving = std::min(*least_serving, cluster->Serving());
    if (restarts && restarts()) {
      memory = {};
      if (const auto* held = cluster->Find(uid); held == nullptr || held->annotation.empty())
        return std::nullopt;  // A new process finds nothing to take over.
    }
  }
  ADD_FAILURE() << "the move does not end";
  return std::nullopt;
}

TEST(MoveMachine, ReplacementServesBeforeThePodIsEvicted) {
  FakeMoveCluster cluster(3);
  int least = 99;
  EXPECT_EQ(RunMove(&cluster, nullptr, nullptr, &least), MoveOutcome::kMoved);
  EXPECT_EQ(least, 3);
  EXPECT_TRUE(cluster.IsClean());
  EXPECT_THAT(cluster.pods(), Contains(::testing::Field(&FakeMoveCluster::Held::replaces, "m1/c")));
}

TEST(MoveMachine, OneReplicaIsMovedToo) {
  FakeMoveCluster cluster(1);
  int least = 99;
  EXPECT_EQ(RunMove(&cluster, nullptr, nullptr, &least), MoveOutcome::kMoved);
  EXPECT_EQ(least, 1);
  EXPECT_TRUE(cluster.IsClean());
}

TEST(MoveMachine, WhatDoesNotFitIsUndone) {
  FakeMoveCluster cluster(2);
  cluster.full = "c";
  int least = 99;
  EXPECT_EQ(RunMove(&cluster, nullptr, nullptr, &least), MoveOutcome::kAborted);
  EXPECT_EQ(least, 2);
  for (int i = 0; i < 10; ++i) cluster.Settle();
  EXPECT_TRUE(cluster.IsClean());
}

TEST(MoveMachine, ReplacementThatNeverServesIsUndone) {
  FakeMoveCluster cluster(2);
  cluster.fails = {"c"};
  int least = 99;
  EXPECT_EQ(RunMove(&cluster, nullptr, nullptr, &least), MoveOutcome::kAborted);
  EXPECT_EQ(least, 2);
  for (int i = 0; i < 10; ++i) cluster.Settle();
  EXPECT_TRUE(cluster.IsClean());
}

TEST(MoveMachine, TargetThatFailsWhileThePodDrainsGivesItsLabelsBack) {
  FakeMoveCluster cluster(2);
  const std::string uid = cluster.pods()[0].pod.id.uid;
  const auto fail_when_drained = [&](int) {
    const FakeMoveCluster::Held* pod = cluster.Find(uid);
    if (pod != nullptr && pod->pod.labels.empty()) {
      cluster.fails = {"c"};
      cluster.target_trouble = "is not Ready";
      cluster.Settle();
    }
  };
  EXPECT_EQ(RunMove(&cluster, fail_when_drained, nullptr, nullptr), MoveOutcome::kAborted);
  for (int i = 0; i < 10; ++i) cluster.Settle();
  EXPECT_TRUE(cluster.IsClean());
  EXPECT_NE(cluster.Find(uid), nullptr);
}

// A node that has died keeps a pod that is being deleted; the move does not wait for it for ever.
TEST(MoveMachine, ASilentNodeDoesNotKeepTheMove) {
  FakeMoveCluster cluster(2);
  cluster.silent = {"a"};
  EXPECT_EQ(RunMove(&cluster, nullptr, nullptr, nullptr), MoveOutcome::kMoved);
  EXPECT_EQ(cluster.Serving(), 2);
  EXPECT_TRUE(cluster.pin.empty());

  FakeMoveCluster other(2);
  other.silent = {"a"};
  const std::string uid = other.pods()[0].pod.id.uid;
  const auto kill = [&](int step) {
    if (step == 2) other.Kill(uid);  // Before its replacement serves.
  };
  const std::optional<MoveOutcome> outcome = RunMove(&other, kill, nullptr, nullptr);
  EXPECT_TRUE(outcome == MoveOutcome::kEnded || outcome == MoveOutcome::kMoved);
  for (int i = 0; i < 20; ++i) other.Settle();
  EXPECT_EQ(other.Serving(), 2);
  EXPECT_TRUE(other.pin.empty());
}

// Whatever is killed, scaled or broken at any moment, and whenever the driver forgets: nothing of
// the move is left, and pods are as many as are wanted.
TEST(MoveMachine, NothingIsLeftWhateverHappens) {
  int moved = 0, undone = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed);
    FakeMoveCluster cluster(static_cast<int>(1 + rng.Below(4)));
    const std::string uid = cluster.pods()[0].pod.id.uid;
    const int when = static_cast<int>(rng.Below(30));
    const uint64_t what = rng.Below(9);
    const auto meddle = [&](int step) {
      if (step != when) return;
      if (what == 0) cluster.Kill(uid);
      if (what == 1) cluster.Kill(cluster.pods().back().pod.id.uid);
      if (what == 2) cluster.Scale(cluster.wanted() + 1);
      if (what == 3) cluster.Scale(std::max(1, cluster.wanted() - 1));
      if (what == 4) cluster.fails = {"c"};
      if (what == 5) cluster.target_trouble = "is cordoned";
      if (what == 6) cluster.full = "c";
      if (what == 7) cluster.pin.clear();
      if (what == 8) cluster.End(uid);
    };
    const std::optional<MoveOutcome> outcome = RunMove(
        &cluster, meddle, [&] { return rng.Below(3) == 0; }, nullptr);
    moved += outcome == MoveOutcome::kMoved ? 1 : 0;
    undone += outcome == MoveOutcome::kAborted ? 1 : 0;
    for (int i = 0; i < 20; ++i) cluster.Settle();
    ASSERT_TRUE(cluster.IsClean()) << "seed " << seed << ", meddling " << what << " at " << when;
  }
  EXPECT_GT(moved + undone, 500);
  EXPECT_GT(undone, 50);
}

MoveView Movable() {
  FakeMoveCluster cluster(2);
  return cluster.View(cluster.pods()[0].pod.id.uid, PodMove{});
}

TEST(MoveMachine, SaysWhyAPodIsNotMovable) {
  EXPECT_THAT(WhyNotMovable(Movable(), "c"), IsEmpty());
  EXPECT_THAT(WhyNotMovable(Movable(), "a"), Contains("runs on a already"));
  MoveView view = Movable();
  view.pod->is_ready = false;
  EXPECT_THAT(WhyNotMovable(view, "c"), Contains("is not Ready"));
  view = Movable();
  view.target_trouble = "is cordoned";
  EXPECT_THAT(WhyNotMovable(view, "c"), Contains("c is cordoned"));
  view = Movable();
  view.can_pin = false;
  EXPECT_THAT(WhyNotMovable(view, "c"), Contains(HasSubstr("apply deploy/moves")));
  view = Movable();
  view.pin = "m0/b";
  EXPECT_THAT(WhyNotMovable(view, "c"), Contains(HasSubstr("is being moved: m0/b")));
  view = Movable();
  view.ready = 1;
  EXPECT_THAT(WhyNotMovable(view, "c"), Contains("its ReplicaSet has 1 of 2 pods ready"));
  view = Movable();
  view.services[0].selector = {{"app", "web"}, {"pod-template-hash", "h"}};
  EXPECT_THAT(WhyNotMovable(view, "c"), Contains(HasSubstr("Services select every label")));
  view = Movable();
  view.budgets.push_back(view.budgets[0]);
  EXPECT_THAT(WhyNotMovable(view, "c"), Contains(HasSubstr("several PodDisruptionBudgets")));
}

TEST(MoveMachine, WaitsWhileABudgetAllowsNothing) {
  FakeMoveCluster cluster(2);
  const std::string uid = cluster.pods()[0].pod.id.uid;
  PodMove move = MoveTo("c", cluster.now);
  cluster.Find(uid)->annotation = PodMoveText(move);
  MoveMemory memory;
  for (int step = 0; step < 40; ++step) {
    MoveView view = cluster.View(uid, move);
    for (MoveView::Budget& budget : view.budgets) budget.allowed = 0;
    move = *view.move;
    const MoveAction action = NextMoveAction(move, view, MoveOptions{}, cluster.now, &memory);
    EXPECT_NE(action.write, MoveWrite::kDrain);
    EXPECT_NE(action.write, MoveWrite::kEvict);
    cluster.Write(action, uid, &move);
    cluster.Settle();
  }
}

TEST(PodMove, IsReadBackAsWritten) {
  PodMove move = MoveTo("c", 12);
  move.removed = {{"app", "web"}, {"pod-template-hash", "h"}};
  move.step = MoveStep::kDrain;
  move.aborting = "the target is \"gone\"";
  EXPECT_EQ(*PodMoveOf(PodMoveText(move)), move);
  EXPECT_THAT(PodMoveOf("{}").error().message, HasSubstr("id"));
  EXPECT_FALSE(PodMoveOf("[").has_value());
}

}  // namespace
}  // namespace rudderfish
