// SPDX-License-Identifier: Apache-2.0
#include "evaluation/experiment.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/yaml.h"
#include "evaluation/comparison.h"
#include "evaluation/pairs.h"

namespace rudderfish {
namespace {

constexpr std::string_view kWhole = R"(experiment: e
seed: 7
episodes: 30
scenarios: [a/one.yaml, b/two.yaml]
policies: [stay, "learned=runs/a:runs/b"]
variants:
  as-shipped: {}
  far: {latency.edge.cloud: 60ms, nodes: "[1, 2]"}
)";

Result<Experiment> Parsed(std::string_view text) {
  return ParseExperiment(ParseYaml(text, "e.yaml").value());
}

std::string Refused(std::string_view text) {
  const Result<Experiment> experiment = Parsed(text);
  return experiment.has_value() ? "accepted" : experiment.error().message;
}

// One that says nothing but what `lines` say, and what has to be said.
std::string WithLines(std::string_view lines) {
  return "experiment: e\nscenarios: [one.yaml]\npolicies: [stay, greedy]\n" + std::string(lines);
}

TEST(Experiment, IsReadAsItIsWritten) {
  const Experiment experiment = Parsed(kWhole).value();
  EXPECT_EQ(experiment.name, "e");
  EXPECT_EQ(experiment.seed, 7u);
  EXPECT_EQ(experiment.episodes, 30);
  ASSERT_EQ(experiment.policies.size(), 2u);
  EXPECT_EQ(experiment.policies[0].name, "stay");
  EXPECT_EQ(experiment.policies[1].name, "learned");
  EXPECT_EQ(experiment.policies[1].policy.path(), "runs/a:runs/b");
  ASSERT_EQ(experiment.variants.size(), 2u);
  EXPECT_TRUE(experiment.variants[0].changes.empty());
  EXPECT_EQ(experiment.variants[1].changes,
            (std::vector<YamlChange>{{"latency.edge.cloud", "60ms"}, {"nodes", "[1, 2]"}}));
}

TEST(Experiment, HasACellForEveryScenarioInEveryVariant) {
  std::vector<std::string> names;
  for (const ExperimentCell& cell : CellsOf(Parsed(kWhole).value())) names.push_back(cell.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"one.as-shipped", "one.far", "two.as-shipped", "two.far"}));
}

constexpr std::string_view kOfScaling = R"(experiment: e
task: scale
scenarios: [a/shop.yaml]
loads: [steady, ramp]
violations: 0.02
calibrate: {episodes: 32}
train: {steps: 4096, seeds: 3, algorithm: a2c, encoder: gcn}
policies: [hold, hpa=calibrated, trained]
)";

TEST(Experiment, OfScalingHasACellForEveryLoad) {
  const Experiment experiment = Parsed(kOfScaling).value();
  ASSERT_TRUE(experiment.scaling.has_value());
  EXPECT_EQ(experiment.scaling->violations_max, 0.02);
  EXPECT_EQ(experiment.scaling->calibration_episodes, 32);
  EXPECT_EQ(experiment.scaling->train_steps, 4096);
  EXPECT_EQ(experiment.scaling->train_seeds, 3);
  EXPECT_EQ(experiment.scaling->algorithm, "a2c");
  EXPECT_EQ(experiment.scaling->encoder, "gcn");
  EXPECT_TRUE(experiment.Names("calibrated"));
  EXPECT_TRUE(experiment.Names("trained"));
  EXPECT_FALSE(experiment.Names("hpa"));
  const std::vector<ExperimentCell> cells = CellsOf(experiment);
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[1].name, "shop.ramp");
  EXPECT_EQ(cells[1].load, 1);
}

