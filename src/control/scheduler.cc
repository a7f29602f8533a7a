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

PodLife LifeOf(const ObservedPod& pod) {
  return pod.is_terminating ? PodLife::kTerminating : PodLife::kServing;
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options, const Clock* clock,
                     std::unique_ptr<NodeScorer> scorer, PlacementActuator* actuator,
                     PlacementJournal* journal, std::function<bool()> leads)
    : options_(std::move(options)),
      clock_(clock),
      scorer_(std::move(scorer)),
      baseline_(NodeScorerNamed("kube-default").value()),
      actuator_(actuator),
      journal_(journal),
      leads_(std::move(leads)),
      queue_(options_.queue),
      rng_(options_.seed) {}

void Scheduler::NodeSeen(const SchedulingNode& node) {
  if (!tables_.PutNode(node)) return;  // A heartbeat.
  events_.NoteOn(node.name, kMayEndByNode);
  refusals_.NoteFreed();
}

void Scheduler::NodeGone(const std::string& name) {
  tables_.RemoveNode(name);
  events_.Note(kMayEndByNode & ~kOfOneNode & ~kNoNode);  // Domains of topology have become fewer.
  refusals_.NoteFreed();
}

void Scheduler::NamespaceSeen(const std::string& name, const Labels& labels) {
  if (!tables_.PutNamespace(name, labels)) return;
  events_.Note(kMayEndByNode & ~kOfOneNode & ~kNoNode);  // Namespaces that are selected.
  refusals_.NoteFreed();
}

void Scheduler::NamespaceGone(const std::string& name) { tables_.RemoveNamespace(name); }

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
    Unassume(key);
    binding = nullptr;
  }
  if (binding == nullptr) {
    Free(key);  // Of another pod by its name, whose end nobody told.
  } else if (tables_.Place(key, pod.shape, binding->node, LifeOf(pod))) {
    NoteOtherHold(binding->node);
  }
  const bool is_ours = !options_.name.empty() && pod.shape->scheduler == options_.name;
  if (!is_ours || pod.is_terminating || !pod.shape->gates.empty()) {
    EndWaiting(key);
    return;
  }
  const auto [at, is_new] = waiting_.try_emplace(key);
  Waiting& waiting = at->second;
  waiting.is_opted_out = pod.is_opted_out;
  waiting.nominated = pod.nominated;
  if (!is_new && waiting.id == pod.id && waiting.shape == pod.shape) return;
  if (is_new || !(waiting.id == pod.id)) {
    if (!is_new) actuator_->TellWaitsNoLonger(waiting.id);
    queue_.Remove(key);
    waiting = {.id = pod.id,
               .shape = pod.shape,
               .since = clock_->Now(),
               .is_opted_out = pod.is_opted_out,
               .nominated = pod.nominated};
    Leads();
  }
  waiting.shape = pod.shape;
  if (binding == nullptr) queue_.Add(key, pod.shape->priority);
}

// A pod holds, or is to others, what it did not before.
void Scheduler::NoteOtherHold(std::string_view node) {
  events_.NoteOn(node, kMayEndByLeaving | kMayEndByPlacing);
  refusals_.NoteFreed();
  refusals_.NotePlaced();
}

// It has a node, whoever gave it.
void Scheduler::Settle(const ObservedPod& pod, const std::string& key) {
  SentBinding* binding = bindings_.Find(key);
  const bool is_ours = binding != nullptr && binding->id == pod.id;
  if (is_ours && binding->node == pod.node) {
    Placed(binding);
  } else if (is_ours) {
    BoundElsewhere(binding, pod.node);
  }
  if (binding != nullptr) {
    End(binding, Fate::kFailed, "another pod has its name");
    bindings_.Erase(key);
  }
  const auto waiting = waiting_.find(key);
  if (waiting != waiting_.end() && waiting->second.id == pod.id)
    LookForSharedName(pod, waiting->second);
  const bool was_there = tables_.NodeOf(key) == pod.node;
  if (!was_there) Free(key);  // Of a node that we assumed it on.
  const bool is_news = tables_.Place(key, pod.shape, pod.node, LifeOf(pod));
  EndWaiting(key);
  if (pod.is_terminating) {  // No longer counted for spread.
    events_.Note(MaskOf(Rejection::kSpread));
    refusals_.NoteFreed();
  }
  if (was_there && is_news) NoteOtherHold(pod.node);
  if (was_there) return;
  if (on_placed_by_others_ && !is_ours) on_placed_by_others_(pod.id);
  events_.NoteOn(pod.node, MayEndByPlacing(*pod.shape));
  refusals_.NotePlaced();
  to_look_at_.insert(pod.node);
}

