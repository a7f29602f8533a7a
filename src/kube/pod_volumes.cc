// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_volumes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "kube/in_tree_volumes.h"

namespace rudderfish::kube {
namespace {

template <class Map, class Key>
const typename Map::mapped_type* FindIn(const Map& map, const Key& key) {
  const auto at = map.find(key);
  return at == map.end() ? nullptr : &at->second;
}

// What is to be made for a claim is a volume of its own, under a name that no driver gives.
std::optional<CsiVolume> VolumeToBeMade(const SchedulingClaim& claim,
                                        const VolumeReferences& references) {
  const StorageClass* made_by = FindIn(references.storage_classes, claim.storage_class);
  if (made_by == nullptr) return std::nullopt;
  const std::string_view driver = DriverOfProvisioner(made_by->provisioner);
  if (driver.empty()) return std::nullopt;
  return CsiVolume{std::string(driver), fmt::format("\nof the claim {}", KeyText(claim.key))};
}

// Reads a pod's claims and what they are bound to. kube-scheduler's VolumeRestrictions,
// VolumeBinding and VolumeZone look at them in this order before any node, each at all claims.
class ClaimReader {
 public:
  ClaimReader(const PodVolumes& volumes, const PodOwner& pod, const VolumeReferences& references,
              PodClass* made)
      : volumes_(volumes), pod_(pod), references_(references), made_(*made) {}

  void Read() {
    if (!FindThose() || !CheckThose()) return;
    for (const Found& found : found_) {
      if (found.claim->is_bound) continue;
      if (!IsDelayed(*found.claim))
        return Reject("pod has unbound immediate PersistentVolumeClaims");
    }
    for (const Found& found : found_) {
      if (found.claim->is_bound) continue;
      made_.unmodelled.push_back(
          fmt::format("uses the claim {}, which is not bound yet", found.claim->key.name));
    }
    for (const Found& found : found_) {
      if (found.claim->is_bound && !ReadVolume(found)) return;
    }
  }

 private:
  struct Found {
    const PodVolumes::Claim* named = nullptr;
    const SchedulingClaim* claim = nullptr;

    bool is_ephemeral() const { return !named->of_ephemeral.empty(); }
  };

  void Reject(std::string why) { made_.rejection = std::move(why); }

  // VolumeRestrictions does not look at ephemeral ones.
  bool FindThose() {
    for (const PodVolumes::Claim& named : volumes_.claims) {
      const SchedulingClaim* claim =
          FindIn(references_.claims, ObjectKey{made_.object_namespace, named.name});
      found_.push_back({&named, claim});
      if (found_.back().is_ephemeral()) continue;
      if (claim == nullptr) {
        Reject(fmt::format("persistentvolumeclaim \"{}\" not found", named.name));
        return false;
      }
      if (claim->is_exclusive) made_.exclusive_claims.push_back(named.name);
    }
    return true;
  }

  bool CheckThose() {
    for (const Found& found : found_) {
      std::string why;
      if (found.claim == nullptr) {
        why = fmt::format(
            "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{}\"",
            found.named->name);
      } else if (found.claim->is_lost) {
        why = fmt::format(
            "persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"",
            found.named->name, found.claim->volume);
      } else if (found.claim->is_deleted) {
        why = fmt::format("persistentvolumeclaim \"{}\" is being deleted", found.named->name);
      } else if (found.is_ephemeral() && found.claim->owner_uid != pod_.uid) {
        why = fmt::format("PVC {0}/{1} was not created for pod {0}/{2} (pod is not owner)",
                          made_.object_namespace, found.named->name, pod_.name);
      }
      if (why.empty()) continue;
      Reject(std::move(why));
      return false;
    }
    return true;
  }

  // Whether the claim is bound where a pod wants to use it, by its class. One that names its volume
  // is bound elsewhere.
  bool IsDelayed(const SchedulingClaim& claim) const {
    if (!claim.volume.empty() || claim.storage_class.empty()) return false;
    if (!references_.limits_unknown.empty()) return true;  // As far as is known.
    const StorageClass* made_by = FindIn(references_.storage_classes, claim.storage_class);
    return made_by != nullptr && made_by->is_delayed;
  }

  bool ReadVolume(const Found& found) {
    const SchedulingVolume* volume = FindIn(references_.volumes, found.claim->volume);
    if (volume == nullptr && !found.is_ephemeral()) {
      Reject(fmt::format("persistentvolume \"{}\" not found", found.claim->volume));
      return false;
    }
    const std::string uses = fmt::format("uses the claim {}, whose volume", found.named->name);
    if (volume == nullptr) {
      made_.unmodelled.push_back(fmt::format("{} {} is not there", uses, found.claim->volume));
      return true;
    }
    made_.volumes.push_back(volume->rules);
    if (found.is_ephemeral()) made_.volumes.back().zones.clear();  // As VolumeZone.
    if (!volume->unmodelled.empty())
      made_.unmodelled.push_back(fmt::format("{} {}", uses, volume->unmodelled));
    if (volume->attached && !references_.limits_unknown.empty()) {
      made_.unmodelled.push_back(
          fmt::format("{} is attached by the CSI driver {}, whose limits are "
                      "not known ({})",
                      uses, volume->attached->driver, references_.limits_unknown));
    }
    return true;
  }

