// SPDX-License-Identifier: Apache-2.0
#include "evaluation/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "base/suggest.h"
#include "base/yaml.h"
#include "cluster/task_kind.h"
#include "policy/policy_table.h"
#include "task/placement_preset.h"

namespace rudderfish {
namespace {

constexpr int64_t kMostEpisodes = 1'000'000;

// What may be part of a file's name.
bool IsPlainName(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), plain);
}

Result<ExperimentVariant> ParseVariant(const std::string& name, const YamlNode& node) {
  if (!IsPlainName(name)) {
    return node.Refuse(
        fmt::format("\"{}\" is no name of a variant: letters, digits, - and _ only", name));
  }
  ExperimentVariant variant{.name = name, .changes = {}};
  if (node.IsNull()) return variant;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  for (const auto& [path, value] : map.Entries()) {
    if (!value.IsScalar()) return value.Expected("a value, quoted if it is a list or a map");
    TRY_ASSIGN(std::string text, value.AsString());
    variant.changes.push_back({path, std::move(text)});
  }
  return variant;
}

Result<void> ParseScenarios(const std::vector<YamlNode>& nodes, Experiment* experiment) {
  std::set<std::string> stems;
  for (const YamlNode& node : nodes) {
    TRY_ASSIGN(const std::filesystem::path path, node.AsString());
    const std::string stem = path.stem().string();
    if (!stems.insert(stem).second) {
      return node.Refuse(fmt::format(
          "there is another scenario called {}: results are filed under that name", stem));
    }
    experiment->scenarios.push_back(path);
  }
  return {};
}

// `name` is one of `known`.
Result<void> CheckKnown(YamlMap* fields, std::string_view key, std::string_view name,
                        std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  return fields->Optional(key)->Expected(
      fmt::format("{}{}", fmt::join(known, " or "), DidYouMean(name, known)));
}

// All but what only some tasks know.
Result<void> ParseTraining(YamlMap* fields, std::span<const std::string_view> algorithms,
                           int64_t* steps, int* seeds, std::string* algorithm) {
  TRY_ASSIGN(*steps, fields->OptionalInt("steps", 1, std::numeric_limits<int64_t>::max(), *steps));
  TRY_ASSIGN(const int64_t count, fields->OptionalInt("seeds", 1, 1000, *seeds));
  *seeds = static_cast<int>(count);
  TRY_ASSIGN(*algorithm, fields->OptionalString("algorithm", *algorithm));
  return CheckKnown(fields, "algorithm", *algorithm, algorithms);
}

// At least one, each once; `one` is what a name is of.
Result<std::vector<std::string>> ParseNames(YamlMap* map, std::string_view key,
                                            std::string_view one) {
  TRY_ASSIGN(const YamlNode list, map->Required(key));
  TRY_ASSIGN(const std::vector<YamlNode> nodes, list.AsList());
  if (nodes.empty()) return list.Expected(fmt::format("at least one {}", one));
  std::vector<std::string> names;
  for (const YamlNode& node : nodes) {
    TRY_ASSIGN(std::string name, node.AsString());
    if (!IsPlainName(name)) return node.Refuse(fmt::format("\"{}\" is no name of a {}", name, one));
    if (std::find(names.begin(), names.end(), name) != names.end())
      return node.Refuse(fmt::format("{} is named twice", name));
    names.push_back(std::move(name));
  }
  return names;
}

Result<ScalingExperiment> ParseScaling(YamlMap* map) {
  constexpr int64_t kFewestEpisodes = 16;  // Of a calibration.
  ScalingExperiment scaling;
  TRY_ASSIGN(scaling.loads, ParseNames(map, "loads", "load"));
  if (map->Optional("violations")) {
    TRY_ASSIGN(scaling.violations_max,
               map->RequiredDouble("violations", kLeastLateMax, kMostLateMax));
  }
  if (const std::optional<YamlNode> calibrate = map->Optional("calibrate")) {
    TRY_ASSIGN(YamlMap fields, calibrate->AsMap());
    TRY_ASSIGN(const int64_t episodes,
               fields.OptionalInt("episodes", kFewestEpisodes, kMostEpisodes,
                                  scaling.calibration_episodes));
    scaling.calibration_episodes = static_cast<int>(episodes);
    TRY(fields.Finish());
  }
  if (const std::optional<YamlNode> train = map->Optional("train")) {
    TRY_ASSIGN(YamlMap fields, train->AsMap());
    TRY(ParseTraining(&fields, ScalingExperiment::kAlgorithms, &scaling.train_steps,
                      &scaling.train_seeds, &scaling.algorithm));
    if (fields.Optional("encoder")) {
      TRY_ASSIGN(scaling.encoder, fields.RequiredString("encoder"));
      TRY(CheckKnown(&fields, "encoder", scaling.encoder, ScalingExperiment::kEncoders));
    }
    TRY(fields.Finish());
  }
  return scaling;
}

