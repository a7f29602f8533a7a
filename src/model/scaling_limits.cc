// SPDX-License-Identifier: Apache-2.0
#include "model/scaling_limits.h"

#include <algorithm>

#include "base/check.h"

namespace rudderfish {

void LimitKeeper::Mend(double at_s, std::span<const int> now, std::span<int> wanted) {
  const ScalingLimits& limits = application_->limits;
  const std::vector<ServedWorkload>& workloads = application_->workloads;
  CHECK(now.size() == workloads.size() && wanted.size() == now.size());
  if (limits == ScalingLimits()) return;
  if (has_changed_ && at_s - changed_at_s_ <= limits.cool_down_s) {
    std::copy(now.begin(), now.end(), wanted.begin());
    return;
  }
  int64_t cpu_millis = 0, pods = 0;
  for (size_t w = 0; w < wanted.size(); ++w) {
    if (!workloads[w].scaled) continue;
    cpu_millis += wanted[w] * workloads[w].cpu_millis;
    pods += wanted[w];
  }
  while (cpu_millis > limits.cpu_millis_max || pods > limits.pods_max) {
    size_t most = 0;
    int more = 0;
    for (size_t w = 0; w < wanted.size(); ++w) {
      if (!workloads[w].scaled || wanted[w] - now[w] <= more) continue;
      more = wanted[w] - now[w];
      most = w;
    }
    if (more == 0) break;
    --wanted[most];
    --pods;
    cpu_millis -= workloads[most].cpu_millis;
  }
  for (size_t w = 0; w < wanted.size(); ++w) {
    if (!workloads[w].scaled || wanted[w] == now[w]) continue;
    has_changed_ = true;
    changed_at_s_ = at_s;
  }
}

}  // namespace rudderfish