  const PodVolumes& volumes_;
  const PodOwner& pod_;
  const VolumeReferences& references_;
  PodClass& made_;
  std::vector<Found> found_;
};

// Of types that kube-scheduler compares with those of other pods, besides.
constexpr std::string_view kComparedDisks[] = {"awsElasticBlockStore", "gcePersistentDisk", "iscsi",
                                               "rbd"};

Result<void> ReadDisk(const Fields& volume, std::string_view name, PodVolumes* made) {
  for (const std::string_view type : kComparedDisks) {
    TRY_ASSIGN(const Fields there, volume.Find(type));
    if (there.there()) made->odd.push_back(fmt::format("{} of type {}", name, type));
  }
  TRY_ASSIGN(std::optional<InTreeVolume> disk, TranslateInTree(volume, {}));
  if (!disk) return {};
  if (disk->volume) {
    made->disks.push_back(*std::move(disk->volume));
  } else {
    made->has_unknown_disk = true;
    made->odd.push_back(
        fmt::format("{} of {}, which cannot be told to its CSI driver", name, disk->plugin));
  }
  return {};
}

}  // namespace

std::vector<std::string> PodVolumes::ClaimNames() const {
  std::vector<std::string> names;
  for (const Claim& claim : claims) names.push_back(claim.name);
  return names;
}

Result<PodVolumes> ReadPodVolumes(const Fields& pod) {
  PodVolumes made;
  TRY_ASSIGN(const std::string_view pod_name, pod.Text("metadata.name"));
  TRY(pod.ForEach("spec.volumes", [&](const Fields& volume) -> Result<void> {
    TRY_ASSIGN(const std::string_view name, volume.Text("name"));
    TRY_ASSIGN(const Fields claim, volume.Find("persistentVolumeClaim"));
    TRY_ASSIGN(const Fields ephemeral, volume.Find("ephemeral"));
    if (claim.there()) {
      TRY_ASSIGN(const std::string_view claim_name, claim.Text("claimName"));
      made.claims.push_back({std::string(claim_name), ""});
    } else if (ephemeral.there()) {
      made.claims.push_back({fmt::format("{}-{}", pod_name, name), std::string(name)});
    } else {
      TRY(ReadDisk(volume, name, &made));
    }
    return {};
  }));
  return made;
}

void SetAttached(const PodVolumes& volumes, const PodOwner& pod, const VolumeReferences& references,
                 PodClass* made) {
  made->attached = volumes.disks;
  made->attaches_unknown = volumes.has_unknown_disk;
  for (const PodVolumes::Claim& named : volumes.claims) {
    const SchedulingClaim* claim =
        FindIn(references.claims, ObjectKey{std::string(pod.object_namespace), named.name});
    if (claim == nullptr) continue;
    if (!named.of_ephemeral.empty() && claim->owner_uid != pod.uid) {
      made->attaches_unknown = true;  // kube-scheduler fails on it.
      continue;
    }
    const SchedulingVolume* volume = FindIn(references.volumes, claim->volume);
    std::optional<CsiVolume> attached =
        volume == nullptr ? VolumeToBeMade(*claim, references) : volume->attached;
    if (volume != nullptr && !volume->unmodelled.empty()) made->attaches_unknown = true;
    if (attached) made->attached.push_back(*std::move(attached));
  }
  std::vector<CsiVolume>& all = made->attached;
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

void AddVolumes(const PodVolumes& volumes, const PodOwner& pod, const VolumeReferences& references,
                PodClass* made) {
  for (const PodVolumes::Claim& named : volumes.claims) {
    if (named.of_ephemeral.empty()) made->claims.push_back(named.name);
  }
  for (const std::string& odd : volumes.odd)
    made->unmodelled.push_back(fmt::format("has the volume {}", odd));
  if (!volumes.disks.empty() && !references.limits_unknown.empty()) {
    made->unmodelled.push_back(
        fmt::format("has a volume that the CSI driver {} attaches, whose "
                    "limits are not known ({})",
                    volumes.disks.front().driver, references.limits_unknown));
  }
  ClaimReader(volumes, pod, references, made).Read();
  SetAttached(volumes, pod, references, made);
}

}  // namespace rudderfish::kube
