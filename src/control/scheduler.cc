// SPDX-License-Identifier: Apache-2.0
#include "control/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace rudderfish {
namespace {

constexpr size_t kEndsMax = 256;  // Unwritten.
constexpr int kLooksMax = 256;    // Of one turn.

}  // namespace

Scheduler::Scheduler(SchedulerOptions options, const Clock* clock,
                     std::unique_ptr<NodeScorer> scorer, PlacementActuator* actuator,
                     PlacementJournal* journal, std::function<bool()> leads)
    : options_(std::move(options)),
      clock_(clock),
      actuator_(actuator),
      journal_(journal),
      leads_(std::move(leads)),
      chooser_({.alternatives_kept = options_.alternatives_kept,
                .enforced_told = options_.enforced_told,
                .seed = options_.seed},
               clock, std::move(scorer), &counts_),
      waiting_(options_.queue, actuator),
      bindings_({.confirmation = options_.confirmation_limit,
                 .repeat = options_.repeat,
                 .unclear = options_.unclear_limit},
                clock, actuator, leads_, &counts_, &ends_,
                [this](const std::string& key, BindingNews news, const std::string& what) {
                  Hear(key, news, what);
                }) {}

void Scheduler::PodSeen(const ObservedPod& pod) {
  const std::string key = pod.id.Key();
  if (pod.node.empty()) {
    Want(pod, key);
  } else {
    Settle(pod, key);
  }
}

// It waits for a node. While its Binding is under way that is no news, but what it has become is:
// it is decided on once the answer is there.
void Scheduler::Want(const ObservedPod& pod, const std::string& key) {
  const SentBinding* binding = bindings_.Find(key);
  if (binding != nullptr && !(binding->id == pod.id)) {
    bindings_.Drop(key);
    binding = nullptr;
  }
  if (binding == nullptr) {
    room_.Free(key);  // Of an earlier pod of that name, whose end was not seen.
  } else {
    room_.Update(key, pod, binding->node);
  }
  const bool is_ours = !options_.name.empty() && pod.shape->scheduler == options_.name;
  if (!is_ours || pod.is_terminating || !pod.shape->gates.empty()) {
    waiting_.End(key);
    return;
  }
  const auto turn = binding == nullptr ? WaitingPods::Turn::kNow : WaitingPods::Turn::kAfterBinding;
  if (waiting_.Put(key, pod, turn, clock_->Now())) Leads();
}

// The pod has a node, from this scheduler or from another one.
void Scheduler::Settle(const ObservedPod& pod, const std::string& key) {
  const bool is_ours = bindings_.Show(key, pod.id, pod.node);
  if (const WaitingPod* waiting = waiting_.Find(key); waiting != nullptr && waiting->id == pod.id)
    LookForSharedName(pod, *waiting);
  const bool is_new = room_.Settle(key, pod);
  waiting_.End(key);
  if (is_new && !is_ours && on_placed_by_others_) on_placed_by_others_(pod.id);
}

// The outcome of a Binding, where it is not what was meant.
void Scheduler::Hear(const std::string& key, BindingNews news, const std::string& what) {
  if (news == BindingNews::kElsewhere) return room_.Move(key, what);
  room_.Free(key);
  if (news == BindingNews::kGone) return waiting_.End(key);
  waiting_.TryAgain(key, what, clock_->Now());
}

// A pod that waited for us has a node.
void Scheduler::LookForSharedName(const ObservedPod& pod, const WaitingPod& waiting) {
  const std::vector<std::string>& ours = waiting.given;
  if (std::find(ours.begin(), ours.end(), pod.node) != ours.end()) return;
  if (!Leads() || !name_watch_.IsOursAlone(waiting.since)) return;
  ++counts_.name_shared;
  if (!name_watch_.IsToBeTold(clock_->Now())) return;
  const std::string message = fmt::format(
      "somebody else serves the scheduler name {}, too: {} was put on {}, and not by us ({} so "
      "far); give one of both another name (decisions.placement.scheduler_name), or instances "
      "of one name the same Lease (leader_election)",
      options_.name, pod.id.Key(), pod.node, counts_.name_shared);
  LogWarning("{}", message);
  actuator_->TellNameShared(pod.id, message);
}

bool Scheduler::Leads() {
  const bool leads = leads_();
  name_watch_.Note(leads ? NameWatch::Standing::kLeads : NameWatch::Standing::kLooksOn,
                   clock_->Now());
  return leads;
}

void Scheduler::PodGone(const std::string& key) {
  bindings_.Drop(key);
  room_.Free(key);
  waiting_.End(key);
}

void Scheduler::LookForLostRaces() {
  for (const auto& [node, what] : room_.TakeOverfull()) {
    ++counts_.lost_races;
    const std::string message =
        fmt::format("holds more than it has of {}: another scheduler has placed pods there, too",
                    fmt::join(what, ", "));
    LogWarning("node {} {}", node, message);
    actuator_->TellOvercommitted(node, message);
  }
}

