// SPDX-License-Identifier: Apache-2.0
#include "kube/claim_users.h"

namespace rudderfish::kube {
namespace {

template <class Key>
void Unlink(const Key& from, const ObjectKey& to, std::map<Key, std::set<ObjectKey>>* links) {
  const auto at = links->find(from);
  if (at == links->end()) return;
  at->second.erase(to);
  if (at->second.empty()) links->erase(at);
}

}  // namespace

void ClaimUsers::PutPod(const ObjectKey& pod, const std::vector<std::string>& claims) {
  const auto [at, is_new] = pods_.try_emplace(pod, claims);
  if (!is_new && at->second == claims) return;
  if (!is_new) {
    RemovePod(pod);
    pods_[pod] = claims;
  }
  for (const std::string& claim : claims) users_[{pod.object_namespace, claim}].insert(pod);
}

void ClaimUsers::RemovePod(const ObjectKey& pod) {
  const auto at = pods_.find(pod);
  if (at == pods_.end()) return;
  for (const std::string& claim : at->second) Unlink({pod.object_namespace, claim}, pod, &users_);
  pods_.erase(at);
  concerned_.erase(pod);
}

void ClaimUsers::PutClaim(const ObjectKey& claim, const std::string& volume) {
  RemoveClaim(claim);
  if (volume.empty()) return;
  volumes_[claim] = volume;
  claims_[volume].insert(claim);
}

void ClaimUsers::RemoveClaim(const ObjectKey& claim) {
  Note(claim);
  const auto at = volumes_.find(claim);
  if (at == volumes_.end()) return;
  Unlink(at->second, claim, &claims_);
  volumes_.erase(at);
}

void ClaimUsers::NoteVolume(const std::string& volume) {
  const auto at = claims_.find(volume);
  if (at == claims_.end()) return;
  for (const ObjectKey& claim : at->second) Note(claim);
}

void ClaimUsers::NoteAll() {
  for (const auto& [pod, claims] : pods_) concerned_.insert(pod);
}

void ClaimUsers::Note(const ObjectKey& claim) {
  const auto at = users_.find(claim);
  if (at == users_.end()) return;
  concerned_.insert(at->second.begin(), at->second.end());
}

}  // namespace rudderfish::kube
