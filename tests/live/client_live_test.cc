// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <thread>

#include "base/check.h"
#include "base/files.h"
#include "kube/api_client.h"
#include "kube/events.h"
#include "kube/kubeconfig.h"
#include "kube/lease.h"
#include "kube/reflector.h"
#include "tests/support/object_store.h"
#include "tests/support/polling.h"
#include "tests/support/source_path.h"
#include "tests/support/testbed.h"

// The client against a real API server, which is killed, frozen and made to forget meanwhile. Of
// which version the server is may be said by $RUDDERFISH_TESTBED_VERSION (v1.34.4).

namespace rudderfish::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Eventually;
using testing::ObjectStore;
using testing::ObjectVersions;
using testing::OpenClient;
using testing::RealClock;

testing::Testbed* g_testbed = nullptr;

ClusterAccess AdminAccess() {
  auto access = FindCluster({.kubeconfig = g_testbed->kubeconfig()}, {});
  EXPECT_TRUE(access.has_value()) << access.error().message;
  return *std::move(access);
}

std::unique_ptr<ApiClient> OpenAsAdmin(ApiClientOptions options = {}) {
  return OpenClient(AdminAccess(), options);
}

// What a list tells at this moment; of a server that answers, though not all it is asked: it may
// have been started a moment ago.
ObjectVersions ListNow(ApiClient* client, const std::string& path) {
  Result<std::string> body = client->Get(path);
  for (int i = 0; i < 50 && !body; ++i) {
    std::cout << "a list failed: " << body.error().message << "\n";
    std::this_thread::sleep_for(milliseconds(100));
    body = client->Get(path);
  }
  if (!body) {
    ADD_FAILURE() << body.error().message;
    return {};
  }
  simdjson::dom::parser parser;
  simdjson::dom::element list;
  simdjson::dom::array items;
  ObjectVersions objects;
  EXPECT_EQ(parser.parse(*body).get(list), simdjson::SUCCESS);
  EXPECT_EQ(list["items"].get(items), simdjson::SUCCESS);
  for (const simdjson::dom::element item : items) {
    objects[testing::NameOf(item)] = std::string(testing::MetadataText(item, "uid")) + "@" +
                                     std::string(testing::MetadataText(item, "resourceVersion"));
  }
  return objects;
}

std::string ConfigMap(const std::string& name, int value) {
  return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name +
         R"("},"data":{"value":")" + std::to_string(value) + R"("}})";
}

constexpr char kConfigMaps[] = "/api/v1/namespaces/default/configmaps";

// Makes, changes and deletes, and compares after that.
void ExpectFollowsChanges(ApiClient* client, const Reflector& reflector, const ObjectStore& store) {
  for (int i = 0; i < 10; ++i) {
    const std::string name = "follow-" + std::to_string(i);
    ASSERT_TRUE(
        client->Call({.method = Method::kPost, .path = kConfigMaps, .body = ConfigMap(name, i)})
            .ok());
    if (i % 2 == 0) {
      ASSERT_TRUE(client
                      ->Call({.method = Method::kMergePatch,
                              .path = kConfigMaps + ("/" + name),
                              .body = R"({"data":{"value":"changed"}})"})
                      .ok());
    }
    if (i % 3 == 0) {
      ASSERT_TRUE(
          client->Call({.method = Method::kDelete, .path = kConfigMaps + ("/" + name)}).ok());
    }
  }
  EXPECT_TRUE(Eventually(client, [&] { return store.objects == ListNow(client, kConfigMaps); }));
  EXPECT_TRUE(store.objects.contains("default/follow-1"));
  EXPECT_FALSE(store.objects.contains("default/follow-0"));
  EXPECT_GE(reflector.counts().events, 10 + 5 + 4);
  for (int i = 0; i < 10; ++i) {
    client->Call(
        {.method = Method::kDelete, .path = kConfigMaps + ("/follow-" + std::to_string(i))});
  }
}

TEST(LiveReflector, StreamedListFollowsEveryChange) {
  const auto client = OpenAsAdmin();
  ObjectStore store;
  Reflector reflector(client.get(), {.path = kConfigMaps}, &store);
  reflector.Start();
  ASSERT_TRUE(Eventually(client.get(), [&] { return reflector.is_synced(); }));
  EXPECT_EQ(reflector.initial(), InitialList::kStreamed);
  EXPECT_EQ(store.objects, ListNow(client.get(), kConfigMaps));
  ExpectFollowsChanges(client.get(), reflector, store);
  EXPECT_EQ(store.lists, 1);
  EXPECT_EQ(reflector.counts().malformed, 0);
}

