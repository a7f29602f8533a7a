// SPDX-License-Identifier: Apache-2.0
#include "run/target_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "cluster/pod_move.h"
#include "control/scheduling_tables.h"
#include "kube/cluster_feed.h"
#include "kube/scheduling_follower.h"

namespace rudderfish {
namespace {

// How often, and how long each time, the watches are waited for: a second in all.
constexpr int kWaits = 50;
constexpr Duration kWait = std::chrono::milliseconds(20);
constexpr Duration kOldest = std::chrono::seconds(15);

// What the cluster holds.
class Holdings final : public SchedulingObserver {
 public:
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
    if (pod.node.empty()) return;
    tables.Place(pod.id.Key(), pod.shape, pod.node,
                 pod.is_terminating ? PodLife::kTerminating : PodLife::kServing);
  }
  void PodGone(const std::string& key) override { tables.Remove(key); }

  SchedulingTables tables;
};

}  // namespace

struct TargetCheck::Seen {
  explicit Seen(kube::ApiClient* of) : client(of), follower(&of->clock(), &holdings), feed(of) {
    feed.Add(&follower);
  }

  // Lists the cluster, or waits until the watches are up to date and have told of the pod.
  Result<void> BecomeFresh(const std::string& pod_key, Duration limit);

  kube::ApiClient* client;
  Holdings holdings;
  kube::SchedulingFollower follower;
  kube::ClusterFeed feed;
  bool is_asked = false;
};

Result<void> TargetCheck::Seen::BecomeFresh(const std::string& pod_key, Duration limit) {
  is_asked = true;
  TRY(feed.Sync(limit));
  const auto is_fresh = [&] {
    const std::optional<Instant> fresh = feed.FreshAsOf(follower);
    return fresh && client->clock().Now() - *fresh <= kOldest;
  };
  feed.Poll(Duration::zero());
  for (int k = 0; k < kWaits; ++k) {
    if (is_fresh() && holdings.tables.ShapeOf(pod_key) != nullptr) break;
    feed.Poll(kWait);
  }
  if (!is_fresh()) {
    const std::string trouble = feed.Trouble(follower);
    return Fail(ErrorCode::kUnavailable, "what is known of the cluster is too old{}{}",
                trouble.empty() ? "" : ": ", trouble);
  }
  return {};
}

TargetCheck::TargetCheck(kube::ApiClient* client) : seen_(std::make_unique<Seen>(client)) {}
TargetCheck::~TargetCheck() = default;

void TargetCheck::Poll() {
  if (seen_->is_asked) seen_->feed.Poll(Duration::zero());
}

Result<std::string> TargetCheck::WhyRefuses(const MovedPod& moved, const std::string& node,
                                            Duration limit) {
  const std::string pod_key = moved.id.Key();
  TRY(seen_->BecomeFresh(pod_key, limit));
  SchedulingTables& tables = seen_->holdings.tables;
  const std::shared_ptr<const PodClass> shape = tables.ShapeOf(pod_key);
  if (shape == nullptr) return Fail(ErrorCode::kNotFound, "pod {} is not found", pod_key);
  // The replacement comes from the template, which has no node of an earlier move. One that the
  // template names is the user's.
  PodClass replacement = *shape;
  if (moved.is_replacement) {
    std::erase_if(replacement.node_selector,
                  [](const auto& label) { return label.first == kHostnameLabel; });
  }
  if (!replacement.unmodelled.empty())
    return fmt::format("not known whether it fits: {}", fmt::join(replacement.unmodelled, ", "));
  SchedulingRules& rules = tables.Rules();
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
