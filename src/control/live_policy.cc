// SPDX-License-Identifier: Apache-2.0
#include "control/live_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "control/queue_scorer.h"
#include "model/kube_scores.h"
#include "policy/registry.h"

namespace rudderfish {
namespace {

constexpr PlacementScore kScoredApart = PlacementScore::kKubeDefault;  // By PolicyScorer.

// What the scores of a policy make of nodes, with kube-default's in their place where the policy
// has nothing to say. Of a mix, kube-default's score is the one that kube-scheduler gives, with all
// that the pod prefers: nodes that are one candidate to the policy differ by it.
class PolicyScorer final : public NodeScorer {
 public:
  PolicyScorer(std::string name, const PlacementPolicy& policy,
               std::unique_ptr<LiveCluster> cluster, double strangeness_max)
      : name_(std::move(name)),
        strangeness_max_(strangeness_max),
        kube_weight_(policy.mix[static_cast<size_t>(kScoredApart)]),
        rater_(policy.rate()),
        cluster_(std::move(cluster)),
        baseline_(NodeScorerNamed("kube-default").value()) {}

  std::string_view name() const override { return name_; }

  void Score(const SchedulingRules& rules, PodClassId pod, const Feasibility& feasibility,
             std::vector<double>* scores) override {
    stepped_back_ = StepBack::kNone;
    cluster_->Read(rules.nodes());
    const auto nodes = static_cast<size_t>(rules.nodes().size());
    allowed_.resize(nodes);
    for (size_t n = 0; n < nodes; ++n)
      allowed_[n] = feasibility.IsFeasible(static_cast<NodeId>(n)) ? 1 : 0;
    const std::span<const double> rates =
        rater_->Rate(cluster_->Ask(rules.compiled(pod).pod->amounts), allowed_);
    if (rates.empty()) {
      stepped_back_ = StepBack::kOutside;
      return baseline_->Score(rules, pod, feasibility, scores);
    }
    const std::vector<int32_t>& candidate_of = rater_->space().candidate_of;
    scores->resize(nodes);
    for (size_t n = 0; n < nodes; ++n) {
      if (candidate_of[n] != kNone) (*scores)[n] = rates[candidate_of[n]];
    }
    if (kube_weight_ != 0) AddKubeScores(rules, pod, feasibility, scores);
    size_t best = nodes;
    double least = std::numeric_limits<double>::infinity();
    for (size_t n = 0; n < nodes; ++n) {
      if (candidate_of[n] == kNone) continue;
      least = std::min(least, (*scores)[n]);
      if (best == nodes || (*scores)[n] > (*scores)[best]) best = n;
    }
    strangeness_ = rater_->strangeness(candidate_of[best]);
    if (strangeness_.score > strangeness_max_) {
      stepped_back_ = StepBack::kUnlike;
      return baseline_->Score(rules, pod, feasibility, scores);
    }
    // Nodes that are no candidate come last.
    for (size_t n = 0; n < nodes; ++n) {
      if (candidate_of[n] == kNone) (*scores)[n] = least - 1;
    }
  }

  StepBack stepped_back() const override { return stepped_back_; }

  std::string WhySteppedBack() const override {
    if (stepped_back_ == StepBack::kNone) return "";
    if (stepped_back_ == StepBack::kUnlike) {
      return fmt::format(
          "this is unlike what {} was trained on: {} (strangeness {:.2g}, above {:g})", name_,
          StrangenessText(strangeness_), strangeness_.score, strangeness_max_);
    }
    return fmt::format("{} knows the type of no node that may take the pod", name_);
  }

 private:
  // Relative to the best and to how far the others are from it in the mean, as the other scores of
  // a mix (task/placement.h).
  void AddKubeScores(const SchedulingRules& rules, PodClassId pod, const Feasibility& feasibility,
                     std::vector<double>* scores) {
    ScoreAsKube(rules, pod, feasibility, &kube_);
    const std::vector<int32_t>& candidate_of = rater_->space().candidate_of;
    int64_t best = 0, sum = 0, count = 0;
    for (size_t n = 0; n < candidate_of.size(); ++n) {
      if (candidate_of[n] == kNone) continue;
      best = count == 0 ? kube_.total[n] : std::max(best, kube_.total[n]);
      sum += kube_.total[n];
      ++count;
    }
    const int64_t distance = best * count - sum;
    if (distance == 0) return;  // All are equal.
    const double unit = kube_weight_ * static_cast<double>(count) / static_cast<double>(distance);
    for (size_t n = 0; n < candidate_of.size(); ++n) {
      if (candidate_of[n] != kNone)
        (*scores)[n] += unit * static_cast<double>(kube_.total[n] - best);
    }
  }

