// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "kube/cluster_feed.h"
#include "kube/scheduling_follower.h"
#include "tests/support/faulty_server.h"
#include "tests/support/kube_json.h"

// What a SchedulingFollower tells of volumes that CSI drivers attach, and what it says where it may
// not read how many a node takes.

namespace rudderfish::kube {
namespace {

using rudderfish::testing::Connection;
using rudderfish::testing::FaultyServer;
using rudderfish::testing::NodeJson;
using rudderfish::testing::PodJson;
using rudderfish::testing::SeenRequest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class VolumeRecorder final : public SchedulingObserver {
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

  const PodClass& Pod(const std::string& name) const { return *pods.at("default/" + name).shape; }

  std::map<std::string, SchedulingNode> nodes;
  std::map<std::string, std::vector<CsiVolume>> attachments;
  std::map<std::string, ObservedPod> pods;
};

std::string VolumeJson(const std::string& name, const std::string& handle) {
  return fmt::format(
      R"({{"kind":"PersistentVolume","metadata":{{"name":"{}","resourceVersion":"1"}},)"
      R"("spec":{{"csi":{{"driver":"disk","volumeHandle":"{}"}}}}}})",
      name, handle);
}

std::string ClaimJson(const std::string& name, const std::string& volume) {
  return fmt::format(
      R"({{"kind":"PersistentVolumeClaim","metadata":{{"name":"{}","namespace":"default",)"
      R"("resourceVersion":"1","annotations":{{"pv.kubernetes.io/bind-completed":"yes"}}}},)"
      R"("spec":{{"volumeName":"{}"}}}})",
      name, volume);
}

std::string CsiNodeJson(int volumes_max) {
  return fmt::format(
      R"({{"kind":"CSINode","metadata":{{"name":"n1","resourceVersion":"1"}},"spec":{{"drivers":)"
      R"([{{"name":"disk","allocatable":{{"count":{}}}}}]}}}})",
      volumes_max);
}

constexpr char kAttachment[] =
    R"({"kind":"VolumeAttachment","metadata":{"name":"a","resourceVersion":"1"},"spec":)"
    R"({"attacher":"disk","nodeName":"n1","source":{"persistentVolumeName":"shared"}}})";

std::string UsingPod(const std::string& name, const std::string& node) {
  return PodJson{
      .name = name,
      .node = node,
      .phase = node.empty() ? "Pending" : "Running",
      .more_spec = R"(,"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}])"}
      .Text();
}

// An API server of which tests change what it has; who watches is told. May refuse resources, which
// ends the watches of them.
class VolumeServer {
 public:
  VolumeServer()
      : server_([this](const SeenRequest& request, Connection* c) { Serve(request, c); }) {
    client = ApiClient::Open({.server = server_.url()}, &clock).value();
    feed.emplace(client.get());
    feed->Add(&follower);
  }
  ~VolumeServer() { is_over_ = true; }

  // `object` of the resource in plural, whether a watch has begun or not.
  void Tell(const std::string& resource, const std::string& type, const std::string& object) {
    const std::lock_guard lock(mutex_);
    events_[resource].push_back(R"({"type":")" + type + R"(","object":)" + object + "}\n");
  }
  void Refuse(const std::set<std::string>& resources) {
    const std::lock_guard lock(mutex_);
    refused_ = resources;
  }

  void Sync() {
    const Result<void> synced = feed->Sync(std::chrono::seconds(20));
    ASSERT_TRUE(synced.has_value()) << synced.error().message;
  }
  bool Until(const std::function<bool()>& holds) {
    const Instant end = clock.Now() + std::chrono::seconds(20);
    while (!holds() && clock.Now() < end) feed->Poll(std::chrono::milliseconds(10));
    return holds();
  }

  const SystemClock clock;
  VolumeRecorder seen;
  std::unique_ptr<ApiClient> client;
  SchedulingFollower follower{&clock, &seen};
  std::optional<ClusterFeed> feed;

 private:
  void Serve(const SeenRequest& request, Connection* connection) {
    const size_t end = request.target.find('?');
    const std::string resource = request.target.substr(request.target.rfind('/', end) + 1,
                                                       end - 1 - request.target.rfind('/', end));
    size_t told = 0;
    const auto is_refused = [&] {
      const std::lock_guard lock(mutex_);
      return refused_.contains(resource);
    };
    const auto all = [&] {
      const std::lock_guard lock(mutex_);
      const std::vector<std::string>& events = events_[resource];
      std::vector<std::string> more(events.begin() + static_cast<std::ptrdiff_t>(told),
                                    events.end());
      told = events.size();
      return more;
    };
    if (is_refused()) {
      connection->Answer(403, R"({"kind":"Status","status":"Failure","code":403,"reason":)"
                              R"("Forbidden","message":")" +
                                  resource + R"( is forbidden"})");
      return;
    }
    connection->BeginStream();
    for (const std::string& event : all()) connection->Chunk(event);
    connection->Chunk(
        R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5","annotations":)"
        R"({"k8s.io/initial-events-end":"true"}}}})"
        "\n");
    while (!is_over_ && !is_refused()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      for (const std::string& event : all()) connection->Chunk(event);
    }
    connection->EndStream();
  }

  std::atomic<bool> is_over_ = false;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> events_;
  std::set<std::string> refused_;
  FaultyServer server_;
};

