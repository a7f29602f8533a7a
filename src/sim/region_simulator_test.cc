// SPDX-License-Identifier: Apache-2.0
#include "sim/region_simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "policy/registry.h"
#include "scenario/scenario.h"
#include "sim/routing_evaluation.h"
#include "tests/support/count_allocations.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

std::shared_ptr<const RegionWorld> ShippedRegions() {
  return LoadScenario(SourcePath("scenarios/multicloud-16.yaml")).value().regions;
}

const RegionVariant& VariantNamed(const RegionWorld& world, std::string_view name) {
  for (const RegionVariant& variant : world.variants) {
    if (variant.name == name) return variant;
  }
  return world.variants.front();
}

std::unique_ptr<RoutingPolicy> Rule(std::string_view spec) {
  return MakeRoutingPolicy(*ParsePolicySpec(spec)).value();
}

struct Played {
  std::shared_ptr<const RegionWorld> world = ShippedRegions();
  RegionSimulator simulator{world, LawsOf(*world)};

  RoutingFigures Run(std::string_view spec, std::string_view variant, uint64_t seed) {
    return RunRouting(*Rule(spec), {VariantNamed(*world, variant), seed}, &simulator);
  }
};

TEST(RegionSimulator, AnEpisodeIsAFunctionOfItsSeed) {
  Played played;
  const double first = played.Run("lp", "full", 3).objective();
  EXPECT_NE(played.Run("lp", "full", 4).objective(), first);
  EXPECT_EQ(played.Run("lp", "full", 3).objective(), first);
}

TEST(RegionSimulator, PoliciesMeetTheSameRequests) {
  Played played;
  const RoutingFigures one = played.Run("locality", "full", 7);
  const RoutingFigures other = played.Run("greenest", "full", 7);
  EXPECT_NEAR(one.requests / other.requests, 1, 1e-12);
  EXPECT_LT(other.carbon, one.carbon);
  EXPECT_GT(other.egress, one.egress);
}

TEST(RegionSimulator, CalmEpisodesCostWhatNodesCost) {
  Played played;
  const RoutingFigures figures = played.Run("static", "calm", 1);
  EXPECT_EQ(figures.egress, 0);
  EXPECT_EQ(figures.spot_hours, 0);
  EXPECT_EQ(figures.foreign, 0);
  EXPECT_LT(figures.late_share(), 0.005);
  EXPECT_NEAR(figures.nodes * played.simulator.laws(0)->unit(), figures.dollars,
              1e-6 * figures.dollars);
}

TEST(RegionSimulator, OutagesAndReclaimsHurtWhoStaysHome) {
  Played played;
  double calm = 0, full = 0, local = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    calm += played.Run("static", "calm", seed).late_share();
    full += played.Run("static", "full", seed).late_share();
    local += played.Run("locality", "full", seed).late_share();
  }
  EXPECT_GT(full, 2 * calm);
  EXPECT_LT(local, full);
}

TEST(RegionSimulator, AStepAllocatesNothing) {
  Played played;
  const auto policy = Rule("lp");
  const auto memory = policy->NewMemory(played.simulator.laws(0));
  played.simulator.Start({VariantNamed(*played.world, "full"), 5});
  const long before = allocation_count;
  for (int step = 0; step < 100; ++step) {
    policy->Decide(played.simulator.Question(0), memory.get(), played.simulator.Answer(0));
    played.simulator.Step();
  }
  EXPECT_EQ(allocation_count - before, 0);
}

TEST(RegionWeather, NoticesComeMoreOftenInStorms) {
  const auto world = ShippedRegions();
  RegionWeatherSource source(world);
  int storms = 0, calms = 0, right = 0, wrong = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    source.Start({VariantNamed(*world, "spot"), seed});
    for (int step = 0; step < 240; ++step) {
      for (const RegionWeather& one : source.regions()) {
        (one.storm ? storms : calms) += 1;
        if (one.notice) (one.storm ? right : wrong) += 1;
      }
      source.Step();
    }
  }
  EXPECT_NEAR(static_cast<double>(right) / storms, world->chance.notice, 0.02);
  EXPECT_NEAR(static_cast<double>(wrong) / calms, world->chance.false_notice, 0.005);
}

