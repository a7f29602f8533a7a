// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text_table.h"
#include "cli/episode_text.h"
#include "cli/judged_worlds.h"
#include "cli/routing_options.h"
#include "cli/terminal.h"
#include "sim/routing_evaluation.h"
#include "sim/routing_story.h"

namespace rudderfish {
namespace {

constexpr int64_t kRoutingAlternatives = 3;  // Shares.

struct ToldRouting {
  std::string scenario, variant, policy;
  uint64_t seed = 0;
  int episode = 0;
  size_t told = 0;  // Moved shares of a decision.
  std::shared_ptr<const RegionWorld> world;
  RoutingEpisodeStory story;

  const std::string& RegionName(int region) const {
    return world->network->regions[static_cast<size_t>(region)].name;
  }
  std::string ServiceName(size_t service) const {
    return world->services.empty() ? "" : world->services[service].name;
  }
};

// "1.42 (nodes 0.90, wait 0.21, late 0.20)": its largest parts.
std::string CostText(const SplitPrediction& one) {
  if (!std::isfinite(one.objective())) return "it serves none";
  std::array<int, SplitPrediction::kParts> order{};
  for (int part = 0; part < SplitPrediction::kParts; ++part) order[part] = part;
  std::ranges::stable_sort(order, [&](int a, int b) { return one.parts[a] > one.parts[b]; });
  return fmt::format("one more costs {:.3f} ({} {:.3f}, {} {:.3f})", one.objective(),
                     SplitPartName(order[0]), one.parts[order[0]], SplitPartName(order[1]),
                     one.parts[order[1]]);
}

std::string NodesByPrice(const int (&nodes)[kNodePrices]) {
  return fmt::format("{} + {}", nodes[kOnDemand], nodes[kSpot]);
}

// Regions whose nodes change most first.
std::string ResizedText(const ToldRouting& told, const RoutedService& service) {
  if (service.resized.empty()) return "";
  const auto size = [](const ResizedRegion& one) {
    return std::abs(one.after[0] - one.before[0]) + std::abs(one.after[1] - one.before[1]);
  };
  std::vector<ResizedRegion> resized = service.resized;
  std::ranges::stable_sort(resized, std::greater<>(), size);
  std::string text = "           nodes, on-demand + spot:";
  const size_t shown = std::min(resized.size(), told.told);
  for (size_t i = 0; i < shown; ++i) {
    text += fmt::format("{} {} {} -> {}", i == 0 ? "" : ",", told.RegionName(resized[i].region),
                        NodesByPrice(resized[i].before), NodesByPrice(resized[i].after));
  }
  if (resized.size() > shown)
    text += fmt::format(", and {}", Counted(resized.size() - shown, "other region"));
  return text + "\n";
}

std::string TextOf(const ToldRouting& told, const RoutedService& service) {
  std::string text;
  const size_t shown = std::min(service.moved.size(), told.told);
  for (size_t i = 0; i < shown; ++i) {
    const MovedShare& moved = service.moved[i];
    text +=
        fmt::format("           {} -> {}: {:.1f} -> {:.1f} % of {:.4g} requests/s; {}\n",
                    told.RegionName(moved.origin), told.RegionName(moved.to), 100 * moved.before,
                    100 * moved.after, moved.per_s, CostText(moved.one_more));
  }
  if (service.moved.size() > shown)
    text +=
        fmt::format("           and {}\n", Counted(service.moved.size() - shown, "smaller one"));
  return text + ResizedText(told, service);
}

std::string StoryText(const ToldRouting& told) {
  std::string text =
      fmt::format("{}, {}: {} regions, decided by {} every {:g} s, episode {} of seed {}\n\n",
                  told.scenario, told.variant, told.world->network->size(), told.policy,
                  told.world->interval_s, told.episode, told.seed);
  for (const RoutingStep& step : told.story.steps) {
    double demand = 0;
    for (const RoutedService& service : step.services) demand += service.demand_per_s;
    text += fmt::format("  {}  {:.5g} requests/s; then objective {:.4f}, {:.2f} % late\n",
                        EpisodeClock(step.at_s), demand, step.after.objective(),
                        100 * step.after.late_share());
    for (size_t s = 0; s < step.services.size(); ++s) {
      const std::string one = TextOf(told, step.services[s]);
      if (!told.ServiceName(s).empty() && !one.empty())
        text += fmt::format("         {}:\n", told.ServiceName(s));
      text += one;
    }
  }
  const RoutingFigures& figures = told.story.figures;
  return text +
         fmt::format(
             "\nObjective {:.4f}; {:.2f} % of {:.0f} requests late, {:.1f} % served elsewhere; "
             "{:.0f} changes of nodes; {:.3f} kg CO2/h, {:.2f} $/h\n",
             figures.objective(), 100 * figures.late_share(), figures.requests,
             100 * figures.PerRequest(figures.foreign), figures.changes, figures.carbon_kg_per_h(),
             figures.dollars_per_h());
}

OrderedJson JsonOf(const ToldRouting& told, const MovedShare& moved) {
  // JSON has no infinity: null where the region serves none.
  const auto cost = [](double units) {
    return std::isfinite(units) ? OrderedJson(units) : OrderedJson(nullptr);
  };
  OrderedJson parts = OrderedJson::object();
  for (int part = 0; part < SplitPrediction::kParts; ++part)
    parts[std::string(SplitPartName(part))] = cost(moved.one_more.parts[part]);
  return {{"origin", told.RegionName(moved.origin)},
          {"to", told.RegionName(moved.to)},
          {"before", moved.before},
          {"after", moved.after},
          {"per_s", moved.per_s},
          {"one_more", std::move(parts)}};
}

OrderedJson JsonOf(const ToldRouting& told, const RoutedService& service, const std::string& name) {
  OrderedJson json{{"service", name.empty() ? OrderedJson(nullptr) : OrderedJson(name)},
                   {"demand_per_s", service.demand_per_s}};
  OrderedJson& shares = json["shares"] = OrderedJson::object();
  const int regions = told.world->network->size();
  for (int origin = 0; origin < regions; ++origin) {
    OrderedJson& row = shares[told.RegionName(origin)] = OrderedJson::object();
    for (int to = 0; to < regions; ++to) {
      const double share = service.shares[told.world->network->At(origin, to)];
      if (share > 0) row[told.RegionName(to)] = share;
    }
  }
  OrderedJson& moved = json["moved"] = OrderedJson::array();
  for (const MovedShare& one : service.moved) moved.push_back(JsonOf(told, one));
  OrderedJson& resized = json["resized"] = OrderedJson::array();
  for (const ResizedRegion& one : service.resized) {
    resized.push_back(
        {{"region", told.RegionName(one.region)},
         {"before", {{"on_demand", one.before[kOnDemand]}, {"spot", one.before[kSpot]}}},
         {"after", {{"on_demand", one.after[kOnDemand]}, {"spot", one.after[kSpot]}}}});
  }
  return json;
}

OrderedJson JsonOf(const RoutingFigures& figures) {
  return {{"requests", figures.requests},
          {"objective", figures.objective()},
          {"late_percent", 100 * figures.late_share()},
          {"dollars_per_h", figures.dollars_per_h()},
          {"carbon_kg_per_h", figures.carbon_kg_per_h()},
          {"changes", figures.changes}};
}

std::string StoryJson(const ToldRouting& told) {
  OrderedJson json{{"schema_version", 1},       {"kind", "routing_episode"},
                   {"scenario", told.scenario}, {"variant", told.variant},
                   {"policy", told.policy},     {"seed", told.seed},
                   {"episode", told.episode},   {"interval_s", told.world->interval_s}};
  OrderedJson& steps = json["steps"] = OrderedJson::array();
  for (const RoutingStep& step : told.story.steps) {
    OrderedJson services = OrderedJson::array();
    for (size_t s = 0; s < step.services.size(); ++s)
      services.push_back(JsonOf(told, step.services[s], told.ServiceName(s)));
    steps.push_back(
        {{"at_s", step.at_s}, {"services", std::move(services)}, {"after", JsonOf(step.after)}});
  }
  json["figures"] = JsonOf(told.story.figures);
  return json.dump(2) + "\n";
}

}  // namespace

Result<ExitStatus> SimulateRouting(const SimulationRequest& request) {
  const auto& [name, spec] = request.policy;
  TRY_ASSIGN(const RoutingPolicies policies,
             OfOption("policy", RoutingPoliciesOf({{name, {spec}}}, request.path)));
  ToldRouting told{
      .scenario = request.scenario.name,
      .policy = name,
      .seed = request.seed,
      .episode = static_cast<int>(request.episode),
      .told = static_cast<size_t>(request.alternatives.value_or(kRoutingAlternatives))};
  TRY_ASSIGN(told.world, RegionsOf(request.arguments, request.scenario));
  TRY_ASSIGN(const std::vector<int> variants, VariantsOf(request.arguments, *told.world));
  if (request.arguments.Has("variant") && variants.size() > 1)
    return Invalid("--variant: name one variant; an episode is of one");
  const RegionVariant& variant = told.world->variants[static_cast<size_t>(variants[0])];
  told.variant = variant.name;
  told.story = TellRouting(*policies.list[0].members[0],
                           JudgedEpisode(variant, told.seed, told.episode), told.world);
  TRY(Print(request.format == OutputFormat::kTable ? StoryText(told) : StoryJson(told)));
  return ExitStatus::kDone;
}

}  // namespace rudderfish
