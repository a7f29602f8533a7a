// SPDX-License-Identifier: Apache-2.0
#include "control/shadow_cluster.h"

#include <utility>

namespace rudderfish {

Result<void> ShadowCluster::Look() {
  TRY(real_->Refresh(&real_state_));
  if (!looked_ || real_state_.version != real_version_) {
    looked_ = true;
    changed_ = true;
    real_version_ = real_state_.version;
    Forget();
  }
  imagined_.at = real_state_.at;
  return {};
}

bool ShadowCluster::TakeChange() { return std::exchange(changed_, false); }

void ShadowCluster::Forget() {
  const uint64_t version = imagined_.version + 1;
  imagined_ = real_state_;
  imagined_.version = version;
}

Result<void> ShadowCluster::Refresh(State* state) {
  TRY(Look());
  const bool up_to_date = state == observer_ && state->version == imagined_.version &&
                          state->catalog == imagined_.catalog;
  if (up_to_date) {
    state->at = imagined_.at;
  } else {
    *state = imagined_;
  }
  observer_ = state;
  return {};
}

void ShadowCluster::Submit(std::span<const Intent> intents, Completions* completions) {
  for (const Intent& intent : intents) {
    Result<void> verdict = Review(intent);
    if (verdict) {
      const auto& migrate = std::get<Migrate>(intent.action);
      MovePod(migrate.pod, migrate.to, &imagined_);
      ++imagined_.version;
    }
    completions->push_back({intent, std::move(verdict)});
  }
}

Result<void> ShadowCluster::Review(const Intent& intent) const {
  const auto& migrate = std::get<Migrate>(intent.action);
  if (migrate.pod < 0 || migrate.pod >= imagined_.pods.size()) {
    return Fail(ErrorCode::kConflict, "there is no pod {} any more", migrate.pod);
  }
  if (migrate.to < 0 || migrate.to >= imagined_.nodes.size()) {
    return Fail(ErrorCode::kConflict, "there is no node {} any more", migrate.to);
  }
  const std::string pod = PodName(imagined_, migrate.pod);
  const NodeId now_on = imagined_.pods.node[migrate.pod];
  if (now_on == kNone || now_on != intent.seen.pod_was_on || now_on != migrate.from) {
    return Fail(ErrorCode::kConflict, "{} is on {} by now", pod,
                now_on == kNone ? "no node" : NodeName(imagined_, now_on));
  }
  if (migrate.to == now_on) {
    return Fail(ErrorCode::kFailedPrecondition, "{} is on {} already", pod,
                NodeName(imagined_, migrate.to));
  }
  if (!imagined_.nodes.free[migrate.to].Fits(imagined_.workload_of(migrate.pod).requests)) {
    return Fail(ErrorCode::kFailedPrecondition, "{} has no room for {}",
                NodeName(imagined_, migrate.to), pod);
  }
  return {};
}

}  // namespace rudderfish