TEST(LiveReflector, PagedListFollowsEveryChange) {
  const auto client = OpenAsAdmin();
  ObjectStore store;
  Reflector reflector(
      client.get(), {.path = kConfigMaps, .initial = InitialList::kPaged, .page_size = 1}, &store);
  reflector.Start();
  ASSERT_TRUE(Eventually(client.get(), [&] { return reflector.is_synced(); }));
  ExpectFollowsChanges(client.get(), reflector, store);
  EXPECT_EQ(store.lists, 1);
}

TEST(LiveReflector, SeesNodesAndPodsOfAllNamespaces) {
  const auto client = OpenAsAdmin();
  ObjectStore nodes, pods;
  Reflector of_nodes(client.get(), {.path = "/api/v1/nodes"}, &nodes);
  Reflector of_pods(client.get(), {.path = "/api/v1/pods"}, &pods);
  of_nodes.Start();
  of_pods.Start();
  ASSERT_TRUE(
      Eventually(client.get(), [&] { return of_nodes.is_synced() && of_pods.is_synced(); }));
  EXPECT_EQ(nodes.objects.size(), 1u);
  g_testbed->Kubectl({"run", "seen", "--image=localhost/pause:1", "--restart=Never"});
  EXPECT_TRUE(Eventually(client.get(), [&] { return pods.objects.contains("default/seen"); }));
  g_testbed->Kubectl({"delete", "pod", "seen", "--grace-period=0", "--force"});
  EXPECT_TRUE(Eventually(client.get(), [&] { return !pods.objects.contains("default/seen"); }));
  EXPECT_TRUE(Eventually(client.get(),
                         [&] { return pods.objects == ListNow(client.get(), "/api/v1/pods"); }));
}

// Options with which a frozen server is noticed soon.
ApiClientOptions Watchful() {
  ApiClientOptions options;
  options.watch_timeout = seconds(1);
  return options;
}

// Waits until the server answers anybody; the time since.
Instant ServerIsBack() {
  const auto client = OpenAsAdmin();
  while (
      !client->Call({.path = "/readyz", .deadline = seconds(1), .repeat = Repeat::kNever}).ok()) {
    client->Poll(milliseconds(20));
  }
  return RealClock().Now();
}

void Put(ApiClient* client, const std::string& name, int value) {
  if (!client->Call({.method = Method::kPost, .path = kConfigMaps, .body = ConfigMap(name, value)})
           .ok()) {
    EXPECT_TRUE(client
                    ->Call({.method = Method::kMergePatch,
                            .path = kConfigMaps + ("/" + name),
                            .body = ConfigMap(name, value)})
                    .ok());
  }
}

class LiveFaults : public ::testing::Test {
 protected:
  LiveFaults()
      : client_(OpenAsAdmin(Watchful())),
        reflector_(client_.get(), {.path = kConfigMaps}, &store_) {
    reflector_.Start();
    EXPECT_TRUE(Eventually(client_.get(), [&] { return reflector_.is_synced(); }));
  }

  // The fault is over: what changes now is seen within five seconds, and all is as it is there.
  void ExpectRightAgain() {
    const Instant back = ServerIsBack();
    const auto writer = OpenAsAdmin();
    Put(writer.get(), "after-fault", ++values_);
    const ObjectVersions now = ListNow(writer.get(), kConfigMaps);
    EXPECT_TRUE(Eventually(
        client_.get(), [&] { return store_.objects == now && *reflector_.FreshAsOf() >= back; }));
    EXPECT_LE(Seconds(RealClock().Now() - back), 5);
    std::cout << "right again after " << Seconds(RealClock().Now() - back) << " s, "
              << reflector_.counts().lists << " lists, " << reflector_.counts().watches
              << " watches\n";
  }

  static int values_;
  ObjectStore store_;
  std::unique_ptr<ApiClient> client_;
  Reflector reflector_;
};

int LiveFaults::values_ = 0;

TEST_F(LiveFaults, ServerThatIsKilledIsFoundAgain) {
  g_testbed->Signal("/kube-apiserver", SIGKILL);
  ASSERT_TRUE(Eventually(client_.get(), [&] { return reflector_.last_error().has_value(); }));
  ExpectRightAgain();
}

