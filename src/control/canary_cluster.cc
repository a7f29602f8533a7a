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
  bool has_one = false;
  for (Workload& one : catalog->workloads) {
    one.movable = one.movable && IsInShare(one.name, share_);
    has_one |= one.movable;
  }
  // A small application would have no canary.
  for (size_t w = 0; w < catalog->workloads.size() && !has_one; ++w) {
    has_one = whole_->workloads[w].movable;
    catalog->workloads[w].movable = has_one;
  }
  restricted_ = std::move(catalog);
  restricted_by_ = share_;
}

}  // namespace rudderfish