TEST(Experiment, OfScalingIsRefusedWithThePlaceOfTheMistake) {
  const auto refused = [](std::string_view old, std::string_view now) {
    std::string text(kOfScaling);
    text.replace(text.find(old), old.size(), now);
    return Refused(text);
  };
  EXPECT_NE(refused("task: scale", "task: scalle").find("e.yaml:2:7: `task`"), std::string::npos);
  EXPECT_NE(refused("task: scale", "task: scalle").find("did you mean `scale`"), std::string::npos);
  EXPECT_NE(refused("[steady, ramp]", "[]").find("at least one load"), std::string::npos);
  EXPECT_NE(refused("ramp]", "steady]").find("steady is named twice"), std::string::npos);
  EXPECT_NE(refused("32", "15").find("`calibrate.episodes`"), std::string::npos);
  EXPECT_NE(refused("seeds: 3", "seed: 3").find("did you mean `seeds`"), std::string::npos);
  EXPECT_NE(refused("a2c", "acc")
                .find("e.yaml:7:43: `train.algorithm`: expected ppo or dqn or a2c "
                      "or recurrent-ppo; did you mean `a2c`"),
            std::string::npos);
  EXPECT_NE(refused("a2c", "recurrent-pop").find("did you mean `recurrent-ppo`"),
            std::string::npos);
  EXPECT_NE(refused("gcn", "gnc").find("e.yaml:7:57: `train.encoder`: expected relational or gcn"),
            std::string::npos);
  EXPECT_NE(refused("gcn", "gatv3").find("did you mean `gatv2`"), std::string::npos);
  EXPECT_NE(refused("encoder", "encode").find("did you mean `encoder`"), std::string::npos);
  EXPECT_NE(refused("task: scale\n", "").find("unknown key `loads`"), std::string::npos);
}

TEST(Experiment, OfScalingHasACellForEveryLoadInEveryVariant) {
  const Experiment experiment =
      Parsed(std::string(kOfScaling) + "variants: {as-shipped: {}, tight: {load.quota.pods: 9}}\n")
          .value();
  std::vector<std::string> names;
  for (const ExperimentCell& cell : CellsOf(experiment)) {
    names.push_back(cell.name);
    EXPECT_EQ(experiment.variants[cell.variant].changes.empty(),
              cell.name.find("tight") == cell.name.npos);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"shop.steady", "shop.steady.tight", "shop.ramp",
                                             "shop.ramp.tight"}));
}

TEST(Experiment, OfScalingHasNoTwoVariantsThatChangeNothing) {
  EXPECT_NE(Refused(std::string(kOfScaling) + "variants: {a: {}, b: {}}\n").find("changes nothing"),
            std::string::npos);
}

constexpr std::string_view kOfPlacing = R"(experiment: e
task: place
scenarios: [a/drs.yaml, b/thesis.yaml]
objectives: {even: balance, near: {latency: 1, energy: 0.1}}
train: {steps: 4096, seeds: 3, algorithm: dqn, es_steps: 20000}
policies: [greedy, ppo=trained-ppo, trained]
variants: {few: {a.b: 1}, many: {}}
)";

TEST(Experiment, OfPlacingHasACellForEveryObjectiveInEveryVariant) {
  const Experiment experiment = Parsed(kOfPlacing).value();
  ASSERT_TRUE(experiment.placement.has_value());
  const PlacementExperiment& placement = *experiment.placement;
  EXPECT_EQ(placement.train_steps, 4096);
  EXPECT_EQ(placement.es_steps, 20000);
  EXPECT_EQ(placement.train_seeds, 3);
  EXPECT_EQ(placement.objectives[1].objective, (Objective{.weight = {0, 0.1, 0, 0, 0, 1}}));
  const auto recipe_for = [&](std::string_view policy) {
    return placement.RecipeFor(ParsePolicySpec(policy).value());
  };
  EXPECT_EQ(recipe_for("trained"), "dqn");
  EXPECT_EQ(recipe_for("trained-ppo"), "ppo");
  EXPECT_EQ(recipe_for("trained-thesis-lc"), "thesis-lc");
  EXPECT_EQ(recipe_for("mixed:greedy=1,latency=0.5,run=trained"), "dqn");
  for (const char* other :
       {"greedy", "runs/trained", "mixed:greedy=1", "mixed:greedy=1,run=runs/a"})
    EXPECT_FALSE(recipe_for(other).has_value()) << other;
  EXPECT_EQ(experiment.Given().size(), 1u);
  const std::vector<ExperimentCell> cells = CellsOf(experiment);
  ASSERT_EQ(cells.size(), 8u);
  EXPECT_EQ(cells[3].name, "drs.near.many");
  EXPECT_EQ(cells[3].objective, 1);
  EXPECT_EQ(cells[4].name, "thesis.even.few");
}

