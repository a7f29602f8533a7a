// SPDX-License-Identifier: Apache-2.0
#include "kube/mirror.h"

#include <gtest/gtest.h>

#include <chrono>

#include "kube/dump.h"
#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using rudderfish::testing::ControllerJson;
using rudderfish::testing::ListJson;
using rudderfish::testing::NodeJson;
using rudderfish::testing::ParsedJson;
using rudderfish::testing::PodJson;

class MirrorTest : public ::testing::Test {
 protected:
  void Change(Resource resource, const std::string& text) {
    const ParsedJson json(text);
    const auto changed = mirror_.SinkOf(resource)->Changed(json.root());
    EXPECT_TRUE(changed) << changed.error().message;
  }
  void Delete(Resource resource, const std::string& text) {
    const ParsedJson json(text);
    EXPECT_TRUE(mirror_.SinkOf(resource)->Deleted(json.root()));
  }
  std::string PodNames() const {
    std::string names;
    for (const auto& [key, pod] : mirror_.pods.objects()) names += KeyText(key) + " ";
    return names;
  }
  std::string WorkloadText(const std::string& pod) const {
    const ObjectRef ref = mirror_.WorkloadOf(*mirror_.pods.Find({"default", pod}));
    return ref.kind + "/" + ref.name;
  }

  ManualClock clock_;
  Mirror mirror_{&clock_};
};

TEST_F(MirrorTest, AListReplacesEverything) {
  for (const char* name : {"b", "a", "c"}) Change(Resource::kPods, PodJson{.name = name}.Text());
  Change(Resource::kPods, PodJson{.name = "z", .object_namespace = "app"}.Text());
  EXPECT_EQ(PodNames(), "app/z default/a default/b default/c ");
  EXPECT_FALSE(mirror_.IsSynced(Resource::kPods));

  ObjectSink* sink = mirror_.SinkOf(Resource::kPods);
  sink->BeginList();
  const ParsedJson d(PodJson{.name = "d"}.Text()), b(PodJson{.name = "b"}.Text());
  ASSERT_TRUE(sink->Listed(d.root()));
  EXPECT_EQ(PodNames(), "app/z default/a default/b default/c ") << "until the list has ended";
  sink->BeginList();  // Given up half way.
  ASSERT_TRUE(sink->Listed(b.root()));
  sink->EndList();
  EXPECT_EQ(PodNames(), "default/b ");
  EXPECT_TRUE(mirror_.IsSynced(Resource::kPods));
}

TEST_F(MirrorTest, AnotherOneOfTheSameNameIsTheEndOfTheOneBefore) {
  Change(Resource::kPods, PodJson{.name = "a", .node = "n"}.Text());
  uint64_t cursor = 0;
  ASSERT_TRUE(mirror_.ChangesSince(&cursor));
  std::string text = PodJson{.name = "a"}.Text();
  text.replace(text.find("uid-a"), 5, "uid-b");
  const ParsedJson recreated(text);
  ObjectSink* sink = mirror_.SinkOf(Resource::kPods);
  sink->BeginList();
  ASSERT_TRUE(sink->Listed(recreated.root()));
  sink->EndList();
  const auto changes = mirror_.ChangesSince(&cursor);
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes->size(), 2u);
  EXPECT_EQ(changes->front().kind, ChangeKind::kGone);
  EXPECT_EQ(changes->back().kind, ChangeKind::kAppeared);
  EXPECT_EQ(mirror_.pods.Find({"default", "a"})->meta.uid, "uid-b");
}

