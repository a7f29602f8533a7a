// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling_follower.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "kube/cluster_feed.h"
#include "tests/support/faulty_server.h"
#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::Connection;
using rudderfish::testing::FaultyServer;
using rudderfish::testing::NodeJson;
using rudderfish::testing::PodJson;
using rudderfish::testing::SeenRequest;

class FeedRecorder final : public SchedulingObserver {
 public:
  void NodeSeen(const SchedulingNode& node) override { nodes[node.name] = node; }
  void NodeGone(const std::string& name) override { nodes.erase(name); }
  void AttachmentsSeen(const std::string& node, const std::vector<CsiVolume>& volumes) override {
    attachments[node] = volumes;
  }
  void NamespaceSeen(const std::string&, const Labels&) override {}
  void NamespaceGone(const std::string&) override {}
  void PodSeen(const ObservedPod& pod) override { pods[pod.id.Key()] = pod; }
  void PodGone(const std::string& key) override { pods.erase(key); }
  void PodFailed(const PodIdentity& pod, const std::string& reason) override {
    failed.push_back(pod.Key() + " " + reason);
  }

  std::map<std::string, SchedulingNode> nodes;
  std::map<std::string, std::vector<CsiVolume>> attachments;
  std::map<std::string, ObservedPod> pods;
  std::vector<std::string> failed;
};

void Tell(Connection* connection, const std::string& type, const std::string& object) {
  connection->Chunk(R"({"type":")" + type + R"(","object":)" + object + "}\n");
}

// Streams what there is of each resource; the service comes later.
void Serve(const SeenRequest& request, Connection* connection) {
  const auto is_of = [&](const char* path) {
    return request.target.find(path) != std::string::npos;
  };
  connection->BeginStream();
  if (is_of("/nodes?")) Tell(connection, "ADDED", NodeJson{.name = "n1"}.Text());
  if (is_of("/pods?")) {
    Tell(connection, "ADDED",
         PodJson{.name = "waits",
                 .phase = "Pending",
                 .labels = R"({"app":"web"})",
                 .more_status = R"(,"nominatedNodeName":"n1")"}
             .Text());
    Tell(connection, "ADDED", PodJson{.name = "runs", .node = "n1"}.Text());
    Tell(connection, "ADDED",
         PodJson{.name = "odd", .phase = "Pending", .more_spec = R"(,"priority":"high")"}.Text());
  }
  Tell(
      connection, "BOOKMARK",
      R"({"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}})");
  if (is_of("/services?")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    Tell(connection, "ADDED",
         R"({"kind":"Service","metadata":{"name":"web","namespace":"default",)"
         R"("resourceVersion":"6"},"spec":{"selector":{"app":"web"}}})");
  }
  connection->Hang();
}

TEST(SchedulingFollower, TellsWhatThereIsAndReadsWaitingPodsAgainWhenWhatTheyReferToChanges) {
  FaultyServer server(Serve);
  const SystemClock clock;
  const auto client = ApiClient::Open({.server = server.url()}, &clock).value();
  FeedRecorder seen;
  SchedulingFollower follower(&clock, &seen);
  ClusterFeed feed(client.get());
  feed.Add(&follower);
  const Result<void> synced = feed.Sync(std::chrono::seconds(20));
  ASSERT_TRUE(synced.has_value()) << synced.error().message;
  EXPECT_EQ(seen.nodes.at("n1").allocatable.cpu_millis, 4000);
  EXPECT_EQ(seen.pods.at("default/runs").node, "n1");
  EXPECT_EQ(seen.pods.at("default/waits").nominated, "n1");
  EXPECT_EQ(seen.pods.at("default/runs").nominated, "");
  ASSERT_EQ(seen.pods.at("default/odd").shape->unmodelled.size(), 1u);
  EXPECT_NE(seen.pods.at("default/odd").shape->unmodelled[0].find("spec.priority"),
            std::string::npos);
  EXPECT_EQ(follower.CountUnread().waiting, 1);
  const Instant end = clock.Now() + std::chrono::seconds(20);
  while (!seen.pods.at("default/waits").shape->default_spread && clock.Now() < end)
    feed.Poll(std::chrono::milliseconds(20));
  EXPECT_TRUE(seen.pods.at("default/waits").shape->default_spread.has_value());
  EXPECT_FALSE(seen.pods.at("default/runs").shape->default_spread.has_value());
}