TEST(VolumeFollower, TellsOfNodesWhatTheyTakeAndWhatIsAttachedToThem) {
  VolumeServer server;
  server.Tell("nodes", "ADDED", NodeJson{.name = "n1"}.Text());
  server.Tell("csinodes", "ADDED", CsiNodeJson(3));
  server.Tell("volumeattachments", "ADDED", kAttachment);
  server.Tell("persistentvolumes", "ADDED", VolumeJson("shared", "s"));
  server.Sync();
  EXPECT_THAT(server.seen.nodes.at("n1").volume_limits, ElementsAre(VolumeLimit{"disk", 3}));
  EXPECT_THAT(server.seen.attachments.at("n1"), ElementsAre(CsiVolume{"disk", "s"}));
  server.Tell("csinodes", "MODIFIED", CsiNodeJson(5));
  EXPECT_TRUE(server.Until(
      [&] { return server.seen.nodes.at("n1").volume_limits.front().volumes_max == 5; }));
  // A later change of the node itself does not undo that.
  server.Tell("nodes", "MODIFIED", NodeJson{.name = "n1", .cpu = "2"}.Text());
  EXPECT_TRUE(
      server.Until([&] { return server.seen.nodes.at("n1").allocatable.cpu_millis == 2000; }));
  EXPECT_EQ(server.seen.nodes.at("n1").volume_limits.front().volumes_max, 5);
  server.Tell("volumeattachments", "DELETED", kAttachment);
  EXPECT_TRUE(server.Until([&] { return server.seen.attachments.at("n1").empty(); }));
  server.Tell("csinodes", "DELETED", CsiNodeJson(5));
  EXPECT_TRUE(server.Until([&] { return server.seen.nodes.at("n1").volume_limits.empty(); }));
}

TEST(VolumeFollower, WhicheverOfThemIsHeardOfFirstANodeIsTheSame) {
  VolumeServer server;
  server.Sync();
  server.Tell("csinodes", "ADDED", CsiNodeJson(3));
  server.Tell("volumeattachments", "ADDED", kAttachment);
  const auto objects = [&](const std::string& resource) {
    for (const ClusterFeed::Watched& watched : server.feed->Counts()) {
      if (watched.resource == resource) return watched.objects;
    }
    return size_t{0};
  };
  ASSERT_TRUE(server.Until([&] {
    return objects("csinodes.storage.k8s.io") == 1 &&
           objects("volumeattachments.storage.k8s.io") == 1;
  }));
  EXPECT_THAT(server.seen.nodes, IsEmpty());
  EXPECT_THAT(server.seen.attachments["n1"], IsEmpty());
  server.Tell("persistentvolumes", "ADDED", VolumeJson("shared", "s"));
  server.Tell("nodes", "ADDED", NodeJson{.name = "n1"}.Text());
  EXPECT_TRUE(server.Until(
      [&] { return !server.seen.nodes.empty() && !server.seen.attachments["n1"].empty(); }));
  EXPECT_THAT(server.seen.nodes.at("n1").volume_limits, ElementsAre(VolumeLimit{"disk", 3}));
  EXPECT_THAT(server.seen.attachments.at("n1"), ElementsAre(CsiVolume{"disk", "s"}));
}

TEST(VolumeFollower, WhatIsAttachedForAPodIsWhatItsClaimIsBoundToNow) {
  VolumeServer server;
  server.Tell("nodes", "ADDED", NodeJson{.name = "n1"}.Text());
  server.Tell("pods", "ADDED", UsingPod("runs", "n1"));
  server.Tell("pods", "ADDED", UsingPod("waits", ""));
  server.Sync();
  EXPECT_THAT(server.seen.Pod("runs").attached, IsEmpty());
  EXPECT_EQ(server.seen.Pod("waits").rejection, "persistentvolumeclaim \"c\" not found");
  server.Tell("persistentvolumeclaims", "ADDED", ClaimJson("c", "v"));
  EXPECT_TRUE(server.Until(
      [&] { return server.seen.Pod("waits").rejection == "persistentvolume \"v\" not found"; }));
  const auto attached = [&](const char* handle) {
    const std::vector<CsiVolume> wanted = {{"disk", handle}};
    return server.Until([&] {
      return server.seen.Pod("runs").attached == wanted &&
             server.seen.Pod("waits").attached == wanted;
    });
  };
  server.Tell("persistentvolumes", "ADDED", VolumeJson("v", "1"));
  EXPECT_TRUE(attached("1"));
  EXPECT_EQ(server.seen.Pod("waits").rejection, "");
  EXPECT_EQ(server.seen.pods.at("default/runs").node, "n1");
  server.Tell("persistentvolumes", "MODIFIED", VolumeJson("v", "2"));
  EXPECT_TRUE(attached("2"));
  server.Tell("persistentvolumes", "ADDED", VolumeJson("w", "3"));
  server.Tell("persistentvolumeclaims", "MODIFIED", ClaimJson("c", "w"));
  EXPECT_TRUE(attached("3"));
  server.Tell("persistentvolumeclaims", "DELETED", ClaimJson("c", "w"));
  EXPECT_TRUE(server.Until([&] { return server.seen.Pod("runs").attached.empty(); }));
}

