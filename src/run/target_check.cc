// SPDX-License-Identifier: Apache-2.0
#include "run/target_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "cluster/pod_move.h"
#include "control/scheduling_tables.h"
#include "kube/cluster_feed.h"
#include "kube/scheduling_follower.h"

namespace rudderfish {
namespace {

// What the cluster holds, and the class of one of its pods.
class Looked final : public SchedulingObserver {
 public:
  explicit Looked(std::string key) : key_(std::move(key)) {}

  void NodeSeen(const SchedulingNode& node) override { tables.PutNode(node); }
  void NodeGone(const std::string& name) override { tables.RemoveNode(name); }
  void AttachmentsSeen(const std::string& node, const std::vector<CsiVolume>& volumes) override {
    tables.PutAttachments(node, volumes);
  }
  void NamespaceSeen(const std::string& name, const Labels& labels) override {
    tables.PutNamespace(name, labels);
  }
  void NamespaceGone(const std::string& name) override { tables.RemoveNamespace(name); }
  void PodSeen(const ObservedPod& pod) override {
    if (pod.id.Key() == key_) shape = pod.shape;
    if (pod.node.empty()) return;
    tables.Place(pod.id.Key(), pod.shape, pod.node,
                 pod.is_terminating ? PodLife::kTerminating : PodLife::kServing);
  }
  void PodGone(const std::string& key) override { tables.Remove(key); }

  SchedulingTables tables;
  std::shared_ptr<const PodClass> shape;

 private:
  std::string key_;
};

}  // namespace

Result<std::string> WhyTargetRefuses(kube::ApiClient* client, const std::string& pod_key,
                                     const std::string& node, Duration limit) {
  Looked looked(pod_key);
  kube::SchedulingFollower follower(&client->clock(), &looked);
  kube::ClusterFeed feed(client);
  feed.Add(&follower);
  TRY(feed.Sync(limit));
  if (looked.shape == nullptr) return Fail(ErrorCode::kNotFound, "pod {} is not found", pod_key);
  // The replacement comes from the template, which has no node of an earlier move.
  PodClass replacement = *looked.shape;
  std::erase_if(replacement.node_selector,
                [](const auto& label) { return label.first == kHostnameLabel; });
  if (!replacement.unmodelled.empty())
    return fmt::format("not known whether it fits: {}", fmt::join(replacement.unmodelled, ", "));
  SchedulingRules& rules = looked.tables.Rules();
  const NodeId at = rules.nodes().Find(node);
  if (at == kNone) return Fail(ErrorCode::kNotFound, "node {} is not found", node);
  const PodClassId pod = rules.Register(std::make_shared<const PodClass>(std::move(replacement)));
  if (const std::string_view why = rules.RejectionOfPod(pod); !why.empty()) return std::string(why);
  Feasibility feasibility;
  rules.Filter(pod, &feasibility);
  if (feasibility.IsFeasible(at)) return std::string();
  // One node's reasons: those of the others are put aside.
  for (size_t n = 0; n < feasibility.rejection.size(); ++n) {
    if (static_cast<NodeId>(n) != at) feasibility.rejection[n] = Rejection::kNone;
  }
  std::string text;
  for (const auto& [reason, count] : rules.CountReasons(pod, feasibility))
    text += (text.empty() ? "" : ", ") + reason;
  return text;
}

}  // namespace rudderfish