TEST(Experiment, OfPlacingMayLeaveTheObjectiveToItsScenarios) {
  const Experiment experiment = Parsed(WithLines("task: place\n")).value();
  ASSERT_EQ(CellsOf(experiment).size(), 1u);
  EXPECT_EQ(CellsOf(experiment)[0].name, "one.as-shipped");
}

TEST(Experiment, OfPlacingIsRefusedWithThePlaceOfTheMistake) {
  const auto refused = [](std::string_view old, std::string_view now) {
    std::string text(kOfPlacing);
    text.replace(text.find(old), old.size(), now);
    return Refused(text);
  };
  EXPECT_EQ(refused("trained-ppo", "trained-pop"),
            "e.yaml:6:20: `policies[1]`: nothing is trained by `pop`; there are ppo, dqn, es, "
            "thesis-ee, thesis-lb, thesis-lc, thesis-el-rl, drs-code, drs-paper; did you mean "
            "`ppo`?");
  EXPECT_NE(
      refused("ppo=trained-ppo", "\"mixed:greedy=1,run=trained-thesis-lcc\"").find("`thesis-lc`"),
      std::string::npos);
  EXPECT_NE(refused("ppo=trained-ppo", "greedy").find("`greedy` is named twice"),
            std::string::npos);
  EXPECT_NE(refused("ppo=trained-ppo", "\"mixed:greedy\"").find("expected options"),
            std::string::npos);
  EXPECT_NE(refused(": dqn", ": dqm").find("e.yaml:5:43: `train.algorithm`"), std::string::npos);
  EXPECT_NE(refused(": dqn", ": dqm").find("did you mean `dqn`"), std::string::npos);
  EXPECT_NE(refused(": dqn", ": a2c").find("expected ppo or dqn or es"), std::string::npos);
  EXPECT_NE(refused("algorithm:", "encoder:").find("unknown key `encoder`"), std::string::npos);
  EXPECT_NE(refused("even: balance", "even: balanse").find("did you mean `balance`"),
            std::string::npos);
  EXPECT_NE(refused("even:", "e.v:").find("no name of an objective"), std::string::npos);
  EXPECT_NE(refused("{even: balance, near: {latency: 1, energy: 0.1}}", "{}").find("at least one"),
            std::string::npos);
  EXPECT_NE(refused("task: place\n", "").find("unknown key `objectives`"), std::string::npos);
  EXPECT_NE(refused("task: place", "task: placce").find("did you mean `place`"), std::string::npos);
}

TEST(Experiment, WithoutVariantsIsRunAsShipped) {
  const Experiment experiment = Parsed(WithLines("")).value();
  ASSERT_EQ(experiment.variants.size(), 1u);
  EXPECT_EQ(experiment.variants[0].name, "as-shipped");
  EXPECT_EQ(experiment.seed, 1u);
  EXPECT_EQ(experiment.episodes, 200);
}