Result<PlacementExperiment> ParsePlacement(YamlMap* map) {
  PlacementExperiment placement;
  if (const std::optional<YamlNode> objectives = map->Optional("objectives")) {
    TRY_ASSIGN(YamlMap fields, objectives->AsMap());
    for (const auto& [name, node] : fields.Entries()) {
      if (!IsPlainName(name)) {
        return node.Refuse(
            fmt::format("\"{}\" is no name of an objective: letters, digits, - and _ only", name));
      }
      TRY_ASSIGN(const Objective objective, ParseObjective(node));
      placement.objectives.push_back({name, objective});
    }
    if (placement.objectives.empty()) return objectives->Expected("at least one objective");
  }
  if (const std::optional<YamlNode> train = map->Optional("train")) {
    TRY_ASSIGN(YamlMap fields, train->AsMap());
    TRY(ParseTraining(&fields, PlacementExperiment::kAlgorithms, &placement.train_steps,
                      &placement.train_seeds, &placement.algorithm));
    TRY_ASSIGN(
        placement.es_steps,
        fields.OptionalInt("es_steps", 1, std::numeric_limits<int64_t>::max(), placement.es_steps));
    TRY(fields.Finish());
  }
  return placement;
}

Result<std::vector<NamedPlace>> ParsePlaces(const std::optional<YamlNode>& node) {
  std::vector<NamedPlace> places;
  if (node) {
    TRY_ASSIGN(YamlMap fields, node->AsMap());
    for (const auto& [name, regions] : fields.Entries()) {
      if (!IsPlainName(name)) {
        return regions.Refuse(
            fmt::format("\"{}\" is no name of a place: letters, digits, - and _ only", name));
      }
      NamedPlace place{.name = name, .regions = {}};
      TRY_ASSIGN(const std::vector<YamlNode> nodes, regions.AsList());
      for (const YamlNode& region : nodes) {
        TRY_ASSIGN(std::string text, region.AsString());
        place.regions.push_back(std::move(text));
      }
      places.push_back(std::move(place));
    }
    if (places.empty()) return node->Expected("at least one place");
  }
  if (places.empty()) places.push_back({.name = "all", .regions = {}});
  return places;
}

Result<RoutingExperiment> ParseRouting(YamlMap* map) {
  constexpr int64_t kFewestEpisodes = 4, kMostSettings = 100'000;  // Of a calibration.
  RoutingExperiment routing;
  TRY_ASSIGN(routing.region_variants, ParseNames(map, "region_variants", "variant of regions"));
  TRY_ASSIGN(routing.places, ParsePlaces(map->Optional("places")));
  if (const std::optional<YamlNode> calibrate = map->Optional("calibrate")) {
    TRY_ASSIGN(YamlMap fields, calibrate->AsMap());
    TRY_ASSIGN(const int64_t settings,
               fields.OptionalInt("settings", 1, kMostSettings, routing.calibration_settings));
    TRY_ASSIGN(const int64_t episodes,
               fields.OptionalInt("episodes", kFewestEpisodes, kMostEpisodes,
                                  routing.calibration_episodes));
    routing.calibration_settings = static_cast<int>(settings);
    routing.calibration_episodes = static_cast<int>(episodes);
    TRY(fields.Finish());
  }
  if (const std::optional<YamlNode> train = map->Optional("train")) {
    constexpr std::string_view kEvolution[] = {"es"};
    std::string algorithm(kEvolution[0]);
    TRY_ASSIGN(YamlMap fields, train->AsMap());
    TRY(ParseTraining(&fields, kEvolution, &routing.train_steps, &routing.train_seeds, &algorithm));
    TRY(fields.Finish());
  }
  return routing;
}