Result<bool> Scheduler::Turn() {
  if (!Leads()) return false;
  const Instant now = clock_->Now();
  LookForLostRaces();
  bindings_.Look(now);
  SchedulingQueue& queue = waiting_.queue();
  room_.Wake(
      [this](const std::string& key) -> const auto& { return waiting_.at(key).shape; }, &queue,
      now);
  queue.Advance(now);
  batch_.clear();
  chooser_.untold().Clear();
  const auto has_room = [&] {
    return batch_.size() < static_cast<size_t>(options_.batch_max) &&
           bindings_.unanswered() + batch_.size() < static_cast<size_t>(options_.bindings_max);
  };
  std::vector<std::string> keys;
  for (int looks = 0; looks < kLooksMax && has_room(); ++looks) {
    std::optional<std::string> key = queue.Pop();
    if (!key) break;
    PlacementRow row{.cluster = options_.cluster};
    if (!Decide(*key, &row)) continue;
    batch_.push_back(std::move(row));
    keys.push_back(*std::move(key));
  }
  if (batch_.empty()) {
    if (ends_.size() >= kEndsMax) TRY(WriteEnds());
    return queue.active() > 0 && has_room();
  }
  const Result<void> written = journal_->AppendPlacements(batch_, ends_);
  if (written) ends_.clear();
  for (size_t i = 0; i < batch_.size(); ++i) {
    if (batch_[i].node.empty()) continue;
    if (!written || !leads_()) {
      room_.Free(keys[i]);
      chooser_.untold().Clear();
      queue.BackOff(keys[i], now);
      if (written) ends_.push_back({batch_[i].number, Fate::kFailed, "another instance leads"});
      continue;
    }
    std::vector<std::string>& given = waiting_.Find(keys[i])->given;
    if (given.empty() || given.back() != batch_[i].node) given.push_back(batch_[i].node);
    bindings_.Begin(
        keys[i],
        {.id = batch_[i].pod, .node = batch_[i].node, .row = batch_[i].number, .decided_at = now});
    ++counts_.decisions;
  }
  if (!written) return tl::unexpected(written.error());
  return queue.active() > 0 && bindings_.unanswered() < static_cast<size_t>(options_.bindings_max);
}

Result<void> Scheduler::WriteEnds() {
  if (ends_.empty()) return {};
  TRY(journal_->AppendPlacements({}, ends_));
  ends_.clear();
  return {};
}

Duration Scheduler::UntilDue() const {
  const SchedulingQueue& queue = waiting_.queue();
  if (!chooser_.untold().empty()) return Duration::zero();
  const Instant now = clock_->Now();
  const auto until = [&](Instant at) { return std::max(at - now, Duration::zero()); };
  Duration due = std::chrono::seconds(1);  // Bindings are looked at once a second.
  if (queue.active() > 0 && bindings_.unanswered() < static_cast<size_t>(options_.bindings_max))
    return Duration::zero();
  if (room_.has_changed() && queue.asleep() > 0) return Duration::zero();
  if (const auto next = queue.NextDue()) due = std::min(due, until(*next));
  return due;
}

// True: there is a row to write; the pod has got a node if the row has one.
bool Scheduler::Decide(const std::string& key, PlacementRow* row) {
  const WaitingPod& waiting = waiting_.at(key);
  SchedulingRules& rules = room_.tables().Rules();
  row->pod = waiting.id;
  row->scheduler = options_.name;
  row->policy = chooser_.policy();
  row->priority = waiting.shape->priority;
  row->attempt = waiting_.queue().attempts(key);
  row->waited_ms = Seconds(clock_->Now() - waiting.since) * 1000;
  row->nodes = rules.nodes().size();
  if (!waiting.shape->unmodelled.empty()) {
    ++counts_.unmodelled;
    const std::string why = fmt::format("not placed by {}, which does not model this: the pod {}",
                                        options_.name, fmt::join(waiting.shape->unmodelled, "; "));
    return Refuse(key, {.message = why, .kinds = why, .refused_by = MaskOf(Rejection::kPod)}, row);
  }
  const PodClassId pod = rules.Register(waiting.shape);
  if (const PodRefusal* known = room_.refusals().Find(pod, room_.tables().rebuilds()))
    return Refuse(key, *known, row);
  rules.Filter(pod, &feasibility_);
  rules.LimitLatency(pod, &feasibility_);
  row->feasible = feasibility_.feasible;
  if (feasibility_.feasible == 0)
    return Refuse(key, room_.refusals().Keep(rules, pod, feasibility_, options_.name), row);
  const NodeId node = chooser_.Choose(waiting, pod, waiting_, feasibility_, &rules, row);
  row->node = rules.nodes().node(node).name;
  room_.Assume(key, waiting.shape, row->node);
  chooser_.untold().NotePlaced(key);
  return true;
}

// The pod goes on waiting. A row is written where the reasons are others.
bool Scheduler::Refuse(const std::string& key, const PodRefusal& refusal, PlacementRow* row) {
  ++counts_.waiting;
  const bool is_news = waiting_.Refuse(key, refusal, clock_->Now());
  row->reason = waiting_.at(key).told;
  row->fate = Fate::kStayed;
  return is_news;
}

}  // namespace rudderfish