TEST(VolumeFollower, WhereLimitsMayNotBeReadPodsWithVolumesSaySoAndAllElseGoesOn) {
  VolumeServer server;
  server.Refuse({"csinodes"});
  server.Tell("nodes", "ADDED", NodeJson{.name = "n1"}.Text());
  server.Tell("persistentvolumes", "ADDED", VolumeJson("v", "1"));
  server.Tell("persistentvolumeclaims", "ADDED", ClaimJson("c", "v"));
  server.Tell("pods", "ADDED", UsingPod("waits", ""));
  server.Tell("pods", "ADDED", PodJson{.name = "plain", .phase = "Pending"}.Text());
  server.Sync();
  EXPECT_THAT(server.seen.Pod("waits").unmodelled,
              ElementsAre("uses the claim c, whose volume is attached by the CSI driver disk, "
                          "whose limits are not known (csinodes.storage.k8s.io cannot be read)"));
  EXPECT_THAT(server.seen.Pod("plain").unmodelled, IsEmpty());
  EXPECT_TRUE(server.feed->FreshAsOf(server.follower).has_value());
  EXPECT_NE(server.feed->Trouble(server.follower).find("csinodes is forbidden"), std::string::npos);
  server.Refuse({});
  EXPECT_TRUE(server.Until([&] { return server.seen.Pod("waits").unmodelled.empty(); }));
  EXPECT_EQ(server.feed->Trouble(server.follower), "");
}

TEST(VolumeFollower, ARightThatIsTakenAwayIsMissedFromThenOn) {
  VolumeServer server;
  server.Tell("nodes", "ADDED", NodeJson{.name = "n1"}.Text());
  server.Tell("persistentvolumes", "ADDED", VolumeJson("v", "1"));
  server.Tell("persistentvolumeclaims", "ADDED", ClaimJson("c", "v"));
  server.Tell("pods", "ADDED", UsingPod("runs", "n1"));
  server.Tell("pods", "ADDED", UsingPod("waits", ""));
  server.Sync();
  ASSERT_TRUE(server.Until([&] { return server.seen.Pod("waits").unmodelled.empty(); }));
  server.Refuse({"volumeattachments"});
  EXPECT_TRUE(server.Until([&] { return !server.seen.Pod("waits").unmodelled.empty(); }));
  EXPECT_THAT(server.seen.Pod("waits").unmodelled,
              ElementsAre(::testing::HasSubstr("volumeattachments.storage.k8s.io cannot be read")));
  EXPECT_THAT(server.seen.Pod("runs").attached, ElementsAre(CsiVolume{"disk", "1"}));
  EXPECT_TRUE(server.feed->FreshAsOf(server.follower).has_value());
}

TEST(VolumeFollower, WithoutARightThatIsNeededNothingIsTold) {
  VolumeServer server;
  server.Refuse({"persistentvolumes"});
  const Result<void> synced = server.feed->Sync(std::chrono::seconds(20));
  ASSERT_FALSE(synced.has_value());
  EXPECT_NE(synced.error().message.find("persistentvolumes is forbidden"), std::string::npos);
}

TEST(VolumeFollower, RightsAreNeededOrWanted) {
  std::set<std::string> needed, wanted;
  for (const Right& right : ClusterFeed::Rights(SchedulingFollower::AllNeeds(), Need::kNeeded))
    needed.insert(right.group + "/" + right.resource + " " + right.verb);
  for (const Right& right : ClusterFeed::Rights(SchedulingFollower::AllNeeds(), Need::kWanted))
    wanted.insert(right.group + "/" + right.resource + " " + right.verb);
  EXPECT_EQ(needed.size(), 18u);
  EXPECT_TRUE(needed.contains("/persistentvolumes list"));
  EXPECT_THAT(wanted, ElementsAre("storage.k8s.io/csinodes list", "storage.k8s.io/csinodes watch",
                                  "storage.k8s.io/storageclasses list",
                                  "storage.k8s.io/storageclasses watch",
                                  "storage.k8s.io/volumeattachments list",
                                  "storage.k8s.io/volumeattachments watch"));
}

}  // namespace
}  // namespace rudderfish::kube