// A pod that waited for us has a node.
void Scheduler::LookForSharedName(const ObservedPod& pod, const Waiting& waiting) {
  const std::vector<std::string>& ours = waiting.sent_to;
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
  Forget(key);
  Free(key);
}

void Scheduler::EndWaiting(const std::string& key) {
  queue_.Remove(key);
  const auto at = waiting_.find(key);
  if (at == waiting_.end()) return;
  actuator_->TellWaitsNoLonger(at->second.id);
  waiting_.erase(at);
}

// What it took is there for others, who are told.
void Scheduler::Free(const std::string& key) {
  const std::string_view node = tables_.NodeOf(key);
  if (node.empty()) return;
  events_.NoteOn(node, kMayEndByLeaving);
  tables_.Remove(key);
  refusals_.NoteFreed();
}

void Scheduler::LookForLostRaces() {
  for (const std::string& node : to_look_at_) {
    const std::vector<std::string> what = tables_.OvercommittedOn(node);
    if (what.empty()) continue;
    ++counts_.lost_races;
    const std::string message =
        fmt::format("holds more than it has of {}: another scheduler has placed pods there, too",
                    fmt::join(what, ", "));
    LogWarning("node {} {}", node, message);
    actuator_->TellOvercommitted(node, message);
  }
  to_look_at_.clear();
}

Result<bool> Scheduler::Turn() {
  if (!Leads()) return false;
  const Instant now = clock_->Now();
  LookForLostRaces();
  LookAtBindings(now);
  events_.Wake(
      [this](const std::string& key) -> const auto& { return waiting_.at(key).shape; }, &tables_,
      &queue_, now);
  queue_.Advance(now);
  batch_.clear();
  untold_.Clear();
  const auto has_room = [&] {
    return batch_.size() < static_cast<size_t>(options_.batch_max) &&
           bindings_.unanswered() + batch_.size() < static_cast<size_t>(options_.bindings_max);
  };
  std::vector<std::string> keys;
  for (int looks = 0; looks < kLooksMax && has_room(); ++looks) {
    std::optional<std::string> key = queue_.Pop();
    if (!key) break;
    PlacementRow row{.cluster = options_.cluster};
    if (!Decide(*key, &row)) continue;
    batch_.push_back(std::move(row));
    keys.push_back(*std::move(key));
  }
  if (batch_.empty()) {
    if (ends_.size() >= kEndsMax) TRY(WriteEnds());
    return queue_.active() > 0 && has_room();
  }
  const Result<void> written = journal_->AppendPlacements(batch_, ends_);
  if (written) ends_.clear();
  for (size_t i = 0; i < batch_.size(); ++i) {
    if (batch_[i].node.empty()) continue;
    if (!written || !leads_()) {
      Free(keys[i]);
      untold_.Clear();
      queue_.BackOff(keys[i], now);
      if (written) ends_.push_back({batch_[i].number, Fate::kFailed, "another instance leads"});
      continue;
    }
    bindings_.Begin(
        keys[i],
        {.id = batch_[i].pod, .node = batch_[i].node, .row = batch_[i].number, .decided_at = now});
    ++counts_.decisions;
    Send(keys[i]);
  }
  if (!written) return tl::unexpected(written.error());
  return queue_.active() > 0 && bindings_.unanswered() < static_cast<size_t>(options_.bindings_max);
}