TEST(RegionWeather, IsTheSameInAllVariantsButForWhatDisturbs) {
  const auto world = ShippedRegions();
  RegionWeatherSource calm(world), full(world);
  calm.Start({VariantNamed(*world, "calm"), 9});
  full.Start({VariantNamed(*world, "spot"), 9});  // No flash crowds in either.
  int storms = 0;
  for (int step = 0; step < 240; ++step) {
    for (size_t r = 0; r < calm.regions().size(); ++r) {
      EXPECT_EQ(calm.regions()[r].demand_per_s, full.regions()[r].demand_per_s);
      EXPECT_EQ(calm.regions()[r].spot_granted, 0);
      storms += full.regions()[r].storm ? 1 : 0;
    }
    calm.Step();
    full.Step();
  }
  EXPECT_GT(storms, 0);
}

TEST(RegionWeather, ATraceIsReplayedByTheClockOfEachRegionAndInAPartOfItsOwnForJudging) {
  RegionWorld world = *ShippedRegions();
  // Two hours to learn on, two to be judged by, in bins of an hour.
  world.demand = Traffic{.shape = Traffic::Shape::kReplay, .scale_per_s = 1};
  world.demand->trace =
      std::make_shared<const RequestTrace>(RequestTrace{3600, {100, 100, 300, 300}});
  world.variants = {{"recorded", 1U << static_cast<int>(Disturbance::kTrace)}};
  const auto shared = std::make_shared<const RegionWorld>(world);
  RegionWeatherSource source(shared);
  for (const EpisodeUse use : {EpisodeUse::kLearning, EpisodeUse::kEvaluation}) {
    // Of a mean of 200: half of it where one learns, one and a half where one is judged.
    const double share = use == EpisodeUse::kLearning ? 0.5 : 1.5;
    source.Start({world.variants[0], 3, use});
    for (int step = 0; step < 240; ++step, source.Step()) {
      for (size_t r = 0; r < source.regions().size(); ++r) {
        const Region& place = world.network->regions[r];
        EXPECT_NEAR(source.regions()[r].mean_per_s,
                    place.peak_per_s * (1 + world.chance.night_share) / 2 * share, 1e-9);
      }
    }
  }
  // A region whose clock is an hour ahead has now what another has in an hour.
  world.demand->trace =
      std::make_shared<const RequestTrace>(RequestTrace{3600, {50, 150, 0, 200, 1, 1, 1, 1}});
  RegionNetwork network = *world.network;
  network.regions[1].utc_offset_h = network.regions[0].utc_offset_h + 1;
  network.regions[1].peak_per_s = network.regions[0].peak_per_s;
  world.network = std::make_shared<const RegionNetwork>(network);
  RegionWeatherSource other(std::make_shared<const RegionWorld>(world));
  other.Start({world.variants[0], 3});
  std::vector<double> behind, ahead;
  for (int step = 0; step < 240; ++step, other.Step()) {
    behind.push_back(other.regions()[0].mean_per_s);
    ahead.push_back(other.regions()[1].mean_per_s);
  }
  for (size_t i = 0; i + 60 < behind.size(); ++i) EXPECT_NEAR(ahead[i], behind[i + 60], 1e-6);
}

TEST(RegionWeather, DemandIsPoissonAroundItsMean) {
  const auto world = ShippedRegions();
  RegionWeatherSource source(world);
  double squares = 0, sum = 0;
  int count = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    source.Start({VariantNamed(*world, "calm"), seed});
    for (int step = 0; step < 50; ++step, source.Step()) {
      for (const RegionWeather& one : source.regions()) {
        const double mean = one.mean_per_s * 60, came = one.demand_per_s * 60;
        const double deviation = (came - mean) / std::sqrt(mean);
        sum += deviation;
        squares += deviation * deviation;
        ++count;
      }
    }
  }
  EXPECT_NEAR(sum / count, 0, 3 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 5 / std::sqrt(count));
}

TEST(RegionSimulator, AnEpisodeSeesNothingOfTheOneBefore) {
  const auto world = ShippedRegions();
  RegionSimulator simulator(world, LawsOf(*world));
  const auto first_sight = [&] {
    simulator.Start({world->variants[3], 5});
    std::vector<double> seen;
    for (const RegionSight& one : simulator.Question(0).regions)
      seen.insert(seen.end(), {one.wait_s, static_cast<double>(one.lost), one.load_per_s});
    return seen;
  };
  const std::vector<double> fresh = first_sight();
  for (int step = 0; step < world->steps(); ++step) simulator.Step();
  EXPECT_EQ(first_sight(), fresh);
}