// Time is the test's: it passes only once all else is listed and watched, while the server holds
// back the next pod.
class SlowList : public ::testing::Test {
 protected:
  static constexpr int kPods = 5;
  static constexpr Duration kLimit = std::chrono::seconds(60);

  SlowList()
      : server_([this](const SeenRequest& request, Connection* connection) {
          connection->BeginStream();
          const bool is_slow = request.target.find("/pods?") != std::string::npos;
          for (int i = 0; is_slow && i < kPods; ++i) {
            while (i > allowed_ && !is_over_) std::this_thread::yield();
            if (is_over_) return;
            Tell(connection, "ADDED", PodJson{.name = "p" + std::to_string(i)}.Text());
          }
          Tell(connection, "BOOKMARK",
               R"({"metadata":{"resourceVersion":"5","annotations":)"
               R"({"k8s.io/initial-events-end":"true"}}})");
          if (!is_slow) {
            Tell(connection, "ADDED",
                 R"({"metadata":{"name":"later","namespace":"other","resourceVersion":"6"}})");
          }
          connection->Hang();
        }),
        client_(ApiClient::Open({.server = server_.url()}, &clock_).value()),
        feed_(client_.get()) {
    feed_.Add(&follower_);
  }
  ~SlowList() override { is_over_ = true; }

  // None before all else is watched.
  int Listed() const {
    int pods = 0;
    for (const ClusterFeed::Watched& watched : feed_.Counts()) {
      if (watched.resource == "pods") {
        pods = static_cast<int>(watched.counts.listed);
      } else if (watched.counts.events == 0) {
        return 0;
      }
    }
    return pods;
  }

  ManualClock clock_{Instant(std::chrono::hours(1))};
  std::atomic<int> allowed_ = 0;
  std::atomic<bool> is_over_ = false;
  FaultyServer server_;
  std::unique_ptr<ApiClient> client_;
  FeedRecorder seen_;
  SchedulingFollower follower_{&clock_, &seen_};
  ClusterFeed feed_;
};

TEST_F(SlowList, IsWaitedForAsLongAsItGrows) {
  const Instant began = clock_.Now();
  int steps = 0;
  const Result<void> synced = feed_.Sync(kLimit, [&] {
    ++steps;
    if (Listed() != allowed_ + 1 || allowed_ + 1 == kPods) return;
    clock_.Advance(kLimit * 4 / 5);
    ++allowed_;
  });
  ASSERT_TRUE(synced.has_value()) << synced.error().message;
  EXPECT_EQ(seen_.pods.size(), 5u);
  EXPECT_GT(clock_.Now() - began, 3 * kLimit);
  EXPECT_GE(steps, kPods);
}

TEST_F(SlowList, IsGivenUpOnceItDoesNotGrow) {
  const Result<void> synced = feed_.Sync(kLimit, [&] {
    if (Listed() > 0) clock_.Advance(kLimit / 3);
  });
  ASSERT_FALSE(synced.has_value());
  EXPECT_NE(synced.error().message.find("not listed within"), std::string::npos);
}

constexpr char kEvicted[] =
    R"({"kind":"Pod","metadata":{"name":"gone","namespace":"default","uid":"u",)"
    R"("resourceVersion":"1"},"spec":{"nodeName":"n1"},)"
    R"("status":{"phase":"Failed","reason":"Evicted"}})";