TEST_F(LiveFaults, CutConnectionsAreMadeAgain) {
  g_testbed->Signal("/native/gate", SIGKILL);
  ASSERT_TRUE(Eventually(client_.get(), [&] { return reflector_.last_error().has_value(); }));
  ExpectRightAgain();
  EXPECT_EQ(store_.lists, 1);
}

TEST_F(LiveFaults, FrozenServerAgesWhatIsKnownUntilItIsBack) {
  // From the second on watches go over a connection that there is: to make one to a frozen server
  // fails as it does to any that is not there.
  ASSERT_TRUE(Eventually(client_.get(), [&] { return reflector_.counts().watches >= 2; }));
  g_testbed->Signal("/kube-apiserver", SIGSTOP);
  const Instant frozen = RealClock().Now();
  EXPECT_TRUE(Eventually(client_.get(), [&] { return client_->counts().silences >= 1; }));
  EXPECT_LE(*reflector_.FreshAsOf(), frozen + milliseconds(100));
  g_testbed->Signal("/kube-apiserver", SIGCONT);
  ExpectRightAgain();
  EXPECT_EQ(store_.lists, 1);
}

TEST_F(LiveFaults, VersionThatWasCompactedBringsANewList) {
  const auto writer = OpenAsAdmin();
  Put(writer.get(), "to-be-forgotten", 1);
  ASSERT_TRUE(Eventually(client_.get(),
                         [&] { return store_.objects.contains("default/to-be-forgotten"); }));
  writer->Call({.method = Method::kDelete, .path = kConfigMaps + std::string("/to-be-forgotten")});
  ASSERT_TRUE(Eventually(client_.get(),
                         [&] { return !store_.objects.contains("default/to-be-forgotten"); }));
  for (int i = 0; i < 20; ++i) {  // Of another resource, so that our version grows old.
    EXPECT_TRUE(
        writer
            ->Call({.method = Method::kMergePatch,
                    .path = "/api/v1/namespaces/default",
                    .body = R"({"metadata":{"labels":{"turn":")" + std::to_string(i) + R"("}}})"})
            .ok());
  }
  const Result<std::string> body = writer->Get("/api/v1/namespaces/default");
  ASSERT_TRUE(body.has_value()) << body.error().message;
  simdjson::dom::parser parser;
  const std::string version(testing::MetadataText(parser.parse(*body), "resourceVersion"));
  g_testbed->Do("stop", {"kube-apiserver"});
  g_testbed->Do("exec", {"control-plane", "--", "busybox", "wget", "-q", "-O", "-", "--post-data",
                         R"({"revision":")" + version + R"(","physical":true})",
                         "http://127.0.0.1:2379/v3/kv/compaction"});
  g_testbed->Do("start", {"kube-apiserver"});
  ExpectRightAgain();
  EXPECT_EQ(reflector_.counts().expired, 1);
  EXPECT_EQ(store_.complete_lists, 2);
}

TEST_F(LiveFaults, WatchesThatEndAllTheTimeLoseNothing) {
  ObjectStore store;
  Reflector reflector(client_.get(), {.path = kConfigMaps}, &store);
  reflector.Start();
  const auto writer = OpenAsAdmin();
  Rng rng(7);
  const Instant end = RealClock().Now() + seconds(8);
  while (RealClock().Now() < end) {
    const std::string name = "random-" + std::to_string(rng.Below(20));
    if (rng.Below(3) == 0) {
      writer->Call({.method = Method::kDelete, .path = kConfigMaps + ("/" + name)});
    } else {
      Put(writer.get(), name, static_cast<int>(rng.Below(1000)));
    }
    client_->Poll(milliseconds(1));
  }
  const ObjectVersions now = ListNow(writer.get(), kConfigMaps);
  // The last change comes to the two by watches of their own, one before the other.
  EXPECT_TRUE(Eventually(client_.get(), [&] { return store.objects == now; }));
  EXPECT_TRUE(Eventually(client_.get(), [&] { return store_.objects == now; }));
  EXPECT_GE(reflector.counts().watches, 3);
  EXPECT_EQ(store.lists, 1);
}