TEST(Experiment, IsRefusedWithThePlaceOfTheMistake) {
  EXPECT_EQ(Refused(WithLines("sed: 1\n")), "e.yaml:4:1: unknown key `sed`; did you mean `seed`?");
  EXPECT_NE(Refused(WithLines("episodes: 0\n")).find("e.yaml:4:11: `episodes`: expected"),
            std::string::npos);
  EXPECT_NE(Refused(WithLines("variants: {a/b: {}}\n")).find("no name of a variant"),
            std::string::npos);
  EXPECT_NE(
      Refused(WithLines("variants: {a: {x: [1]}}\n")).find("`variants.a.x`: expected a value"),
      std::string::npos);
  EXPECT_NE(Refused("experiment: e\nscenarios: [a/x.yaml, b/x.yaml]\npolicies: [stay, greedy]\n")
                .find("e.yaml:2:23: `scenarios[1]`: there is another scenario called x"),
            std::string::npos);
  EXPECT_NE(
      Refused("experiment: e\nscenarios: []\npolicies: [stay, greedy]\n").find("at least one"),
      std::string::npos);
  EXPECT_NE(Refused("experiment: e\nscenarios: [a]\npolicies: [stay]\n").find("two policies"),
            std::string::npos);
  EXPECT_NE(Refused("~").find("found an empty file"), std::string::npos);
}

// `baseline` ends all its starts at 100 ms, the candidate at each of `candidate`.
Evaluation TwoPolicies(const std::vector<double>& candidate) {
  Evaluation evaluation{.scenario = "s"};
  evaluation.policies = {{.name = "stay"}, {.name = "learned"}};
  evaluation.times.resize(2);
  for (size_t i = 0; i < candidate.size(); ++i) {
    evaluation.starts.push_back({.line = static_cast<int>(i), .pattern = "p"});
    for (const bool is_candidate : {false, true}) {
      EvaluatedEpisode episode{.start = static_cast<int>(i)};
      episode.initial.latency_ms = 100;
      episode.final.latency_ms = is_candidate ? candidate[i] : 100;
      evaluation.policies[is_candidate ? 1 : 0].episodes.push_back(episode);
    }
  }
  return evaluation;
}

const PairLabels kOne = {{"scenario", "one"}, {"variant", "far"}};

TEST(Experiment, PairsSayWhetherTheCandidateIsBetterWorseOrNeither) {
  const auto better = [](const std::vector<double>& candidate) {
    const OrderedJson pairs = PairsOf(OutcomesOf(TwoPolicies(candidate)), {}, kOne);
    EXPECT_EQ(pairs.size(), 1u);
    return pairs[0]["better"];
  };
  EXPECT_EQ(better({50, 60, 40, 50, 55, 45, 52}), true);
  EXPECT_EQ(better({150, 160, 140, 150, 155, 145, 152}), false);
  EXPECT_EQ(better({150, 60, 140, 50, 155, 45, 100}), nullptr);
  EXPECT_EQ(better({50, 60}), nullptr) << "two starts are too few to say";
}

TEST(Experiment, PairsGiveBothSidesAndTheInterval) {
  const OrderedJson pair =
      PairsOf(OutcomesOf(TwoPolicies({50, 50, 50, 50, 50, 50, 50})), {}, kOne)[0];
  EXPECT_EQ(pair["scenario"], "one");
  EXPECT_EQ(pair["variant"], "far");
  EXPECT_EQ(pair["metric"], "final_latency");
  EXPECT_EQ(pair["candidate"], "learned");
  EXPECT_EQ(pair["baseline"], "stay");
  EXPECT_DOUBLE_EQ(pair["candidate_iqm"].get<double>(), 50);
  EXPECT_DOUBLE_EQ(pair["baseline_iqm"].get<double>(), 100);
  EXPECT_DOUBLE_EQ(pair["difference_ci95"][0].get<double>(), -50);
  EXPECT_DOUBLE_EQ(pair["difference_ci95"][1].get<double>(), -50);
  EXPECT_EQ(pair["episodes"], 7);
  EXPECT_NE(PairsTable(PairsOf(OutcomesOf(TwoPolicies({50, 50, 50, 50, 50, 50, 50})), {}, kOne))
                .find("[-50.0, -50.0]  yes"),
            std::string::npos);
  EXPECT_NE(PairsTable(PairsOf(OutcomesOf(TwoPolicies({50})), {}, kOne))
                .find("undecided\nNothing can be shown on 1 episode: at least 6 are needed.\n"),
            std::string::npos);
}