constexpr std::string_view kTrainedBy = "trained-", kCalibratedOf = "calibrated-";

Result<void> CheckCalibrated(const YamlNode& node, const PolicySpec& policy) {
  const std::string_view path = policy.path();
  if (!path.starts_with(kCalibratedOf) || RoutingExperiment::CalibratedFor(policy)) return {};
  const std::string_view name = path.substr(kCalibratedOf.size());
  const std::vector<std::string_view> known = PolicyNamesOf(TaskKind::kRoute);
  return node.Refuse(fmt::format("no policy is called `{}`; there are {}{}", name,
                                 fmt::join(known, ", "), DidYouMean(name, known)));
}

// What `trained-` takes.
std::vector<std::string_view> Recipes() {
  constexpr auto& algorithms = PlacementExperiment::kAlgorithms;
  std::vector<std::string_view> recipes(algorithms.begin(), algorithms.end());
  const auto presets = PlacementPresetNames();
  recipes.insert(recipes.end(), presets.begin(), presets.end());
  return recipes;
}

Result<void> CheckTrained(const YamlNode& node, const PolicySpec& policy) {
  const std::string_view path = policy.path();
  if (!path.starts_with(kTrainedBy)) return {};
  const std::vector<std::string_view> known = Recipes();
  const std::string_view recipe = path.substr(kTrainedBy.size());
  if (std::find(known.begin(), known.end(), recipe) != known.end()) return {};
  return node.Refuse(fmt::format("nothing is trained by `{}`; there are {}{}", recipe,
                                 fmt::join(known, ", "), DidYouMean(recipe, known)));
}

Result<void> CheckTiers(const YamlNode& node, const PolicySpec& policy) {
  if (!policy.path().starts_with(kTrainedBy) || RoutingExperiment::TiersFor(policy)) return {};
  return node.Expected("trained, trained-route or trained-scale");
}

Result<void> ParsePolicies(YamlMap* map, Experiment* experiment) {
  TRY_ASSIGN(const YamlNode policies, map->Required("policies"));
  TRY_ASSIGN(const std::vector<YamlNode> nodes, policies.AsList());
  if (nodes.size() < 2) return policies.Expected("two policies or more, the candidate last");
  for (const YamlNode& node : nodes) {
    TRY_ASSIGN(const std::string text, node.AsString());
    Result<NamedPolicySpec> policy = ParseNamedPolicy(text);
    if (!policy) return node.Refuse(policy.error().message);
    if (experiment->placement) TRY(CheckTrained(node, policy->policy));
    if (experiment->routing) TRY(CheckCalibrated(node, policy->policy));
    if (experiment->routing) TRY(CheckTiers(node, policy->policy));
    experiment->policies.push_back(*std::move(policy));
    const Result<void> differ = CheckNamesDiffer(experiment->policies);
    if (!differ) return node.Refuse(differ.error().message);
  }
  return {};
}

Result<void> ParsePublishedOf(YamlMap* map, Quoting quoting, Experiment* experiment) {
  const std::optional<YamlNode> node = map->Optional("published");
  if (!node) return {};
  if (!experiment->placement) {
    return node->Refuse("figures are quoted in experiments with `task: place` alone");
  }
  PublishedNames names{.quoting = quoting};
  for (const std::filesystem::path& path : experiment->scenarios)
    names.scenarios.push_back(path.stem().string());
  for (const NamedObjective& one : experiment->placement->objectives)
    names.objectives.push_back(one.name);
  for (const ExperimentVariant& one : experiment->variants) names.variants.push_back(one.name);
  for (const NamedPolicySpec& policy : experiment->policies) names.policies.push_back(policy.name);
  TRY_ASSIGN(experiment->placement->published, ParsePublished(*node, names));
  return {};
}

}  // namespace