// Credentials of a ServiceAccount that may read pods of its namespace.
class LiveAccess : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    g_testbed->Kubectl({"create", "serviceaccount", "reader"});
    g_testbed->Kubectl({"create", "role", "reader", "--verb=list,watch", "--resource=pods"});
    g_testbed->Kubectl(
        {"create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:reader"});
  }

  static std::string Token() {
    std::string token = g_testbed->Kubectl({"create", "token", "reader"});
    return token.substr(0, token.find('\n'));
  }

  // As admin's, but without a user.
  static ClusterAccess Anonymous() {
    ClusterAccess access = AdminAccess();
    access.certificate = access.key = {};
    return access;
  }

  static constexpr char kPods[] = "/api/v1/namespaces/default/pods";
};

TEST_F(LiveAccess, ClientCertificateIsKnown) {
  ASSERT_FALSE(AdminAccess().certificate.empty());
  const auto review = OpenAsAdmin()->Call(
      {.method = Method::kPost,
       .path = "/apis/authentication.k8s.io/v1/selfsubjectreviews",
       .body = R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})"});
  ASSERT_TRUE(review.ok()) << review.outcome.error().message;
  EXPECT_NE(review.body.find("\"username\":\"admin\""), std::string::npos);
}

TEST_F(LiveAccess, ServiceAccountInAPodIsKnown) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("account-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const ClusterAccess admin = AdminAccess();
  ASSERT_TRUE(WriteFileAtomically(folder / "token", Token()).has_value());
  ASSERT_TRUE(WriteFileAtomically(folder / "ca.crt", admin.authority.text).has_value());
  ASSERT_TRUE(WriteFileAtomically(folder / "namespace", "default").has_value());
  KubeEnvironment environment;
  environment.service_account = folder;
  environment.service_host = "127.0.0.1";
  environment.service_port = admin.server.substr(admin.server.rfind(':') + 1);
  const auto access = FindCluster({}, environment);
  ASSERT_TRUE(access.has_value()) << access.error().message;
  const auto client = OpenClient(*access);
  EXPECT_TRUE(client->Get(kPods).has_value());
  // The token is replaced by one that is not known, and back.
  ASSERT_TRUE(WriteFileAtomically(folder / "token", "stale").has_value());
  const auto other = OpenClient(*access);
  const auto refused = other->Get(kPods);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("401"), std::string::npos);
  ASSERT_TRUE(WriteFileAtomically(folder / "token", Token()).has_value());
  EXPECT_TRUE(other->Get(kPods).has_value());
  std::filesystem::remove_all(folder);
}

TEST_F(LiveAccess, ForbiddenResourceNamesTheRuleToAdd) {
  ClusterAccess access = Anonymous();
  access.token = Token();
  const auto client = OpenClient(access);
  EXPECT_TRUE(client->Get(kPods).has_value());
  const auto refused = client->Get("/api/v1/nodes");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
  std::cout << refused.error().message << "\n";
  EXPECT_NE(refused.error().message.find(
                "{apiGroups: [\"\"], resources: [\"nodes\"], verbs: [\"list\"]}"),
            std::string::npos);
}

TEST_F(LiveAccess, ExecPluginGivesItsToken) {
  ClusterAccess access = Anonymous();
  access.exec = ExecPlugin{
      .api_version = "client.authentication.k8s.io/v1",
      .command = "/bin/sh",
      .arguments = {"-c", R"(echo '{"apiVersion":"client.authentication.k8s.io/v1",)"
                          R"("kind":"ExecCredential","status":{"token":"'"$TOKEN"'"}}')"},
      .environment = {{"TOKEN", Token()}}};
  const auto client = OpenClient(access);
  EXPECT_TRUE(client->Get(kPods).has_value());
  access.exec->environment = {{"TOKEN", "wrong"}};
  const auto refused = OpenClient(access)->Get(kPods);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("401"), std::string::npos);
  EXPECT_EQ(refused.error().message.find("wrong\""), std::string::npos);
}

TEST_F(LiveAccess, OneMayActAsAnother) {
  ClusterAccess access = AdminAccess();
  access.as_user = "system:serviceaccount:default:reader";
  const auto client = OpenClient(access);
  EXPECT_TRUE(client->Get(kPods).has_value());
  EXPECT_FALSE(client->Get("/api/v1/nodes").has_value());
}

