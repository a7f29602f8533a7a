// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/scheduling_volumes.h"
#include "kube/fields.h"
#include "kube/objects.h"

// Volumes, and what decides where they can be attached, as kube-scheduler's rules need them, from
// the API server's JSON. What no rule can be made of is an error of one line that names the object
// and the field; nothing is guessed.

namespace rudderfish::kube {

struct SchedulingVolume {
  std::string name;
  BoundVolume rules;
  // By which a CSI driver knows it. Nothing: no driver attaches it, or none that can be told.
  std::optional<CsiVolume> attached;
  bool is_in_tree =
      false;               // Then `attached` is a translation, which VolumeAttachments do not name.
  std::string unmodelled;  // "is of x and ..."; empty: nothing.

  bool operator==(const SchedulingVolume&) const = default;
};

struct SchedulingClaim {
  ObjectKey key;
  std::string volume;  // Empty: unbound.
  std::string storage_class;
  bool is_bound = false;  // For good: the volume controller has said so.
  bool is_lost = false, is_deleted = false, is_exclusive = false;
  std::string owner_uid;  // Of its controller; empty: it has none.

  bool operator==(const SchedulingClaim&) const = default;
};

struct StorageClass {
  std::string name, provisioner;
  bool is_delayed = false;  // Its claims are bound once a pod uses them.

  bool operator==(const StorageClass&) const = default;
};

// What a node can attach. It has the node's name.
struct CsiNode {
  std::string name;
  std::vector<VolumeLimit> limits;            // Of drivers that name one, each once.
  std::vector<std::string> migrated_plugins;  // That CSI drivers have taken over from.

  bool operator==(const CsiNode&) const = default;
};

struct VolumeAttachment {
  std::string name, attacher, node;
  std::string volume;  // Empty: none that has a name.

  bool operator==(const VolumeAttachment&) const = default;
};

Result<SchedulingVolume> ReadSchedulingVolume(const Element& object);
Result<SchedulingClaim> ReadSchedulingClaim(const Element& object);
Result<StorageClass> ReadStorageClass(const Element& object);
Result<CsiNode> ReadCsiNode(const Element& object);
Result<VolumeAttachment> ReadVolumeAttachment(const Element& object);

}  // namespace rudderfish::kube