Result<void> Scheduler::WriteEnds() {
  if (ends_.empty()) return {};
  TRY(journal_->AppendPlacements({}, ends_));
  ends_.clear();
  return {};
}

Duration Scheduler::UntilDue() const {
  if (!untold_.empty()) return Duration::zero();
  const Instant now = clock_->Now();
  const auto until = [&](Instant at) { return std::max(at - now, Duration::zero()); };
  Duration due = std::chrono::seconds(1);  // Bindings are looked at once a second.
  if (queue_.active() > 0 && bindings_.unanswered() < static_cast<size_t>(options_.bindings_max))
    return Duration::zero();
  if (!events_.empty() && queue_.asleep() > 0) return Duration::zero();
  if (const auto next = queue_.NextDue()) due = std::min(due, until(*next));
  return due;
}

// True: there is a row to write; the pod has got a node if the row has one.
bool Scheduler::Decide(const std::string& key, PlacementRow* row) {
  const Waiting& waiting = waiting_.at(key);
  SchedulingRules& rules = tables_.Rules();
  row->pod = waiting.id;
  row->scheduler = options_.name;
  row->policy = scorer_->name();
  row->priority = waiting.shape->priority;
  row->attempt = queue_.attempts(key);
  row->waited_ms = Seconds(clock_->Now() - waiting.since) * 1000;
  row->nodes = rules.nodes().size();
  if (!waiting.shape->unmodelled.empty()) {
    ++counts_.unmodelled;
    const std::string why = fmt::format("not placed by {}, which does not model this: the pod {}",
                                        options_.name, fmt::join(waiting.shape->unmodelled, "; "));
    return Refuse(key, {.message = why, .kinds = why, .refused_by = MaskOf(Rejection::kPod)}, row);
  }
  const PodClassId pod = rules.Register(waiting.shape);
  if (const PodRefusal* known = refusals_.Find(pod, tables_.rebuilds()))
    return Refuse(key, *known, row);
  rules.Filter(pod, &feasibility_);
  rules.LimitLatency(pod, &feasibility_);
  row->feasible = feasibility_.feasible;
  if (feasibility_.feasible == 0)
    return Refuse(key, refusals_.Keep(rules, pod, feasibility_, options_.name), row);
  const NodeId node = Choose(&rules, pod, waiting, row);
  row->node = rules.nodes().node(node).name;
  tables_.Place(key, waiting.shape, row->node, PodLife::kServing);
  untold_.NotePlaced(key);
  events_.NoteOn(row->node, MayEndByPlacing(*waiting.shape));
  refusals_.NotePlaced();
  return true;
}

// The pod goes on waiting. A row is written where the reasons are others: not that as pods come and
// go other nodes, or other pods, are in the way.
bool Scheduler::Refuse(const std::string& key, const PodRefusal& refusal, PlacementRow* row) {
  Waiting& waiting = waiting_.at(key);
  ++counts_.waiting;
  std::string message = refusal.message + refusal.preemption;
  const bool is_same = waiting.refusal == refusal.message;
  if (is_same && (refusal.preemption.empty() || waiting.told != waiting.refusal))
    message = waiting.told;
  actuator_->TellWaiting(waiting.id, message);
  waiting.told = message;
  waiting.refusal = refusal.message;
  row->reason = std::move(message);
  row->fate = Fate::kStayed;
  queue_.Sleep(key, refusal.refused_by, clock_->Now());
  return std::exchange(waiting.kinds, refusal.kinds) != refusal.kinds;
}

ChoiceGroup Scheduler::GroupOf(const Waiting& waiting) {
  if (share_ <= 0 || waiting.is_opted_out) return ChoiceGroup::kNone;
  if (share_ >= 1) {
    const Instant now = clock_->Now();
    if (now - told_since_ >= std::chrono::seconds(1)) {
      told_since_ = now;
      told_ = 0;
    }
    return ++told_ <= options_.enforced_told ? ChoiceGroup::kEnforced : ChoiceGroup::kNone;
  }
  return IsInShare(waiting.id.uid, share_) ? ChoiceGroup::kCanary : ChoiceGroup::kControl;
}