TEST(LiveEvents, AreSeenByKubectl) {
  const auto client = OpenAsAdmin();
  EventRecorder recorder(client.get(), {.instance = "live", .series_interval = seconds(1)});
  const auto node = client->Get("/api/v1/nodes/node-1");
  ASSERT_TRUE(node.has_value());
  simdjson::dom::parser parser;
  EventNote note;
  note.regarding = {.api_version = "v1",
                    .kind = "Node",
                    .name = "node-1",
                    .uid = std::string(testing::MetadataText(parser.parse(*node), "uid"))};
  note.kind = EventKind::kWarning;
  note.reason = "Tested";
  note.action = "Test";
  note.note = "a live test was here";
  recorder.Record(note);
  ASSERT_TRUE(Eventually(client.get(), [&] { return recorder.is_idle(); }));
  for (int i = 0; i < 6; ++i) recorder.Record(note);
  ASSERT_TRUE(Eventually(client.get(), [&] { return recorder.is_idle(); }));
  EXPECT_EQ(recorder.counts().sent, 2);
  EXPECT_EQ(recorder.counts().failed, 0);
  const std::string seen = g_testbed->Kubectl({"get", "events", "--field-selector=reason=Tested"});
  std::cout << seen;
  EXPECT_NE(seen.find("node/node-1"), std::string::npos);
  EXPECT_NE(seen.find("a live test was here"), std::string::npos);
  const std::string series =
      g_testbed->Kubectl({"get", "events.events.k8s.io", "--field-selector=reason=Tested", "-o",
                          "jsonpath={.items[*].series.count}"});
  EXPECT_EQ(series, "7");
}

LeaseOptions ShortLease(const std::string& identity) {
  return {.name_space = "default",
          .name = "live",
          .identity = identity,
          .duration = seconds(4),
          .renew_deadline = seconds(3),
          .retry = milliseconds(500)};
}

// What the node-1 of the testbed sees of the API server, through the emulated network.
class FollowerOnNode {
 public:
  FollowerOnNode()
      : notes_(std::filesystem::path(::testing::TempDir()) /
               ("follower-" + std::to_string(getpid()))) {
    std::filesystem::remove(notes_);
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    const std::string testbed = SourcePath("testbed/testbed");
    // A node does not see the folder of the instance.
    copy_ = notes_.string() + "-kubeconfig";
    const std::string copy = copy_;
    std::filesystem::copy_file(g_testbed->kubeconfig(), copy_,
                               std::filesystem::copy_options::overwrite_existing);
    const std::vector<std::string> words = {
        testbed, "exec",  "--name",   "test-client", "node-1",
        "--",    program, "--follow", copy,          "https://198.18.0.1:" + Port(),
        notes_};
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    CHECK_EQ(posix_spawn(&process_, pointers[0], nullptr, nullptr, pointers.data(), environ), 0);
  }
  ~FollowerOnNode() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    std::filesystem::remove(notes_);
    std::filesystem::remove(copy_);
  }

  struct Note {
    Instant at;
    size_t objects = 0;
  };
  std::vector<Note> Notes() const {
    std::vector<Note> notes;
    std::ifstream in(notes_);
    int64_t at = 0;
    for (Note note; in >> at >> note.objects;) {
      note.at = Instant(Duration(at));
      notes.push_back(note);
    }
    return notes;
  }

 private:
  static std::string Port() {
    const std::string server = AdminAccess().server;
    return server.substr(server.rfind(':') + 1);
  }

  std::filesystem::path notes_, copy_;
  pid_t process_ = -1;
};

TEST(LivePartition, WhatIsKnownAgesAndIsRightSoonAfterItsEnd) {
  const auto client = OpenAsAdmin();
  const FollowerOnNode follower;
  ASSERT_TRUE(Eventually(client.get(), [&] { return !follower.Notes().empty(); }));
  const std::string table =
      (std::filesystem::path(::testing::TempDir()) / "partition.links").string();
  ASSERT_TRUE(WriteFileAtomically(table, "control-plane <-> node-1 cut\n").has_value());
  g_testbed->Do("network", {table});
  const Instant cut = RealClock().Now();
  for (int i = 0; i < 5; ++i) Put(client.get(), "partition-" + std::to_string(i), i);
  std::this_thread::sleep_for(seconds(30));
  ASSERT_TRUE(WriteFileAtomically(table, "\n").has_value());
  g_testbed->Do("network", {table});
  const Instant mended = RealClock().Now();
  std::filesystem::remove(table);
  const size_t objects = ListNow(client.get(), kConfigMaps).size();
  const auto is_right = [&](const FollowerOnNode::Note& note) {
    return note.at > mended && note.objects == objects;
  };
  ASSERT_TRUE(Eventually(client.get(), [&] {
    const auto notes = follower.Notes();
    return std::any_of(notes.begin(), notes.end(), is_right);
  }));
  for (const FollowerOnNode::Note& note : follower.Notes()) {
    EXPECT_FALSE(note.at > cut + seconds(6) && note.at < mended);
    if (!is_right(note)) continue;
    std::cout << "right again after " << Seconds(note.at - mended) << " s\n";
    EXPECT_LE(note.at - mended, seconds(5));
    break;
  }
}