  std::string name_;
  double strangeness_max_;
  double kube_weight_;
  Strangeness strangeness_;
  std::unique_ptr<PlacementRater> rater_;
  std::unique_ptr<LiveCluster> cluster_;
  std::unique_ptr<NodeScorer> baseline_;
  std::vector<uint8_t> allowed_;
  KubeScores kube_;
  StepBack stepped_back_ = StepBack::kNone;
};

// Greedy by an objective that looks at how far the users are: the Model is asked about every node.
class LatencyScorer final : public NodeScorer {
 public:
  LatencyScorer(std::string name, const Objective& objective, std::unique_ptr<LiveCluster> cluster)
      : name_(std::move(name)), objective_(objective), cluster_(std::move(cluster)) {}

  std::string_view name() const override { return name_; }

  void Score(const SchedulingRules& rules, PodClassId pod, const Feasibility& feasibility,
             std::vector<double>* scores) override {
    cluster_->Read(rules.nodes());
    const CompiledPod& asked = rules.compiled(pod);
    PodChange more{.held = asked.holding.held, .devices = WholeDevicesOf(asked.pod->amounts)};
    scores->assign(static_cast<size_t>(rules.nodes().size()), kLast);
    for (more.node = 0; more.node < rules.nodes().size(); ++more.node) {
      if (!feasibility.IsFeasible(more.node) || !cluster_->IsInside(more.node)) continue;
      (*scores)[more.node] =
          -objective_.Cost(cluster_->After({&more, 1}, asked.pod->latency_limits));
    }
  }

 private:
  static constexpr double kLast = -1e300;  // Worse than any objective.

  std::string name_;
  Objective objective_;
  std::unique_ptr<LiveCluster> cluster_;
};

}  // namespace

Result<void> LivePolicy::LoadLearned(const PolicySpec& spec) {
  TRY_ASSIGN(LearnedPlacement learned, ReadLearnedPlacement(std::filesystem::path(spec.path())));
  if (learned.preset) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: was trained by --preset {}, on what the simulator measures of pods, which a "
                "live cluster does not say; train without",
                learned.checkpoint.string(), PlacementPresetName(*learned.preset));
  }
  if (!learned.facts) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: does not record the node types it was trained on (an earlier version, or "
                "scenarios that differ in them); train it again",
                learned.checkpoint.string());
  }
  if (learned.facts->laws.users != kNone) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: looks at how far the pods that are there are from the users (`users` of its "
                "scenario), which is not known of a live cluster; train without",
                learned.checkpoint.string());
  }
  if (learned.facts->has_calls) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: looks at how far apart pods are that call each other (`patterns` of its "
                "scenario), which is not known of a live cluster; train without",
                learned.checkpoint.string());
  }
  objective_ = learned.objective;
  facts_ = std::make_shared<const PlacementFacts>(*std::move(learned.facts));
  TRY_ASSIGN(policy_, MakePlacementPolicy(spec, PlacementTask(objective_), kScoredApart));
  if (!policy_->knows_its_questions) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: does not record the questions it was trained on; train it again",
                learned.checkpoint.string());
  }
  name_ = fmt::format("{}@{}", spec.text(), learned.digest.substr(0, kDigestTold));
  is_learned_ = true;
  return {};
}

