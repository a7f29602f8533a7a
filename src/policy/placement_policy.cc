// SPDX-License-Identifier: Apache-2.0
#include "policy/placement_policy.h"

#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "policy/neural_placement.h"
#include "policy/policy_makers.h"
#include "policy/policy_table.h"

namespace rudderfish {
namespace {

constexpr std::string_view kHeuristics[] = {"kube-default", "least-allocated", "most-allocated",
                                            "round-robin", "greedy"};

class MixedRule final : public PlacementRater {
 public:
  MixedRule(const PlacementTask& task, const PlacementMix& mix) : task_(task), mix_(mix) {}

  NodeId operator()(const PlacementQuestion& question) {
    task_.Space(question, {}, &space_);
    const int best = BestCandidate(space_.candidates, mix_);
    return best < 0 ? kNone : space_.candidates[best].node;
  }

  std::span<const double> Rate(const PlacementQuestion& question,
                               std::span<const uint8_t> allowed) override {
    task_.Space(question, allowed, &space_);
    rates_.clear();
    for (const PlacementCandidate& one : space_.candidates) rates_.push_back(MixOf(one, mix_));
    return rates_;
  }
  const PlacementSpace& space() const override { return space_; }

 private:
  PlacementTask task_;
  PlacementMix mix_;
  PlacementSpace space_;
  std::vector<double> rates_;
};

// What knows nothing of limits of latency, as kube-scheduler does: asks `rule` as if there were
// none.
class BlindRule {
 public:
  explicit BlindRule(PlacementRule rule) : rule_(std::move(rule)) {}

  NodeId operator()(const PlacementQuestion& question) {
    state_ = question.state;
    if (limited_ != question.state.catalog) {
      limited_ = question.state.catalog;
      unlimited_ = std::make_shared<Catalog>(*limited_);
      for (Workload& workload : unlimited_->workloads) workload.latency_limits = {};
    }
    state_.catalog = unlimited_;
    return rule_({state_, question.totals, question.workload, question.next});
  }

 private:
  PlacementRule rule_;
  State state_;
  std::shared_ptr<const Catalog> limited_;
  std::shared_ptr<Catalog> unlimited_;
};

// By the objective alone.
class GreedyRater final : public PlacementRater {
 public:
  explicit GreedyRater(const PlacementTask& task) : task_(task) {}

  std::span<const double> Rate(const PlacementQuestion& question,
                               std::span<const uint8_t> allowed) override {
    task_.Space(question, allowed, &space_);
    rates_.clear();
    for (const PlacementCandidate& one : space_.candidates) rates_.push_back(-one.cost);
    return rates_;
  }
  const PlacementSpace& space() const override { return space_; }

 private:
  PlacementTask task_;
  PlacementSpace space_;
  std::vector<double> rates_;
};

PlacementPolicy RuleOf(const PolicyOptions& options, const PlacementTask& task) {
  if (options.name() == "kube-default") {
    PlacementMix mix{};
    mix[static_cast<int>(PlacementScore::kKubeDefault)] = 1;
    return MixedPlacement(options.text(), task, mix);
  }
  PlacementPolicy policy{.name = options.text()};
  policy.start = [name = options.name(), task]() -> PlacementRule {
    return *PlacementRuleNamed(name, task.objective());
  };
  if (options.name() == "greedy") {
    policy.mix[static_cast<int>(PlacementScore::kGreedy)] = 1;
    policy.rate = [task]() -> std::unique_ptr<PlacementRater> {
      return std::make_unique<GreedyRater>(task);
    };
  }
  return policy;
}

}  // namespace

std::vector<std::string_view> PlacementHeuristics() {
  return {std::begin(kHeuristics), std::end(kHeuristics)};
}

PlacementPolicy MixedPlacement(std::string name, const PlacementTask& task,
                               const PlacementMix& mix) {
  PlacementPolicy policy{.name = std::move(name), .mix = mix};
  policy.start = [task, mix]() -> PlacementRule {
    const auto rule = std::make_shared<MixedRule>(task, mix);
    return [rule](const PlacementQuestion& question) { return (*rule)(question); };
  };
  policy.rate = [task, mix]() -> std::unique_ptr<PlacementRater> {
    return std::make_unique<MixedRule>(task, mix);
  };
  return policy;
}

Result<PlacementPolicy> LoadedPlacement(const std::string& name, const std::string& path,
                                        const PlacementTask& asked, const PlacementMix& added) {
  TRY_ASSIGN(const PlacementNet loaded, LoadPlacementNet(std::filesystem::path(path), asked));
  const PlacementTask& task = loaded.task;
  const auto& net = loaded.net;
  PlacementPolicy policy{.name = name, .mix = added, .preset = task.preset()};
  policy.start = [task, net, added]() -> PlacementRule {
    const auto learned = std::make_shared<NeuralPlacement>(task, net, added);
    return [learned](const PlacementQuestion& question) {
      const int choice = learned->Choose(question);
      return choice < 0 ? kNone : learned->space().candidates[choice].node;
    };
  };
  policy.knows_its_questions = !loaded.familiarity->empty();
  policy.rate = [loaded, added]() -> std::unique_ptr<PlacementRater> {
    return std::make_unique<NeuralPlacement>(loaded.task, loaded.net, added, loaded.familiarity);
  };
  return policy;
}

Result<PlacementPolicy> MakePlacementRule(const PolicyOptions& options, const PlacementTask& task,
                                          std::optional<PlacementScore> /*left_out*/) {
  PlacementPolicy policy = RuleOf(options, task);
  if (options.Text("limits") == "keep") return policy;
  PlacementPolicy blind{.name = policy.name, .is_blind = true};
  blind.start = [start = std::move(policy.start)] { return PlacementRule(BlindRule(start())); };
  return blind;
}

Result<PlacementPolicy> MakeQueueLookahead(const PolicyOptions& options, const PlacementTask& task,
                                           std::optional<PlacementScore> /*left_out*/) {
  const QueueLookaheadOptions search{.depth = options.Integer("depth"),
                                     .width = options.Integer("width"),
                                     .evaluations = options.LargeInteger("evaluations")};
  PlacementPolicy policy{.name = options.text(), .lookahead = search};
  policy.start = [task, search]() -> PlacementRule {
    const auto ahead = std::make_shared<QueueLookahead>(task, search);
    return [ahead](const PlacementQuestion& question) { return (*ahead)(question); };
  };
  return policy;
}

Result<PlacementPolicy> MakeMixed(const PolicyOptions& options, const PlacementTask& task,
                                  std::optional<PlacementScore> left_out) {
  PlacementMix mix{};
  for (int i = 0; i < kPlacementScores; ++i) mix[i] = options.Number(kPlacementScoreNames[i]);
  if (mix == PlacementMix{}) {
    return Invalid("policy `{}`: no score has a weight other than 0, as in mixed:greedy=1",
                   options.text());
  }
  PlacementMix counted = mix;
  if (left_out) counted[static_cast<int>(*left_out)] = 0;
  PlacementPolicy policy;
  if (options.IsGiven(kRunOption)) {
    TRY_ASSIGN(policy, LoadedPlacement(options.text(), options.Text(kRunOption), task, counted));
  } else {
    policy = MixedPlacement(options.text(), task, counted);
  }
  policy.mix = mix;
  return policy;
}

}  // namespace rudderfish
