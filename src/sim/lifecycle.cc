// SPDX-License-Identifier: Apache-2.0
#include "sim/lifecycle.h"

#include <algorithm>

#include "base/check.h"
#include "sim/episode_pods.h"

namespace rudderfish {
namespace {

const Arrivals& ArrivalsOf(const Scenario& scenario) {
  CHECK(scenario.arrivals != nullptr);
  return *scenario.arrivals;
}

// One that holds nothing else.
bool FitsAnyNode(const State& state, WorkloadId workload) {
  const Workload& asked = state.catalog->workloads[workload];
  for (NodeId node = 0; node < state.nodes.size(); ++node) {
    const int devices = state.nodes.devices.empty() ? 0 : state.nodes.devices[node].count;
    if (state.nodes.allocatable[node].Fits(asked.requests) &&
        Contains(asked.node_kinds, state.nodes.kind[node]) && devices >= asked.devices.count)
      return true;
  }
  return false;
}

}  // namespace

PlacementLaws PlacementLawsOf(const Scenario& scenario) {
  const Arrivals& arrivals = ArrivalsOf(scenario);
  const Catalog& catalog = *scenario.catalog;
  PlacementLaws laws{.costs = scenario.kind_costs, .shapes = {}, .users = arrivals.users};
  const std::vector<int64_t> popularity = PopularityOfWorkloads(arrivals, catalog.workload_count());
  for (WorkloadId w = 0; w < catalog.workload_count(); ++w)
    laws.shapes.Add(catalog.workloads[w], popularity[w]);
  return laws;
}

Lifecycle::Lifecycle(std::shared_ptr<const Scenario> scenario, Measured measured)
    : scenario_(std::move(scenario)), world_(scenario_), laws_(PlacementLawsOf(*scenario_)) {
  for (const PodSource& pods : PodSourcesOf(ArrivalsOf(*scenario_))) sources_.push_back({pods, {}});
  if (measured == Measured::kAllButFragmentation) laws_.shapes = {};
}

Result<void> Lifecycle::Start(uint64_t seed) {
  seed_ = seed;
  Rng rng(seed, kWorldChance);
  TRY(world_.Draw(&rng, &state_));
  const int nodes = state_.nodes.size(), workloads = state_.catalog->workload_count();
  state_.nodes.lost.assign(nodes, 0);
  totals_.Reset(state_, laws_);
  metrics_ = {};
  finished_ = false;
  events_.Clear();
  pending_.Reset(workloads);
  expected_ = 0;
  tracked_.clear();
  free_slots_.clear();
  slot_of_.clear();
  asked_ = kNone;
  on_node_.Reset(nodes);
  ever_fits_.assign(workloads, -1);
  for (PodId pod = 0; pod < state_.pods.size(); ++pod) {
    const Slot slot = Track(pod);
    tracked_[slot].was_bound = true;
    tracked_[slot].number = pod - state_.pods.size();  // Before all that arrive.
    on_node_.Insert(slot, kNone, state_.pods.node[pod]);
  }
  const Arrivals& arrivals = *scenario_->arrivals;
  for (int i = 0; i < static_cast<int>(sources_.size()); ++i) {
    sources_[i].pods.Start(Rng(seed, kSourceChance, i));
    ExpectArrival(i);
  }
  for (int i = 0; i < static_cast<int>(arrivals.events.size()); ++i)
    Expect({.at = arrivals.events[i].at, .kind = Event::Kind::kWorld, .subject = i});
  node_rng_.clear();
  if (arrivals.failures) {
    for (NodeId node = 0; node < nodes; ++node) {
      node_rng_.emplace_back(seed, kFailureChance, node);
      ExpectFailure(node);
    }
  }
  return {};
}

void Lifecycle::Expect(Event event) {
  expected_ += event.kind == Event::Kind::kFail ? 0 : 1;
  events_.Add(event);
}

bool Lifecycle::NextPending() {
  if (finished_) return false;
  if (asked_ != kNone) Bind(kNone);
  const SimTime until = scenario_->arrivals->until;
  for (;;) {
    if (!MoreArriveNow()) asked_ = pending_.Take();
    if (asked_ != kNone) {
      pending_.SeeNext(kNextMost, &next_);
      return true;
    }
    const bool goes_on = until == kNever ? expected_ > 0 : !events_.empty();
    if (!goes_on || events_.top().at > until) {
      if (until != kNever) Advance(until);
      Finish();
      return false;
    }
    const Event event = events_.Take();
    expected_ -= event.kind == Event::Kind::kFail ? 0 : 1;
    if (!IsCurrent(event)) continue;
    Advance(event.at);
    Handle(event);
  }
}

bool Lifecycle::MoreArriveNow() const {
  return !events_.empty() && events_.top().at == state_.at &&
         events_.top().kind == Event::Kind::kArrive;
}

bool Lifecycle::IsCurrent(const Event& event) const {
  switch (event.kind) {
    case Event::Kind::kDelete:
      return tracked_[event.subject].generation == event.generation;
    case Event::Kind::kRun:
    case Event::Kind::kFinish:
      return tracked_[event.subject].generation == event.generation &&
             tracked_[event.subject].attempt == event.attempt;
    default:
      return true;
  }
}

void Lifecycle::Advance(SimTime to) {
  CHECK_GE(to.count(), state_.at.count());
  if (to == state_.at) return;
  if (metrics_.first_arrival != kNever) {
    const Objective* objective = scenario_->objective ? &*scenario_->objective : nullptr;
    metrics_.Pass(to - state_.at, totals_.Now(), pending_.count(), objective);
    if (watcher_) watcher_(to - state_.at, state_);
  }
  state_.at = to;
}

void Lifecycle::Handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kWorld:
      Change(scenario_->arrivals->events[event.subject]);
      break;
    case Event::Kind::kReturn:
      ReturnNode(event.subject);
      ExpectFailure(event.subject);
      break;
    case Event::Kind::kFail:
      if (!state_.nodes.IsReady(event.subject)) {  // An event of the scenario was first.
        ExpectFailure(event.subject);
        break;
      }
      LoseNode(event.subject);
      Expect({.at = state_.at + scenario_->arrivals->failures->down.Draw(&node_rng_[event.subject]),
              .kind = Event::Kind::kReturn,
              .subject = event.subject});
      break;
    case Event::Kind::kDelete:
      ++metrics_.deleted;
      Depart(event.subject);
      break;
    case Event::Kind::kFinish:
      ++metrics_.completed;
      Depart(event.subject);
      break;
    case Event::Kind::kRun:
      Run(event.subject);
      break;
    case Event::Kind::kArrive: {
      const ArrivingPod pod = sources_[event.subject].next;
      ExpectArrival(event.subject);
      Arrive(pod);
      break;
    }
    case Event::Kind::kAsk:
      CHECK(false);  // Of PendingPods only.
  }
}

