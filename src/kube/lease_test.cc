// SPDX-License-Identifier: Apache-2.0
#include "kube/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/faulty_server.h"
#include "tests/support/polling.h"

// What time does to an election when the server is slow, silent or gone; time is the test's. The
// election among real processes on a real server is in tests/live/.

namespace rudderfish::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Connection;
using testing::FaultyServer;
using testing::SeenRequest;

// A server that gives away what was written to it, as the test allows.
class OneLease : public ::testing::Test {
 protected:
  OneLease()
      : server_([this](const SeenRequest& request, Connection* to) { Answer(request, to); }) {}

  void Answer(const SeenRequest& request, Connection* to) {
    if (is_broken_) return to->Reset();
    const std::lock_guard lock(mutex_);
    if (request.method == "GET") {
      if (lease_.is_null()) return to->Answer(404, "{}");
      return to->Answer(200, lease_.dump());
    }
    if (request.method == "PUT" && lease_.is_null()) return to->Answer(404, "{}");
    const json written = json::parse(request.body);
    if (!lease_.is_null() &&
        written["metadata"].value("resourceVersion", "") != lease_["metadata"]["resourceVersion"]) {
      return to->Answer(409, "{}");
    }
    Store(written["spec"], written["metadata"].value("annotations", json()));
    to->Answer(200, lease_.dump());
  }

  void Store(const json& spec, const json& annotations) {
    lease_ = {{"metadata", {{"name", "l"}, {"resourceVersion", std::to_string(++version_)}}},
              {"spec", spec}};
    if (!annotations.is_null()) lease_["metadata"]["annotations"] = annotations;
  }

  // As another instance would write it.
  void Overwrite(const std::string& holder) {
    const std::lock_guard lock(mutex_);
    Store({{"holderIdentity", holder},
           {"leaseDurationSeconds", 15},
           {"renewTime", "2026-11-21T07:26:52." + std::to_string(100000 + version_) + "Z"}},
          {});
  }

  void Delete() {
    const std::lock_guard lock(mutex_);
    lease_ = nullptr;
  }
  bool IsThere() {
    const std::lock_guard lock(mutex_);
    return !lease_.is_null();
  }

  json Spec() {
    const std::lock_guard lock(mutex_);
    return lease_["spec"];
  }

  struct Candidate {
    std::unique_ptr<ApiClient> client;
    std::unique_ptr<LeaseElection> election;
    std::vector<Leadership> changes;
  };

  std::unique_ptr<Candidate> Enter(const std::string& identity) {
    auto candidate = std::make_unique<Candidate>();
    ApiClientOptions options = testing::QuickOptions();
    candidate->client = testing::OpenClient({.server = server_.url()}, options, clock_);
    candidate->election = std::make_unique<LeaseElection>(
        candidate->client.get(),
        LeaseOptions{.name_space = "n", .name = "l", .identity = identity, .annotation = "word"},
        [raw = candidate.get()](Leadership now) { raw->changes.push_back(now); });
    candidate->election->Start();
    return candidate;
  }

  // Polls all until `condition` holds. The test's time passes in steps, each when no candidate
  // waits for the server any more, so that its load changes nothing; false after `limit` of it.
  bool Until(const std::vector<Candidate*>& candidates, const std::function<bool()>& condition,
             Duration limit = seconds(60)) {
    const Instant end = clock_.Now() + limit;
    while (!condition()) {
      if (clock_.Now() > end) return false;
      int leaders = 0;
      bool is_idle = true;
      for (Candidate* candidate : candidates) {
        candidate->client->Poll(milliseconds(1));
        leaders += candidate->election->IsLeader();
        is_idle &= candidate->client->is_idle();
      }
      EXPECT_LE(leaders, 1);
      if (is_idle) clock_.Advance(milliseconds(100));
    }
    return true;
  }

  ManualClock clock_;
  std::atomic<bool> is_broken_ = false;
  std::mutex mutex_;  // Of what follows, which the server's threads see.
  json lease_;
  int version_ = 0;
  FaultyServer server_;
};