TEST(Experiment, ItsInputsTellWhatHasChanged) {
  const ExperimentInputs then{"1", "text", {{"a.yaml", "11"}, {"b.yaml", "22"}}};
  const Json json = Json::parse(InputsJson(then).dump());
  const auto difference = [&](ExperimentInputs now) {
    return DifferenceOf(now, json, "p.json").value();
  };
  EXPECT_EQ(difference(then), "");
  EXPECT_EQ(difference({"2", "text", then.files}), "the program was 1 and is 2");
  EXPECT_EQ(difference({"1", "other", then.files}), "the experiment itself has changed");
  EXPECT_EQ(difference({"1", "text", {{"a.yaml", "11"}, {"b.yaml", "23"}}}), "b.yaml has changed");
  EXPECT_EQ(difference({"1", "text", {{"a.yaml", "11"}, {"c.csv", "33"}}}),
            "what c.csv held is not known");
  EXPECT_FALSE(DifferenceOf(then, Json::parse("{}"), "p.json").has_value());
}

constexpr std::string_view kRoutes = R"(experiment: e
task: route
scenarios: [regions.yaml]
region_variants: [spot, full]
places: {home: [a, b], all: []}
calibrate: {settings: 20, episodes: 8}
train: {steps: 1000, seeds: 3}
policies: [lp=calibrated-lp, near=locality, learned=trained]
variants: {as-shipped: {}, slow: {regions.interval: 5min}}
)";

TEST(RoutingExperiment, HasACellForEveryVariantOfTheRegionsAtEveryPlace) {
  const Experiment experiment = Parsed(kRoutes).value();
  ASSERT_TRUE(experiment.routing.has_value());
  const RoutingExperiment& routing = *experiment.routing;
  EXPECT_EQ(routing.region_variants, (std::vector<std::string>{"spot", "full"}));
  EXPECT_EQ(routing.places[0].regions, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(routing.places[1].regions.empty());
  EXPECT_EQ(routing.calibration_settings, 20);
  EXPECT_EQ(routing.calibration_episodes, 8);
  EXPECT_EQ(routing.train_steps, 1000);
  EXPECT_EQ(routing.train_seeds, 3);
  std::vector<std::string> names;
  for (const ExperimentCell& cell : CellsOf(experiment)) names.push_back(cell.name);
  EXPECT_EQ(names, (std::vector<std::string>{"regions.spot.home", "regions.spot.home.slow",
                                             "regions.spot.all", "regions.spot.all.slow",
                                             "regions.full.home", "regions.full.home.slow",
                                             "regions.full.all", "regions.full.all.slow"}));
  const std::vector<NamedPolicySpec> given = experiment.Given();
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].name, "near");
  EXPECT_EQ(RoutingExperiment::CalibratedFor(experiment.policies[0].policy), "lp");
  EXPECT_EQ(RoutingExperiment::CalibratedFor(experiment.policies[1].policy), std::nullopt);
}

TEST(RoutingExperiment, SaysWhatItDoesNotKnow) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text(kRoutes);
    text.replace(text.find(from), from.size(), to);
    return Refused(text);
  };
  EXPECT_NE(with("calibrated-lp", "calibrated-pl").find("no policy is called `pl`; there are "),
            std::string::npos);
  EXPECT_NE(with("calibrated-lp", "calibrated-localty").find("did you mean `locality`"),
            std::string::npos);
  EXPECT_NE(with("[spot, full]", "[]").find("at least one variant of regions"), std::string::npos);
  EXPECT_NE(with("[spot, full]", "[spot, spot]").find("spot is named twice"), std::string::npos);
  EXPECT_NE(with("home: [a, b]", "home: a").find("places.home"), std::string::npos);
  EXPECT_NE(with("settings: 20", "setings: 20").find("did you mean `settings`"), std::string::npos);
  EXPECT_NE(with("steps: 1000", "algorithm: ppo").find("es"), std::string::npos);
}

}  // namespace
}  // namespace rudderfish
