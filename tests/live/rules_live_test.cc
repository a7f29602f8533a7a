// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <thread>

#include "base/check.h"
#include "kube/kubeconfig.h"
#include "kube/node_volumes.h"
#include "kube/scheduling_reader.h"
#include "model/kube_scores.h"
#include "tests/support/kube_json.h"
#include "tests/support/polling.h"
#include "tests/support/random_scheduling.h"
#include "tests/support/reference_rules.h"
#include "tests/support/scheduler_oracle.h"
#include "tests/support/scheduling_json.h"

// Our rules and scores beside kube-scheduler's own, on random clusters and pods: what its extender
// is shown is the feasible set, what it writes into the pod's condition are the reasons, and its
// log has every node's score. RUDDERFISH_ORACLE_CLUSTERS and RUDDERFISH_ORACLE_PODS (of each
// cluster) say how many; RUDDERFISH_ORACLE_SEED from where on. From kFullClusters on the test also
// asks for what makes a run worth telling: pods enough, and each rule often the only rejector. If
// chance was against a rule, some clusters more are made.

namespace rudderfish::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::Eventually;
using testing::RandomScheduling;

testing::Testbed* g_testbed = nullptr;

int Setting(const char* name, int absent) {
  const char* text = std::getenv(name);
  return text == nullptr ? absent : std::atoi(text);
}

constexpr int kFullClusters = 20;
constexpr int kClustersMore = 10;
constexpr int kPodsLeast = 2000, kDecidedLeast = 30;  // By each rule alone.
constexpr int kDrawnLeast = 10;                       // Pods of each form.
// As NoteWhatDecides tells them apart.
constexpr Rejection kRules[] = {Rejection::kUnschedulable,
                                Rejection::kTaint,
                                Rejection::kNodeAffinity,
                                Rejection::kHostPort,
                                Rejection::kResources,
                                Rejection::kClaimInUse,
                                Rejection::kVolumeLimit,
                                Rejection::kVolumeAffinity,
                                Rejection::kVolumeZone,
                                Rejection::kSpread,
                                Rejection::kAffinity,
                                Rejection::kAntiAffinity,
                                Rejection::kExistingAntiAffinity};

// What was compared, over all clusters.
struct Tally {
  int pods = 0, refused = 0, infeasible = 0, sets_unequal = 0, messages_unequal = 0;
  int64_t scores = 0, scores_unequal = 0;
  // By the rule that alone decides: without it a pod that fits nowhere would fit somewhere.
  std::map<Rejection, int> decisive;
  std::map<std::string, int> forms;  // Pods that say something in one of its rarer ways.
};
Tally g_tally;

constexpr const char* kForms[] = {"namespaces and a namespaceSelector",
                                  "no labelSelector",
                                  "an empty node selector term",
                                  "two names for one node",
                                  "huge pages",
                                  "resources as a whole",
                                  "host ports of sidecars",
                                  "hostNetwork",
                                  "several images",
                                  "an image volume",
                                  "volumes of a beta zone or region",
                                  "volumes of CSI drivers",
                                  "volumes that a CSI driver has taken over",
                                  "an ephemeral volume",
                                  "disks of its own"};

class Api {
 public:
  Api() {
    auto access = FindCluster({.kubeconfig = g_testbed->kubeconfig()}, {});
    CHECK(access.has_value());
    client_ = testing::OpenClient(*std::move(access));
  }

  ApiAnswer Send(Method method, const std::string& path, const json& body = nullptr) {
    return client_->Call({.method = method,
                          .path = path,
                          .body = body.is_null() ? "" : body.dump(),
                          .repeat = Repeat::kNever});
  }
  // The object as the server has it, defaults and all; it may be there already.
  std::string Create(const std::string& path, const json& object) {
    const ApiAnswer answer = Send(Method::kPost, path, object);
    if (answer.status.code == 409)
      return Get(path + "/" + object["metadata"]["name"].get<std::string>());
    EXPECT_TRUE(answer.ok()) << answer.outcome.error().message << "\n" << object.dump();
    return answer.body;
  }
  std::string Get(const std::string& path) { return client_->Get(path).value_or(""); }
  ApiClient* client() { return client_.get(); }

 private:
  std::unique_ptr<ApiClient> client_;
};

const std::string kCsiNodes = "/apis/storage.k8s.io/v1/csinodes";
const std::string kAttachments = "/apis/storage.k8s.io/v1/volumeattachments";
const std::string kVolumes = "/api/v1/persistentvolumes";
std::string ClaimsPath(const std::string& place) {
  return "/api/v1/namespaces/" + place + "/persistentvolumeclaims";
}

