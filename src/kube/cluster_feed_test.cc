// SPDX-License-Identifier: Apache-2.0
#include "kube/cluster_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <thread>

#include "kube/mirror.h"
#include "kube/scheduling_follower.h"
#include "tests/support/faulty_server.h"
#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::Connection;
using rudderfish::testing::FaultyServer;
using rudderfish::testing::NodeJson;
using rudderfish::testing::PodJson;
using rudderfish::testing::SeenRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kEndOfStream[] =
    R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5","annotations":)"
    R"({"k8s.io/initial-events-end":"true"}}}})"
    "\n";

std::string EventOf(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

class PodsOfFeed final : public SchedulingObserver {
 public:
  void NodeSeen(const SchedulingNode& node) override { nodes.insert(node.name); }
  void NodeGone(const std::string& name) override { nodes.erase(name); }
  void AttachmentsSeen(const std::string&, const std::vector<CsiVolume>&) override {}
  void NamespaceSeen(const std::string&, const Labels&) override {}
  void NamespaceGone(const std::string&) override {}
  void PodSeen(const ObservedPod& pod) override { pods.insert(pod.id.Key()); }
  void PodGone(const std::string& key) override { pods.erase(key); }
  void PodFailed(const PodIdentity& pod, const std::string&) override { failed.insert(pod.Key()); }

  std::set<std::string> nodes, pods, failed;
};

// A process that places and moves pods, and its API server: what streams tell by resource, first
// and then once the list has ended; 403 for what is refused, 404 for what is neither.
class ClusterFeedTest : public ::testing::Test {
 protected:
  void Start() {
    feed_.reset();
    client_.reset();
    server_ = std::make_unique<FaultyServer>([this](const SeenRequest& request, Connection* to) {
      const size_t end = request.target.find('?');
      const std::string path = request.target.substr(0, end);
      const std::string resource = path.substr(path.rfind('/') + 1);
      if (path.find("metrics") != std::string::npos) return to->Answer(404, "{}");
      if (refused_.contains(resource)) {
        return to->Answer(
            403, R"({"kind":"Status","code":403,"message":")" + resource + R"( is forbidden"})");
      }
      to->BeginStream();
      for (const std::string& event : listed_[resource]) to->Chunk(event);
      to->Chunk(kEndOfStream);
      for (const std::string& event : later_[resource]) to->Chunk(event);
      to->Hang();
    });
    client_ = ApiClient::Open({.server = server_->url()}, &clock_).value();
    feed_ = std::make_unique<ClusterFeed>(client_.get());
  }
  void FollowBoth(EndedPods ended = EndedPods::kUntold) {
    feed_->Add(&placing_, ended);
    feed_->Add(&moving_);
  }
  Result<void> Sync() { return feed_->Sync(std::chrono::seconds(20)); }
  template <class Holds>
  bool Until(Holds holds) {
    const Instant end = clock_.Now() + std::chrono::seconds(20);
    while (!holds() && clock_.Now() < end) feed_->Poll(std::chrono::milliseconds(10));
    return holds();
  }
  std::map<std::string, int> Watches() const {  // By path.
    std::map<std::string, int> watches;
    for (const SeenRequest& request : server_->requests()) {
      if (request.target.find("watch=1") != std::string::npos)
        ++watches[request.target.substr(0, request.target.find('?'))];
    }
    return watches;
  }
  std::string TargetOf(const std::string& path) const {
    for (const SeenRequest& request : server_->requests()) {
      if (request.target.starts_with(path + "?")) return request.target;
    }
    return "";
  }
  ReflectorCounts CountsOf(const std::string& resource) const {
    for (const ClusterFeed::Watched& one : feed_->Counts()) {
      if (one.resource == resource) return one.counts;
    }
    return {};
  }

  SystemClock clock_;
  std::map<std::string, std::vector<std::string>> listed_, later_;  // By resource.
  std::set<std::string> refused_;
  PodsOfFeed placed_;
  SchedulingFollower placing_{&clock_, &placed_};
  Mirror moving_{&clock_};
  std::unique_ptr<FaultyServer> server_;
  std::unique_ptr<ApiClient> client_;
  std::unique_ptr<ClusterFeed> feed_;
};

TEST_F(ClusterFeedTest, WatchesEachResourceOnceHoweverManyFollowersReadIt) {
  listed_["nodes"] = {EventOf("ADDED", NodeJson{.name = "n1"}.Text())};
  listed_["pods"] = {EventOf("ADDED", PodJson{.name = "a", .node = "n1"}.Text())};
  later_["pods"] = {EventOf("ADDED", PodJson{.name = "b", .node = "n1", .version = "6"}.Text())};
  Start();
  FollowBoth();
  const Result<void> synced = Sync();
  ASSERT_TRUE(synced) << synced.error().message;
  const std::map<std::string, int> watches = Watches();
  EXPECT_EQ(watches.size(), 15u);
  for (const auto& [path, times] : watches) EXPECT_EQ(times, 1) << path;
  ASSERT_TRUE(Until([&] { return moving_.Count(Resource::kPods) == 2; }));
  EXPECT_THAT(placed_.pods, ElementsAre("default/a", "default/b"));
  EXPECT_EQ(placed_.nodes.size(), 1u);
  EXPECT_EQ(moving_.Count(Resource::kNodes), 1u);
  EXPECT_EQ(CountsOf("pods").listed, 1);
  EXPECT_EQ(CountsOf("pods").events, 1);
  EXPECT_EQ(moving_.FreshAt(Resource::kPods), *feed_->FreshAt(Resource::kPods));
  EXPECT_TRUE(feed_->FreshAsOf(placing_).has_value());
}

TEST_F(ClusterFeedTest, WhatOneFollowerCannotReadTheOtherHasAndNothingIsListedAgain) {
  const std::string odd = R"({"kind":"Node","metadata":{"name":"odd","resourceVersion":"1"},)"
                          R"("status":{"images":[{"names":["a"],"sizeBytes":-1}]}})";
  const std::string late = PodJson{.name = "late", .phase = "Asleep", .version = "6"}.Text();
  listed_["nodes"] = {EventOf("ADDED", NodeJson{.name = "n1"}.Text()), EventOf("ADDED", odd)};
  listed_["pods"] = {EventOf("ADDED", PodJson{.name = "a", .node = "n1"}.Text())};
  later_["pods"] = {EventOf("ADDED", late)};
  Start();
  FollowBoth();
  ASSERT_TRUE(Sync());
  ASSERT_TRUE(Until([&] { return placed_.pods.contains("default/late"); }));
  EXPECT_EQ(moving_.pods.Find({"default", "late"}), nullptr);
  EXPECT_NE(moving_.pods.Find({"default", "a"}), nullptr);
  EXPECT_NE(moving_.nodes.Find({"", "odd"}), nullptr);
  EXPECT_THAT(placed_.nodes, ElementsAre("n1"));
  EXPECT_EQ(CountsOf("pods").lists, 1);
  EXPECT_EQ(CountsOf("pods").malformed, 1);
  EXPECT_EQ(CountsOf("nodes").malformed, 1);
  EXPECT_THAT(feed_->Missing(moving_),
              ElementsAre(HasSubstr("1 of the pods, malformed (pod default/late: status.phase"),
                          HasSubstr("NodeMetrics"), HasSubstr("PodMetrics")));
  EXPECT_THAT(feed_->Missing(placing_), ElementsAre(HasSubstr("1 of the nodes, malformed")));
  EXPECT_EQ(feed_->Trouble(placing_), "");
}

TEST_F(ClusterFeedTest, WhatNoFollowerCanReadIsListedOnceMore) {
  later_["nodes"] = {EventOf("ADDED", R"({"kind":"Node","metadata":{"name":"n",)"
                                      R"("resourceVersion":"6"},"spec":"none"})")};
  Start();
  FollowBoth();
  ASSERT_TRUE(Sync());
  EXPECT_TRUE(Until([&] { return CountsOf("nodes").lists > 1; }));
}

TEST_F(ClusterFeedTest, WhatOneFollowerNeedsIsNeededAndWhatIsWantedIsNamed) {
  refused_ = {"jobs"};
  Start();
  FollowBoth();
  ASSERT_TRUE(Sync());
  EXPECT_THAT(feed_->Missing(moving_)[0], HasSubstr("jobs (GET /apis/batch/v1/jobs"));
  EXPECT_THAT(feed_->Missing(placing_), IsEmpty());
  EXPECT_EQ(feed_->Trouble(placing_), "") << "it does not read jobs";
  EXPECT_TRUE(feed_->FreshAsOf(placing_).has_value());

  refused_ = {"statefulsets"};  // Moving goes on without, placing does not.
  Start();
  feed_->Add(&moving_);
  EXPECT_TRUE(Sync());
  Start();
  FollowBoth();
  const Result<void> synced = Sync();
  ASSERT_FALSE(synced);
  EXPECT_THAT(synced.error().message, HasSubstr("statefulsets is forbidden"));
}

TEST_F(ClusterFeedTest, OfPodsThatHaveEndedThoseAreWatchedThatAFollowerIsToBeToldOf) {
  const std::string failed = PodJson{.name = "a", .node = "n1", .phase = "Failed"}.Text();
  listed_["pods"] = {EventOf("ADDED", failed)};
  Start();
  FollowBoth();
  ASSERT_TRUE(Sync());
  EXPECT_THAT(TargetOf("/api/v1/pods"),
              HasSubstr("status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"));
  Start();
  FollowBoth(EndedPods::kFailed);
  ASSERT_TRUE(Sync());
  EXPECT_THAT(TargetOf("/api/v1/pods"), HasSubstr("?fieldSelector=status.phase%21%3DSucceeded&"));
  EXPECT_THAT(placed_.failed, ElementsAre("default/a"));
  EXPECT_THAT(placed_.pods, IsEmpty());
  Start();
  feed_->Add(&moving_, EndedPods::kAll);
  ASSERT_TRUE(Sync());
  EXPECT_THAT(TargetOf("/api/v1/pods"), ::testing::Not(HasSubstr("fieldSelector")));
}

}  // namespace
}  // namespace rudderfish::kube
