// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "kube/objects.h"

// Pods that cannot be read in full, and what that means for the nodes they are on: told in the log
// once, and counted. Not thread safe.

namespace rudderfish::kube {

class UnreadPods {
 public:
  struct Unread {
    std::string why;      // A sentence; empty: it can be read.
    std::string node;     // Empty: it waits.
    bool closes = false;  // Its node takes no other pod for that.

    bool operator==(const Unread&) const = default;
  };

  void Note(const ObjectKey& pod, Unread now);
  void NoteGone(const ObjectKey& pod);

  struct Counts {
    int waiting = 0;
    int counted = 0;  // On a node, with what they hold.
    int closing = 0;
  };
  Counts Count() const;

 private:
  void Forget(const ObjectKey& pod, const char* why);

  std::map<ObjectKey, Unread> pods_;
};

}  // namespace rudderfish::kube
