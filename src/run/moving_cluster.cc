// SPDX-License-Identifier: Apache-2.0
#include "run/moving_cluster.h"

#include <algorithm>
#include <utility>

namespace rudderfish {
namespace {

// After a move has ended, for the watches to show it. Later what is seen is taken as it is.
constexpr std::chrono::seconds kSeenLimit(10);

}  // namespace

MovingCluster::~MovingCluster() {
  for (const Flight& flight : flights_) {
    if (!flight.has_ended) driver_->Forget(flight.order);
  }
}

std::optional<MovingCluster::LetGoMove> MovingCluster::LetGo() {
  if (flights_.empty()) return std::nullopt;
  const Flight& flight = flights_.front();
  LetGoMove move{.order = flight.order, .end = {}, .tell = {}};
  if (flight.has_ended) move.end = flight.ended.end;
  move.tell = [on_end = calls_.on_end, ended = flight.ended](const MoveDriver::End& end) {
    Ended told = ended;
    told.end = end;
    on_end(told);
  };
  flights_.erase(flights_.begin());
  return move;
}

Result<void> MovingCluster::Refresh(State* state) {
  TRY(seen_->Refresh(state));
  if (last_.version != state->version || last_.names != state->names) last_ = *state;
  std::erase_if(flights_, [&](Flight& flight) {
    if (!flight.has_ended) {
      std::optional<MoveDriver::End> end = driver_->Take(flight.order);
      if (!end) return false;
      flight.has_ended = true;
      flight.ended_at = Now();
      flight.ended.end = *std::move(end);
      calls_.on_end(flight.ended);
    }
    const MoveDriver::End& end = flight.ended.end;
    if (end.is_moved && !IsSeen(flight, *state) && Now() - flight.ended_at < kSeenLimit)
      return false;
    Result<void> outcome;
    if (!end.is_moved) outcome = Fail(ErrorCode::kFailedPrecondition, "{}", end.why);
    flight.completions->push_back({flight.intent, std::move(outcome), end.id});
    return true;
  });
  return {};
}

// The pod is not there any more, and its replacement is.
bool MovingCluster::IsSeen(const Flight& flight, const State& state) const {
  bool is_there = false;
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    const PodIdentity id = calls_.identity_of(pod);
    if (id.uid == flight.ended.pod.uid) return false;
    is_there |= id.name == flight.ended.end.replacement &&
                id.object_namespace == flight.ended.pod.object_namespace;
  }
  return is_there;
}

void MovingCluster::Submit(std::span<const Intent> intents, Completions* completions) {
  for (const Intent& intent : intents) {
    const auto& migrate = std::get<Migrate>(intent.action);
    const bool is_there = migrate.pod >= 0 && migrate.pod < last_.pods.size() && migrate.to >= 0 &&
                          migrate.to < last_.nodes.size();
    if (!is_there || last_.pods.node[migrate.pod] != intent.seen.pod_was_on ||
        migrate.from != intent.seen.pod_was_on) {
      completions->push_back(
          {intent, Fail(ErrorCode::kConflict, "the pod or the node is not there any more")});
      continue;
    }
    Flight flight{.intent = intent, .completions = completions};
    flight.ended.pod = calls_.identity_of(migrate.pod);
    flight.ended.workload = last_.pods.workload[migrate.pod];
    flight.ended.from = NodeName(last_, migrate.from);
    flight.ended.to = NodeName(last_, migrate.to);
    if (flight.ended.pod.uid.empty()) {
      completions->push_back(
          {intent, Fail(ErrorCode::kFailedPrecondition, "it is outside of the cluster")});
      continue;
    }
    flight.order = driver_->Begin({flight.ended.pod, flight.ended.to});
    flights_.push_back(std::move(flight));
  }
}

}  // namespace rudderfish
