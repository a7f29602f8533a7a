// SPDX-License-Identifier: Apache-2.0
#include "evaluation/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/suggest.h"
#include "evaluation/comparison.h"
#include "evaluation/statistics.h"

namespace rudderfish {
namespace {

constexpr std::string_view kOverhead = "overhead";

const Metric* MeasureCalled(std::string_view metric) {
  for (const Metric& measure : PlacementMetrics()) {
    if (measure.name == metric) return &measure;
  }
  return nullptr;
}

Result<std::string> RequiredText(YamlMap* map, std::string_view key) {
  TRY_ASSIGN(const YamlNode node, map->Required(key));
  TRY_ASSIGN(std::string text, node.AsString());
  if (text.empty()) return node.Expected("a text");
  return text;
}

// One of `known`, or empty where there is none.
Result<std::string> KnownName(const std::optional<YamlNode>& node, std::string_view kind,
                              const std::vector<std::string>& known, Quoting quoting) {
  if (!node) return std::string();
  TRY_ASSIGN(std::string name, node->AsString());
  if (quoting == Quoting::kWhatIsThere ||
      std::find(known.begin(), known.end(), name) != known.end())
    return name;
  const std::vector<std::string_view> views(known.begin(), known.end());
  return node->Refuse(
      fmt::format("the experiment has no {} called {}{}", kind, name, DidYouMean(name, views)));
}

Result<OwnFigure> ParseOwn(const YamlNode& node, const PublishedNames& names) {
  TRY_ASSIGN(YamlMap map, node.AsMap());
  OwnFigure own;
  TRY_ASSIGN(const YamlNode metric, map.Required("metric"));
  TRY_ASSIGN(own.metric, metric.AsString());
  if (own.metric != kOverhead && MeasureCalled(own.metric) == nullptr) {
    std::vector<std::string_view> known = {kOverhead};
    for (const Metric& measure : PlacementMetrics()) known.push_back(measure.name);
    return metric.Refuse(fmt::format("no metric is called {}{} (there are {})", own.metric,
                                     DidYouMean(own.metric, known), fmt::join(known, ", ")));
  }
  TRY_ASSIGN(const YamlNode policy, map.Required("policy"));
  TRY_ASSIGN(own.policy, KnownName(policy, "policy", names.policies, names.quoting));
  const std::optional<YamlNode> over = map.Optional("over"), above = map.Optional("above");
  if (over && above) return above->Refuse("give either `over` or `above`, not both");
  if (over) own.as = OwnFigure::As::kRatio;
  if (above) own.as = OwnFigure::As::kPercentAbove;
  TRY_ASSIGN(own.other, KnownName(over ? over : above, "policy", names.policies, names.quoting));
  TRY(map.Finish());
  return own;
}

Result<PublishedFigure> ParseFigure(const YamlNode& node, const PublishedNames& names) {
  TRY_ASSIGN(YamlMap map, node.AsMap());
  PublishedFigure figure;
  TRY_ASSIGN(figure.what, RequiredText(&map, "what"));
  TRY_ASSIGN(figure.said, RequiredText(&map, "said"));
  TRY_ASSIGN(figure.scenario,
             KnownName(map.Optional("scenario"), "scenario", names.scenarios, names.quoting));
  TRY_ASSIGN(figure.objective,
             KnownName(map.Optional("objective"), "objective", names.objectives, names.quoting));
  TRY_ASSIGN(figure.variant,
             KnownName(map.Optional("variant"), "variant", names.variants, names.quoting));
  if (const std::optional<YamlNode> ours = map.Optional("ours")) {
    TRY_ASSIGN(figure.ours, ParseOwn(*ours, names));
  }
  TRY(map.Finish());
  return figure;
}

Result<PublishedWork> ParseWork(const YamlNode& node, const PublishedNames& names) {
  TRY_ASSIGN(YamlMap map, node.AsMap());
  PublishedWork work;
  TRY_ASSIGN(work.by, RequiredText(&map, "by"));
  TRY_ASSIGN(work.note, map.OptionalString("note", ""));
  TRY_ASSIGN(const YamlNode figures, map.Required("figures"));
  TRY_ASSIGN(const std::vector<YamlNode> items, figures.AsList());
  if (items.empty()) return figures.Expected("at least one figure");
  for (const YamlNode& item : items) {
    TRY_ASSIGN(PublishedFigure figure, ParseFigure(item, names));
    work.figures.push_back(std::move(figure));
  }
  TRY(map.Finish());
  return work;
}

std::optional<double> MeanIn(const PlacementEvaluation& evaluation, std::string_view metric,
                             std::string_view policy) {
  for (const EvaluatedPlacement& one : evaluation.policies) {
    if (one.name != policy) continue;
    return metric == kOverhead ? 100 * one.Overhead(evaluation.episodes)
                               : Mean(one.Runs(metric, evaluation.episodes).values);
  }
  return {};
}

std::optional<double> ValueOf(const OwnFigure& own, const PlacementEvaluation& evaluation) {
  if (own.metric.empty()) return {};
  const std::optional<double> value = MeanIn(evaluation, own.metric, own.policy);
  if (own.as == OwnFigure::As::kValue || !value) return value;
  const std::optional<double> other = MeanIn(evaluation, own.metric, own.other);
  if (!other || *other == 0) return {};
  return own.as == OwnFigure::As::kRatio ? *value / *other : 100 * (*value / *other - 1);
}

std::string TextOf(const OwnFigure& own, double value) {
  if (own.as == OwnFigure::As::kRatio) return fmt::format("{:.2f} times", value);
  if (own.as == OwnFigure::As::kPercentAbove) {
    const std::string text = SignedText(value, 1);
    return (text[0] == '-' ? "\u2212" + text.substr(1) : text) + " %";
  }
  const Metric* measure = MeasureCalled(own.metric);
  if (measure == nullptr) return fmt::format("{:.2g} %", value);
  return fmt::format("{:.{}f}{}{}", value, measure->decimals, measure->unit.empty() ? "" : " ",
                     measure->unit);
}

// What the value is of.
std::string SubjectOf(const OwnFigure& own) {
  const Metric* measure = MeasureCalled(own.metric);
  return fmt::format("{} of {}{}", measure == nullptr ? "share of the makespan" : measure->title,
                     own.policy,
                     own.as == OwnFigure::As::kRatio          ? " over " + own.other
                     : own.as == OwnFigure::As::kPercentAbove ? " against " + own.other
                                                              : std::string());
}

}  // namespace

bool PublishedFigure::IsOf(const PlacementPlace& place) const {
  return (scenario.empty() || scenario == place.scenario) &&
         (objective.empty() || objective == place.objective) &&
         (variant.empty() || variant == place.variant);
}

Result<std::vector<PublishedWork>> ParsePublished(const YamlNode& node,
                                                  const PublishedNames& names) {
  std::vector<PublishedWork> works;
  TRY_ASSIGN(const std::vector<YamlNode> items, node.AsList());
  for (const YamlNode& item : items) {
    TRY_ASSIGN(PublishedWork work, ParseWork(item, names));
    works.push_back(std::move(work));
  }
  if (works.empty()) return node.Expected("at least one work");
  return works;
}

OrderedJson QuotesOf(std::span<const PublishedWork> works, const PlacementPlace& place,
                     std::string_view cell, const PlacementEvaluation& evaluation) {
  OrderedJson quotes = OrderedJson::array();
  for (const PublishedWork& work : works) {
    for (const PublishedFigure& figure : work.figures) {
      if (!figure.IsOf(place)) continue;
      const std::optional<double> ours = ValueOf(figure.ours, evaluation);
      quotes.push_back({{"cell", cell},
                        {"by", work.by},
                        {"note", work.note},
                        {"what", figure.what},
                        {"said", figure.said},
                        {"metric", figure.ours.metric},
                        {"ours", ours ? OrderedJson(*ours) : OrderedJson(nullptr)},
                        {"ours_text", ours ? TextOf(figure.ours, *ours) : std::string()},
                        {"ours_of", ours ? SubjectOf(figure.ours) : std::string()}});
    }
  }
  return quotes;
}

OrderedJson WithoutClock(const OrderedJson& quotes) {
  OrderedJson rest = quotes;
  for (OrderedJson& quote : rest) {
    if (quote["metric"] != kOverhead) continue;
    quote["ours"] = nullptr;
    quote["ours_text"] = "";
    quote["ours_of"] = "";
  }
  return rest;
}

}  // namespace rudderfish
