// SPDX-License-Identifier: Apache-2.0
#include "learn/train_options.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/suggest.h"

namespace rudderfish {
namespace {

constexpr std::string_view kAlgorithmNames[] = {"ppo", "dqn", "a2c", "recurrent-ppo", "es"};
constexpr std::string_view kRowsNames[] = {"rungs", "call-graph"};  // As ScalingRows.
constexpr int kMost = 1 << 24;

// Each group of options as visitor(name, field), for writing and for reading. First what the groups
// of both algorithms begin or end with.
template <class Options, class Visitor>
void VisitEnvs(Options& o, Visitor&& visit) {
  visit("envs", o.envs);
  visit("envs_per_slice", o.envs_per_slice);
  visit("steps", o.steps);
  visit("episode_steps_max", o.episode_steps_max);
}

template <class Options, class Visitor>
void VisitRates(Options& o, Visitor&& visit) {
  visit("learning_rate_start", o.learning_rate_start);
  visit("learning_rate_end", o.learning_rate_end);
  visit("max_gradient_norm", o.max_gradient_norm);
}

template <class Options, class Visitor>
void VisitRollout(Options& o, Visitor&& visit) {
  VisitEnvs(o, visit);
  visit("gamma", o.gamma);
  visit("lambda", o.lambda);
}

// What A2C has of it.
template <class Options, class Visitor>
void VisitActorCritic(Options& o, Visitor&& visit) {
  visit("value_weight", o.value_weight);
  visit("entropy_start", o.entropy_start);
  visit("gain_prior", o.gain_prior);
  visit("advantage_max", o.advantage_max);
  visit("value_error_max", o.value_error_max);
  VisitRates(o, visit);
}

template <class Options, class Visitor>
void VisitPpo(Options& o, Visitor&& visit) {
  visit("epochs", o.epochs);
  visit("minibatch", o.minibatch);
  visit("clip", o.clip);
  VisitActorCritic(o, visit);
}

template <class Options, class Visitor>
void VisitRecurrent(Options& o, Visitor&& visit) {
  visit("sequence", o.sequence);
  VisitPpo(o, visit);
}

template <class Options, class Visitor>
void VisitReplay(Options& o, Visitor&& visit) {
  VisitEnvs(o, visit);
  visit("samples_max", o.samples_max);
  visit("bytes_max", o.bytes_max);
}

template <class Options, class Visitor>
void VisitDqn(Options& o, Visitor&& visit) {
  visit("warm_up_samples", o.warm_up_samples);
  visit("updates", o.updates);
  visit("minibatch", o.minibatch);
  visit("n_step", o.n_step);
  visit("gamma", o.gamma);
  visit("target_rate", o.target_rate);
  visit("target_every", o.target_every);
  visit("epsilon_start", o.epsilon_start);
  visit("epsilon_end", o.epsilon_end);
  visit("epsilon_fall", o.epsilon_fall);
  VisitRates(o, visit);
}

template <class Options, class Visitor>
void VisitEvolution(Options& o, Visitor&& visit) {
  visit("pairs", o.pairs);
  visit("episodes", o.episodes);
  visit("deviation", o.deviation);
  visit("learning_rate_start", o.learning_rate_start);
  visit("learning_rate_end", o.learning_rate_end);
}

class FieldWriter {
 public:
  explicit FieldWriter(YamlWriter* out) : out_(out) {}
  void operator()(std::string_view name, int value) { out_->Field(name, value); }
  void operator()(std::string_view name, int64_t value) { out_->Field(name, value); }
  // The shortest decimal that reads back to the float: 0.2, not 0.200000003.
  void operator()(std::string_view name, float value) {
    out_->Field(name, std::strtod(fmt::format("{}", value).c_str(), nullptr));
  }

 private:
  YamlWriter* out_;
};

class FieldReader {
 public:
  explicit FieldReader(YamlMap* map) : map_(map) {}
  void operator()(std::string_view name, int& value) {
    Take(map_->OptionalInt(name, std::numeric_limits<int>::min(), std::numeric_limits<int>::max(),
                           value),
         &value);
  }
  void operator()(std::string_view name, int64_t& value) {
    Take(map_->OptionalInt(name, std::numeric_limits<int64_t>::min(),
                           std::numeric_limits<int64_t>::max(), value),
         &value);
  }
  void operator()(std::string_view name, float& value) {
    Take(map_->OptionalDouble(name, -1e30, 1e30, static_cast<double>(value)), &value);
  }
  void operator()(std::string_view name, nn::Encoder& value) {
    const Result<std::string> text = map_->OptionalString(name, nn::EncoderName(value));
    Take(text ? nn::EncoderNamed(*text) : tl::unexpected(text.error()), &value);
  }
  Result<void> Finish() {
    TRY(std::move(result_));
    return map_->Finish();
  }