std::optional<std::string_view> PlacementExperiment::RecipeFor(const PolicySpec& policy) const {
  const std::string_view path = policy.path();
  if (path == ScalingExperiment::kTrained) return algorithm;
  if (!path.starts_with(kTrainedBy)) return {};
  for (const std::string_view known : Recipes()) {
    if (path.substr(kTrainedBy.size()) == known) return known;
  }
  return {};
}

std::optional<std::string_view> RoutingExperiment::CalibratedFor(const PolicySpec& policy) {
  const std::string_view path = policy.path();
  if (!path.starts_with(kCalibratedOf)) return {};
  const PolicyRow* row = FindPolicy(TaskKind::kRoute, path.substr(kCalibratedOf.size()));
  if (row == nullptr) return {};
  return row->name;
}

std::optional<std::string_view> RoutingExperiment::TiersFor(const PolicySpec& policy) {
  const std::string_view path = policy.path();
  if (path == ScalingExperiment::kTrained) return "route,scale";
  if (path == "trained-route") return "route";
  if (path == "trained-scale") return "scale";
  return {};
}

bool Experiment::Names(std::string_view path) const {
  return std::any_of(policies.begin(), policies.end(),
                     [&](const NamedPolicySpec& one) { return one.policy.path() == path; });
}

std::vector<NamedPolicySpec> Experiment::Given() const {
  std::vector<NamedPolicySpec> given;
  for (const NamedPolicySpec& one : policies) {
    constexpr auto& words = ScalingExperiment::kFoundWithin;
    const std::string_view path = one.policy.path();
    bool is_found = false;
    if (placement) {
      is_found = placement->RecipeFor(one.policy).has_value();
    } else if (routing) {
      is_found = routing->TiersFor(one.policy) || routing->CalibratedFor(one.policy);
    } else if (scaling) {
      is_found = std::find(words.begin(), words.end(), path) != words.end();
    }
    if (!is_found) given.push_back(one);
  }
  return given;
}

Result<Experiment> ParseExperiment(const YamlNode& root, Quoting quoting) {
  if (root.IsNull()) return root.Refuse("expected an experiment, found an empty file");
  TRY_ASSIGN(YamlMap map, root.AsMap());
  Experiment experiment;
  TRY_ASSIGN(experiment.name, map.RequiredString("experiment"));
  TRY_ASSIGN(const int64_t seed,
             map.OptionalInt("seed", 0, std::numeric_limits<int64_t>::max(), 1));
  experiment.seed = static_cast<uint64_t>(seed);
  TRY_ASSIGN(const int64_t episodes, map.OptionalInt("episodes", 1, kMostEpisodes, 200));
  experiment.episodes = static_cast<int>(episodes);
  TRY_ASSIGN(const std::string task, map.OptionalString("task", TaskName(TaskKind::kMove)));
  const Result<TaskKind> kind = TaskNamed(task);
  if (!kind) {
    return map.Optional("task")->Expected(
        fmt::format("{}{}", fmt::join(kTaskNames, " or "), DidYouMean(task, kTaskNames)));
  }
  experiment.task = *kind;
  if (*kind == TaskKind::kRoute) {
    TRY_ASSIGN(experiment.routing, ParseRouting(&map));
  } else if (*kind == TaskKind::kScale) {
    TRY_ASSIGN(experiment.scaling, ParseScaling(&map));
  } else if (*kind == TaskKind::kPlace) {
    TRY_ASSIGN(experiment.placement, ParsePlacement(&map));
  }
  TRY_ASSIGN(const YamlNode scenarios, map.Required("scenarios"));
  TRY_ASSIGN(const std::vector<YamlNode> scenario_nodes, scenarios.AsList());
  if (scenario_nodes.empty()) return scenarios.Expected("at least one scenario");
  TRY(ParseScenarios(scenario_nodes, &experiment));
  TRY(ParsePolicies(&map, &experiment));
  if (const std::optional<YamlNode> variants = map.Optional("variants")) {
    TRY_ASSIGN(YamlMap fields, variants->AsMap());
    for (const auto& [name, node] : fields.Entries()) {
      TRY_ASSIGN(ExperimentVariant variant, ParseVariant(name, node));
      const bool changes_nothing =
          (experiment.scaling || experiment.routing) && variant.changes.empty();
      if (changes_nothing && std::any_of(experiment.variants.begin(), experiment.variants.end(),
                                         [](const auto& one) { return one.changes.empty(); }))
        return node.Refuse("changes nothing, as another variant does");
      experiment.variants.push_back(std::move(variant));
    }
  }
  if (experiment.variants.empty()) experiment.variants.push_back({"as-shipped", {}});
  TRY(ParsePublishedOf(&map, quoting, &experiment));
  TRY(map.Finish());
  return experiment;
}