// Some pods are opted out, some are to end, and one has failed.
void ServeFates(const SeenRequest& request, Connection* connection) {
  connection->BeginStream();
  const auto is_of = [&](const char* path) {
    return request.target.find(path) != std::string::npos;
  };
  if (is_of("/namespaces?")) {
    Tell(connection, "ADDED",
         R"({"kind":"Namespace","metadata":{"name":"out","resourceVersion":"1",)"
         R"("annotations":{"rudderfish.io/do-not-place":"true"}}})");
  }
  if (is_of("/pods?")) {
    Tell(connection, "ADDED", kEvicted);
    Tell(connection, "ADDED", PodJson{.name = "plain", .node = "n1"}.Text());
    Tell(connection, "ADDED",
         PodJson{.name = "labelled",
                 .phase = "Pending",
                 .labels = R"({"rudderfish.io/do-not-place":"true"})"}
             .Text());
    Tell(connection, "ADDED",
         PodJson{.name = "inside", .object_namespace = "out", .phase = "Pending"}.Text());
    Tell(connection, "ADDED",
         R"({"kind":"Pod","metadata":{"name":"leaves","namespace":"default","uid":"u2",)"
         R"("resourceVersion":"1"},"spec":{"nodeName":"n1"},"status":{"phase":"Running",)"
         R"("conditions":[{"type":"DisruptionTarget","status":"True"}]}})");
  }
  Tell(
      connection, "BOOKMARK",
      R"({"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}})");
  if (is_of("/pods?")) {
    Tell(connection, "MODIFIED", kEvicted);  // Told already.
    Tell(connection, "MODIFIED",
         R"({"kind":"Pod","metadata":{"name":"leaves","namespace":"default","uid":"u2",)"
         R"("resourceVersion":"7"},"spec":{"nodeName":"n1"},"status":{"phase":"Failed",)"
         R"("reason":"Error"}})");
  }
  connection->Hang();
}

// Of pods that have a node, three cannot be read; one of them can be, and one is gone, once
// `goes_on`.
void ServeUnread(const SeenRequest& request, Connection* connection,
                 const std::atomic<bool>& goes_on) {
  const bool is_pods = request.target.find("/pods?") != std::string::npos;
  const auto pod = [](const char* name, const char* cpu, const char* version) {
    return PodJson{.name = name,
                   .node = "n1",
                   .cpu = cpu,
                   .labels = R"({"app":"web"})",
                   .more_spec = R"(,"priority":"high")",
                   .version = version}
        .Text();
  };
  connection->BeginStream();
  if (is_pods) {
    Tell(connection, "ADDED", pod("counts", "300m", "1"));
    Tell(connection, "ADDED", pod("closes", "much", "1"));
    Tell(connection, "ADDED", pod("leaves", "many", "1"));
  }
  Tell(
      connection, "BOOKMARK",
      R"({"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}})");
  if (is_pods) {
    for (int i = 0; i < 2000 && !goes_on; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    Tell(connection, "DELETED", pod("leaves", "many", "6"));
    Tell(connection, "MODIFIED",
         PodJson{.name = "closes", .node = "n1", .cpu = "1", .version = "7"}.Text());
  }
  connection->Hang();
}

TEST(SchedulingFollower, APodOnANodeThatCannotBeReadHoldsWhatCanBeReadOfItOrClosesTheNode) {
  std::atomic<bool> goes_on = false;
  FaultyServer server([&](const SeenRequest& request, Connection* connection) {
    ServeUnread(request, connection, goes_on);
  });
  const SystemClock clock;
  const auto client = ApiClient::Open({.server = server.url()}, &clock).value();
  FeedRecorder seen;
  SchedulingFollower follower(&clock, &seen);
  ClusterFeed feed(client.get());
  feed.Add(&follower);
  const Result<void> synced = feed.Sync(std::chrono::seconds(20));
  ASSERT_TRUE(synced.has_value()) << synced.error().message;
  const ObservedPod counts = seen.pods.at("default/counts");
  EXPECT_EQ(counts.node, "n1");
  EXPECT_EQ(counts.shape->amounts.held.cpu_millis, 300);
  EXPECT_EQ(counts.shape->labels, (Labels{{"app", "web"}}));
  EXPECT_FALSE(counts.shape->holds_unknown);
  EXPECT_NE(counts.shape->unmodelled.at(0).find("spec.priority"), std::string::npos);
  EXPECT_TRUE(seen.pods.at("default/closes").shape->holds_unknown);
  EXPECT_TRUE(seen.pods.at("default/leaves").shape->holds_unknown);
  EXPECT_EQ(follower.CountUnread().counted, 1);
  EXPECT_EQ(follower.CountUnread().closing, 2);
  goes_on = true;
  const Instant end = clock.Now() + std::chrono::seconds(20);
  while (follower.CountUnread().closing > 0 && clock.Now() < end)
    feed.Poll(std::chrono::milliseconds(20));
  EXPECT_EQ(follower.CountUnread().closing, 0);
  EXPECT_FALSE(seen.pods.contains("default/leaves"));
  EXPECT_FALSE(seen.pods.at("default/closes").shape->holds_unknown);
  EXPECT_EQ(seen.pods.at("default/closes").shape->amounts.held.cpu_millis, 1000);
}