 private:
  template <class Read, class Field>
  void Take(const Result<Read>& read, Field* field) {
    if (!result_) return;
    if (read) {
      *field = static_cast<Field>(*read);
    } else {
      result_ = tl::unexpected(read.error());
    }
  }

  YamlMap* map_;
  Result<void> result_;
};

Result<ScalingRival> ReadRival(const YamlNode& node) {
  ScalingRival rival;
  TRY_ASSIGN(YamlMap fields, node.AsMap());
  TRY_ASSIGN(rival.policy, fields.RequiredString("policy"));
  TRY_ASSIGN(rival.record.core_hours, fields.RequiredDouble("core_hours", 0, 1e30));
  TRY_ASSIGN(rival.record.violation_share, fields.RequiredDouble("violation_share", 0, 1));
  TRY_ASSIGN(const int64_t episodes, fields.RequiredInt("episodes", 4, 1'000'000));
  TRY_ASSIGN(const int64_t seed,
             fields.RequiredInt("seed", 0, std::numeric_limits<int64_t>::max()));
  TRY_ASSIGN(rival.allowed, fields.OptionalDouble("allowed", 0, 1, 0));
  rival.episodes = static_cast<int>(episodes);
  rival.seed = static_cast<uint64_t>(seed);
  TRY(fields.Finish());
  return rival;
}

Result<ScalingTraining> ReadScalingTraining(const YamlNode& node) {
  ScalingTraining scaling;
  TRY_ASSIGN(YamlMap fields, node.AsMap());
  TRY_ASSIGN(scaling.violations_max, fields.RequiredDouble("violations_max", 0, 1));
  TRY_ASSIGN(scaling.loads, fields.RequiredStrings("loads"));
  TRY_ASSIGN(const std::string rows, fields.OptionalString("rows", kRowsNames[0]));
  if (rows != kRowsNames[0] && rows != kRowsNames[1]) {
    return Invalid("rows: expected {}, found {}", fmt::join(kRowsNames, " or "), rows);
  }
  scaling.rows = rows == kRowsNames[1] ? ScalingRows::kCallGraph : ScalingRows::kRungs;
  if (const auto node_of_preset = fields.Optional("preset")) {
    TRY_ASSIGN(const std::string name, node_of_preset->AsString());
    const Result<ScalingPreset> preset = ScalingPresetNamed(name);
    if (!preset) return node_of_preset->Refuse(preset.error().message);
    scaling.preset = *preset;
  }
  if (const auto node_of_rival = fields.Optional("rival")) {
    TRY_ASSIGN(scaling.rival, ReadRival(*node_of_rival));
  }
  TRY(fields.Finish());
  return scaling;
}

// Refuses what lies outside, by name.
class Bounds {
 public:
  template <class Number>
  void Within(std::string_view name, Number value, Number low, Number high) {
    if (!result_ || (value >= low && value <= high)) return;  // A NaN is not within.
    result_ = Invalid("{}: expected {} to {}, found {}", name, low, high, value);
  }
  void Multiple(std::string_view name, int value, int unit) {
    if (!result_ || (value > 0 && value % unit == 0)) return;
    result_ = Invalid("{}: expected a multiple of {}, found {}", name, unit, value);
  }
  void Refuse(std::string message) {
    if (result_) result_ = Invalid("{}", message);
  }
  Result<void> Take() { return std::move(result_); }

