// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kube/node_volumes.h"
#include "kube/scheduling_reader.h"
#include "model/kube_scores.h"

// Any bytes as {"nodes": [...], "pods": [...], "volumes": [...], "claims": [...],
// "selectors": [...], "classes": [...], "csinodes": [...], "attachments": [...]}: each object is
// refused in one line, or the rules take it, and of a pod that is refused what can be read: what
// they say to each is the same before and after all pods have come and gone.

namespace rudderfish {
namespace {

using kube::Element;

template <class Visit>
void Each(const Element& root, std::string_view key, Visit visit) {
  simdjson::dom::array list;
  if (root[key].get(list) != simdjson::SUCCESS) return;
  for (const Element object : list) visit(object);
}

// Whether the object was understood.
template <class T>
bool Understood(const Result<T>& read) {
  if (read) return true;
  CHECK(!read.error().message.empty());
  CHECK(read.error().message.find('\n') == std::string::npos);
  return false;
}

kube::SchedulingReferences ReferencesOf(const Element& root) {
  kube::SchedulingReferences references;
  Each(root, "volumes", [&](const Element& object) {
    if (auto read = kube::ReadSchedulingVolume(object); Understood(read))
      references.volumes[read->name] = *std::move(read);
  });
  Each(root, "claims", [&](const Element& object) {
    if (auto read = kube::ReadSchedulingClaim(object); Understood(read))
      references.claims[read->key] = *std::move(read);
  });
  Each(root, "classes", [&](const Element& object) {
    if (auto read = kube::ReadStorageClass(object); Understood(read))
      references.storage_classes[read->name] = *std::move(read);
  });
  Each(root, "selectors", [&](const Element& object) {
    if (auto read = kube::ReadSchedulingSelector(object); Understood(read))
      references.selectors[{read->kind, read->key}] = *std::move(read);
  });
  return references;
}

void ReadNodes(const Element& root, const kube::SchedulingReferences& references,
               SchedulingRules* rules) {
  kube::NodeVolumes volumes(&references);
  Each(root, "csinodes", [&](const Element& object) {
    if (const auto read = kube::ReadCsiNode(object); Understood(read)) volumes.PutCsiNode(*read);
  });
  Each(root, "attachments", [&](const Element& object) {
    if (const auto read = kube::ReadVolumeAttachment(object); Understood(read))
      volumes.PutAttachment(*read);
  });
  std::vector<SchedulingNode> nodes;
  Each(root, "nodes", [&](const Element& object) {
    auto read = kube::ReadSchedulingNode(object);
    if (!Understood(read)) return;
    const auto is_same = [&](const SchedulingNode& node) { return node.name == read->name; };
    if (std::none_of(nodes.begin(), nodes.end(), is_same))
      nodes.push_back(volumes.Complete(*std::move(read)));
  });
  rules->Reset(std::move(nodes), {});
  for (NodeId n = 0; n < rules->nodes().size(); ++n)
    rules->SetAttached(n, volumes.AttachedTo(rules->nodes().node(n).name));
}

void TryRules(const Element& root) {
  const kube::SchedulingReferences references = ReferencesOf(root);
  SchedulingRules rules;
  ReadNodes(root, references, &rules);
  std::vector<PodClassId> pods;
  Each(root, "pods", [&](const Element& object) {
    auto read = kube::ReadPodClass(object, references);
    PodClass pod =
        Understood(read) ? *read : kube::ReadPartsOfPodClass(object, references, read.error());
    pods.push_back(rules.Register(std::make_shared<const PodClass>(std::move(pod))));
  });
  if (rules.nodes().size() == 0) return;
  Feasibility before, after;
  KubeScores scores;
  for (const PodClassId pod : pods) {
    rules.Filter(pod, &before);
    CHECK(!rules.Message(pod, before).empty());
    for (const PodClassId other : pods) rules.Assume(other, 0);
    rules.Filter(pod, &after);
    ScoreAsKube(rules, pod, after, &scores);
    for (const PodClassId other : pods) rules.Forget(other, 0);
    rules.Filter(pod, &after);
    CHECK(before.rejection == after.rejection);
    CHECK(before.short_of == after.short_of);
  }
}

}  // namespace
}  // namespace rudderfish

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(reinterpret_cast<const char*>(data), size).get(root) == simdjson::SUCCESS)
    rudderfish::TryRules(root);
  return 0;
}