// A claim that is bound to the volume, or, if that has no name, is to be made one by the class.
json ClaimJson(const std::string& name, const std::string& volume, const std::string& mode,
               const std::string& storage_class = "") {
  json claim = {{"metadata", {{"name", name}}},
                {"spec",
                 {{"accessModes", {mode}},
                  {"storageClassName", storage_class},
                  {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}};
  if (volume.empty()) return claim;
  claim["metadata"]["annotations"] = {{"pv.kubernetes.io/bind-completed", "yes"}};
  claim["spec"]["volumeName"] = volume;
  return claim;
}

std::string PodsPath(const std::string& place) { return "/api/v1/namespaces/" + place + "/pods"; }

// A pod that says where it may go in every way there is, as JSON: what RandomScheduling has no
// words for is added to its pods.
class PodMaker {
 public:
  explicit PodMaker(RandomScheduling* random) : random_(*random) {}

  json Make(const PodClass& pod, const std::string& name) {
    json made = testing::ToJson(pod, name);
    if (random_.Chance(0.35)) VaryContainers(&made);
    if (random_.Chance(0.15)) AddImageVolume(&made);
    if (random_.Chance(0.06)) ShareHostNetwork(&made);
    if (random_.Chance(0.5)) LeaveOutOwnNamespace(pod, &made);
    if (random_.Chance(0.3)) AddLabelKeys(&made);
    if (random_.Chance(0.4)) AddOwner(pod, &made);
    if (random_.Chance(0.05)) {  // Of no limit.
      made["spec"]["volumes"].push_back(
          {{"name", "inline"}, {"csi", {{"driver", testing::kCsiDrivers[0]}}}});
    }
    return made;
  }

 private:
  json Container(const std::string& name) {
    json asks = json::object();
    if (random_.Chance(0.7)) asks["cpu"] = std::to_string(random_.rng().Between(1, 900)) + "m";
    if (random_.Chance(0.7)) asks["memory"] = std::to_string(random_.rng().Between(1, 900)) + "Mi";
    json limits = json::object();
    if (!asks.empty() && random_.Chance(0.1)) {
      asks[testing::kHugePages] = limits[testing::kHugePages] =
          std::to_string(2 * random_.rng().Between(1, 4)) + "Mi";
    }
    json made = {{"name", name}, {"image", Image()}};
    made["resources"] = {{"requests", asks}, {"limits", limits}};
    return made;
  }

  std::string Image() {  // As people write it.
    const std::string image = random_.Image();
    return image.ends_with(":latest") && random_.Chance(0.5)
               ? image.substr(0, image.size() - std::string(":latest").size())
               : image;
  }

  void TakePort(json* container) {
    const int64_t port = random_.rng().Between(8000, 8001);
    (*container)["ports"].push_back({{"containerPort", port}, {"hostPort", port}});
    if (random_.Chance(0.5)) (*container)["ports"].back()["hostIP"] = "10.0.0.1";
  }

  void VaryContainers(json* pod) {
    json& spec = (*pod)["spec"];
    if (random_.Chance(0.4)) spec["containers"].push_back(Container("second"));
    if (random_.Chance(0.5)) {
      spec["initContainers"].push_back(Container("first"));
      if (random_.Chance(0.2)) TakePort(&spec["initContainers"].back());  // Which it gives back.
    }
    if (random_.Chance(0.5)) {
      spec["initContainers"].push_back(Container("sidecar"));
      spec["initContainers"].back()["restartPolicy"] = "Always";
      if (random_.Chance(0.4)) TakePort(&spec["initContainers"].back());
    }
    if (random_.Chance(0.5)) spec["initContainers"].push_back(Container("last"));
    if (random_.Chance(0.3)) spec["runtimeClassName"] = "heavy";
    if (random_.Chance(0.2)) AskAsAWhole(&spec["resources"]);
  }

  // For the pod, in place of what its containers ask together.
  void AskAsAWhole(json* resources) {
    json& asks = (*resources)[random_.Chance(0.7) ? "requests" : "limits"];
    asks["cpu"] = "3500m";
    if (random_.Chance(0.5)) asks["memory"] = "4Gi";
    if (random_.Chance(0.3))
      (*resources)["requests"][testing::kHugePages] = (*resources)["limits"][testing::kHugePages] =
          "24Mi";
  }

  void AddImageVolume(json* pod) {
    (*pod)["spec"]["volumes"].push_back({{"name", "files"}, {"image", {{"reference", Image()}}}});
  }

  // Its ports are the host's, whether it says so or not.
  void ShareHostNetwork(json* pod) {
    json& spec = (*pod)["spec"];
    spec["hostNetwork"] = true;
    if (!spec["containers"][0].contains("ports"))
      spec["containers"][0]["ports"].push_back({{"containerPort", 8000}});
  }

  // A term that names neither namespaces nor a selector of them means its pod's own.
  static void LeaveOutOwnNamespace(const PodClass& pod, json* made) {
    const json own = std::vector<std::string>{pod.object_namespace};
    for (const char* side : {"podAffinity", "podAntiAffinity"}) {
      json& affinity = (*made)["spec"]["affinity"];
      if (!affinity.contains(side)) continue;
      for (auto& [kind, terms] : affinity[side].items()) {
        for (json& item : terms) {
          json& term = item.contains("podAffinityTerm") ? item["podAffinityTerm"] : item;
          if (!term.contains("namespaceSelector") && term["namespaces"] == own)
            term.erase("namespaces");
        }
      }
    }
  }

  // A key must not stand in the selector as well.
  static bool Takes(const json& holder, const char* key) {
    return holder.contains("labelSelector") &&
           holder["labelSelector"].dump().find(key) == std::string::npos;
  }

  void AddLabelKeys(json* pod) {
    json& spec = (*pod)["spec"];
    if (spec.contains("topologySpreadConstraints")) {
      for (json& constraint : spec["topologySpreadConstraints"]) {
        if (Takes(constraint, "version")) constraint["matchLabelKeys"] = {"version", "absent"};
      }
    }
    for (const char* side : {"podAffinity", "podAntiAffinity"}) {
      if (!spec["affinity"].contains(side)) continue;
      for (auto& [kind, terms] : spec["affinity"][side].items()) {
        for (json& item : terms) {
          json& term = item.contains("podAffinityTerm") ? item["podAffinityTerm"] : item;
          if (Takes(term, "version"))
            term[random_.Chance(0.5) ? "matchLabelKeys" : "mismatchLabelKeys"] = {"version"};
        }
      }
    }
  }

  void AddOwner(const PodClass& pod, json* made) {
    if (pod.object_namespace != "default") return;
    const bool core = random_.Chance(0.3);
    const std::string kind =
        core ? "ReplicationController" : random_.OneOf({"ReplicaSet", "StatefulSet"});
    (*made)["metadata"]["ownerReferences"] = {{{"apiVersion", core ? "v1" : "apps/v1"},
                                               {"kind", kind},
                                               {"name", "owner"},
                                               {"uid", "00000000-0000-0000-0000-000000000001"},
                                               {"controller", true}}};
  }

  RandomScheduling& random_;
};

// What all clusters share.
class Surroundings {
 public:
  explicit Surroundings(Api* api) : api_(*api) {
    for (const auto& [name, labels] : testing::RandomNamespaces()) {
      api_.Create("/api/v1/namespaces",
                  {{"metadata", {{"name", name}, {"labels", testing::ToMap(labels)}}}});
      const json stage = {{"metadata", {{"labels", testing::ToMap(labels)}}}};
      api_.Send(Method::kMergePatch, "/api/v1/namespaces/" + name, stage);
      api_.Create("/api/v1/namespaces/" + name + "/serviceaccounts",
                  {{"metadata", {{"name", "default"}}}});
    }
    api_.Create("/apis/node.k8s.io/v1/runtimeclasses",
                {{"metadata", {{"name", "heavy"}}},
                 {"handler", "none"},
                 {"overhead", {{"podFixed", {{"cpu", "150m"}, {"memory", "96Mi"}}}}}});
    AddSelectors();
    const json local = {{"hostPath", {{"path", "/srv"}}}};
    AddVolume("zonal", {{testing::kZoneKey, "a__b"}}, nullptr, local);
    AddVolume("beta-zonal", {{testing::kBetaZoneKey, "a__b"}}, nullptr, local);
    AddVolume("regional", {{testing::kRegionKey, "north"}}, nullptr, local);
    AddVolume("beta-regional", {{testing::kBetaRegionKey, "north"}, {testing::kZoneKey, "a__b"}},
              nullptr, local);
    AddVolume("racked", json::object(), InRack("r1"), local);
    AddVolume("nowhere", json::object(), json::object(), local);
    AddVolume("single", json::object(), nullptr, local);
    for (const char* name :
         {"zonal", "beta-zonal", "regional", "beta-regional", "racked", "nowhere"})
      AddClaim("default", name, "ReadWriteOnce");
    AddClaim("default", "single", "ReadWriteOncePod");
    AddStorageClass();
    for (int driver = 0; driver < testing::kDriversWithClaims; ++driver) {
      for (int number = 0; number < testing::kVolumesOfADriver; ++number)
        AddAttachable(driver, number);
    }
  }

  SchedulingReferences references;

 private:
  void AddSelector(const std::string& path, const json& object) {
    const testing::ParsedJson parsed(api_.Create(path, object));
    auto read = ReadSchedulingSelector(parsed.root());
    ASSERT_TRUE(read.has_value()) << read.error().message;
    references.selectors[{read->kind, read->key}] = *read;
  }

  void AddSelectors() {
    const json labels = {{"app", "web"}};
    AddSelector("/api/v1/namespaces/default/services",
                {{"metadata", {{"name", "web"}}},
                 {"spec", {{"selector", labels}, {"ports", {{{"port", 80}}}}}}});
    AddSelector("/api/v1/namespaces/team-a/services",
                {{"metadata", {{"name", "second"}}},
                 {"spec", {{"selector", {{"version", "2"}}}, {"ports", {{{"port", 80}}}}}}});
    const json metadata = {{"name", "owner"}};
    const json version = {{"version", "1"}};
    json spec = {{"replicas", 0},
                 {"selector", {{"matchLabels", version}}},
                 {"template",
                  {{"metadata", {{"labels", version}}},
                   {"spec", {{"containers", {{{"name", "c"}, {"image", "none"}}}}}}}}};
    AddSelector("/apis/apps/v1/namespaces/default/replicasets",
                {{"metadata", metadata}, {"spec", spec}});
    spec["selector"] = version;
    AddSelector("/api/v1/namespaces/default/replicationcontrollers",
                {{"metadata", metadata}, {"spec", spec}});
    spec["selector"] = {{"matchExpressions", {{{"key", "version"}, {"operator", "Exists"}}}}};
    spec["serviceName"] = "web";
    AddSelector("/apis/apps/v1/namespaces/default/statefulsets",
                {{"metadata", metadata}, {"spec", spec}});
  }

  static json InRack(const std::string& rack) {
    json rule = {{"key", "rack"}, {"operator", "In"}};
    rule["values"].push_back(rack);
    json term;
    term["matchExpressions"].push_back(rule);
    return term;
  }

  void AddVolume(const std::string& name, const json& labels, const json& affinity,
                 const json& source) {
    json volume = {{"metadata", {{"name", name}, {"labels", labels}}},
                   {"spec",
                    {{"capacity", {{"storage", "1Gi"}}},
                     {"accessModes", {"ReadWriteOnce"}},  // Not read for bound volumes.
                     {"claimRef", {{"namespace", "default"}, {"name", name}}}}}};
    volume["spec"].update(source);
    if (!affinity.is_null())
      volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].push_back(affinity);
    const testing::ParsedJson made(api_.Create(kVolumes, volume));
    auto read = ReadSchedulingVolume(made.root());
    ASSERT_TRUE(read.has_value()) << read.error().message;
    references.volumes[name] = *read;
  }

  void AddClaim(const std::string& place, const std::string& name, const std::string& mode) {
    const testing::ParsedJson bound(api_.Create(ClaimsPath(place), ClaimJson(name, name, mode)));
    auto read = ReadSchedulingClaim(bound.root());
    ASSERT_TRUE(read.has_value()) << read.error().message;
    references.claims[read->key] = *read;
  }

  // Volumes of CSI drivers, or of the type that one of these has taken over; claimed by every
  // namespace, as no controller would have it.
  void AddAttachable(int driver, int number) {
    const std::string name = testing::ClaimOfVolume(driver, number);
    const CsiVolume attached = testing::AttachedVolume(driver, number);
    const BoundVolume rules = testing::RulesOfVolume(driver, number);
    const bool is_in_tree = testing::IsInTree(driver, number);
    json labels = json::object(), affinity;
    if (!rules.zones.empty()) labels[testing::kZoneKey] = "a__b";
    if (rules.node_affinity) affinity = testing::ToJson(rules.node_affinity->front());
    AddVolume(
        name, labels, affinity,
        is_in_tree
            ? json{{"awsElasticBlockStore", {{"volumeID", "aws://a/" + attached.handle}}}}
            : json{{"csi", {{"driver", attached.driver}, {"volumeHandle", attached.handle}}}});
    EXPECT_EQ(references.volumes[name].rules, rules) << name;
    EXPECT_EQ(references.volumes[name].attached, attached) << name;
    for (const auto& [place, unused] : testing::RandomNamespaces())
      AddClaim(place, name, "ReadWriteOnce");
  }

  // The first driver is to make its volumes once a pod uses them; that driver does not run here.
  void AddStorageClass() {
    const testing::ParsedJson made(api_.Create("/apis/storage.k8s.io/v1/storageclasses",
                                               {{"metadata", {{"name", "unmade"}}},
                                                {"provisioner", testing::kCsiDrivers[0]},
                                                {"volumeBindingMode", "WaitForFirstConsumer"}}));
    auto read = ReadStorageClass(made.root());
    ASSERT_TRUE(read.has_value()) << read.error().message;
    references.storage_classes[read->name] = *read;
  }

  Api& api_;
};

// One random cluster and its pods, one after another.
class Trial {
 public:
  Trial(uint64_t seed, Api* api, testing::SchedulerOracle* oracle,
        const SchedulingReferences& references)
      : random_(Rng(seed)),
        maker_(&random_),
        seed_(seed),
        api_(*api),
        oracle_(*oracle),
        references_(references) {}

  void Run(int pods) {
    MakeNodes(random_.rng().Between(4, 30));
    rules_.Reset(cluster_.nodes, cluster_.namespaces);
    oracle_.Restart();
    for (int i = 0; i < pods && !::testing::Test::HasFatalFailure(); ++i) {
      while (cluster_.placed.size() > 0 && random_.Chance(0.25)) EndOne();
      const std::string name = "pod-" + std::to_string(seed_) + "-" + std::to_string(i);
      if (random_.Chance(0.1)) AttachElsewise(name);
      if (random_.Chance(0.03)) PlaceByHand(name + "-by-hand");
      Try(name);
    }
    for (const auto& [path, id] : names_) Delete(path);
    for (const std::string& path : claims_made_) Delete(path);
    for (const auto& [node, names] : attachments_) {
      for (const std::string& name : names) Delete(kAttachments + "/" + name);
    }
    for (const SchedulingNode& node : cluster_.nodes) {
      Delete("/api/v1/nodes/" + node.name);
      Delete(kCsiNodes + "/" + node.name);
    }
  }

 private:
  void MakeNodes(int count) {
    cluster_.namespaces = testing::RandomNamespaces();
    for (int n = 0; n < count; ++n) {
      SchedulingNode node = random_.Node(n);
      api_.Create("/api/v1/nodes", testing::ToJson(node));
      // Of what it offers none, it is as if it offered it not at all.
      std::erase_if(node.scalars, [](const auto& scalar) { return scalar.second == 0; });
      // The server taints newcomers.
      const ApiAnswer answer = api_.Send(Method::kMergePatch, "/api/v1/nodes/" + node.name,
                                         {{"spec", {{"taints", testing::TaintsOf(node)}}}});
      ASSERT_TRUE(answer.ok()) << answer.outcome.error().message;
      const testing::ParsedJson parsed(answer.body);
      auto read = ReadSchedulingNode(parsed.root());
      ASSERT_TRUE(read.has_value()) << read.error().message;
      if (!node.volume_limits.empty() || random_.Chance(0.5)) {
        const testing::ParsedJson made(api_.Create(kCsiNodes, testing::CsiNodeOf(node)));
        auto limits = ReadCsiNode(made.root());
        ASSERT_TRUE(limits.has_value()) << limits.error().message;
        node_volumes_.PutCsiNode(*limits);
      }
      cluster_.nodes.push_back(node_volumes_.Complete(*std::move(read)));
      std::erase_if(node.scalars, [](const auto& scalar) { return scalar.second == 0; });
      EXPECT_EQ(cluster_.nodes.back(), node);
    }
  }

  // What is attached to some node, by VolumeAttachments alone, is something else now.
  void AttachElsewise(const std::string& name) {
    const uint32_t n = random_.rng().Below(static_cast<uint32_t>(cluster_.nodes.size()));
    const std::string& node = cluster_.nodes[n].name;
    std::vector<std::string>& names = attachments_[node];
    for (const std::string& old : std::exchange(names, {})) {
      Delete(kAttachments + "/" + old);
      node_volumes_.RemoveAttachment(old);
    }
    for (const CsiVolume& volume : random_.volumes().Attached()) {
      const int driver = volume.driver == testing::kCsiDrivers[0] ? 0 : 1;
      const std::string number = volume.handle.substr(volume.handle.find('-') + 1);
      names.push_back(name + "-" + std::to_string(names.size()));
      const json made = {
          {"metadata", {{"name", names.back()}}},
          {"spec",
           {{"attacher", volume.driver},
            {"nodeName", node},
            {"source",
             {{"persistentVolumeName", testing::ClaimOfVolume(driver, std::stoi(number))}}}}}};
      const testing::ParsedJson parsed(api_.Create(kAttachments, made));
      auto read = ReadVolumeAttachment(parsed.root());
      ASSERT_TRUE(read.has_value()) << read.error().message;
      node_volumes_.PutAttachment(*read);
    }
    const std::vector<CsiVolume> attached = node_volumes_.AttachedTo(node);
    rules_.SetAttached(static_cast<NodeId>(n), attached);
    cluster_.attachments[static_cast<int>(n)] = {attached.begin(), attached.end()};
    LetArrive();
  }

  // A pod that is on a node without kube-scheduler, with a claim that no driver makes a volume for.
  void PlaceByHand(const std::string& name) {
    const std::string& node = random_.OneOf(NodeNames());
    MakeClaim("default", ClaimJson(name, "", "ReadWriteOnce", "unmade"));
    PodClass drawn;
    drawn.object_namespace = "default";
    drawn.claims = {name};
    json object = testing::ToJson(drawn, name);
    object["spec"]["nodeName"] = node;
    const std::string path = PodsPath("default");
    const std::string text = api_.Create(path, object);
    Keep(path + "/" + name, rules_.RegisterPlaced(ReadPod(text)), node);
    LetArrive();
  }

  std::vector<std::string> NodeNames() const {
    std::vector<std::string> names;
    for (const SchedulingNode& node : cluster_.nodes) names.push_back(node.name);
    return names;
  }

  void MakeClaim(const std::string& place, const json& object) {
    const testing::ParsedJson made(api_.Create(ClaimsPath(place), object));
    auto read = ReadSchedulingClaim(made.root());
    ASSERT_TRUE(read.has_value()) << read.error().message;
    references_.claims[read->key] = *read;
    claims_made_.push_back(ClaimsPath(place) + "/" + read->key.name);
  }

  void Delete(const std::string& path) {
    api_.Send(Method::kDelete, path + "?gracePeriodSeconds=0");
  }

  // For what arrives at the scheduler on several ways at once.
  static void LetArrive() { std::this_thread::sleep_for(milliseconds(25)); }

  void EndOne() {
    const uint32_t which = random_.rng().Below(static_cast<uint32_t>(cluster_.placed.size()));
    testing::ReferenceCluster::Placed& placed = cluster_.placed[which];
    const auto [path, id] = names_[which];
    rules_.Forget(id, placed.node, placed.life);
    if (placed.life == PodLife::kServing && random_.Chance(0.4)) {
      // There is no kubelet that would end it.
      api_.Send(Method::kDelete, path + "?gracePeriodSeconds=3000");
      placed.life = PodLife::kTerminating;
      rules_.Assume(id, placed.node, placed.life);
    } else {
      Delete(path);
      cluster_.placed.erase(cluster_.placed.begin() + which);
      names_.erase(names_.begin() + which);
    }
    LetArrive();
  }

  void Pin(int node, PodClass* pod) {
    if (node == kNone) return;
    pod->node_selector.emplace_back(testing::kHostKey, cluster_.nodes[node].name);
    std::sort(pod->node_selector.begin(), pod->node_selector.end());
  }

  PodClass DrawWithoutVolumes() {
    PodClass pod = random_.Pod();
    pod.claims.clear();
    pod.volumes.clear();
    pod.attached.clear();
    return pod;
  }

  // Whether the node is in a zone or region that is none of the volume's.
  static bool IsOutside(const BoundVolume& volume, const SchedulingNode& node) {
    return std::any_of(volume.zones.begin(), volume.zones.end(), [&](const auto& zone) {
      const std::string* value = FindLabel(node.labels, zone.key);
      return value != nullptr &&
             std::find(zone.values.begin(), zone.values.end(), *value) == zone.values.end();
    });
  }

  // Of claims, what decides is whether a node that would do suits the volume.
  PodClass DrawWithClaim() {
    PodClass pod = DrawWithoutVolumes();
    pod.object_namespace = "default";
    pod.claims = {random_.OneOf({"zonal", "zonal", "beta-zonal", "regional", "beta-regional",
                                 "racked", "racked", "single", "single", "single", "single",
                                 "single", "single", "nowhere", "absent"})};
    if (random_.Chance(0.1)) pod.claims.push_back(pod.claims[0] == "zonal" ? "regional" : "zonal");
    const auto claimed = references_.volumes.find(pod.claims[0]);
    int fit = kNone;
    for (size_t n = 0; n < cluster_.nodes.size(); ++n) {
      const bool has_zones =
          claimed != references_.volumes.end() && !claimed->second.rules.zones.empty();
      if (has_zones && !IsOutside(claimed->second.rules, cluster_.nodes[n])) continue;
      if (cluster_.Rejections(pod, static_cast<int>(n)).empty()) fit = static_cast<int>(n);
    }
    if (random_.Chance(0.6)) Pin(fit, &pod);
    return pod;
  }

  // Often binds the pod to a node that exactly one rule refuses, the rule seen least.
  PodClass Draw() {
    if (random_.Chance(0.2)) return DrawWithClaim();
    PodClass pod = random_.Pod();
    if (!random_.Chance(0.25)) return pod;
    int best = kNone;
    Rejection rule = Rejection::kNone;
    for (int attempt = 0; attempt < 12; ++attempt) {
      PodClass other = attempt == 0 ? pod : random_.Pod();
      for (size_t n = 0; n < cluster_.nodes.size(); ++n) {
        const std::set<Rejection> all = cluster_.Rejections(other, static_cast<int>(n));
        if (all.size() != 1) continue;
        if (best != kNone && g_tally.decisive[*all.begin()] >= g_tally.decisive[rule]) continue;
        best = static_cast<int>(n);
        rule = *all.begin();
        pod = other;
      }
    }
    Pin(best, &pod);
    return pod;
  }

  void Try(const std::string& name) {
    const PodClass drawn = Draw();
    const std::string path = PodsPath(drawn.object_namespace);
    json object = maker_.Make(drawn, name);
    const bool has_ephemeral = random_.Chance(0.06);
    if (has_ephemeral) AddEphemeral(&object);
    const ApiAnswer made = api_.Send(Method::kPost, path, object);
    if (made.status.code == 422) {  // A pod as a whole that asks for less than its parts.
      ++g_tally.refused;
      return;
    }
    ASSERT_TRUE(made.ok()) << made.outcome.error().message << object.dump();
    const std::string text =
        has_ephemeral ? Release(path + "/" + name, json::parse(made.body)) : made.body;
    const std::shared_ptr<const PodClass> pod = ReadPod(text);
    EXPECT_TRUE(pod->unmodelled.empty()) << pod->unmodelled.front();
    const PodClassId id = rules_.Register(pod);
    rules_.Filter(id, &feasibility_);
    NoteForms(object, *pod);
    Judge(path + "/" + name, drawn.object_namespace + "/" + name, id, text);
  }

  std::shared_ptr<const PodClass> ReadPod(const std::string& text) {
    const testing::ParsedJson parsed(text);
    auto read = ReadPodClass(parsed.root(), references_);
    CHECK(read.has_value());
    held_.push_back(classes_.Shared(*std::move(read)));
    return held_.back();
  }

  // A volume of the pod's own, whose claim is to be there before the pod may be scheduled.
  static void AddEphemeral(json* pod) {
    const json claim = ClaimJson("", "", "ReadWriteOnce", "unmade")["spec"];
    (*pod)["spec"]["volumes"].push_back(
        {{"name", "own"}, {"ephemeral", {{"volumeClaimTemplate", {{"spec", claim}}}}}});
    (*pod)["spec"]["schedulingGates"] = {{{"name", "example.com/claim"}}};
  }

  std::string Release(const std::string& path, const json& pod) {
    const std::string place = pod["metadata"]["namespace"], name = pod["metadata"]["name"];
    const int driver = static_cast<int>(random_.rng().Below(testing::kDriversWithClaims));
    const int number = static_cast<int>(random_.rng().Below(testing::kVolumesOfADriver));
    json claim = ClaimJson(name + "-own", testing::ClaimOfVolume(driver, number), "ReadWriteOnce");
    const bool is_its_own = random_.Chance(0.8);
    claim["metadata"]["ownerReferences"] = {
        {{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"name", name},
         {"uid",
          is_its_own ? pod["metadata"]["uid"] : json("00000000-0000-0000-0000-000000000002")},
         {"controller", true}}};
    MakeClaim(place, claim);
    LetArrive();
    const ApiAnswer released =
        api_.Send(Method::kMergePatch, path, {{"spec", {{"schedulingGates", nullptr}}}});
    EXPECT_TRUE(released.ok()) << released.outcome.error().message;
    return released.body;
  }

  void Judge(const std::string& path, const std::string& key, PodClassId id,
             const std::string& text) {
    json pod;
    std::string message;
    const bool decided = Eventually(api_.client(), [&] {
      pod = json::parse(api_.Get(path));
      if (pod["spec"].contains("nodeName")) return true;
      if (!pod["status"].contains("conditions")) return false;
      for (const json& condition : pod["status"]["conditions"]) {
        if (condition["type"] == "PodScheduled" && condition["reason"] != "SchedulingGated")
          message = condition["message"];
      }
      // The claim of an ephemeral volume is there; kube-scheduler looks again once it hears of it.
      if (message.find("waiting for ephemeral volume controller") != std::string::npos)
        message.clear();
      return !message.empty();
    });
    ASSERT_TRUE(decided) << key;
    ++g_tally.pods;
    std::vector<std::string> ours;
    for (NodeId n = 0; n < rules_.nodes().size(); ++n) {
      if (feasibility_.IsFeasible(n)) ours.push_back(rules_.nodes().node(n).name);
    }
    std::sort(ours.begin(), ours.end());
    const std::vector<std::string> theirs = oracle_.FeasibleFor(key);
    g_tally.sets_unequal += ours != theirs;
    EXPECT_EQ(ours, theirs) << message << "\n" << rules_.Message(id, feasibility_) << "\n" << text;
    if (message.empty()) {
      CompareScores(key, id);
      Keep(path, id, pod["spec"]["nodeName"]);
      return;
    }
    ++g_tally.infeasible;
    const bool same = message.starts_with(rules_.Message(id, feasibility_));
    g_tally.messages_unequal += !same;
    EXPECT_TRUE(same) << message << "\n" << rules_.Message(id, feasibility_) << "\n" << text;
    NoteWhatDecides(id);
    Delete(path);
    LetArrive();
  }

  static void NoteForms(const json& object, const PodClass& pod) {
    const auto note = [&](int form, bool is_there) { g_tally.forms[kForms[form]] += is_there; };
    const json& spec = object["spec"];
    std::vector<PodAffinityTerm> terms = pod.required_pods;
    terms.insert(terms.end(), pod.forbidden_pods.begin(), pod.forbidden_pods.end());
    for (const PreferredPods& one : pod.preferred_pods) terms.push_back(one.term);
    const auto any = [](const auto& all, auto holds) {
      return std::any_of(all.begin(), all.end(), holds);
    };
    note(0, any(terms, [](const auto& term) {
           return !term.namespaces.empty() && term.namespace_selector.has_value();
         }));
    note(1, any(terms, [](const auto& term) { return !term.selector; }) ||
                any(pod.spread, [](const auto& constraint) { return !constraint.selector; }));
    const std::vector<NodeTerm> required = pod.required_nodes.value_or(std::vector<NodeTerm>());
    note(2, any(required, [](const auto& t) { return t.expressions.empty() && t.fields.empty(); }));
    note(3, any(required, [](const auto& term) { return term.fields.size() > 1; }));
    note(4, any(pod.amounts.scalars, [](const auto& s) { return s.first == testing::kHugePages; }));
    note(5, spec.contains("resources"));
    const json started = spec.value("initContainers", json::array());
    note(6, any(started, [](const json& container) {
           return container.contains("ports") && container.contains("restartPolicy");
         }));
    note(7, spec.contains("hostNetwork"));
    note(8, std::set<std::string>(pod.images.begin(), pod.images.end()).size() > 1);
    const json volumes = spec.value("volumes", json::array());
    note(9, any(volumes, [](const json& volume) { return volume.contains("image"); }));
    note(10, any(pod.claims, [](const auto& claim) { return claim.starts_with("beta"); }));
    note(11, any(pod.claims, [](const auto& claim) { return claim.starts_with("fast"); }));
    note(12, any(pod.volumes, [](const auto& volume) { return volume.migrated.has_value(); }));
    note(13, any(volumes, [](const json& volume) { return volume.contains("ephemeral"); }));
    note(14, any(volumes, [](const json& volume) { return volume.contains("cinder"); }));
  }

  void Keep(const std::string& path, PodClassId id, const std::string& node) {
    const NodeId at = rules_.nodes().Find(node);
    rules_.Assume(id, at);
    cluster_.placed.push_back({rules_.compiled(id).pod.get(), at, PodLife::kServing});
    names_.emplace_back(path, id);
  }

  void NoteWhatDecides(PodClassId id) {
    std::set<Rejection> decisive;
    const PodClass& pod = *rules_.compiled(id).pod;
    for (NodeId n = 0; n < rules_.nodes().size(); ++n) {
      const std::set<Rejection> all = cluster_.Rejections(pod, n);
      if (all.size() == 1) decisive.insert(*all.begin());
      if (all.empty()) decisive.insert(feasibility_.rejection[n]);
    }
    for (const Rejection rejection : decisive) ++g_tally.decisive[rejection];
  }

  void CompareScores(const std::string& key, PodClassId id) {
    if (feasibility_.feasible < 2) return;  // kube-scheduler scores nothing then.
    ScoreAsKube(rules_, id, feasibility_, &scores_);
    const testing::SchedulerOracle::Scores theirs = oracle_.ScoresOf(key);
    EXPECT_EQ(static_cast<int>(theirs.size()), feasibility_.feasible);
    for (const auto& [node, by_plugin] : theirs) {
      const NodeId n = rules_.nodes().Find(node);
      ++g_tally.scores;
      const bool same = scores_.total[n] == by_plugin.at("");
      g_tally.scores_unequal += !same;
      if (same) continue;
      for (int p = 0; p < kScorePluginCount; ++p) {
        const auto plugin = static_cast<ScorePlugin>(p);
        const auto at = by_plugin.find(std::string(NameOf(plugin)));
        const int64_t their_score = at == by_plugin.end() ? 0 : at->second;
        EXPECT_EQ(scores_.of_plugin[p][n], their_score)
            << NameOf(plugin) << " " << node << " " << key;
      }
    }
  }

  RandomScheduling random_;
  PodMaker maker_;
  uint64_t seed_;
  Api& api_;
  testing::SchedulerOracle& oracle_;
  SchedulingReferences references_;
  NodeVolumes node_volumes_{&references_};
  std::map<std::string, std::vector<std::string>> attachments_;  // By node, their names.
  std::vector<std::string> claims_made_;                         // Their paths.
  PodClasses classes_;
  std::vector<std::shared_ptr<const PodClass>> held_;
  SchedulingRules rules_;
  Feasibility feasibility_;
  KubeScores scores_;
  testing::ReferenceCluster cluster_;
  std::vector<std::pair<std::string, PodClassId>> names_;  // Beside cluster_.placed.
};

std::string_view RuleName(Rejection rejection) {
  if (rejection == Rejection::kPod) return "the pod, whatever the nodes";
  return rejection == Rejection::kResources ? "resources" : WordsOf(rejection);
}

bool EachRuleHasDecidedOften() {
  return std::all_of(std::begin(kRules), std::end(kRules),
                     [](Rejection rule) { return g_tally.decisive[rule] >= kDecidedLeast; });
}

TEST(LiveRules, NodesReasonsAndScoresAreThoseOfKubeScheduler) {
  Api api;
  testing::SchedulerOracle oracle(*g_testbed);
  const Surroundings surroundings(&api);
  const int clusters = Setting("RUDDERFISH_ORACLE_CLUSTERS", 2);
  const int pods = Setting("RUDDERFISH_ORACLE_PODS", 60);
  const int first = Setting("RUDDERFISH_ORACLE_SEED", 1);
  const int most = clusters < kFullClusters ? clusters : clusters + kClustersMore;
  for (int c = 0; c < most && !HasFatalFailure(); ++c) {
    if (c >= clusters && EachRuleHasDecidedOften()) break;
    Trial(first + c, &api, &oracle, surroundings.references).Run(pods);
  }
  std::cout << g_tally.pods << " pods, " << g_tally.infeasible << " fit nowhere; "
            << g_tally.sets_unequal << " sets of nodes and " << g_tally.messages_unequal
            << " messages differ; " << g_tally.scores_unequal << " of " << g_tally.scores
            << " scores differ; the server refused " << g_tally.refused << " pods more\n";
  for (const auto& [rejection, count] : g_tally.decisive)
    std::cout << "  " << count << " decided by: " << RuleName(rejection) << "\n";
  for (const auto& [form, count] : g_tally.forms)
    std::cout << "  " << count << " with: " << form << "\n";
  EXPECT_EQ(g_tally.scores_unequal, 0);
  EXPECT_GE(g_tally.infeasible * 5, g_tally.pods);
  if (clusters < kFullClusters) return;
  EXPECT_GE(g_tally.pods, kPodsLeast);
  for (const Rejection rule : kRules)
    EXPECT_GE(g_tally.decisive[rule], kDecidedLeast) << RuleName(rule);
  for (const char* form : kForms) EXPECT_GE(g_tally.forms[form], kDrawnLeast) << form;
}

}  // namespace

void UseTestbed(testing::Testbed* testbed) { g_testbed = testbed; }

}  // namespace rudderfish::kube

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (const std::string reason = rudderfish::testing::Testbed::WhyNot(); !reason.empty()) {
    std::cout << "skipped: " << reason << "\n";
    return 77;
  }
  rudderfish::testing::Testbed testbed("test-rules", {"--nodes", "0"});
  // Nodes without a kubelet would be tainted, and owners would want pods.
  testbed.Do("stop", {"kube-controller-manager"});
  rudderfish::kube::UseTestbed(&testbed);
  return RUN_ALL_TESTS();
}