 private:
  Result<void> result_;
};

template <class Options>
void CheckEnvs(const std::string& group, const Options& o, Bounds* bounds) {
  bounds->Within(group + ".envs_per_slice", o.envs_per_slice, 1, 4096);
  bounds->Within(group + ".envs", o.envs, 1, 65536);
  bounds->Multiple(group + ".envs", o.envs, std::max(1, o.envs_per_slice));
  bounds->Within(group + ".steps", o.steps, 1, 65536);
  bounds->Within(group + ".episode_steps_max", o.episode_steps_max, 1, kMost);
}

template <class Options>
void CheckRates(const std::string& group, const Options& o, Bounds* bounds) {
  bounds->Within(group + ".learning_rate_start", o.learning_rate_start, 0.0f, 1.0f);
  bounds->Within(group + ".learning_rate_end", o.learning_rate_end, 0.0f, 1.0f);
  bounds->Within(group + ".max_gradient_norm", o.max_gradient_norm, 0.0f, 1e9f);
}

void CheckActorCritic(const std::string& group, const RolloutOptions& rollout,
                      const PpoOptions& ppo, Bounds* bounds) {
  CheckEnvs("rollout", rollout, bounds);
  bounds->Within("rollout.gamma", rollout.gamma, 0.0f, 1.0f);
  bounds->Within("rollout.lambda", rollout.lambda, 0.0f, 1.0f);
  bounds->Within(group + ".gain_prior", ppo.gain_prior, 0.0f, 100.0f);
  bounds->Within(group + ".advantage_max", ppo.advantage_max, 0.0f, 1e9f);
  bounds->Within(group + ".value_error_max", ppo.value_error_max, 0.0f, 1e9f);
  CheckRates(group, ppo, bounds);
}

void CheckPpo(const std::string& group, const RolloutOptions& rollout, const PpoOptions& ppo,
              Bounds* bounds) {
  CheckActorCritic(group, rollout, ppo, bounds);
  bounds->Within(group + ".epochs", ppo.epochs, 1, 1000);
  bounds->Multiple(group + ".minibatch", ppo.minibatch, Ppo::kChunkSamples);
  bounds->Within<int64_t>(group + ".minibatch", ppo.minibatch, 1,
                          static_cast<int64_t>(rollout.envs) * rollout.steps);
  bounds->Within(group + ".clip", ppo.clip, 0.0f, 10.0f);
}

void CheckRecurrent(const TrainOptions& options, Bounds* bounds) {
  CheckPpo("recurrent-ppo", options.rollout, options.ppo, bounds);
  const int sequence = options.ppo.sequence;
  bounds->Within("recurrent-ppo.sequence", sequence, 1, Ppo::kChunkSamples);
  if (sequence > 0 && Ppo::kChunkSamples % sequence != 0) {
    bounds->Refuse(fmt::format("recurrent-ppo.sequence: expected a part of {}, found {}",
                               Ppo::kChunkSamples, sequence));
  }
  bounds->Multiple("rollout.steps", options.rollout.steps, std::max(1, sequence));
}

void CheckA2c(const RolloutOptions& rollout, const PpoOptions& ppo, Bounds* bounds) {
  CheckActorCritic("a2c", rollout, ppo, bounds);
  const int64_t samples = static_cast<int64_t>(rollout.envs) * rollout.steps;
  bounds->Within<int64_t>("rollout.envs times rollout.steps", samples, 1, kMost);
  bounds->Multiple("rollout.envs times rollout.steps",
                   static_cast<int>(std::min<int64_t>(samples, kMost)), Ppo::kChunkSamples);
}

void CheckDqn(const DqnOptions& dqn, Bounds* bounds) {
  CheckEnvs("replay", dqn.replay, bounds);
  bounds->Within("replay.samples_max", dqn.replay.samples_max, 1, kMost);
  bounds->Within<int64_t>("replay.bytes_max", dqn.replay.bytes_max, 1, int64_t{1} << 40);
  bounds->Within("dqn.n_step", dqn.n_step, 1, dqn.replay.steps);
  bounds->Within("dqn.updates", dqn.updates, 1, kMost);
  bounds->Multiple("dqn.minibatch", dqn.minibatch, Dqn::kChunkSamples / 2);
  bounds->Within("dqn.gamma", dqn.gamma, 0.0f, 1.0f);
  bounds->Within("dqn.target_rate", dqn.target_rate, 0.0f, 1.0f);
  bounds->Within("dqn.target_every", dqn.target_every, 1, kMost);
  bounds->Within("dqn.epsilon_start", dqn.epsilon_start, 0.0f, 1.0f);
  bounds->Within("dqn.epsilon_end", dqn.epsilon_end, 0.0f, 1.0f);
  bounds->Within("dqn.epsilon_fall", dqn.epsilon_fall, 1e-6f, 1.0f);
  CheckRates("dqn", dqn, bounds);
}

Result<void> CheckEvolution(const TrainOptions& options, Bounds* bounds) {
  if (options.scaling)
    return Invalid("algorithm es: learns to place pods, and not to scale; leave it out");
  if (options.preset)
    return Invalid("algorithm es: learns for an objective, not by an earlier system's preset");
  if (!options.from.empty())
    return Invalid("algorithm es: begins with a mix of scores, not with a network (from)");
  bounds->Within("es.pairs", options.es.pairs, 1, 4096);
  bounds->Within("es.episodes", options.es.episodes, 1, 4096);
  bounds->Within("es.deviation", options.es.deviation, 1e-6f, 1e3f);
  bounds->Within("es.learning_rate_start", options.es.learning_rate_start, 0.0f, 1e3f);
  bounds->Within("es.learning_rate_end", options.es.learning_rate_end, 0.0f, 1e3f);
  return {};
}

}  // namespace

std::string_view AlgorithmName(Algorithm algorithm) {
  return kAlgorithmNames[static_cast<int>(algorithm)];
}

Result<Algorithm> AlgorithmNamed(std::string_view name) {
  for (const Algorithm algorithm : {Algorithm::kPpo, Algorithm::kDqn, Algorithm::kA2c,
                                    Algorithm::kRecurrentPpo, Algorithm::kEvolution}) {
    if (AlgorithmName(algorithm) == name) return algorithm;
  }
  return Invalid("unknown algorithm `{}`: expected one of {}{}", name,
                 fmt::join(kAlgorithmNames, ", "), DidYouMean(name, kAlgorithmNames));
}

Result<void> CheckTrainOptions(const TrainOptions& options) {
  Bounds bounds;
  if (!options.by_steps() && !options.only_judges())
    bounds.Within("time", options.seconds, 1e-3, 1e9);
  if (options.only_judges() && (!options.scaling || options.scaling->preset)) {
    return Invalid(
        "steps: 0 needs --task scale: only there a network is judged once it is trained");
  }
  bounds.Within<uint64_t>("seed", options.seed, 0, std::numeric_limits<int64_t>::max());
  bounds.Within("threads", options.threads, 1, 1024);
  bounds.Multiple("network.hidden", options.hidden, 16);
  bounds.Within("network.hidden", options.hidden, 16, 1024);
  bounds.Within("network.rounds", options.rounds, 0, 16);
  bounds.Within("enlarge_every", options.enlarge_every, 0, kMost);
  bounds.Within<int64_t>("evaluation.every", options.evaluate_every, 1, int64_t{1} << 50);
  bounds.Within("evaluation.starts", options.validation_starts, 1, 1'000'000);
  bounds.Within("save_every_seconds", options.save_every_seconds, 0.0, 1e9);
  if (options.scaling) {
    bounds.Within("scaling.violations_max", options.scaling->violations_max, kLeastLateMax,
                  kMostLateMax);
    bounds.Within("evaluation.starts", options.validation_starts, 4, 1'000'000);
  }
  if (options.algorithm == Algorithm::kPpo) CheckPpo("ppo", options.rollout, options.ppo, &bounds);
  if (options.algorithm == Algorithm::kRecurrentPpo) {
    if (!options.scaling) {
      return Invalid(
          "algorithm recurrent-ppo: learns to scale, where questions follow each other in time; "
          "moves and placements are asked in any order");
    }
    CheckRecurrent(options, &bounds);
  }
  if (options.algorithm == Algorithm::kA2c) CheckA2c(options.rollout, options.ppo, &bounds);
  if (options.algorithm == Algorithm::kDqn) CheckDqn(options.dqn, &bounds);
  if (options.algorithm == Algorithm::kEvolution) TRY(CheckEvolution(options, &bounds));
  return bounds.Take();
}

void WriteTrainOptions(const TrainOptions& options, YamlWriter* out) {
  FieldWriter write(out);
  out->Field("algorithm", AlgorithmName(options.algorithm));
  if (options.preset) out->Field("preset", PlacementPresetName(*options.preset));
  if (options.scaling) {
    out->BeginMap("scaling");
    out->Field("violations_max", options.scaling->violations_max);
    out->FlowList("loads", std::vector<YamlScalar>(options.scaling->loads.begin(),
                                                   options.scaling->loads.end()));
    out->Field("rows", kRowsNames[static_cast<int>(options.scaling->rows)]);
    if (options.scaling->preset) out->Field("preset", ScalingPresetName(*options.scaling->preset));
    if (const auto& rival = options.scaling->rival) {
      out->BeginMap("rival");
      out->Field("policy", rival->policy);
      out->Field("core_hours", rival->record.core_hours);
      out->Field("violation_share", rival->record.violation_share);
      out->Field("episodes", rival->episodes);
      out->Field("seed", rival->seed);
      out->Field("allowed", rival->allowed);
      out->End();
    }
    out->End();
  }
  if (options.routing) WriteRoutingTraining(*options.routing, out);
  if (options.by_steps()) {
    out->Field("steps", options.steps);
  } else {
    out->Field("seconds", options.seconds);
  }
  if (!options.from.empty()) out->Field("from", options.from);
  out->Field("seed", options.seed);
  out->FlowMap("network", {{"hidden", options.hidden},
                           {"rounds", options.rounds},
                           {"encoder", nn::EncoderName(options.encoder)}});
  out->Field("enlarge_every", options.enlarge_every);
  out->FlowMap("evaluation",
               {{"every", options.evaluate_every}, {"starts", options.validation_starts}});
  out->Field("save_every_seconds", options.save_every_seconds);
  if (options.algorithm == Algorithm::kEvolution) {
    out->BeginMap(AlgorithmName(options.algorithm));
    VisitEvolution(options.es, write);
    out->End();
  } else if (options.algorithm != Algorithm::kDqn) {
    out->BeginMap("rollout");
    VisitRollout(options.rollout, write);
    out->End();
    out->BeginMap(AlgorithmName(options.algorithm));
    if (options.algorithm == Algorithm::kA2c) {
      VisitActorCritic(options.ppo, write);
    } else if (options.algorithm == Algorithm::kRecurrentPpo) {
      VisitRecurrent(options.ppo, write);
    } else {
      VisitPpo(options.ppo, write);
    }
    out->End();
  } else {
    out->BeginMap("replay");
    VisitReplay(options.dqn.replay, write);
    out->End();
    out->BeginMap("dqn");
    VisitDqn(options.dqn, write);
    out->End();
  }
}

std::vector<std::string> FixedOptions(TrainOptions options) {
  options.steps = 0;
  options.seconds = 1;
  options.save_every_seconds = 1;
  YamlWriter out;
  WriteTrainOptions(options, &out);
  std::vector<std::string> lines;
  std::string text = out.Take();
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(text.substr(at, end - at));
  }
  return lines;
}

