// SPDX-License-Identifier: Apache-2.0
#include "policy/placement_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/suggest.h"
#include "policy/neural_placement.h"

namespace rudderfish {
namespace {

constexpr std::string_view kHeuristics[] = {"kube-default", "least-allocated", "most-allocated",
                                            "round-robin", "greedy"};
constexpr double kMixWeightMax = 1e6;  // Beyond it a sum of scores would say one of them alone.
constexpr std::string_view kMixed = "mixed:", kBlind = "blind-", kLookahead = "lookahead";

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

Result<PlacementMix> ParseMix(std::string_view spec, std::string_view text) {
  PlacementMix mix{};
  std::array<bool, kPlacementScores> named{};
  while (!text.empty()) {
    const size_t end = text.find_first_of(",:");
    const std::string_view option = text.substr(0, end);
    const size_t sign = option.find('=');
    if (sign == std::string_view::npos)
      return Invalid("policy `{}`: expected a weight such as greedy=1 in place of `{}`", spec,
                     option);
    const std::string_view name = option.substr(0, sign), value = option.substr(sign + 1);
    const auto at = std::find(kPlacementScoreNames.begin(), kPlacementScoreNames.end(), name);
    if (at == kPlacementScoreNames.end()) {
      return Invalid("policy `{}`: no score is called `{}`{} (there are {})", spec, name,
                     DidYouMean(name, kPlacementScoreNames), fmt::join(kPlacementScoreNames, ", "));
    }
    double weight = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), weight);
    if (error != std::errc{} || rest != value.data() + value.size() ||
        !(std::abs(weight) <= kMixWeightMax)) {
      return Invalid("policy `{}`: {} is `{}`, expected a number from {:.0f} to {:.0f}", spec, name,
                     value, -kMixWeightMax, kMixWeightMax);
    }
    const auto score = static_cast<size_t>(at - kPlacementScoreNames.begin());
    if (named[score]) return Invalid("policy `{}`: {} is named twice", spec, name);
    named[score] = true;
    mix[score] = weight;
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  if (mix == PlacementMix{})
    return Invalid("policy `{}`: no score has a weight other than 0: any node would do", spec);
  return mix;
}

// As look-ahead over moves takes its options (policy/registry.h).
Result<QueueLookaheadOptions> ParseQueueLookahead(std::string_view spec) {
  static constexpr std::string_view kOptions[] = {"width", "depth", "evaluations"};
  constexpr int64_t kWidthLimit = 4096;
  constexpr int64_t kEvaluationsLimit = 1'000'000'000;
  QueueLookaheadOptions options;
  std::string_view text = spec.substr(kLookahead.size());
  if (text.starts_with('+'))
    return Invalid("policy `{}`: where pods are placed look-ahead takes no run to guide it", spec);
  while (!text.empty()) {
    text.remove_prefix(1);  // A colon, or a comma.
    const std::string_view option = text.substr(0, text.find_first_of(",:"));
    text.remove_prefix(option.size());
    const size_t sign = option.find('=');
    if (sign == std::string_view::npos)
      return Invalid("policy `{}`: expected an option such as width=32 in place of `{}`", spec,
                     option);
    const std::string_view name = option.substr(0, sign), value = option.substr(sign + 1);
    if (std::find(std::begin(kOptions), std::end(kOptions), name) == std::end(kOptions))
      return Invalid("policy `{}`: unknown option `{}`{} (there are {})", spec, name,
                     DidYouMean(name, kOptions), fmt::join(kOptions, ", "));
    const int64_t most = name == "width"   ? kWidthLimit
                         : name == "depth" ? QueueLookaheadOptions::kDepthMax
                                           : kEvaluationsLimit;
    int64_t count = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (error != std::errc{} || rest != value.data() + value.size() || count < 1 || count > most)
      return Invalid("policy `{}`: {} is `{}`, expected {}", spec, name, value,
                     RangeInWords("an integer", 1, most));
    if (name == "width") options.width = static_cast<int>(count);
    if (name == "depth") options.depth = static_cast<int>(count);
    if (name == "evaluations") options.evaluations = count;
  }
  return options;
}

bool IsLookahead(std::string_view spec) {
  return spec.starts_with(kLookahead) &&
         (spec.size() == kLookahead.size() || spec[kLookahead.size()] == ':' ||
          spec[kLookahead.size()] == '+');
}

Result<PlacementPolicy> MakeQueueLookahead(std::string_view spec, const PlacementTask& task) {
  TRY_ASSIGN(const QueueLookaheadOptions options, ParseQueueLookahead(spec));
  PlacementPolicy policy{.name = std::string(spec), .lookahead = options};
  policy.start = [task, options]() -> PlacementRule {
    const auto search = std::make_shared<QueueLookahead>(task, options);
    return [search](const PlacementQuestion& question) { return (*search)(question); };
  };
  return policy;
}

Result<PlacementPolicy> MakeLearned(std::string_view spec, std::string_view path,
                                    const PlacementTask& asked, const PlacementMix& added) {
  TRY_ASSIGN(const PlacementNet loaded, LoadPlacementNet(std::filesystem::path(path), asked));
  const PlacementTask& task = loaded.task;
  const auto& net = loaded.net;
  PlacementPolicy policy{.name = std::string(spec), .mix = added, .preset = task.preset()};
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

bool IsHeuristic(std::string_view spec) {
  return std::find(std::begin(kHeuristics), std::end(kHeuristics), spec) != std::end(kHeuristics);
}

}  // namespace

bool LooksLikeARun(std::string_view text) {
  std::error_code ignored;
  return text.find('/') != std::string_view::npos || text.ends_with(".safetensors") ||
         std::filesystem::exists(std::filesystem::path(text), ignored);
}

std::string_view RunOf(std::string_view spec) {
  if (spec.starts_with(kMixed)) {
    const size_t plus = spec.find('+');
    return plus == std::string_view::npos ? std::string_view() : spec.substr(plus + 1);
  }
  return !IsHeuristic(spec) && LooksLikeARun(spec) ? spec : std::string_view();
}

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

Result<PlacementPolicy> MakePlacementPolicy(std::string_view spec, const PlacementTask& task,
                                            std::optional<PlacementScore> left_out) {
  if (spec.starts_with(kMixed)) {
    const size_t plus = spec.find('+');
    TRY_ASSIGN(const PlacementMix mix, ParseMix(spec, spec.substr(0, plus).substr(kMixed.size())));
    PlacementMix counted = mix;
    if (left_out) counted[static_cast<int>(*left_out)] = 0;
    PlacementPolicy policy;
    if (plus == std::string_view::npos) {
      policy = MixedPlacement(std::string(spec), task, counted);
    } else {
      TRY_ASSIGN(policy, MakeLearned(spec, spec.substr(plus + 1), task, counted));
    }
    policy.mix = mix;
    return policy;
  }
  if (IsLookahead(spec)) return MakeQueueLookahead(spec, task);
  if (spec.starts_with(kBlind) && IsHeuristic(spec.substr(kBlind.size()))) {
    TRY_ASSIGN(PlacementPolicy policy, MakePlacementPolicy(spec.substr(kBlind.size()), task));
    PlacementPolicy blind{.name = std::string(spec), .is_blind = true};
    blind.start = [start = std::move(policy.start)] { return PlacementRule(BlindRule(start())); };
    return blind;
  }
  if (spec == "kube-default") {
    PlacementMix mix{};
    mix[static_cast<int>(PlacementScore::kKubeDefault)] = 1;
    return MixedPlacement(std::string(spec), task, mix);
  }
  const auto known = PlacementRuleNames();
  if (std::find(known.begin(), known.end(), spec) != known.end()) {
    PlacementPolicy policy{.name = std::string(spec)};
    policy.start = [name = policy.name, task]() -> PlacementRule {
      return *PlacementRuleNamed(name, task.objective());
    };
    if (spec == "greedy") {
      policy.mix[static_cast<int>(PlacementScore::kGreedy)] = 1;
      policy.rate = [task]() -> std::unique_ptr<PlacementRater> {
        return std::make_unique<GreedyRater>(task);
      };
    }
    return policy;
  }
  if (LooksLikeARun(spec)) return MakeLearned(spec, spec, task, {});
  return Fail(ErrorCode::kNotFound,
              "no way to place pods, run folder or checkpoint is called `{}`{} (there are {}, "
              "lookahead, mixed:SCORE=WEIGHT and runs of `train`)",
              spec, DidYouMean(spec, kHeuristics), fmt::join(kHeuristics, ", "));
}

}  // namespace rudderfish
