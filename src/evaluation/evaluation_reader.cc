// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <vector>

#include "evaluation/comparison.h"

namespace rudderfish {
namespace {

constexpr double kMostMs = 1e12;

struct ReadEpisode {
  int line = 0;
  std::string pattern;
  double initial_ms = 0, final_ms = 0;
};

Result<ReadEpisode> EpisodeOf(const JsonReader& object) {
  ReadEpisode episode;
  TRY_ASSIGN(const JsonReader start, object.At("start"));
  TRY_ASSIGN(const int64_t line, start.AsInt(0, std::numeric_limits<int>::max()));
  episode.line = static_cast<int>(line);
  TRY_ASSIGN(const JsonReader pattern, object.At("pattern"));
  TRY_ASSIGN(episode.pattern, pattern.AsString());
  TRY_ASSIGN(const JsonReader initial, object.At("initial"));
  TRY_ASSIGN(episode.initial_ms, initial.AsDouble(0, kMostMs));
  TRY_ASSIGN(const JsonReader final, object.At("final"));
  TRY_ASSIGN(episode.final_ms, final.AsDouble(0, kMostMs));
  return episode;
}

Result<EvaluatedPolicy> PolicyOfJson(const JsonReader& object, Evaluation* evaluation) {
  EvaluatedPolicy policy;
  TRY_ASSIGN(const JsonReader name, object.At("name"));
  TRY_ASSIGN(policy.name, name.AsString());
  TRY_ASSIGN(const JsonReader seeds, object.At("training_seeds"));
  TRY_ASSIGN(const int64_t count, seeds.AsInt(1, 1000));
  policy.training_seeds = static_cast<int>(count);
  TRY_ASSIGN(const std::optional<JsonReader> shares, object.Find("shares_network"));
  if (shares) {
    TRY_ASSIGN(policy.shares_network, shares->AsBool());
  }
  TRY_ASSIGN(const JsonReader list, object.At("episodes"));
  TRY_ASSIGN(const std::vector<JsonReader> episodes, list.Elements());
  const bool first = evaluation->policies.empty();
  if (episodes.empty() || episodes.size() % policy.training_seeds != 0)
    return list.Expected("an episode of every start and training seed");
  const size_t starts = episodes.size() / policy.training_seeds;
  if (!first && starts != evaluation->starts.size())
    return list.Expected("the starts of the first policy");
  for (size_t i = 0; i < episodes.size(); ++i) {
    TRY_ASSIGN(const ReadEpisode read, EpisodeOf(episodes[i]));
    if (first && i < starts)
      evaluation->starts.push_back({.line = read.line, .pattern = read.pattern});
    if (evaluation->starts[i % starts].line != read.line)
      return episodes[i].Refuse("another start than that of the first policy");
    EvaluatedEpisode& episode = policy.episodes.emplace_back();
    episode.start = static_cast<int>(i % starts);
    episode.training_seed = static_cast<int>(i / starts);
    episode.initial.latency_ms = read.initial_ms;
    episode.final.latency_ms = read.final_ms;
  }
  return policy;
}

}  // namespace

Result<Evaluation> EvaluationOf(const Json& json, std::string_view source_name) {
  const JsonReader root(json, source_name);
  Evaluation evaluation;
  TRY_ASSIGN(const JsonReader scenario, root.At("scenario"));
  TRY_ASSIGN(evaluation.scenario, scenario.AsString());
  TRY_ASSIGN(const JsonReader list, root.At("policies"));
  TRY_ASSIGN(const std::vector<JsonReader> policies, list.Elements());
  if (policies.empty()) return list.Expected("at least one policy");
  for (const JsonReader& one : policies) {
    TRY_ASSIGN(EvaluatedPolicy policy, PolicyOfJson(one, &evaluation));
    evaluation.policies.push_back(std::move(policy));
  }
  evaluation.times.resize(evaluation.policies.size());
  return evaluation;
}

}  // namespace rudderfish