Result<TrainOptions> ReadTrainOptions(YamlMap* map) {
  TrainOptions options;
  TRY_ASSIGN(const std::string algorithm, map->RequiredString("algorithm"));
  TRY_ASSIGN(options.algorithm, AlgorithmNamed(algorithm));
  TRY_ASSIGN(options.steps, map->OptionalInt("steps", 0, std::numeric_limits<int64_t>::max(), 0));
  TRY_ASSIGN(options.seconds, map->OptionalDouble("seconds", 0, 1e9, options.seconds));
  TRY_ASSIGN(options.from, map->OptionalString("from", ""));
  TRY_ASSIGN(const int64_t seed, map->RequiredInt("seed", 0, std::numeric_limits<int64_t>::max()));
  options.seed = static_cast<uint64_t>(seed);
  TRY_ASSIGN(options.save_every_seconds,
             map->OptionalDouble("save_every_seconds", 0, 1e9, options.save_every_seconds));
  const auto group = [&](std::string_view name, auto&& visit) -> Result<void> {
    const std::optional<YamlNode> node = map->Optional(name);
    if (!node) return {};
    TRY_ASSIGN(YamlMap fields, node->AsMap());
    FieldReader reader(&fields);
    visit(reader);
    return reader.Finish();
  };
  if (const auto node = map->Optional("preset")) {
    TRY_ASSIGN(const std::string name, node->AsString());
    const Result<PlacementPreset> preset = PlacementPresetNamed(name);
    if (!preset) return node->Refuse(preset.error().message);
    options.preset = *preset;
  }
  if (const auto node = map->Optional("enlarge_every")) {
    TRY_ASSIGN(const int64_t every, node->AsInt(0, kMost));
    options.enlarge_every = static_cast<int>(every);
  }
  if (const auto node = map->Optional("scaling")) {
    TRY_ASSIGN(options.scaling, ReadScalingTraining(*node));
  }
  if (const auto node = map->Optional("routing")) {
    TRY_ASSIGN(options.routing, ReadRoutingTraining(*node));
  }
  TRY(group("network", [&](FieldReader& read) {
    read("hidden", options.hidden);
    read("rounds", options.rounds);
    read("encoder", options.encoder);
  }));
  TRY(group("evaluation", [&](FieldReader& read) {
    read("every", options.evaluate_every);
    read("starts", options.validation_starts);
  }));
  TRY(group("rollout", [&](FieldReader& read) { VisitRollout(options.rollout, read); }));
  TRY(group("ppo", [&](FieldReader& read) { VisitPpo(options.ppo, read); }));
  TRY(group("recurrent-ppo", [&](FieldReader& read) { VisitRecurrent(options.ppo, read); }));
  TRY(group("a2c", [&](FieldReader& read) { VisitActorCritic(options.ppo, read); }));
  TRY(group("replay", [&](FieldReader& read) { VisitReplay(options.dqn.replay, read); }));
  TRY(group("dqn", [&](FieldReader& read) { VisitDqn(options.dqn, read); }));
  TRY(group("es", [&](FieldReader& read) { VisitEvolution(options.es, read); }));
  return options;
}

}  // namespace rudderfish