TEST_F(MirrorTest, TellsWhatChanged) {
  uint64_t cursor = 0;
  ASSERT_TRUE(mirror_.ChangesSince(&cursor));
  Change(Resource::kPods, PodJson{.name = "a"}.Text());
  Change(Resource::kPods, PodJson{.name = "a", .version = "2"}.Text());
  auto changes = mirror_.ChangesSince(&cursor);
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes->size(), 1u) << "another version alone is no change";
  EXPECT_EQ(changes->front().kind, ChangeKind::kAppeared);
  EXPECT_EQ(mirror_.pods.Find({"default", "a"})->meta.resource_version.text, "2");
  Change(Resource::kPods, PodJson{.name = "a", .node = "n"}.Text());
  Delete(Resource::kPods, PodJson{.name = "a"}.Text());
  Delete(Resource::kPods, PodJson{.name = "a"}.Text());
  changes = mirror_.ChangesSince(&cursor);
  ASSERT_EQ(changes->size(), 2u);
  EXPECT_EQ(changes->at(0).kind, ChangeKind::kChanged);
  EXPECT_EQ(changes->at(1).kind, ChangeKind::kGone);
  EXPECT_TRUE(mirror_.ChangesSince(&cursor)->empty());
}

TEST_F(MirrorTest, AnObserverThatFellTooFarBehindReadsEverythingAgain) {
  uint64_t cursor = 0;
  ASSERT_TRUE(mirror_.ChangesSince(&cursor));
  const ParsedJson here(NodeJson{.name = "n"}.Text());
  ObjectSink* sink = mirror_.SinkOf(Resource::kNodes);
  for (int i = 0; i < 40'000; ++i) {
    ASSERT_TRUE(sink->Changed(here.root()));
    ASSERT_TRUE(sink->Deleted(here.root()));
  }
  EXPECT_FALSE(mirror_.ChangesSince(&cursor));
  EXPECT_TRUE(mirror_.ChangesSince(&cursor)->empty());
}

TEST_F(MirrorTest, FindsTheWorkloadOfAPod) {
  Change(Resource::kPods, PodJson{.name = "web-1", .owner = "web-abc"}.Text());
  EXPECT_EQ(WorkloadText("web-1"), "ReplicaSet/web-abc") << "all that is known";
  Change(Resource::kReplicaSets, ControllerJson("ReplicaSet", "web-abc", 1, "Deployment", "web"));
  EXPECT_EQ(WorkloadText("web-1"), "Deployment/web");
  Change(Resource::kPods,
         PodJson{.name = "db-0", .owner_kind = "StatefulSet", .owner = "db"}.Text());
  EXPECT_EQ(WorkloadText("db-0"), "StatefulSet/db");
  Change(Resource::kJobs, ControllerJson("Job", "night-1", 1, "CronJob", "night"));
  Change(Resource::kPods, PodJson{.name = "j", .owner_kind = "Job", .owner = "night-1"}.Text());
  EXPECT_EQ(WorkloadText("j"), "Job/night-1");
  Change(Resource::kPods, PodJson{.name = "alone"}.Text());
  EXPECT_EQ(WorkloadText("alone"), "/");
}

TEST_F(MirrorTest, AMalformedObjectIsAsIfAbsent) {
  Change(Resource::kPods, PodJson{.name = "a"}.Text());
  const ParsedJson bad(PodJson{.name = "a", .cpu = "much"}.Text());
  EXPECT_FALSE(mirror_.SinkOf(Resource::kPods)->Changed(bad.root()));
  EXPECT_EQ(PodNames(), "");
}

TEST_F(MirrorTest, IsAsFreshAsItsLastListOrAsIsSaid) {
  clock_.Advance(std::chrono::seconds(7));
  ObjectSink* sink = mirror_.SinkOf(Resource::kPods);
  sink->BeginList();
  EXPECT_EQ(mirror_.FreshAt(Resource::kPods), Instant{});
  sink->EndList();
  EXPECT_EQ(mirror_.FreshAt(Resource::kPods), clock_.Now());
  clock_.Advance(std::chrono::seconds(5));
  Change(Resource::kPods, PodJson{.name = "a"}.Text());
  EXPECT_EQ(clock_.Now() - mirror_.FreshAt(Resource::kPods), std::chrono::seconds(5))
      << "a change may come late";
  mirror_.SetFreshAt(Resource::kPods, clock_.Now());
  EXPECT_EQ(clock_.Now(), mirror_.FreshAt(Resource::kPods));
}