void Lifecycle::Change(const WorldEvent& event) {
  switch (event.kind) {
    case WorldEvent::Kind::kLoseNode:
      LoseNode(event.node);
      break;
    case WorldEvent::Kind::kReturnNode:
      ReturnNode(event.node);
      break;
    case WorldEvent::Kind::kLatency:
      state_.network.latency_ms[event.from * state_.network.layers + event.to] = event.latency_ms;
      ++state_.version;
      totals_.LatencyChanged();
      // Nodes that were too far from the users may be near enough now.
      pending_.WakeAll();
      break;
  }
}

void Lifecycle::ExpectArrival(int source) {
  Source& from = sources_[source];
  if (!from.pods.Next(&from.next) || from.next.at > scenario_->arrivals->until) return;
  Expect({.at = from.next.at, .kind = Event::Kind::kArrive, .subject = source});
}

Lifecycle::Slot Lifecycle::Track(PodId pod) {
  CHECK_EQ(pod, static_cast<PodId>(slot_of_.size()));
  Slot slot = static_cast<Slot>(tracked_.size());
  if (free_slots_.empty()) {
    tracked_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  const uint32_t generation = tracked_[slot].generation;
  tracked_[slot] = {.pod = pod, .generation = generation, .pending_since = state_.at};
  slot_of_.push_back(slot);
  return slot;
}

void Lifecycle::Arrive(const ArrivingPod& pod) {
  metrics_.first_arrival = std::min(metrics_.first_arrival, state_.at);
  const Slot slot = Track(AddPod(pod.workload, &state_));
  TrackedPod& tracked = tracked_[slot];
  tracked.number = metrics_.arrived++;
  tracked.lifetime = pod.lifetime;
  if (pod.deleted_at != kNever) {
    Expect({.at = pod.deleted_at,
            .kind = Event::Kind::kDelete,
            .subject = slot,
            .generation = tracked.generation});
  }
  pending_.Add(slot, pod.workload, tracked.number);
}

void Lifecycle::Bind(NodeId node) {
  CHECK_NE(asked_, kNone);
  const Slot slot = asked_;
  asked_ = kNone;
  if (node == kNone) {
    ++metrics_.refusals;
    pending_.Sleep(slot);
    return;
  }
  TrackedPod& tracked = tracked_[slot];
  const WorkloadId workload = state_.pods.workload[tracked.pod];
  CHECK(HasRoom(state_, workload, node));
  BindPod(tracked.pod, node, &state_);
  totals_.Placed(workload, node);
  on_node_.Insert(slot, kNone, node);
  pending_.Remove(slot);
  tracked.was_bound = true;
  ++tracked.attempt;
  ++metrics_.bindings;
  metrics_.waiting.Add(state_.at - tracked.pending_since);
  metrics_.active_at_bindings += totals_.Now().active_nodes;
  const double latency_ms = totals_.NodeUserMs(node);
  const LatencyLimits& limits = state_.catalog->workloads[workload].latency_limits;
  metrics_.chosen_latency_ms += latency_ms;
  metrics_.soft_misses += latency_ms > limits.soft_ms ? 1 : 0;
  metrics_.hard_misses += latency_ms > limits.hard_ms ? 1 : 0;
  const SimTime delay =
      DrawStartDelay(*scenario_->arrivals, seed_, tracked.attempt, tracked.number);
  Expect({.at = state_.at + delay,
          .kind = Event::Kind::kRun,
          .subject = slot,
          .generation = tracked.generation,
          .attempt = tracked.attempt});
  pending_.WakeNext(workload);
}

void Lifecycle::Run(Slot slot) {
  const TrackedPod& tracked = tracked_[slot];
  if (tracked.lifetime == kNever) return;
  Expect({.at = state_.at + tracked.lifetime,
          .kind = Event::Kind::kFinish,
          .subject = slot,
          .generation = tracked.generation,
          .attempt = tracked.attempt});
}

void Lifecycle::Depart(Slot slot) {
  TrackedPod& tracked = tracked_[slot];
  const PodId pod = tracked.pod;
  const NodeId node = state_.pods.node[pod];
  const WorkloadId workload = state_.pods.workload[pod];
  if (node == kNone) {
    pending_.Remove(slot);
    CountUnbound(slot);
  } else {
    on_node_.Remove(slot, node);
  }
  RemovePod(pod, &state_);
  slot_of_[pod] = slot_of_.back();
  slot_of_.pop_back();
  if (pod < state_.pods.size()) tracked_[slot_of_[pod]].pod = pod;
  ++tracked.generation;
  free_slots_.push_back(slot);
  if (node == kNone) return;
  totals_.Removed(workload, node);
  pending_.WakeFor(state_, node);
}

void Lifecycle::LoseNode(NodeId node) {
  if (!state_.nodes.IsReady(node)) return;
  ++metrics_.node_losses;
  while (on_node_.first(node) != kNone) LosePod(on_node_.first(node));
  state_.nodes.lost[node] = 1;
  ++state_.version;
  totals_.NodeChanged(node);
}

void Lifecycle::LosePod(Slot slot) {
  TrackedPod& tracked = tracked_[slot];
  const NodeId node = state_.pods.node[tracked.pod];
  const WorkloadId workload = state_.pods.workload[tracked.pod];
  on_node_.Remove(slot, node);
  UnbindPod(tracked.pod, &state_);
  totals_.Removed(workload, node);
  ++tracked.attempt;  // What was expected of it there will not happen.
  tracked.pending_since = state_.at;
  pending_.Add(slot, workload, tracked.number);
  if (scenario_->arrivals->lost_pods == LostPods::kPend) {
    ++metrics_.restarted;
  } else {
    ++metrics_.lost;
    Depart(slot);
  }
}

void Lifecycle::ReturnNode(NodeId node) {
  if (state_.nodes.IsReady(node)) return;
  state_.nodes.lost[node] = 0;
  ++state_.version;
  totals_.NodeChanged(node);
  pending_.WakeFor(state_, node);
}

void Lifecycle::ExpectFailure(NodeId node) {
  const SimTime after = scenario_->arrivals->failures->every.Draw(&node_rng_[node]);
  Expect({.at = state_.at + after, .kind = Event::Kind::kFail, .subject = node});
}

void Lifecycle::Finish() {
  finished_ = true;
  metrics_.end = state_.at;
  for (const Slot slot : slot_of_) {
    if (state_.pods.node[tracked_[slot].pod] == kNone) CountUnbound(slot);
  }
}

void Lifecycle::CountUnbound(Slot slot) {
  if (tracked_[slot].was_bound) return;
  const WorkloadId workload = state_.pods.workload[tracked_[slot].pod];
  int8_t& fits = ever_fits_[workload];
  if (fits < 0) fits = FitsAnyNode(state_, workload) ? 1 : 0;
  ++metrics_.never_bound;
  metrics_.never_fit += 1 - fits;
}

}  // namespace rudderfish