TEST_F(OneLease, FirstToComeLeadsAndRenews) {
  const auto first = Enter("first"), second = Enter("second");
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->IsLeader(); }));
  const std::string renewed = Spec()["renewTime"];
  EXPECT_FALSE(Until({first.get(), second.get()}, [&] { return second->election->IsLeader(); }));
  EXPECT_TRUE(first->election->IsLeader());
  EXPECT_NE(Spec()["renewTime"], renewed);
  EXPECT_EQ(Spec()["leaseDurationSeconds"], 15);
  EXPECT_EQ(second->election->holder(), "first");
  EXPECT_EQ(first->election->counts().lost, 0);
}

TEST_F(OneLease, WhoFallsSilentIsFollowedAfterTheLease) {
  const auto first = Enter("first"), second = Enter("second");
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->IsLeader(); }));
  ASSERT_TRUE(Until({second.get()}, [&] { return second->election->holder() == "first"; }));
  const Instant silent_since = clock_.Now();
  ASSERT_TRUE(Until({second.get()}, [&] { return second->election->IsLeader(); }));
  EXPECT_GE(clock_.Now() - silent_since, seconds(14));  // Counted from when second saw it.
  EXPECT_LE(clock_.Now() - silent_since, seconds(15 + 5));
  EXPECT_FALSE(first->election->IsLeader());
  EXPECT_EQ(Spec()["leaseTransitions"], 1);
}

TEST_F(OneLease, LeaderWithoutServerFencesItselfBeforeTheLeaseEnds) {
  const auto first = Enter("first");
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->IsLeader(); }));
  is_broken_ = true;
  const Instant broken_since = clock_.Now();
  ASSERT_TRUE(Until({first.get()}, [&] { return !first->election->IsLeader(); }));
  EXPECT_LE(clock_.Now() - broken_since, seconds(11));
  first->client->Poll(milliseconds(1));
  EXPECT_EQ(first->changes.back(), Leadership::kFollowing);
  is_broken_ = false;  // No other instance has taken it meanwhile.
  EXPECT_TRUE(Until(
      {first.get()}, [&] { return first->election->IsLeader(); }, seconds(20)));
}

TEST_F(OneLease, TimeAloneEndsLeadership) {
  const auto first = Enter("first");
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->IsLeader(); }));
  clock_.Advance(seconds(10));  // Without a turn in between: the process stood still.
  EXPECT_FALSE(first->election->IsLeader());
}

TEST_F(OneLease, ReleasedLeaseIsTakenAtOnce) {
  const auto first = Enter("first"), second = Enter("second");
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->IsLeader(); }));
  ASSERT_TRUE(Until({second.get()}, [&] { return second->election->holder() == "first"; }));
  bool released = false;
  first->election->Release([&] { released = true; });
  EXPECT_FALSE(first->election->IsLeader());
  ASSERT_TRUE(Until({first.get()}, [&] { return released; }));
  EXPECT_EQ(Spec()["holderIdentity"], "");
  EXPECT_TRUE(Until(
      {first.get(), second.get()}, [&] { return second->election->IsLeader(); }, seconds(5)));
}

TEST_F(OneLease, LeaderThatIsOverruledStopsAtOnce) {
  const auto first = Enter("first");
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->IsLeader(); }));
  Overwrite("usurper");
  ASSERT_TRUE(Until(
      {first.get()}, [&] { return !first->election->IsLeader(); }, seconds(5)));
  EXPECT_EQ(first->election->holder(), "usurper");
}

TEST_F(OneLease, SecondInstanceOfTheSameNameIsFoundOutAndWaits) {
  Overwrite("first");
  const auto first = Enter("first");
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->holder() == "first"; }));
  EXPECT_FALSE(first->election->has_namesake());  // It may have been its predecessor.
  Overwrite("first");
  EXPECT_TRUE(Until({first.get()}, [&] { return first->election->has_namesake(); }));
  EXPECT_FALSE(first->election->IsLeader());
  EXPECT_TRUE(Until({first.get()}, [&] { return first->election->IsLeader(); }));  // It has died.
}

