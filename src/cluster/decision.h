// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "cluster/ids.h"

// What a decision is made of. An empty Decision means stay.

namespace rudderfish {

// Move a running pod: the replacement starts on `to`, the old pod leaves `from` when the new one is
// ready.
struct Migrate {
  PodId pod = kNone;
  NodeId from = kNone;
  NodeId to = kNone;

  bool operator==(const Migrate&) const = default;
};

using Action = std::variant<Migrate>;
using Decision = std::vector<Action>;

// What an actor saw of the things an action touches; the cluster refuses the action if they have
// changed since.
struct Preconditions {
  uint64_t state_version = 0;
  NodeId pod_was_on = kNone;
};

struct Intent {
  Action action;
  Preconditions seen;
};

}  // namespace rudderfish