// A process of its own that takes part in the election and notes when it leads, by the clock all
// processes share.
class Elector {
 public:
  explicit Elector(const std::string& identity)
      : notes_(std::filesystem::path(::testing::TempDir()) /
               ("elector-" + identity + std::to_string(getpid()))) {
    const std::string kubeconfig = g_testbed->kubeconfig(), notes = notes_;
    const char* const words[] = {"/proc/self/exe", "--elect",     kubeconfig.c_str(),
                                 identity.c_str(), notes.c_str(), nullptr};
    const int error =
        posix_spawn(&process_, words[0], nullptr, nullptr, const_cast<char**>(words), environ);
    CHECK_EQ(error, 0);
  }
  ~Elector() {
    Signal(SIGKILL);
    std::filesystem::remove(notes_);
  }

  void Signal(int signal) {
    if (process_ < 0) return;
    kill(process_, signal);
    if (signal != SIGKILL && signal != SIGTERM) return;
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

  // When it led, in nanoseconds.
  std::vector<int64_t> Leading() const {
    std::vector<int64_t> instants;
    std::ifstream notes(notes_);
    for (int64_t at = 0; notes >> at;) instants.push_back(at);
    return instants;
  }

  bool AwaitLeading(size_t more = 1, Duration limit = seconds(30)) const {
    const size_t wanted = Leading().size() + more;
    const Instant end = RealClock().Now() + limit;
    while (Leading().size() < wanted) {
      if (RealClock().Now() > end) return false;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return true;
  }

 private:
  std::filesystem::path notes_;
  pid_t process_ = -1;
};

int TakePart(const std::string& kubeconfig, const std::string& identity, const std::string& notes) {
  static volatile sig_atomic_t is_over = 0;
  signal(SIGTERM, [](int) { is_over = 1; });
  const auto access = FindCluster({.kubeconfig = kubeconfig}, {});
  CHECK(access.has_value());
  const auto client = ApiClient::Open(*access, &RealClock());
  CHECK(client.has_value());
  LeaseElection election(client->get(), ShortLease(identity));
  election.Start();
  std::ofstream out(notes);
  while (is_over == 0) {
    (*client)->Poll(milliseconds(5));
    if (election.IsLeader()) {
      out << RealClock().Now().time_since_epoch().count() << std::endl;
    }
  }
  bool released = false;
  election.Release([&] { released = true; });
  for (int i = 0; i < 100 && !released; ++i) (*client)->Poll(milliseconds(20));
  return 0;
}

// Follows ConfigMaps and notes each turn in which it knows them to be no older than a second.
int Follow(const std::string& kubeconfig, const std::string& server, const std::string& notes) {
  auto access = FindCluster({.kubeconfig = kubeconfig}, {});
  CHECK(access.has_value());
  access->server = server;
  const auto client = ApiClient::Open(*access, &RealClock(), Watchful());
  CHECK(client.has_value());
  ObjectStore store;
  Reflector reflector(client->get(), {.path = kConfigMaps}, &store);
  reflector.Start();
  std::ofstream out(notes);
  const pid_t parent = getppid();
  while (getppid() == parent) {
    (*client)->Poll(milliseconds(50));
    const auto fresh = reflector.FreshAsOf();
    const Instant now = RealClock().Now();
    if (fresh && now - *fresh <= seconds(4)) {
      out << now.time_since_epoch().count() << " " << store.objects.size() << std::endl;
    }
  }
  return 0;
}

void ExpectApart(const Elector& a, const Elector& b) {
  // Of those who lead by turns, no instant of one lies between neighbours of the other.
  std::vector<std::pair<int64_t, int>> all;
  for (const int64_t at : a.Leading()) all.emplace_back(at, 0);
  for (const int64_t at : b.Leading()) all.emplace_back(at, 1);
  std::sort(all.begin(), all.end());
  int turns = 0;
  for (size_t i = 1; i < all.size(); ++i) turns += all[i].second != all[i - 1].second;
  EXPECT_LE(turns, 2);
}

TEST(LiveLease, PassesToTheStandbyWhenTheLeaderIsKilled) {
  Elector first("first");
  ASSERT_TRUE(first.AwaitLeading());
  Elector second("second");
  std::this_thread::sleep_for(seconds(1));
  first.Signal(SIGKILL);
  const Instant killed = RealClock().Now();
  ASSERT_TRUE(second.AwaitLeading());
  const double seconds_taken = Seconds(RealClock().Now() - killed);
  std::cout << "taken over after " << seconds_taken << " s\n";
  EXPECT_LE(seconds_taken, 4 + 2);
  EXPECT_LT(first.Leading().back(), second.Leading().front());
  second.Signal(SIGTERM);
}

TEST(LiveLease, PassesAtOnceWhenTheLeaderEndsInOrder) {
  Elector first("first");
  ASSERT_TRUE(first.AwaitLeading());
  Elector second("second");
  std::this_thread::sleep_for(seconds(1));
  first.Signal(SIGTERM);
  const Instant ended = RealClock().Now();
  ASSERT_TRUE(second.AwaitLeading());
  EXPECT_LE(Seconds(RealClock().Now() - ended), 2);
  EXPECT_LT(first.Leading().back(), second.Leading().front());
  second.Signal(SIGTERM);
}

TEST(LiveLease, NoInstanceLeadsWhileTheServerStandsStillAndNeverTwoDo) {
  Elector first("first"), second("second");
  ASSERT_TRUE(Eventually(OpenAsAdmin().get(),
                         [&] { return !first.Leading().empty() || !second.Leading().empty(); }));
  g_testbed->Signal("/kube-apiserver", SIGSTOP);
  const Instant frozen = RealClock().Now();
  std::this_thread::sleep_for(seconds(5));
  g_testbed->Signal("/kube-apiserver", SIGCONT);
  ServerIsBack();
  const int64_t fence = (frozen + seconds(3) + milliseconds(20)).time_since_epoch().count();
  const int64_t thawed = (frozen + seconds(5)).time_since_epoch().count();
  for (const Elector* elector : {&first, &second}) {
    for (const int64_t at : elector->Leading()) EXPECT_FALSE(at > fence && at < thawed);
  }
  const auto client = OpenAsAdmin();
  const size_t before = first.Leading().size() + second.Leading().size();
  EXPECT_TRUE(Eventually(
      client.get(), [&] { return first.Leading().size() + second.Leading().size() > before; }));
  ExpectApart(first, second);
}

}  // namespace

void UseTestbed(testing::Testbed* testbed) { g_testbed = testbed; }

int FollowAs(const std::string& kubeconfig, const std::string& server, const std::string& notes) {
  return Follow(kubeconfig, server, notes);
}

int Elect(const std::string& kubeconfig, const std::string& identity, const std::string& notes) {
  return TakePart(kubeconfig, identity, notes);
}

}  // namespace rudderfish::kube

int main(int argc, char** argv) {
  if (argc == 5 && argv[1] == std::string("--follow"))
    return rudderfish::kube::FollowAs(argv[2], argv[3], argv[4]);
  if (argc == 5 && argv[1] == std::string("--elect"))
    return rudderfish::kube::Elect(argv[2], argv[3], argv[4]);
  ::testing::InitGoogleTest(&argc, argv);
  if (const std::string reason = rudderfish::testing::Testbed::WhyNot(); !reason.empty()) {
    std::cout << "skipped: " << reason << "\n";
    return 77;
  }
  std::vector<std::string> layout = {"--nodes", "1"};
  if (const char* version = std::getenv("RUDDERFISH_TESTBED_VERSION"))
    layout.insert(layout.end(), {"--version", version});
  rudderfish::testing::Testbed testbed("test-client", layout);
  rudderfish::kube::UseTestbed(&testbed);
  return RUN_ALL_TESTS();
}
