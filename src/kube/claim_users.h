// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/objects.h"

// Which pods use which claims, and which claims name which volumes: to whom it is news that one of
// these has changed. Pods that use none of them may be kept, too. Not thread safe.

namespace rudderfish::kube {

class ClaimUsers {
 public:
  // `claims`: their names, in the namespace of the pod.
  void PutPod(const ObjectKey& pod, const std::vector<std::string>& claims);
  void RemovePod(const ObjectKey& pod);

  // The claim has changed, or is gone, or the volume has or is.
  void PutClaim(const ObjectKey& claim, const std::string& volume);
  void RemoveClaim(const ObjectKey& claim);
  void NoteVolume(const std::string& volume);
  void NoteAll();  // What concerns all pods that are kept has changed.

  // Pods that this is news for, since it was asked last.
  std::set<ObjectKey> TakeConcerned() { return std::exchange(concerned_, {}); }

 private:
  void Note(const ObjectKey& claim);

  std::map<ObjectKey, std::vector<std::string>> pods_;
  std::map<ObjectKey, std::set<ObjectKey>> users_;     // By claim.
  std::map<ObjectKey, std::string> volumes_;           // By claim.
  std::map<std::string, std::set<ObjectKey>> claims_;  // By volume.
  std::set<ObjectKey> concerned_;
};

}  // namespace rudderfish::kube
