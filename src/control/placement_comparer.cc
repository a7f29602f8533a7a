// SPDX-License-Identifier: Apache-2.0
#include "control/placement_comparer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "model/preemption.h"

namespace rudderfish {
namespace {

constexpr size_t kRecentMax = 512;      // Pods placed lately.
constexpr size_t kUnwrittenMax = 4096;  // Beyond it comparisons are given up.
constexpr size_t kClassesTried = 32;    // Of pods that wait, to know a queue from.
constexpr int kAdvicesATurn = 64;
constexpr size_t kRowsAWrite = 256;

OrderedJson TermsJson(const Objective& objective, const ClusterTerms& terms) {
  OrderedJson json = OrderedJson::object();
  for (int i = 0; i < kObjectiveTerms; ++i) {
    if (objective.weight[i] == 0) continue;
    json[std::string(kObjectiveTermNames[i])] =
        ObjectiveTermValue(static_cast<ObjectiveTerm>(i), terms);
  }
  return json;
}

using RefusalKind = std::pair<Rejection, uint32_t>;  // With what is lacking of resources.

RefusalKind KindOf(const Feasibility& feasibility, NodeId node) {
  const Rejection rejection = feasibility.rejection[node];
  return {rejection, rejection == Rejection::kResources ? feasibility.short_of[node] : 0};
}

// kube-scheduler's words for one node that is refused.
std::string ReasonOf(const SchedulingRules& rules, PodClassId pod, const Feasibility& all,
                     NodeId node) {
  Feasibility one = all;
  std::fill(one.rejection.begin(), one.rejection.end(), Rejection::kNone);
  one.rejection[node] = all.rejection[node];
  std::string text;
  for (const auto& [reason, count] : rules.CountReasons(pod, one)) {
    text += (text.empty() ? "" : ", ") + reason;
  }
  return text;
}

// kube-scheduler (seen in 1.36.3) takes pods of every namespace for a namespaceSelector with NotIn
// or DoesNotExist, so that its affinity allows more nodes than the API says.
bool ExcludesNamespaces(const PodClass& pod) {
  using Operator = LabelRequirement::Operator;
  const auto excludes = [](const LabelRequirement& one) {
    return one.op == Operator::kNotIn || one.op == Operator::kDoesNotExist;
  };
  return std::any_of(pod.required_pods.begin(), pod.required_pods.end(),
                     [&](const PodAffinityTerm& term) {
                       return term.namespace_selector &&
                              std::any_of(term.namespace_selector->requirements.begin(),
                                          term.namespace_selector->requirements.end(), excludes);
                     });
}

}  // namespace

PlacementComparer::PlacementComparer(Options options, const Clock* clock,
                                     std::unique_ptr<NodeScorer> policy,
                                     std::unique_ptr<LiveCluster> cluster, Scheduler* next,
                                     ComparisonSink* sink)
    : options_(std::move(options)),
      clock_(clock),
      policy_(std::move(policy)),
      next_(next),
      sink_(sink),
      followed_(clock, options_.settle),
      cluster_(std::move(cluster)) {}

void PlacementComparer::NodeSeen(const SchedulingNode& node) {
  node_changed_at_[node.name] = clock_->Now();
  next_->NodeSeen(node);
}

void PlacementComparer::SetComparing(Comparing what) {
  if (std::exchange(comparing_, what) == what) return;
  to_advise_.Clear();
  for (const auto& [key, seen] : waits_) {
    if (IsToBeAdvised(seen)) to_advise_.Add(key);
  }
}

void PlacementComparer::PodSeen(const ObservedPod& pod) {
  const std::string key = pod.id.Key();
  if (pod.node.empty()) {
    const auto [at, is_first] = waits_.try_emplace(key);
    Seen& seen = at->second;
    const bool is_new = is_first || !(seen.id == pod.id);
    if (is_new) seen = {.id = pod.id, .shape = pod.shape, .since = clock_->Now()};
    const bool is_other = is_new || seen.shape != pod.shape ||
                          seen.is_opted_out != pod.is_opted_out || seen.nominated != pod.nominated;
    seen.shape = pod.shape;
    seen.nominated = pod.nominated;
    seen.is_opted_out = pod.is_opted_out;
    if (is_other && IsToBeAdvised(seen)) to_advise_.Add(key);
    next_->PodSeen(pod);
    return;
  }
  const bool is_news = next_->tables().NodeOf(key) != pod.node;
  if (const auto seen = waits_.find(key); seen != waits_.end()) {
    const bool is_to_compare = seen->second.id == pod.id && is_news && !IsOurs(*pod.shape) &&
                               !pod.is_opted_out && comparing_ != Comparing::kNothing;
    if (is_to_compare) CompareOther(pod, seen->second);
    waits_.erase(seen);
  }
  if (is_news) {
    recent_.push_back({clock_->Now(), key, pod.node});
    if (recent_.size() > kRecentMax) recent_.pop_front();
  }
  followed_.Seen(pod, key);
  next_->PodSeen(pod);
}

void PlacementComparer::PodGone(const std::string& key) {
  waits_.erase(key);
  followed_.Gone(key);
  next_->PodGone(key);
}

void PlacementComparer::PodFailed(const PodIdentity& pod, const std::string& reason) {
  followed_.Failed(pod, reason);
  next_->PodFailed(pod, reason);
}

void PlacementComparer::EndUnseen() {
  followed_.EndUnseen([this](const std::string& key, const std::string& uid) {
    const auto at = waits_.find(key);
    return at != waits_.end() && at->second.id.uid == uid;
  });
}

PlacementComparison PlacementComparer::NewRow(const PodIdentity& pod, const PodClass& shape,
                                              double waited_ms) const {
  return {.pod = pod,
          .cluster = options_.cluster,
          .scheduler = shape.scheduler,
          .policy = std::string(policy_->name()),
          .objective = options_.objective_text,
          .waited_ms = waited_ms};
}

double PlacementComparer::WaitedMs(const Seen& seen) const {
  return Seconds(clock_->Now() - seen.since) * 1000;
}

NodeId PlacementComparer::BestBy(const std::vector<double>& scores, NodeId rather) const {
  NodeId best = kNone;
  for (NodeId n = 0; n < static_cast<NodeId>(feasibility_.rejection.size()); ++n) {
    if (!feasibility_.IsFeasible(n)) continue;
    const bool is_better = best == kNone || scores[n] > scores[best];
    if (is_better || (n == rather && scores[n] == scores[best])) best = n;
  }
  return best;
}

NodeId PlacementComparer::PolicyNode(const SchedulingRules& rules, const Seen& seen,
                                     NodeId rather) const {
  const NodeId nominated = seen.nominated.empty() ? kNone : rules.nodes().Find(seen.nominated);
  if (nominated != kNone && feasibility_.IsFeasible(nominated)) return nominated;
  return BestBy(policy_scores_, rather);
}

void PlacementComparer::ScoreByPolicy(const SchedulingRules& rules,
                                      std::span<const PodClassId> queue) {
  policy_->ScoreFirst(rules, queue, feasibility_, &policy_scores_);
}

// Who waits for the same scheduler, by priority, then who waited longest; without those that no
// node may take, which its queue does not come to either.
std::vector<PodClassId> PlacementComparer::QueueFrom(const Seen& seen, PodClassId pod,
                                                     SchedulingRules* rules) const {
  std::vector<PodClassId> queue = {pod};
  const auto more = static_cast<size_t>(policy_->queue_looked_at() - 1);
  if (more == 0) return queue;
  std::vector<const Seen*> behind;
  for (const auto& [key, other] : waits_) {
    if (&other != &seen && other.shape->scheduler == seen.shape->scheduler &&
        other.shape->gates.empty() && other.shape->unmodelled.empty())
      behind.push_back(&other);
  }
  std::sort(behind.begin(), behind.end(), [](const Seen* a, const Seen* b) {
    if (a->shape->priority != b->shape->priority) return a->shape->priority > b->shape->priority;
    return a->since != b->since ? a->since < b->since : a->id.uid < b->id.uid;
  });
  std::map<PodClassId, bool> fits;  // Of few classes, whatever the queue's length.
  Feasibility where;
  for (const Seen* other : behind) {
    if (queue.size() > more || fits.size() > kClassesTried) break;
    const PodClassId id = rules->Register(other->shape);
    const auto [known, is_new] = fits.try_emplace(id);
    if (is_new) {
      rules->Filter(id, &where);
      known->second = where.feasible > 0;
    }
    if (known->second) queue.push_back(id);
  }
  return queue;
}

void PlacementComparer::ScoreByKube(const SchedulingRules& rules, PodClassId pod) {
  ScoreAsKube(rules, pod, feasibility_, &kube_);
  kube_scores_.assign(kube_.total.begin(), kube_.total.end());
}

PodChange PlacementComparer::OneMore(const SchedulingRules& rules, PodClassId pod, NodeId node) {
  const CompiledPod& compiled = rules.compiled(pod);
  return {.node = node,
          .pods = 1,
          .held = compiled.holding.held,
          .devices = WholeDevicesOf(compiled.pod->amounts)};
}

// What the Model says of both, and what else was considered. REQUIRES: all scores are there.
void PlacementComparer::Judge(const SchedulingRules& rules, PodClassId pod, NodeId policy,
                              NodeId baseline, PlacementComparison* row) {
  cluster_->Read(rules.nodes());
  const double now = Cost(cluster_->Now());
  const auto change = [&](NodeId node) {
    const PodChange more = OneMore(rules, pod, node);
    return Cost(cluster_->After({&more, 1}, rules.compiled(pod).pod->latency_limits)) - now;
  };
  row->policy_node = rules.nodes().node(policy).name;
  row->policy_change = change(policy);
  row->baseline_node = rules.nodes().node(baseline).name;
  row->baseline_change = policy == baseline ? row->policy_change : change(baseline);
  row->detail = DetailOf(rules, pod, {policy, baseline});
}

std::string PlacementComparer::DetailOf(const SchedulingRules& rules, PodClassId pod,
                                        std::initializer_list<NodeId> chosen) {
  const auto count = static_cast<NodeId>(feasibility_.rejection.size());
  std::vector<NodeId> told;
  const auto is_before = [&](NodeId a, NodeId b) {
    return kube_scores_[a] != kube_scores_[b] ? kube_scores_[a] > kube_scores_[b] : a < b;
  };
  for (NodeId n = 0; n < count; ++n) {
    if (!feasibility_.IsFeasible(n)) continue;
    if (told.size() == options_.nodes_told && !is_before(n, told.back())) continue;
    if (told.size() == options_.nodes_told) told.pop_back();
    told.insert(std::upper_bound(told.begin(), told.end(), n, is_before), n);
  }
  for (const NodeId node : chosen) {
    if (std::find(told.begin(), told.end(), node) == told.end()) told.push_back(node);
  }
  OrderedJson json{{"objective", Cost(cluster_->Now())},
                   {"terms", TermsJson(options_.objective, cluster_->Now())},
                   {"considered", OrderedJson::array()},
                   {"refused", OrderedJson::array()}};
  if (const std::string why = policy_->WhySteppedBack(); !why.empty()) json["stepped_back"] = why;
  for (const NodeId node : told) {
    const PodChange more = OneMore(rules, pod, node);
    const ClusterTerms after = cluster_->After({&more, 1}, rules.compiled(pod).pod->latency_limits);
    OrderedJson one{{"node", rules.nodes().node(node).name},
                    {"policy_score", policy_scores_[node]},
                    {"kube_score", kube_.total[node]},
                    {"objective", Cost(after)},
                    {"terms", TermsJson(options_.objective, after)},
                    {"plugins", OrderedJson::object()}};
    for (int i = 0; i < kScorePluginCount; ++i) {
      one["plugins"][std::string(NameOf(static_cast<ScorePlugin>(i)))] = kube_.of_plugin[i][node];
    }
    json["considered"].push_back(std::move(one));
  }
  for (const auto& [reason, nodes] : rules.CountReasons(pod, feasibility_)) {
    json["refused"].push_back({{"reason", reason}, {"nodes", nodes}});
  }
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// `rules`: the tables', which `pod` is a class of; asking the tables for them again may end that.
// REQUIRES: feasibility_ is of the pod.
RulesVerdict PlacementComparer::CheckRules(const SchedulingRules& rules, const Seen& seen,
                                           PodClassId pod, const std::string& node, NodeId at,
                                           std::string* reason) {
  if (at == kNone) {
    *reason = fmt::format("{} is not known here", node);
    return RulesVerdict::kUnclear;
  }
  if (feasibility_.IsFeasible(at)) return RulesVerdict::kEqual;
  SchedulingTables& tables = next_->tables();
  *reason = fmt::format("{}: {}", node, ReasonOf(rules, pod, feasibility_, at));
  // What the other scheduler had not decided yet when it decided about this pod.
  std::vector<std::pair<std::string, SchedulingTables::Taken>> later;
  for (const Placed& placed : recent_) {
    if (placed.at < seen.since || tables.NodeOf(placed.key) != placed.node) continue;
    later.emplace_back(placed.key, *tables.Take(placed.key));
  }
  Feasibility before;
  rules.Filter(pod, &before);
  const bool was_feasible = before.IsFeasible(at);
  for (const auto& [key, taken] : later) tables.PutBack(key, taken);
  if (was_feasible) {
    reason->clear();
    return RulesVerdict::kEqual;
  }
  const auto changed = node_changed_at_.find(node);
  const bool is_changed = changed != node_changed_at_.end() && changed->second >= seen.since;
  const bool is_unread = feasibility_.rejection[at] == Rejection::kUnreadPod;
  const bool is_widened =
      feasibility_.rejection[at] == Rejection::kAffinity && ExcludesNamespaces(*seen.shape);
  return is_changed || is_unread || is_widened ? RulesVerdict::kUnclear : RulesVerdict::kDifferent;
}

void PlacementComparer::CompareOther(const ObservedPod& pod, const Seen& seen) {
  if (rows_.size() >= kUnwrittenMax) return;
  PlacementComparison row = NewRow(seen.id, *seen.shape, WaitedMs(seen));
  row.group = ComparisonGroup::kShadow;
  row.node = row.baseline_node = pod.node;
  SchedulingRules& rules = next_->tables().Rules();
  row.nodes = rules.nodes().size();
  if (!seen.shape->unmodelled.empty()) {
    row.rules = RulesVerdict::kUnmodelled;
    row.reason = fmt::format("the pod {}", fmt::join(seen.shape->unmodelled, "; "));
    rows_.push_back(std::move(row));
    return;
  }
  const PodClassId id = rules.Register(seen.shape);
  rules.Filter(id, &feasibility_);
  row.feasible = feasibility_.feasible;
  const NodeId at = rules.nodes().Find(pod.node);
  row.rules = CheckRules(rules, seen, id, pod.node, at, &row.reason);
  if (row.rules == RulesVerdict::kEqual && feasibility_.IsFeasible(at)) {
    ScoreByKube(rules, id);
    rules.LimitLatency(id, &feasibility_);  // Which the other scheduler does not know of.
    if (BestBy(kube_scores_, at) != kNone) {
      ScoreByPolicy(rules, QueueFrom(seen, id, &rules));
      Judge(rules, id, PolicyNode(rules, seen, at), at, &row);
    }
  }
  followed_.Begin(row, seen.shape);
  rows_.push_back(std::move(row));
}

void PlacementComparer::NoteOwnChoice(const OwnChoice& choice) {
  if (choice.group == ChoiceGroup::kNone || rows_.size() >= kUnwrittenMax) return;
  PlacementComparison row = NewRow(*choice.pod, **choice.shape, choice.waited_ms);
  const bool is_policys = choice.group != ChoiceGroup::kControl;
  row.group = choice.group == ChoiceGroup::kControl  ? ComparisonGroup::kControl
              : choice.group == ChoiceGroup::kCanary ? ComparisonGroup::kCanary
                                                     : ComparisonGroup::kEnforced;
  const SchedulingRules& rules = *choice.rules;
  row.nodes = rules.nodes().size();
  row.feasible = choice.feasibility->feasible;
  row.node = rules.nodes().node(choice.node).name;
  feasibility_ = *choice.feasibility;
  const PodClassId pod = choice.queue[0];
  ScoreByPolicy(rules, choice.queue);
  ScoreByKube(rules, pod);
  const NodeId policy = is_policys ? choice.node : BestBy(policy_scores_, choice.node);
  const NodeId baseline = is_policys ? BestBy(kube_scores_, choice.node) : choice.node;
  Judge(rules, pod, policy, baseline, &row);
  followed_.Begin(row, *choice.shape);
  rows_.push_back(std::move(row));
}

void PlacementComparer::Advise(const std::string& key) {
  const auto at = waits_.find(key);
  if (at == waits_.end() || !at->second.shape->unmodelled.empty()) return;
  Seen& seen = at->second;
  if (!IsToBeAdvised(seen)) return;
  PlacementComparison row = NewRow(seen.id, *seen.shape, WaitedMs(seen));
  row.group = ComparisonGroup::kAdvice;
  SchedulingRules& rules = next_->tables().Rules();
  const PodClassId id = rules.Register(seen.shape);
  rules.Filter(id, &feasibility_);
  rules.LimitLatency(id, &feasibility_);
  row.nodes = rules.nodes().size();
  row.feasible = feasibility_.feasible;
  if (row.feasible == 0) return to_advise_.NoteNowhere(key, seen.shape);  // Others say why.
  ScoreByPolicy(rules, QueueFrom(seen, id, &rules));
  ScoreByKube(rules, id);
  const NodeId policy = PolicyNode(rules, seen, kNone);
  const std::string& name = rules.nodes().node(policy).name;
  if (std::exchange(seen.advised, name) == name) return;
  Judge(rules, id, policy, BestBy(kube_scores_, policy), &row);
  rows_.push_back(std::move(row));
}

// The Model is asked again, of the state as it has become.
void PlacementComparer::Measure(const FollowedPods::Pod& followed) {
  const std::string key = followed.id.Key();
  if (waits_.contains(key)) return;  // Its Binding is not done.
  SchedulingTables& tables = next_->tables();
  if (tables.NodeOf(key) != followed.node) return;
  SchedulingRules& rules = tables.Rules();
  const NodeId node = rules.nodes().Find(followed.node);
  const NodeId other = rules.nodes().Find(followed.other_node);
  if (node == kNone || other == kNone) return;
  PodChange less = OneMore(rules, rules.Register(followed.shape), node);
  less.pods = -1;
  const PodChange moved[] = {less, OneMore(rules, rules.Register(followed.shape), other)};
  const double now = Cost(cluster_->Now());
  const LatencyLimits& limits = followed.shape->latency_limits;
  const double elsewhere = Cost(cluster_->After(moved, limits));
  PlacementOutcome outcome{.uid = followed.id.uid};
  outcome.measured_change = now - Cost(cluster_->After({&less, 1}, limits));
  outcome.measured_gain = followed.is_policy_choice ? elsewhere - now : now - elsewhere;
  followed_.Note(std::move(outcome));
}

Result<void> PlacementComparer::Turn() {
  const Instant now = clock_->Now();
  to_advise_.LookAgain(&next_->tables(), [this](const std::string& key, const auto& shape) {
    const auto at = waits_.find(key);
    return at != waits_.end() && at->second.shape == shape;
  });
  for (int i = 0; i < kAdvicesATurn; ++i) {
    const std::optional<std::string> key = to_advise_.Pop();
    if (!key) break;
    Advise(*key);
  }
  if (followed_.has_due()) {
    cluster_->Read(next_->tables().Rules().nodes());
    while (const FollowedPods::Pod* due = followed_.PopDue()) Measure(*due);
  }
  if (now - flushed_ < options_.flush && rows_.size() < kRowsAWrite) return {};
  return Flush();
}

Result<void> PlacementComparer::Flush() {
  flushed_ = clock_->Now();
  if (rows_.empty() && followed_.outcomes().empty()) return {};
  TRY(sink_->AppendComparisons(rows_, followed_.outcomes()));
  followed_.ForgetOutcomes();
  const std::vector<PlacementComparison> written = std::exchange(rows_, {});
  for (const PlacementComparison& row : written) {
    if (on_advice_ && row.group == ComparisonGroup::kAdvice) on_advice_(row);
  }
  return {};
}

PlacementComparer::Waiting PlacementComparer::CountWaiting() const {
  Waiting waiting;
  for (const auto& [key, seen] : waits_) ++(IsOurs(*seen.shape) ? waiting.ours : waiting.others);
  return waiting;
}

std::optional<PendingStory> PlacementComparer::Explain(const std::string& key) {
  const auto at = waits_.find(key);
  if (at == waits_.end()) return std::nullopt;
  const Seen& seen = at->second;
  SchedulingRules& rules = next_->tables().Rules();
  PendingStory story{.pod = seen.id,
                     .scheduler = seen.shape->scheduler,
                     .waited_ms = WaitedMs(seen),
                     .nodes = rules.nodes().size(),
                     .gates = seen.shape->gates,
                     .unmodelled = seen.shape->unmodelled,
                     .is_opted_out = seen.is_opted_out};
  const PodClassId id = rules.Register(seen.shape);
  rules.Filter(id, &feasibility_);
  const bool is_ours = story.scheduler == options_.scheduler_name;
  if (is_ours) rules.LimitLatency(id, &feasibility_);
  story.feasible = feasibility_.feasible;
  if (story.feasible == 0) story.message = rules.Message(id, feasibility_);
  if (story.feasible == 0 && is_ours)
    story.message += PreemptionText(rules, id, feasibility_, options_.scheduler_name);
  // Nodes that are refused for the same are one group; a node that lacks two things is of a group
  // of its own kind.
  std::map<RefusalKind, std::vector<NodeId>> refused;
  for (NodeId n = 0; n < rules.nodes().size(); ++n) {
    if (!feasibility_.IsFeasible(n)) refused[KindOf(feasibility_, n)].push_back(n);
  }
  for (const auto& [kind, nodes] : refused) {
    PendingStory::Group group{.reason = kind.first == Rejection::kPod
                                            ? std::string(rules.RejectionOfPod(id))
                                            : ReasonOf(rules, id, feasibility_, nodes[0])};
    for (const NodeId n : nodes) group.nodes.push_back(rules.nodes().node(n).name);
    story.groups.push_back(std::move(group));
  }
  std::stable_sort(story.groups.begin(), story.groups.end(),
                   [](const auto& a, const auto& b) { return a.nodes.size() > b.nodes.size(); });
  if (story.feasible == 0 || !story.unmodelled.empty() || story.is_opted_out) return story;
  ScoreByPolicy(rules, QueueFrom(seen, id, &rules));
  story.choice = rules.nodes().node(PolicyNode(rules, seen, kNone)).name;
  return story;
}

}  // namespace rudderfish