// Anybody who may make pods may make such a one; it must not keep others from nodes.
TEST(SchedulingFollower, APodOfAnyNumberOfTermsClosesNoNode) {
  std::string terms = R"({"topologyKey":"zone","labelSelector":{}})";
  for (int i = 0; i < 6; ++i) terms += "," + terms;
  const std::string affinity =
      R"(,"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)" +
      terms + "]}}";
  FaultyServer server([&](const SeenRequest& request, Connection* connection) {
    connection->BeginStream();
    if (request.target.find("/pods?") != std::string::npos) {
      for (const std::string node : {"", "n1"}) {
        const std::string name = node.empty() ? "waits" : "runs";
        Tell(connection, "ADDED",
             PodJson{.name = name, .node = node, .more_spec = affinity}.Text());
      }
    }
    Tell(connection, "BOOKMARK",
         R"({"metadata":{"resourceVersion":"5","annotations":)"
         R"({"k8s.io/initial-events-end":"true"}}})");
    connection->Hang();
  });
  const SystemClock clock;
  const auto client = ApiClient::Open({.server = server.url()}, &clock).value();
  FeedRecorder seen;
  SchedulingFollower follower(&clock, &seen);
  ClusterFeed feed(client.get());
  feed.Add(&follower);
  ::testing::internal::CaptureStderr();
  const Result<void> synced = feed.Sync(std::chrono::seconds(20));
  const std::string told = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(synced.has_value()) << synced.error().message;
  for (const char* name : {"default/runs", "default/waits"}) {
    EXPECT_EQ(seen.pods.at(name).shape->forbidden_pods.size(), 64u);
    EXPECT_FALSE(seen.pods.at(name).shape->holds_unknown);
    EXPECT_TRUE(seen.pods.at(name).shape->unmodelled.empty());
  }
  EXPECT_EQ(follower.CountUnread().closing, 0);
  EXPECT_EQ(follower.CountUnread().waiting, 0);
  EXPECT_EQ(told.find("default/runs"), std::string::npos) << told;
}

TEST(SchedulingFollower, TellsWhoFailedWhoIsToEndAndWhoIsOptedOut) {
  FaultyServer server(ServeFates);
  const SystemClock clock;
  const auto client = ApiClient::Open({.server = server.url()}, &clock).value();
  FeedRecorder seen;
  SchedulingFollower follower(&clock, &seen);
  ClusterFeed feed(client.get());
  feed.Add(&follower, EndedPods::kFailed);
  const Result<void> synced = feed.Sync(std::chrono::seconds(20));
  ASSERT_TRUE(synced.has_value()) << synced.error().message;
  EXPECT_FALSE(seen.pods.contains("default/gone"));
  EXPECT_TRUE(seen.pods.at("default/plain").is_running);
  EXPECT_FALSE(seen.pods.at("default/plain").is_opted_out);
  EXPECT_TRUE(seen.pods.at("default/labelled").is_opted_out);
  EXPECT_FALSE(seen.pods.at("default/labelled").is_running);
  EXPECT_TRUE(seen.pods.at("out/inside").is_opted_out);
  const Instant end = clock.Now() + std::chrono::seconds(20);
  while (seen.pods.contains("default/leaves") && clock.Now() < end)
    feed.Poll(std::chrono::milliseconds(20));
  EXPECT_FALSE(seen.pods.contains("default/leaves"));
  EXPECT_EQ(seen.failed,
            (std::vector<std::string>{"default/gone Evicted", "default/leaves Error"}));
}

}  // namespace
}  // namespace rudderfish::kube
