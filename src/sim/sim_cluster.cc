// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_cluster.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace rudderfish {

SimCluster::SimCluster(State start, std::chrono::nanoseconds start_delay)
    : state_(std::move(start)), start_delay_(start_delay), reserved_(state_.nodes.kind.size()) {
  CHECK_GE(start_delay.count(), 0);
  CheckConsistent(state_);
}

Result<void> SimCluster::Refresh(State* state) {
  if (state == observer_ && state->version == observed_version_) {
    for (const Migrate& move : unseen_) MovePod(move.pod, move.to, state);
    state->version = state_.version;
    state->at = state_.at;
  } else {
    *state = state_;
  }
  unseen_.clear();
  observer_ = state;
  observed_version_ = state_.version;
  return {};
}

void SimCluster::Submit(std::span<const Intent> intents, Completions* completions) {
  for (const Intent& intent : intents) {
    if (Result<void> verdict = Review(intent); !verdict) {
      completions->push_back({intent, std::move(verdict)});
      continue;
    }
    const Migrate& migrate = std::get<Migrate>(intent.action);
    const MoveInFlight move{intent, Now() + start_delay_, completions};
    reserved_[migrate.to] += state_.workload_of(migrate.pod).requests;
    if (start_delay_.count() == 0) {
      Finish(move);
    } else {
      in_flight_.push_back(move);
    }
  }
}

void SimCluster::Advance(std::chrono::nanoseconds by) {
  CHECK_GE(by.count(), 0);
  state_.at += by;
  // All moves take equally long: those that are ready come first.
  const auto waiting =
      std::find_if(in_flight_.begin(), in_flight_.end(),
                   [&](const MoveInFlight& move) { return move.ready_at > Now(); });
  for (auto move = in_flight_.begin(); move != waiting; ++move) Finish(*move);
  in_flight_.erase(in_flight_.begin(), waiting);
}

Result<void> SimCluster::Review(const Intent& intent) const {
  const Migrate& migrate = std::get<Migrate>(intent.action);
  if (migrate.pod < 0 || migrate.pod >= state_.pods.size()) {
    return Fail(ErrorCode::kConflict, "there is no pod {} any more", migrate.pod);
  }
  if (migrate.to < 0 || migrate.to >= state_.nodes.size()) {
    return Fail(ErrorCode::kConflict, "there is no node {} any more", migrate.to);
  }
  const NodeId now_on = state_.pods.node[migrate.pod];
  if (now_on == kNone || now_on != intent.seen.pod_was_on || now_on != migrate.from) {
    return Fail(ErrorCode::kConflict, "{} is on {} by now", PodName(state_, migrate.pod),
                now_on == kNone ? "no node" : NodeName(state_, now_on));
  }
  const auto same_pod = [&](const MoveInFlight& move) {
    return std::get<Migrate>(move.intent.action).pod == migrate.pod;
  };
  if (std::any_of(in_flight_.begin(), in_flight_.end(), same_pod)) {
    return Fail(ErrorCode::kConflict, "{} is being moved already", PodName(state_, migrate.pod));
  }
  if (migrate.to == now_on) {
    return Fail(ErrorCode::kFailedPrecondition, "{} is on {} already", PodName(state_, migrate.pod),
                NodeName(state_, migrate.to));
  }
  const Resources room = state_.nodes.free[migrate.to] - reserved_[migrate.to];
  if (!room.Fits(state_.workload_of(migrate.pod).requests)) {
    return Fail(ErrorCode::kFailedPrecondition, "{} has no room for {}",
                NodeName(state_, migrate.to), PodName(state_, migrate.pod));
  }
  return {};
}

void SimCluster::Finish(const MoveInFlight& move) {
  const Migrate& migrate = std::get<Migrate>(move.intent.action);
  reserved_[migrate.to] -= state_.workload_of(migrate.pod).requests;
  MovePod(migrate.pod, migrate.to, &state_);
  unseen_.push_back(migrate);
  move.completions->push_back({move.intent, {}});
}

}  // namespace rudderfish