TEST(RegionSimulator, WhatIsToComeIsWhatThenComes) {
  const auto world = ShippedRegions();
  RegionSimulator simulator(world, LawsOf(*world));
  simulator.Start({world->variants[0], 5});
  EXPECT_TRUE(simulator.Question(0).true_demand_per_s.empty());
  simulator.Start({world->variants[0], 5}, RegionSimulator::Foresight::kDemand);
  const size_t n = static_cast<size_t>(world->network->size());
  for (int step = 0; step < 40; ++step) {
    const auto told = simulator.Question(0).true_demand_per_s;
    ASSERT_EQ(told.size(), 16 * n);
    const std::vector<double> next(told.begin(), told.begin() + static_cast<std::ptrdiff_t>(n));
    const std::vector<double> second(told.begin() + static_cast<std::ptrdiff_t>(n),
                                     told.begin() + static_cast<std::ptrdiff_t>(2 * n));
    simulator.Step();
    for (size_t r = 0; r < n; ++r) {
      EXPECT_EQ(simulator.Question(0).regions[r].demand_per_s, next[r]);
      EXPECT_EQ(simulator.Question(0).true_demand_per_s[r], second[r]);
    }
  }
}

TEST(RegionSimulator, InABrownoutAPartOfTheNodesServesNothing) {
  auto world = std::make_shared<RegionWorld>(*ShippedRegions());
  world->variants.push_back(
      {.name = "dark", .disturbances = 1U << static_cast<int>(Disturbance::kBrownout)});
  world->chance.brownout_per_day = 12;
  RegionSimulator simulator(world, LawsOf(*world));
  const auto policy = Rule("locality");
  RoutingRun run(*policy, {world->variants.back(), 3}, &simulator);
  int dark = 0;
  for (int step = 0; step < world->steps(); ++step) {
    run.Step();
    for (int r = 0; r < world->network->size(); ++r) {
      const RegionSight& seen = simulator.Question(0).regions[r];
      const int ready = simulator.nodes().ready(r);
      EXPECT_EQ(seen.nodes(), simulator.nodes().held(r, 0) + simulator.nodes().held(r, 1));
      EXPECT_EQ(seen.lost, 0);
      if (seen.ready_nodes() == ready) continue;
      ++dark;
      EXPECT_NEAR(seen.ready_nodes(), 0.5 * ready, 0.2 * ready + 1);
    }
  }
  EXPECT_GT(dark, 100);
  // Demand is that of calm episodes, which cost less.
  const RoutingFigures calm = RunRouting(*policy, {world->variants[0], 3}, &simulator);
  const RoutingFigures figures = RunRouting(*policy, {world->variants.back(), 3}, &simulator);
  EXPECT_NEAR(figures.requests, calm.requests, 1e-6 * calm.requests);
  EXPECT_GT(figures.late_share(), calm.late_share());
}

// Four services on the nodes of six regions.
struct PlayedTogether {
  std::shared_ptr<const RegionWorld> world =
      LoadScenario(SourcePath("scenarios/multicloud-services.yaml")).value().regions;
  RegionSimulator simulator{world, LawsOf(*world)};
};

TEST(RegionSimulator, PodsOfAllServicesFillTheNodesThereAre) {
  PlayedTogether played;
  const auto policy = Rule("mpc");
  RoutingRun run(*policy, {VariantNamed(*played.world, "full"), 3}, &played.simulator);
  for (int step = 0; step < played.world->steps(); ++step) {
    run.Step();
    for (int r = 0; r < played.world->network->size(); ++r) {
      for (int price = 0; price < kNodePrices; ++price) {
        double used = 0, held = 0, wanted = 0;
        for (int s = 0; s < played.simulator.services(); ++s) {
          const RegionSight& seen = played.simulator.Question(s).regions[r];
          const double each = played.world->services[s].own.pods_per_node;
          used += seen.ready[price] / each;
          held += seen.nodes(price) / each;
          wanted += played.simulator.Answer(s).nodes[r * kNodePrices + price] / each;
        }
        const RegionNodes& nodes = played.simulator.nodes();
        EXPECT_LE(used, nodes.ready(r, price) + 1e-6);
        EXPECT_LE(held, std::max(nodes.held(r, price), nodes.ready(r, price)) + 1e-6);
        // No more nodes than pods need, and no pod waits for room that is there.
        EXPECT_LE(nodes.held(r, price), std::ceil(wanted - 1e-9));
        if (used + 1 < wanted) {
          EXPECT_GT(used, nodes.ready(r, price) - 1);
        }
      }
      EXPECT_LE(
          played.simulator.nodes().held(r, kOnDemand) + played.simulator.nodes().held(r, kSpot),
          played.world->network->regions[r].nodes_max);
    }
  }
}