std::vector<ExperimentCell> CellsOf(const Experiment& experiment) {
  const bool named = experiment.placement && !experiment.placement->objectives.empty();
  const size_t loads = experiment.scaling ? experiment.scaling->loads.size() : 1;
  const size_t objectives = named ? experiment.placement->objectives.size() : 1;
  const size_t worlds = experiment.routing ? experiment.routing->region_variants.size() : 1;
  const size_t places = experiment.routing ? experiment.routing->places.size() : 1;
  // No task has more than one of the first three above 1.
  const size_t middles = loads * objectives * worlds;
  const bool plain_is_named = !experiment.scaling && !experiment.routing;
  std::vector<ExperimentCell> cells;
  for (size_t s = 0; s < experiment.scenarios.size(); ++s) {
    for (size_t m = 0; m < middles; ++m) {
      const int middle = static_cast<int>(m);
      std::string head = experiment.scenarios[s].stem().string();
      if (experiment.scaling) head += "." + experiment.scaling->loads[m];
      if (named) head += "." + experiment.placement->objectives[m].name;
      if (experiment.routing) head += "." + experiment.routing->region_variants[m];
      for (size_t p = 0; p < places; ++p) {
        const std::string at = places > 1 ? "." + experiment.routing->places[p].name : "";
        for (size_t v = 0; v < experiment.variants.size(); ++v) {
          const ExperimentVariant& variant = experiment.variants[v];
          const bool shown = plain_is_named || !variant.changes.empty();
          cells.push_back({.scenario = static_cast<int>(s),
                           .variant = static_cast<int>(v),
                           .load = experiment.scaling ? middle : 0,
                           .objective = named ? middle : 0,
                           .region_variant = experiment.routing ? middle : 0,
                           .place = static_cast<int>(p),
                           .name = head + at + (shown ? "." + variant.name : "")});
        }
      }
    }
  }
  return cells;
}

OrderedJson InputsJson(const ExperimentInputs& provenance) {
  OrderedJson files = OrderedJson::object();
  for (const auto& [path, digest] : provenance.files) files[path] = digest;
  return {{"schema_version", 1},
          {"version", provenance.version},
          {"experiment", provenance.experiment},
          {"seed", provenance.seed},
          {"files", files}};
}

Result<std::string> DifferenceOf(const ExperimentInputs& now, const Json& then,
                                 std::string_view source_name) {
  const JsonReader root(then, source_name);
  TRY_ASSIGN(const JsonReader version, root.At("version"));
  TRY_ASSIGN(const std::string version_then, version.AsString());
  TRY_ASSIGN(const JsonReader experiment, root.At("experiment"));
  TRY_ASSIGN(const std::string experiment_then, experiment.AsString());
  TRY_ASSIGN(const JsonReader files, root.At("files"));
  TRY_ASSIGN(const auto members, files.Members());
  if (version_then != now.version) {
    return fmt::format("the program was {} and is {}", version_then, now.version);
  }
  if (experiment_then != now.experiment) return std::string("the experiment itself has changed");
  std::set<std::pair<std::string, std::string>> known;
  for (const auto& [path, digest] : members) {
    TRY_ASSIGN(const std::string text, digest.AsString());
    known.emplace(path, text);
  }
  for (const auto& file : now.files) {
    if (known.contains(file)) continue;
    const bool was_read = std::any_of(known.begin(), known.end(),
                                      [&](const auto& one) { return one.first == file.first; });
    return was_read ? fmt::format("{} has changed", file.first)
                    : fmt::format("what {} held is not known", file.first);
  }
  return std::string();
}

}  // namespace rudderfish
