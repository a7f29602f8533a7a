// SPDX-License-Identifier: Apache-2.0
#include "control/canary_cluster.h"

#include "control/own_choice.h"

namespace rudderfish {

Result<void> CanaryCluster::Refresh(State* state) {
  TRY(real_->Refresh(state));
  // The real cluster leaves a catalog that has not changed as it is in the State.
  if (restricted_ != nullptr && state->catalog == restricted_) state->catalog = whole_;
  if (share_ >= 1) return {};
  if (restricted_ == nullptr || whole_ != state->catalog || share_ != restricted_by_) {
    whole_ = state->catalog;
    Restrict();
  }
  state->catalog = restricted_;
  return {};
}

void CanaryCluster::Restrict() {
  auto catalog = std::make_shared<Catalog>(*whole_);
  Workload *first = nullptr, *last = nullptr;  // Of those that may be moved.
  int picked = 0, left = 0;
  for (Workload& one : catalog->workloads) {
    if (!one.movable) continue;
    one.movable = IsInShare(one.name, share_);
    ++(one.movable ? picked : left);
    if (first == nullptr) first = &one;
    last = &one;
  }
  // Of a small application all may be picked, or none: there would be no control group, or no
  // canary.
  if (picked == 0 && first != nullptr) first->movable = true;
  if (left == 0 && picked > 1) last->movable = false;
  restricted_ = std::move(catalog);
  restricted_by_ = share_;
}

}  // namespace rudderfish
