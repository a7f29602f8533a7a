// SPDX-License-Identifier: Apache-2.0
#include "kube/volume_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/one_line.h"
#include "kube/in_tree_volumes.h"
#include "kube/object_reader.h"
#include "kube/scheduling_terms.h"

namespace rudderfish::kube {
namespace {

constexpr std::string_view kVolumeZoneLabels[] = {
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};
constexpr int64_t kVolumesMax = (int64_t{1} << 31) - 1;  // The API's own.

template <class T, class Read>
Result<T> VolumeFilledBy(std::string_view kind, const Element& object, Read read) {
  T made;
  if (const Result<void> done = read(Fields(object), &made); !done)
    return internal::Blame(kind, object, done.error());
  return made;
}

Result<std::string> ReadOwnName(const Fields& fields) {
  TRY_ASSIGN(const std::string_view name, fields.Text("metadata.name"));
  if (name.empty()) return Invalid("metadata.name: is missing");
  return std::string(name);
}

void ReadZones(const Labels& labels, SchedulingVolume* volume) {
  for (const std::string_view key : kVolumeZoneLabels) {
    const std::string* value = FindLabel(labels, key);
    if (value == nullptr) continue;
    // Several zones are joined by "__"; a label with an empty part among them is not heeded.
    std::set<std::string> values;
    bool is_valid = true;
    for (size_t begin = 0; begin <= value->size();) {
      const size_t end = std::min(value->find("__", begin), value->size());
      const std::string part = value->substr(begin, end - begin);
      is_valid &= part.find_first_not_of(' ') != std::string::npos;
      values.insert(part);
      begin = end + 2;
    }
    if (is_valid) volume->rules.zones.push_back({std::string(key), {values.begin(), values.end()}});
  }
}

// Of a type that a CSI driver has taken over.
Result<void> ReadInTree(const Fields& fields, const Labels& labels, SchedulingVolume* volume) {
  TRY_ASSIGN(const Fields spec, fields.Find("spec"));
  TRY_ASSIGN(std::optional<InTreeVolume> in_tree, TranslateInTree(spec, labels));
  if (!in_tree) return {};
  volume->is_in_tree = true;
  volume->attached = std::move(in_tree->volume);
  if (!volume->attached)
    volume->unmodelled =
        fmt::format("is of {} and cannot be told to its CSI driver", in_tree->plugin);
  volume->rules.migrated = {
      std::string(in_tree->plugin),
      TranslateAffinity(in_tree->plugin, labels, volume->rules.node_affinity)};
  return {};
}

Result<void> ReadSchedulingVolumeFields(const Fields& fields, SchedulingVolume* volume) {
  TRY_ASSIGN(volume->name, ReadOwnName(fields));
  TRY_ASSIGN(const Fields required, fields.Find("spec.nodeAffinity.required"));
  if (required.there()) {
    TRY_ASSIGN(volume->rules.node_affinity,
               internal::ReadNodeTerms(fields, "spec.nodeAffinity.required.nodeSelectorTerms"));
  }
  TRY_ASSIGN(const Labels labels, fields.TextMap("metadata.labels"));
  ReadZones(labels, volume);
  CsiVolume attached;
  TRY_ASSIGN(attached.driver, fields.Text("spec.csi.driver"));
  TRY_ASSIGN(attached.handle, fields.Text("spec.csi.volumeHandle"));
  if (attached.driver.empty()) return ReadInTree(fields, labels, volume);
  if (!attached.handle.empty()) volume->attached = std::move(attached);
  return {};
}

Result<void> ReadSchedulingClaimFields(const Fields& fields, SchedulingClaim* claim) {
  TRY_ASSIGN(claim->key.name, ReadOwnName(fields));
  TRY_ASSIGN(claim->key.object_namespace, fields.Text("metadata.namespace"));
  TRY_ASSIGN(claim->volume, fields.Text("spec.volumeName"));
  TRY_ASSIGN(claim->storage_class, fields.Text("spec.storageClassName"));
  TRY_ASSIGN(const Labels annotations, fields.TextMap("metadata.annotations"));
  claim->is_bound = !claim->volume.empty() &&
                    FindLabel(annotations, "pv.kubernetes.io/bind-completed") != nullptr;
  const std::string* beta = FindLabel(annotations, "volume.beta.kubernetes.io/storage-class");
  if (beta != nullptr) claim->storage_class = *beta;
  TRY_ASSIGN(const std::string_view phase, fields.Text("status.phase"));
  claim->is_lost = phase == "Lost";
  TRY_ASSIGN(const std::string_view deleted, fields.Text("metadata.deletionTimestamp"));
  claim->is_deleted = !deleted.empty();
  TRY_ASSIGN(const auto modes, internal::ReadTexts(fields, "spec.accessModes"));
  claim->is_exclusive = std::find(modes.begin(), modes.end(), "ReadWriteOncePod") != modes.end();
  TRY_ASSIGN(ObjectRef owner, internal::ReadController(fields));
  claim->owner_uid = std::move(owner.uid);
  return {};
}

Result<void> ReadStorageClassFields(const Fields& fields, StorageClass* made) {
  TRY_ASSIGN(made->name, ReadOwnName(fields));
  TRY_ASSIGN(made->provisioner, fields.Text("provisioner"));
  TRY_ASSIGN(const std::string_view mode, fields.Text("volumeBindingMode"));
  made->is_delayed = mode == "WaitForFirstConsumer";
  return {};
}

Result<void> ReadCsiNodeFields(const Fields& fields, CsiNode* made) {
  TRY_ASSIGN(made->name, ReadOwnName(fields));
  TRY(fields.ForEach("spec.drivers", [&](const Fields& driver) -> Result<void> {
    VolumeLimit limit;
    TRY_ASSIGN(limit.driver, driver.Text("name"));
    TRY_ASSIGN(const Fields count, driver.Find("allocatable.count"));
    if (!count.there()) return {};
    TRY_ASSIGN(limit.volumes_max, driver.Integer("allocatable.count"));
    if (limit.volumes_max < 0 || limit.volumes_max > kVolumesMax)
      return Invalid("allocatable.count: expected a number of volumes, found {}",
                     limit.volumes_max);
    const auto is_same = [&](const VolumeLimit& other) { return other.driver == limit.driver; };
    std::erase_if(made->limits, is_same);  // The last one counts.
    made->limits.push_back(std::move(limit));
    return {};
  }));
  TRY_ASSIGN(const Labels annotations, fields.TextMap("metadata.annotations"));
  const std::string* list = FindLabel(annotations, "storage.alpha.kubernetes.io/migrated-plugins");
  for (size_t begin = 0; list != nullptr && begin < list->size();) {
    const size_t end = std::min(list->find(',', begin), list->size());
    made->migrated_plugins.push_back(list->substr(begin, end - begin));
    begin = end + 1;
  }
  std::sort(made->migrated_plugins.begin(), made->migrated_plugins.end());
  return {};
}

Result<void> ReadAttachmentFields(const Fields& fields, VolumeAttachment* made) {
  TRY_ASSIGN(made->name, ReadOwnName(fields));
  TRY_ASSIGN(made->attacher, fields.Text("spec.attacher"));
  TRY_ASSIGN(made->node, fields.Text("spec.nodeName"));
  TRY_ASSIGN(made->volume, fields.Text("spec.source.persistentVolumeName"));
  return {};
}

}  // namespace

Result<SchedulingVolume> ReadSchedulingVolume(const Element& object) {
  return VolumeFilledBy<SchedulingVolume>("persistent volume", object, ReadSchedulingVolumeFields);
}

Result<SchedulingClaim> ReadSchedulingClaim(const Element& object) {
  return VolumeFilledBy<SchedulingClaim>("persistent volume claim", object,
                                         ReadSchedulingClaimFields);
}

Result<StorageClass> ReadStorageClass(const Element& object) {
  return VolumeFilledBy<StorageClass>("storage class", object, ReadStorageClassFields);
}

Result<CsiNode> ReadCsiNode(const Element& object) {
  return VolumeFilledBy<CsiNode>("CSI node", object, ReadCsiNodeFields);
}

Result<VolumeAttachment> ReadVolumeAttachment(const Element& object) {
  return VolumeFilledBy<VolumeAttachment>("volume attachment", object, ReadAttachmentFields);
}

}  // namespace rudderfish::kube