// The holder, cut off here, cannot hear of it.
TEST_F(OneLease, DeletedLeaseIsNotTakenWhileItsHolderMayLead) {
  const auto first = Enter("first"), second = Enter("second");
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->IsLeader(); }));
  ASSERT_TRUE(Until({second.get()}, [&] { return second->election->holder() == "first"; }));
  // Renewed, as late as can be, where second does not see it.
  clock_.Advance(seconds(9));
  const int64_t renewals = first->election->counts().renewals;
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->counts().renewals > renewals; }));
  Delete();
  const Instant deleted_at = clock_.Now();
  EXPECT_TRUE(Until({second.get()}, [&] {
    EXPECT_FALSE(first->election->IsLeader() && second->election->IsLeader());
    return second->election->IsLeader();
  }));
  EXPECT_GE(clock_.Now() - deleted_at, seconds(15));
  EXPECT_LE(clock_.Now() - deleted_at, seconds(15 + 5));
  EXPECT_EQ(Spec()["holderIdentity"], "second");
}

TEST_F(OneLease, HolderRecreatesADeletedLeaseAtOnceAndLeadsOn) {
  const auto first = Enter("first"), second = Enter("second");
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->IsLeader(); }));
  ASSERT_TRUE(Until({second.get()}, [&] { return second->election->holder() == "first"; }));
  Delete();
  ASSERT_TRUE(Until(
      {second.get(), first.get()}, [&] { return IsThere(); }, seconds(5)));
  EXPECT_EQ(Spec()["holderIdentity"], "first");
  EXPECT_FALSE(Until(
      {second.get(), first.get()}, [&] { return !first->election->IsLeader(); }, seconds(20)));
  EXPECT_EQ(first->election->counts().lost, 0);
  EXPECT_EQ(second->election->counts().acquired, 0);
}

// What the first has said is there for the second from the moment on that it leads.
TEST_F(OneLease, WordThatALeaderLeavesIsFoundByTheNext) {
  const auto first = Enter("first"), second = Enter("second");
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->IsLeader(); }));
  const int64_t renewals = first->election->counts().renewals;
  first->election->Carry("one");
  first->election->Carry("two");
  EXPECT_FALSE(first->election->is_carried());
  const Instant said = clock_.Now();
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->is_carried(); }));
  EXPECT_LT(clock_.Now() - said, seconds(1)) << "it does not wait for its time";
  EXPECT_EQ(first->election->counts().renewals, renewals + 1);
  ASSERT_TRUE(
      Until({first.get(), second.get()}, [&] { return second->election->carried() == "two"; }));
  ASSERT_TRUE(Until({second.get()}, [&] { return second->election->IsLeader(); }));
  EXPECT_EQ(second->election->carried(), "two");
  EXPECT_TRUE(second->election->is_carried());
  second->election->Carry("three");
  ASSERT_TRUE(Until({second.get()}, [&] { return second->election->is_carried(); }));
  ASSERT_TRUE(
      Until({first.get(), second.get()}, [&] { return first->election->counts().lost > 0; }));
  EXPECT_EQ(first->election->carried(), "three") << "what it said itself has ended";
  EXPECT_TRUE(first->election->is_carried());
  // Somebody deletes it: its holder knows what it has said.
  Delete();
  ASSERT_TRUE(Until({second.get()}, [&] { return IsThere(); }));
  EXPECT_EQ(second->election->carried(), "three");
}

TEST_F(OneLease, WhatOthersWroteInTheLeaseIsKept) {
  Overwrite("");
  {
    const std::lock_guard lock(mutex_);
    lease_["spec"]["strategy"] = "OldestEmulationVersion";
  }
  const auto first = Enter("first");
  ASSERT_TRUE(Until({first.get()}, [&] { return first->election->IsLeader(); }));
  EXPECT_EQ(Spec()["strategy"], "OldestEmulationVersion");
}

}  // namespace
}  // namespace rudderfish::kube