TEST(RegionSimulator, ServicesAddUpToTheWhole) {
  PlayedTogether played;
  const RoutingFigures figures =
      RunRouting(*Rule("lp"), {VariantNamed(*played.world, "full"), 3}, &played.simulator);
  double requests = 0, late = 0;
  for (const RoutingFigures::OfService& one : figures.services) {
    requests += one.requests;
    late += one.late_requests;
  }
  EXPECT_NEAR(requests, figures.requests, 1e-6 * requests);
  EXPECT_NEAR(late, figures.late_requests, 1e-6 * requests);
  EXPECT_NEAR(figures.services[0].requests / requests, 0.55, 0.03);
  EXPECT_EQ(figures.services[4].requests, 0);
}

TEST(RegionSimulator, TwoHalvesCostAboutWhatTheWholeDoes) {
  auto world = std::make_shared<RegionWorld>(*ShippedRegions());
  world->chance.service_noise = 0;
  RegionSimulator whole(world, LawsOf(*world));
  auto halves = std::make_shared<RegionWorld>(*world);
  for (const char* name : {"a", "b"}) {
    const RegionService& own = world->network->service;
    halves->services.push_back(
        {.name = name,
         .demand = 0.5,
         .own = own,
         .bounds = {},
         .pods = std::make_shared<const RegionNetwork>(PodsOf(*world->network, own))});
  }
  RegionSimulator together(halves, LawsOf(*halves));
  double of_whole = 0, of_halves = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    of_whole += RunRouting(*Rule("lp"), {VariantNamed(*world, "full"), seed}, &whole).objective();
    of_halves +=
        RunRouting(*Rule("lp"), {VariantNamed(*halves, "full"), seed}, &together).objective();
  }
  EXPECT_NEAR(of_halves / of_whole, 1, 0.08);
}

TEST(RegionSimulator, NoRuleServesRequestsWhereTheyMayNotBeServed) {
  PlayedTogether played;
  const int orders = 3;
  ASSERT_EQ(played.world->services[orders].name, "orders");
  const RegionNetwork& network = *played.world->services[orders].pods;
  for (const char* spec :
       {"static:home=50", "round-robin", "locality", "cheapest", "greenest", "carbon-aware",
        "least-latency", "power-of-two", "prequal", "lp", "mpc", "clairvoyant"}) {
    const auto policy = Rule(spec);
    RoutingRun run(*policy, {VariantNamed(*played.world, "full"), 5}, &played.simulator);
    for (int step = 0; step < 120; ++step) {
      run.Step();
      const auto shares = played.simulator.Answer(orders).shares;
      for (int from = 0; from < network.size(); ++from) {
        double sum = 0;
        for (int to = 0; to < network.size(); ++to) {
          const double share = shares[network.At(from, to)];
          sum += share;
          EXPECT_TRUE(share == 0 || network.Allows(from, to)) << spec;
        }
        EXPECT_NEAR(sum, 1, 1e-9) << spec;
      }
    }
  }
}

TEST(RegionSimulator, SeveralServicesAllocateNothing) {
  PlayedTogether played;
  const auto policy = Rule("mpc");
  RoutingRun run(*policy, {VariantNamed(*played.world, "full"), 3}, &played.simulator);
  run.Step();
  const long before = allocation_count;
  for (int step = 0; step < 60; ++step) run.Step();
  EXPECT_EQ(allocation_count - before, 0);
}

