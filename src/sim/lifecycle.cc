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

Lifecycle::Lifecycle(std::shared_ptr<const Scenario> scenario)
    : Lifecycle(std::move(scenario), Measured::kAll) {}

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
  queue_.Clear();
  expected_ = 0;
  tracked_.clear();
  free_slots_.clear();
  slot_of_.clear();
  waiting_ = 0;
  asked_ = kNone;
  asleep_.assign(workloads, {});
  workloads_asleep_.clear();
  position_asleep_.assign(workloads, kNone);
  on_node_.assign(nodes, {});
  ever_fits_.assign(workloads, -1);
  for (PodId pod = 0; pod < state_.pods.size(); ++pod) {
    const Slot slot = Track(pod);
    tracked_[slot].phase = Phase::kRunning;
    tracked_[slot].was_bound = true;
    tracked_[slot].number = pod - state_.pods.size();  // Before all that arrive.
    Insert(slot, kNone, &on_node_[state_.pods.node[pod]]);
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
    while (!queue_.empty() && !MoreArriveNow()) {
      const Event event = queue_.Take();
      const TrackedPod& tracked = tracked_[event.subject];
      if (tracked.generation != event.generation || tracked.phase != Phase::kQueued) continue;
      asked_ = event.subject;
      SeeNext();
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

void Lifecycle::SeeNext() {
  next_.clear();
  queue_.Scan(&scanned_, [&](const Event& event) {
    const TrackedPod& tracked = tracked_[event.subject];
    if (tracked.generation == event.generation && tracked.phase == Phase::kQueued)
      next_.push_back(state_.pods.workload[tracked.pod]);
    return next_.size() < kNextMost;
  });
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
    metrics_.Pass(to - state_.at, totals_.Now(), waiting_, objective);
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
      CHECK(false);  // Stands in queue_ only.
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
      // Whoever was too far from the users may not be any more.
      for (size_t i = workloads_asleep_.size(); i-- > 0;) WakeNext(workloads_asleep_[i]);
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
  ++waiting_;
  if (pod.deleted_at != kNever) {
    Expect({.at = pod.deleted_at,
            .kind = Event::Kind::kDelete,
            .subject = slot,
            .generation = tracked.generation});
  }
  Enqueue(slot);
}

void Lifecycle::Bind(NodeId node) {
  CHECK_NE(asked_, kNone);
  const Slot slot = asked_;
  asked_ = kNone;
  if (node == kNone) {
    ++metrics_.refusals;
    Sleep(slot);
    return;
  }
  TrackedPod& tracked = tracked_[slot];
  const WorkloadId workload = state_.pods.workload[tracked.pod];
  CHECK(HasRoom(state_, workload, node));
  BindPod(tracked.pod, node, &state_);
  totals_.Placed(workload, node);
  Insert(slot, kNone, &on_node_[node]);
  tracked.phase = Phase::kStarting;
  tracked.was_bound = true;
  ++tracked.attempt;
  --waiting_;
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
  WakeNext(workload);
}

void Lifecycle::Run(Slot slot) {
  TrackedPod& tracked = tracked_[slot];
  tracked.phase = Phase::kRunning;
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
    if (tracked.phase == Phase::kAsleep) Unsleep(slot);
    --waiting_;
    CountUnbound(slot);
  } else {
    Unlink(slot, &on_node_[node]);
  }
  RemovePod(pod, &state_);
  slot_of_[pod] = slot_of_.back();
  slot_of_.pop_back();
  if (pod < state_.pods.size()) tracked_[slot_of_[pod]].pod = pod;
  ++tracked.generation;
  tracked.phase = Phase::kFree;
  free_slots_.push_back(slot);
  if (node == kNone) return;
  totals_.Removed(workload, node);
  WakeFor(node);
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
  ++metrics_.never_bound;
  metrics_.never_fit += EverFits(state_.pods.workload[tracked_[slot].pod]) ? 0 : 1;
}

bool Lifecycle::EverFits(WorkloadId workload) {
  if (ever_fits_[workload] >= 0) return ever_fits_[workload] > 0;
  const Workload& asked = state_.catalog->workloads[workload];
  bool fits = false;
  for (NodeId node = 0; node < state_.nodes.size() && !fits; ++node) {
    const int devices = state_.nodes.devices.empty() ? 0 : state_.nodes.devices[node].count;
    fits = state_.nodes.allocatable[node].Fits(asked.requests) &&
           Contains(asked.node_kinds, state_.nodes.kind[node]) && devices >= asked.devices.count;
  }
  ever_fits_[workload] = fits ? 1 : 0;
  return fits;
}

}  // namespace rudderfish
