// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/fields.h"

// What annotations of a pod or of its controller say against moving it: those of ours and of other
// programs that move or evict pods. A value that is not understood says so, too: it is no consent.

namespace rudderfish::kube {

struct OptOut {
  std::string why;               // "is annotated karpenter.sh/do-not-disrupt=30m"
  std::optional<int64_t> for_s;  // From the pod's start; nothing: for good.

  // `started_at`, `now`: Unix seconds; 0: it has not started.
  bool HoldsAt(int64_t started_at, int64_t now) const {
    return !for_s || started_at == 0 || now - started_at < *for_s;
  }
  bool operator==(const OptOut&) const = default;
};

Result<std::vector<OptOut>> ReadOptOuts(const Fields& object);

}  // namespace rudderfish::kube
