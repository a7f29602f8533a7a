// SPDX-License-Identifier: Apache-2.0
#include "kube/unread_pods.h"

#include <utility>

#include "base/log.h"

namespace rudderfish::kube {

void UnreadPods::NoteGone(const ObjectKey& pod) { Forget(pod, "is gone"); }

void UnreadPods::Forget(const ObjectKey& pod, const char* why) {
  const auto at = pods_.find(pod);
  if (at == pods_.end()) return;
  if (at->second.closes)
    LogInfo("pod {} {}: node {} is not closed for it any more", KeyText(pod), why, at->second.node);
  pods_.erase(at);
}

void UnreadPods::Note(const ObjectKey& pod, Unread now) {
  if (now.why.empty()) return Forget(pod, "can be read");
  const auto at = pods_.find(pod);
  if (at != pods_.end() && at->second == now) return;
  if (now.node.empty()) {
    LogWarning("{}; no node is chosen for it", now.why);
  } else if (now.closes) {
    LogWarning(
        "{}; what it holds of node {}, or forbids others there, is not known: no pod is put there "
        "until it can be read or is gone",
        now.why, now.node);
  } else {
    LogWarning("{}; what it holds of node {} counts", now.why, now.node);
  }
  pods_.insert_or_assign(pod, std::move(now));
}

UnreadPods::Counts UnreadPods::Count() const {
  Counts all;
  for (const auto& [key, pod] : pods_)
    ++(pod.node.empty() ? all.waiting : pod.closes ? all.closing : all.counted);
  return all;
}

}  // namespace rudderfish::kube
