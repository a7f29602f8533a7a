// SPDX-License-Identifier: Apache-2.0
#include "policy/registry.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/suggest.h"
#include "base/units.h"
#include "policy/baselines.h"
#include "policy/exact.h"
#include "policy/greedy.h"
#include "policy/kube_default.h"
#include "policy/lookahead.h"
#include "policy/neural.h"
#include "policy/rollouts.h"

namespace rudderfish {
namespace {

constexpr std::string_view kNames[] = {
    "stay",           "random", "kube-default", "least-allocated",
    "most-allocated", "greedy", "lookahead",    "exact"};
constexpr std::string_view kBestOf = "best-of";
constexpr int kWidthMax = 1 << 20;
constexpr int kWidthOfBudgets = 1 << 15;  // More would take hundreds of megabytes in a deep search.

// NAME[:OPTIONS][+TARGET], where only a search has a target.
struct Spec {
  std::string_view text, name, options, target;
  bool has_options = false;
};

bool IsKnown(std::string_view name) {
  return name == kBestOf ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Spec Split(std::string_view text) {
  Spec spec{.text = text, .name = text.substr(0, text.find_first_of(":+"))};
  std::string_view head = text;
  if (spec.name == kBestOf || spec.name == "lookahead") {
    if (const size_t plus = text.find('+'); plus != std::string_view::npos) {
      head = text.substr(0, plus);
      spec.target = text.substr(plus + 1);
    }
  }
  if (const size_t colon = head.find(':'); colon != std::string_view::npos) {
    spec.has_options = true;
    spec.options = head.substr(colon + 1);
  }
  return spec;
}

Result<int64_t> ParseCount(const Spec& spec, std::string_view what, std::string_view text,
                           int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= 1 && value <= most)
    return value;
  return Invalid("policy `{}`: {} is `{}`, expected {}", spec.text, what, text,
                 RangeInWords("an integer", 1, most));
}

Result<void> ApplyOption(const Spec& spec, std::string_view key, std::string_view value,
                         LookaheadOptions* options) {
  static constexpr std::string_view kKeys[] = {"width", "evaluations", "time", "patience"};
  if (!spec.target.empty() && (key == "evaluations" || key == "time")) {
    return Invalid("policy `{}`: {} bounds look-ahead alone; with a prior give width or patience",
                   spec.text, key);
  }
  if (key == "width") {
    TRY_ASSIGN(const int64_t width, ParseCount(spec, key, value, kWidthMax));
    options->budget.width = options->guided.width = static_cast<int>(width);
  } else if (key == "patience") {
    TRY_ASSIGN(const int64_t patience, ParseCount(spec, key, value, 1'000'000));
    options->budget.patience = options->guided.patience = static_cast<int>(patience);
  } else if (key == "evaluations") {
    TRY_ASSIGN(options->budget.evaluations,
               ParseCount(spec, key, value, std::numeric_limits<int64_t>::max()));
  } else if (key == "time") {
    Result<double> time_ms = ParseDurationMs(value);
    if (!time_ms) return Invalid("policy `{}`: {}", spec.text, time_ms.error().message);
    options->budget.time =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(*time_ms));
    if (options->budget.time.count() <= 0)
      return Invalid("policy `{}`: time is `{}`, expected more than 0", spec.text, value);
  } else {
    return Invalid(
        "policy `{}`: unknown option `{}`{} (there are width, evaluations, time, patience)",
        spec.text, key, DidYouMean(key, kKeys));
  }
  return {};
}

Result<LookaheadOptions> ParseLookahead(const Spec& spec) {
  LookaheadOptions options;
  bool width_given = false, limit_given = false, evaluations_given = false;
  std::string_view rest = spec.options;
  while (spec.has_options) {
    const size_t end = rest.find_first_of(",:");
    const std::string_view option = rest.substr(0, end);
    const size_t sign = option.find('=');
    if (sign == std::string_view::npos) {
      return Invalid("policy `{}`: expected an option such as width=256 in place of `{}`",
                     spec.text, option);
    }
    const std::string_view key = option.substr(0, sign);
    TRY(ApplyOption(spec, key, option.substr(sign + 1), &options));
    width_given |= key == "width";
    evaluations_given |= key == "evaluations";
    limit_given |= key == "evaluations" || key == "time";
    if (end == std::string_view::npos) break;
    rest = rest.substr(end + 1);
  }
  // A budget that was asked for is used up, whatever width it takes; a width that was asked for is
  // reached.
  if (limit_given && !width_given) options.budget.width = kWidthOfBudgets;
  if ((limit_given || width_given) && !evaluations_given) {
    options.budget.evaluations = std::numeric_limits<int64_t>::max();
  }
  return options;
}

Result<std::unique_ptr<Policy>> MakeSearch(const Spec& spec, const Task& task) {
  LookaheadOptions options;
  if (spec.name != kBestOf) {
    TRY_ASSIGN(options, ParseLookahead(spec));
  }
  std::shared_ptr<const Policy> learned;
  if (!spec.target.empty()) {
    TRY_ASSIGN(learned, LoadNeuralPolicy(std::filesystem::path(spec.target), task));
  }
  if (spec.name == kBestOf) {
    if (learned == nullptr)
      return Invalid("policy `{}`: a run or checkpoint is missing, as in best-of:16+RUN",
                     spec.text);
    RolloutOptions rollouts;
    if (spec.has_options) {
      TRY_ASSIGN(const int64_t samples,
                 ParseCount(spec, "the number of rollouts", spec.options, 100'000));
      rollouts.samples = static_cast<int>(samples);
    }
    return std::make_unique<BestOfPolicy>(std::string(spec.text), std::move(learned), rollouts);
  }
  if (learned == nullptr && spec.text.find('+') != std::string_view::npos) {
    return Invalid("policy `{}`: a run or checkpoint is missing after `+`", spec.text);
  }
  options.prior = std::move(learned);
  return std::make_unique<LookaheadPolicy>(std::string(spec.text), std::move(options));
}

Result<std::unique_ptr<Policy>> MakeNamed(const Spec& spec) {
  if (spec.name != spec.text) {
    return Invalid("policy `{}`: {} takes no options", spec.text, spec.name);
  }
  if (spec.name == "stay") return std::make_unique<StayPolicy>();
  if (spec.name == "random") return std::make_unique<RandomPolicy>();
  if (spec.name == "kube-default")
    return std::make_unique<NodeScorePolicy>(NodeScoring::kKubeDefault);
  if (spec.name == "least-allocated")
    return std::make_unique<NodeScorePolicy>(NodeScoring::kLeastAllocated);
  if (spec.name == "most-allocated")
    return std::make_unique<NodeScorePolicy>(NodeScoring::kMostAllocated);
  if (spec.name == "greedy") return std::make_unique<GreedyPolicy>();
  return std::make_unique<ExactPolicy>();
}

bool LooksLikeAPath(std::string_view text) {
  std::error_code ignored;
  return text.find('/') != std::string_view::npos || text.ends_with(".safetensors") ||
         std::filesystem::exists(std::filesystem::path(text), ignored);
}

}  // namespace

std::vector<std::string_view> PolicyNames() { return {std::begin(kNames), std::end(kNames)}; }

Result<std::unique_ptr<Policy>> MakePolicy(std::string_view text, const Task& task) {
  const Spec spec = Split(text);
  if (spec.name == kBestOf || spec.name == "lookahead") return MakeSearch(spec, task);
  if (IsKnown(spec.name)) return MakeNamed(spec);
  if (LooksLikeAPath(text)) return LoadNeuralPolicy(std::filesystem::path(text), task);
  std::vector<std::string_view> known = PolicyNames();
  known.push_back(kBestOf);
  std::string names;
  for (std::string_view name : PolicyNames()) names += fmt::format("{}, ", name);
  return Fail(ErrorCode::kNotFound,
              "no policy, run folder or checkpoint is called `{}`{} (there are {}best-of:16+RUN "
              "and lookahead+RUN)",
              text, DidYouMean(spec.name, known), names);
}

}  // namespace rudderfish