// Those that are decided about next. What is not modelled of one is not known to take any room.
void Scheduler::LookAtQueue(int pods, SchedulingRules* rules) {
  behind_.clear();
  if (pods <= 1) return;
  queue_.TellNext([&](const std::string& key) {
    const std::shared_ptr<const PodClass>& shape = waiting_.at(key).shape;
    if (!shape->unmodelled.empty()) return true;
    looked_at_.push_back(rules->Register(shape));
    behind_.push_back(shape);
    return looked_at_.size() < static_cast<size_t>(pods);
  });
}

// A node that was nominated for the pod is taken wherever it is feasible, as kube-scheduler does:
// somebody made or kept room for the pod there. kNone: no such node.
NodeId Scheduler::NominatedOf(const Waiting& waiting, const SchedulingRules& rules) const {
  if (waiting.nominated.empty()) return kNone;
  const NodeId node = rules.nodes().Find(waiting.nominated);
  return node != kNone && feasibility_.IsFeasible(node) ? node : kNone;
}

// The best; among equals any, so that many schedulers do not all take the first.
NodeId Scheduler::Choose(SchedulingRules* tables, PodClassId pod, const Waiting& waiting,
                         PlacementRow* row) {
  const SchedulingRules& rules = *tables;
  const NodeId nominated = NominatedOf(waiting, rules);
  const ChoiceGroup group = nominated != kNone ? ChoiceGroup::kNone : GroupOf(waiting);
  const bool is_policys =
      group == ChoiceGroup::kCanary || (share_ >= 1 && !waiting.is_opted_out && nominated == kNone);
  NodeScorer* scorer = is_policys ? scorer_.get() : baseline_.get();
  looked_at_.assign(1, pod);
  // What is told of a choice is compared with the policy's, whoever's it is.
  LookAtQueue(std::max(scorer->queue_looked_at(),
                       group == ChoiceGroup::kControl ? scorer_->queue_looked_at() : 1),
              tables);
  scorer->ScoreFirst(rules, looked_at_, feasibility_, &scores_);
  row->policy = scorer->scored_by();
  if (is_policys) {
    ++counts_.by_policy;
    if (scorer->stepped_back() != StepBack::kNone) {
      ++counts_.stepped_back[static_cast<size_t>(scorer->stepped_back())];
      row->reason = scorer->WhySteppedBack();
    }
  }
  NodeId chosen = kNone;
  uint32_t equals = 0;
  const auto kept = static_cast<size_t>(options_.alternatives_kept);
  std::vector<std::pair<double, NodeId>> best;
  for (NodeId n = 0; n < rules.nodes().size(); ++n) {
    if (!feasibility_.IsFeasible(n)) continue;
    const double score = scores_[n];
    if (chosen == kNone || score > scores_[chosen]) {
      chosen = n;
      equals = 1;
    } else if (score == scores_[chosen] && rng_.Below(++equals) == 0) {
      chosen = n;
    }
    if (best.size() == kept && score <= best.back().first) continue;
    if (best.size() == kept) best.pop_back();
    const auto at = std::find_if(best.begin(), best.end(),
                                 [&](const auto& other) { return other.first < score; });
    best.insert(at, {score, n});
  }
  CHECK_NE(chosen, kNone);
  if (nominated != kNone) {
    chosen = nominated;
    row->reason = fmt::format("its status.nominatedNodeName names {}", waiting.nominated);
  }
  row->best.emplace_back(rules.nodes().node(chosen).name, scores_[chosen]);
  for (const auto& [score, n] : best) {
    if (n != chosen && row->best.size() < kept)
      row->best.emplace_back(rules.nodes().node(n).name, score);
  }
  if (on_choice_ && group != ChoiceGroup::kNone) {
    untold_.Add({.key = waiting.id.Key(),
                 .node = row->best.front().first,
                 .id = waiting.id,
                 .shape = waiting.shape,
                 .behind = behind_,
                 .waited_ms = row->waited_ms,
                 .group = group});
  }
  return chosen;
}

}  // namespace rudderfish