// Each score that counts, and each term of the objective, must be something that is known here.
Result<void> LivePolicy::CheckScores() const {
  const auto refuse = [&](std::string_view what, ObjectiveTerm term) {
    const std::string_view name = kObjectiveTermNames[static_cast<size_t>(term)];
    if (term == ObjectiveTerm::kCalls) {
      return Fail(ErrorCode::kFailedPrecondition,
                  "{} {}, and a live cluster does not say who calls whom", what, name);
    }
    return Fail(ErrorCode::kFailedPrecondition,
                "{} {}, and a live cluster does not say what that would be{}", what, name,
                is_learned_ ? "" : "; a run that was trained for it brings it along");
  };
  for (int i = 0; i < kObjectiveTerms; ++i) {
    const auto term = static_cast<ObjectiveTerm>(i);
    if (IsKnownLive(term, *facts_)) continue;
    const bool asks_nodes = !is_learned_ && !is_mixed_ && !IsLookahead();
    if (term == ObjectiveTerm::kLatency && asks_nodes) continue;  // Nodes say it.
    if (objective_.weight[i] != 0 && term == ObjectiveTerm::kLatency && !is_learned_) {
      return Fail(
          ErrorCode::kFailedPrecondition,
          "the objective is latency, and {} does not go by what nodes say of it; greedy does",
          name_);
    }
    if (objective_.weight[i] != 0) return refuse("the objective is", term);
    const int score = static_cast<int>(PlacementScore::kBalance) + i;
    if (policy_ && policy_->mix[score] != 0) return refuse(fmt::format("{} counts", name_), term);
  }
  return {};
}

Result<void> CheckLivePolicy(const PolicySpec& spec) {
  TRY(CheckPolicy(spec, TaskKind::kPlace));
  const bool has_limits = std::any_of(spec.options.begin(), spec.options.end(),
                                      [](const auto& option) { return option.first == "limits"; });
  if (!has_limits) return {};
  return Invalid("policy `{}`: option `limits` is for simulations only; remove it", spec.text());
}

Result<LivePolicy> LivePolicy::Load(const LivePolicyOptions& options) {
  LivePolicy made;
  made.name_ = options.policy;
  made.type_label_ = options.type_label;
  made.strangeness_max_ = options.strangeness_max;
  made.objective_ = options.objective.value_or(Objective::Of(ObjectiveTerm::kBalance));
  made.facts_ = std::make_shared<const PlacementFacts>();
  TRY_ASSIGN(const PolicySpec spec, ParsePolicySpec(options.policy));
  TRY(CheckLivePolicy(spec));
  made.is_mixed_ = spec.name == "mixed";
  if (!spec.path().empty()) {
    TRY(made.LoadLearned(spec));
    if (options.objective && !AreAlike(*options.objective, made.objective_)) {
      return Fail(ErrorCode::kConflict, "{} was trained for {}, not for {}; leave `objective` out",
                  options.policy, ObjectiveText(made.objective_),
                  ObjectiveText(*options.objective));
    }
  } else if (!NodeScorerNamed(options.policy)) {
    TRY_ASSIGN(made.policy_,
               MakePlacementPolicy(spec, PlacementTask(made.objective_), kScoredApart));
    TRY(made.CheckBudget());
  }
  TRY(made.CheckScores());
  return made;
}

// Pods wait while it searches.
Result<void> LivePolicy::CheckBudget() const {
  constexpr int64_t kMost = 200'000;
  if (!policy_->lookahead || policy_->lookahead->evaluations <= kMost) return {};
  return Invalid("{}: pods wait while it looks ahead; evaluations are {} at most on a live cluster",
                 name_, kMost);
}

std::unique_ptr<NodeScorer> LivePolicy::NewScorer() const {
  if (!policy_) return NodeScorerNamed(name_).value();
  if (!is_learned_ && objective_.WeightOf(ObjectiveTerm::kLatency) != 0)
    return std::make_unique<LatencyScorer>(name_, objective_, NewCluster());
  if (IsLookahead()) return MakeQueueScorer(name_, objective_, *policy_->lookahead, NewCluster());
  return std::make_unique<PolicyScorer>(name_, *policy_, NewCluster(), strangeness_max_);
}

std::string LivePolicy::Beliefs() const {
  if (!is_learned_) return "";
  if (!facts_->TypesMatter())
    return "nodes of any type are alike to it; GPUs are nvidia.com/gpu, whole";
  return fmt::format("a node's type is its label {}: {}; others it does not count", type_label_,
                     fmt::join(facts_->types, ", "));
}

}  // namespace rudderfish