TEST(RegionSimulator, TheProviderThatServesMostIsSeen) {
  auto world = std::make_shared<RegionWorld>(*ShippedRegions());
  RegionNetwork network = *world->network;
  network.providers = {"", "one"};
  double one = 0, all = 0;
  for (int r = 0; r < network.size(); ++r) {
    network.regions[r].provider = r % 4 == 0 ? 1 : 0;
    (r % 4 == 0 ? one : all) += network.regions[r].peak_per_s;
  }
  all += one;
  world->network = std::make_shared<const RegionNetwork>(network);
  RegionSimulator simulator(world, LawsOf(*world));
  const RoutingFigures figures = RunRouting(*Rule("static"), {world->variants[0], 1}, &simulator);
  EXPECT_NEAR(figures.of_provider[0] + figures.of_provider[1], figures.requests, 1e-6 * all);
  EXPECT_NEAR(figures.provider_share(), std::max(one, all - one) / all, 0.1);
}

TEST(RoutingEvaluation, WhatKnowsTheDemandToComeIsABoundAndNoRival) {
  const auto world = ShippedRegions();
  const auto flash = std::find_if(world->variants.begin(), world->variants.end(),
                                  [](const RegionVariant& one) { return one.name == "flash"; });
  ASSERT_NE(flash, world->variants.end());
  const std::vector<NamedRoutingPolicy> both = {
      {"clairvoyant", {Rule("clairvoyant")}}, {"mpc", {Rule("mpc")}}, {"lp", {Rule("lp")}}};
  ThreadPool pool(2);
  const RoutingEvaluation evaluation = EvaluateRouting(
      "m", world, both,
      {.variants = {static_cast<int>(flash - world->variants.begin())}, .episodes = 8, .trials = 1},
      &pool);
  EXPECT_EQ(evaluation.foresees, (std::vector<bool>{true, false, false}));
  double known = 0, forecast = 0;
  for (int i = 0; i < 8; ++i) {
    known += evaluation.at(0, 0, 0, i).objective();
    forecast += evaluation.at(0, 1, 0, i).objective();
  }
  EXPECT_LT(known, forecast);
}

TEST(RoutingEvaluation, DoesNotDependOnThreadsOrOtherPolicies) {
  const auto world = ShippedRegions();
  const std::vector<NamedRoutingPolicy> both = {{"static", {Rule("static")}},
                                                {"locality", {Rule("locality")}}};
  const RoutingEvaluationOptions options{.variants = {0, 3}, .episodes = 2, .trials = 1};
  ThreadPool one(1), three(3);
  const RoutingEvaluation serial = EvaluateRouting("m", world, both, options, &one);
  const RoutingEvaluation parallel = EvaluateRouting("m", world, both, options, &three);
  const RoutingEvaluation alone = EvaluateRouting("m", world, {both[1]}, options, &one);
  for (int variant = 0; variant < 2; ++variant) {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(serial.at(variant, 1, 0, i).objective(), parallel.at(variant, 1, 0, i).objective());
      EXPECT_EQ(serial.at(variant, 1, 0, i).objective(), alone.at(variant, 0, 0, i).objective());
    }
    EXPECT_EQ(serial.TrialOf(variant, 0).objective, parallel.TrialOf(variant, 0).objective);
  }
}

TEST(RoutingEvaluation, APolicyOfSeveralSeedsHasTheFiguresOfEach) {
  const auto world = ShippedRegions();
  const std::vector<NamedRoutingPolicy> policies = {{"static", {Rule("static")}},
                                                    {"both", {Rule("locality"), Rule("lp")}}};
  const RoutingEvaluationOptions options{.variants = {3}, .episodes = 2, .trials = 2};
  ThreadPool pool(2);
  const RoutingEvaluation all = EvaluateRouting("m", world, policies, options, &pool);
  EXPECT_EQ(all.seeds(0), 1);
  EXPECT_EQ(all.seeds(1), 2);
  const RoutingEvaluation apart = EvaluateRouting(
      "m", world, {{"locality", {Rule("locality")}}, {"lp", {Rule("lp")}}}, options, &pool);
  for (int seed = 0; seed < 2; ++seed) {
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(all.at(0, 1, seed, i).objective(), apart.at(0, seed, 0, i).objective());
  }
  EXPECT_NEAR(all.TrialOf(0, 1).objective,
              (apart.TrialOf(0, 0).objective + apart.TrialOf(0, 1).objective) / 2, 1e-12);
}

}  // namespace
}  // namespace rudderfish