TEST_F(MirrorTest, PodsOfOneTemplateShareTheirShape) {
  for (int i = 0; i < 100; ++i) {
    Change(Resource::kPods, PodJson{.name = fmt::format("a-{}", i), .owner = "a"}.Text());
  }
  EXPECT_EQ(mirror_.shape_count(), 1u);
}

TEST_F(MirrorTest, EveryKindIsFoundByItsName) {
  for (int i = 0; i < kMirroredCount; ++i) {
    const auto resource = static_cast<Resource>(i);
    EXPECT_EQ(ResourceOfKind(NameOf(resource).kind), resource);
  }
  EXPECT_FALSE(ResourceOfKind("ConfigMap"));
}

Result<void> Load(const std::string& text, Mirror* mirror, DumpContent* content) {
  for (int i = 0; i < kMirroredCount; ++i) mirror->SinkOf(static_cast<Resource>(i))->BeginList();
  TRY(ReadDump(text, "d.json", mirror, content));
  for (const auto& [resource, count] : content->counts) mirror->SinkOf(resource)->EndList();
  return {};
}

TEST_F(MirrorTest, ReadsADumpOfMixedKinds) {
  DumpContent content;
  ASSERT_TRUE(Load(ListJson({NodeJson{.name = "n"}.Text(), PodJson{.name = "p"}.Text(),
                             R"({"kind":"ConfigMap","metadata":{"name":"c"}})"}),
                   &mirror_, &content));
  EXPECT_EQ(content.counts.at(Resource::kNodes), 1);
  EXPECT_EQ(content.skipped.at("ConfigMap"), 1);
  EXPECT_EQ(PodNames(), "default/p ");
  EXPECT_TRUE(mirror_.IsSynced(Resource::kPods));
  EXPECT_FALSE(mirror_.IsSynced(Resource::kJobs)) << "no dump said anything of them";
}

TEST_F(MirrorTest, ReadsAListOfOneKindWhoseItemsDoNotSayIt) {
  DumpContent content;
  ASSERT_TRUE(Load(R"({"kind":"PodList","items":[{"metadata":{"name":"p","namespace":"x"}}]})",
                   &mirror_, &content));
  EXPECT_EQ(PodNames(), "x/p ");
}

TEST_F(MirrorTest, SaysInOneLineWhyADumpIsNone) {
  const auto error = [&](const std::string& text) {
    DumpContent content;
    const auto loaded = Load(text, &mirror_, &content);
    return loaded ? "none" : loaded.error().message.substr(0, loaded.error().message.find(';'));
  };
  EXPECT_EQ(error(PodJson{.name = "p"}.Text()),
            "d.json: expected a list of Kubernetes objects, found one object of kind Pod");
  EXPECT_EQ(error("{}"),
            "d.json: expected a list of Kubernetes objects, found no Kubernetes object");
  EXPECT_EQ(error("[1]"), "d.json: is no list of Kubernetes objects");
  EXPECT_EQ(error(R"({"kind":"List"})"), "d.json: is no list: `items` is missing");
  EXPECT_EQ(error(R"({"kind":"List","items":[{}]})"), "d.json: items[0]: kind: is missing");
  EXPECT_EQ(error("kind: List"), "d.json: is YAML, not JSON");
  EXPECT_TRUE(error("NAME READY").starts_with("d.json: is no JSON: "));
  DumpContent unused;
  EXPECT_TRUE(Load("NAME READY", &mirror_, &unused).error().message.ends_with("-A -o json`"));
  EXPECT_TRUE(error(ListJson({PodJson{.name = "p", .cpu = "x"}.Text()}))
                  .starts_with("d.json: pod default/p: spec.containers[0]"));
}

}  // namespace
}  // namespace rudderfish::kube
