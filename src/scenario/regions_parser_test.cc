// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "scenario/scenario.h"
#include "tests/support/source_path.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kTwoRegions = R"(rudderfish: scenario/v1
name: two
regions:
  service: {pod_rate: 20, pods_per_node: 4, deadline: 400ms, response: 8kB, idle_watts: 9,
    busy_watts: 15}
  egress_per_gb:
    within: 0.02
    zones: {eu: 0.05, au: 0.10}
  at:
    london: {zone: eu, latitude: 51.5, longitude: 0, utc_offset: 0, peak_rate: 100, on_demand: 0.17,
      spot: 0.05, carbon: 163, start: [2min, 4min], nodes_max: 10}
    sydney: {zone: au, latitude: -33.9, longitude: 151.2, utc_offset: 10, peak_rate: 50,
      on_demand: 0.19, spot: 0.06, carbon: 552, start: [2min, 4min], nodes_max: 10}
  round_trips: {base: 6ms, per_1000km: 15.5ms}
  variants: {calm: [], full: [spot, flash]}
)";

std::string With(std::string_view from, std::string_view to) {
  std::string text(kTwoRegions);
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

std::string ErrorOf(const std::string& text) {
  const auto scenario = ParseScenario(text, "two.yaml");
  return scenario ? "" : scenario.error().message;
}

TEST(Regions, AreReadWithTheirDefaults) {
  const Scenario scenario = ParseScenario(kTwoRegions, "two.yaml").value();
  ASSERT_NE(scenario.regions, nullptr);
  const RegionWorld& world = *scenario.regions;
  const RegionNetwork& network = *world.network;
  EXPECT_EQ(network.size(), 2);
  EXPECT_EQ(world.steps(), 240);
  EXPECT_NEAR(DistanceKm(network.regions[0], network.regions[1]), 17'000, 100);
  EXPECT_NEAR(network.rtt_s[network.At(0, 1)], 0.006 + 0.0155 * 17, 0.002);
  EXPECT_EQ(network.rtt_s[network.At(0, 0)], 0);
  EXPECT_EQ(network.egress_per_gb[network.At(0, 1)], 0.10);  // The dearer one's.
  EXPECT_EQ(network.egress_per_gb[network.At(1, 1)], 0);
  EXPECT_TRUE(world.variants[1].Has(Disturbance::kSpot));
  EXPECT_FALSE(world.variants[1].Has(Disturbance::kOutage));
  EXPECT_EQ(scenario.node_count(), 0);
}

TEST(Regions, ReadBackAsTheyWereWritten) {
  const std::string shipped = ReadFile(SourcePath("scenarios/multicloud-16.yaml")).value();
  const std::string limited = With(
      "  egress_per_gb:", "  limits: {late_percent: 0.3, dollars_per_hour: 7}\n  egress_per_gb:");
  for (const std::string& text : {std::string(kTwoRegions), shipped, limited}) {
    const Scenario scenario = ParseScenario(text, "a.yaml").value();
    const std::string written = ToYaml(scenario);
    const Scenario again = ParseScenario(written, "b.yaml").value();
    EXPECT_EQ(ToYaml(again), written);
    EXPECT_EQ(*again.regions->network, *scenario.regions->network);
    EXPECT_EQ(again.regions->chance, scenario.regions->chance);
    EXPECT_EQ(again.regions->variants, scenario.regions->variants);
    EXPECT_EQ(again.regions->demand.has_value(), scenario.regions->demand.has_value());
  }
}

TEST(Regions, RefuseWhatIsWrongWithItsPlace) {
  EXPECT_THAT(ErrorOf(With("zone: eu,", "zone: uk,")), HasSubstr("two.yaml:10:"));
  EXPECT_THAT(ErrorOf(With("zone: eu,", "zone: uk,")), HasSubstr("no zone is called \"uk\""));
  EXPECT_THAT(ErrorOf(With("peak_rate: 100", "peak_rat: 100")), HasSubstr("peak_rat"));
  EXPECT_THAT(ErrorOf(With("carbon: 163", "carbon: [1, 2]")), HasSubstr("24 of them"));
  EXPECT_THAT(ErrorOf(With("[2min, 4min]", "[4min, 2min]")), HasSubstr("below the shortest"));
  EXPECT_THAT(ErrorOf(With("[spot, flash]", "[spott]")), HasSubstr("did you mean `spot`?"));
  EXPECT_THAT(ErrorOf(With("nodes_max: 10", "nodes_max: 5000")), HasSubstr("nodes_max"));
  EXPECT_THAT(ErrorOf(With("per_1000km: 15.5ms}",
                           "per_1000km: 15.5ms, measured: {london: {paris: "
                           "9ms}}}")),
              HasSubstr("no region is called \"paris\""));
  EXPECT_THAT(ErrorOf(With("per_1000km: 15.5ms}",
                           "per_1000km: 15.5ms, measured: {london: {london: "
                           "9ms}}}")),
              HasSubstr("each pair of two regions stands once"));
  EXPECT_THAT(ErrorOf(With("name: two", "name: two\nnodes: []")), HasSubstr("nodes"));
  EXPECT_THAT(ErrorOf(With("[spot, flash]", "[spot, trace]")), HasSubstr("there is no trace"));
  EXPECT_THAT(ErrorOf(With("  variants:", "  demand: {steady: {rate: 2}}\n  variants:")),
              HasSubstr("expected a map `replay`"));
  EXPECT_THAT(ErrorOf(With("  variants:",
                           "  demand: {replay: {format: azure-llm, file: a.csv, rate: 2}}\n"
                           "  variants:")),
              HasSubstr("`rate`: not here"));
  EXPECT_THAT(ErrorOf(With("  egress_per_gb:", "  limits: {late_percent: 101}\n  egress_per_gb:")),
              HasSubstr("late_percent"));
}

TEST(Regions, ProvidersAreCountedAsTheyCome) {
  std::string text = With("{zone: au,", "{zone: au, provider: second,");
  text.replace(text.find("{zone: eu,"), 10, "{zone: eu, provider: first,");
  text.insert(text.find("  egress_per_gb:"), "  limits: {provider_percent: 60}\n");
  const Scenario scenario = ParseScenario(text, "two.yaml").value();
  const RegionNetwork& network = *scenario.regions->network;
  EXPECT_EQ(network.providers, (std::vector<std::string>{"", "first", "second"}));
  EXPECT_EQ(network.regions[1].provider, 2);
  EXPECT_EQ(network.limits.provider_percent, 60);
  const Scenario again = ParseScenario(ToYaml(scenario), "again.yaml").value();
  EXPECT_EQ(*again.regions->network, network);
  const std::vector<std::string> names = {"sydney"};
  EXPECT_EQ(WithRegions(scenario.regions, names).value()->network->regions[0].provider, 2);
}

TEST(Regions, CarbonIsReadFromATable) {
  testing::TestFolder folder;
  const std::string text = With("carbon: 552, ", "");
  const std::string named =
      std::string(text).replace(text.find("  at:"), 5, "  carbon_file: carbon.csv\n  at:");
  constexpr std::string_view kHead =
      "Google Cloud Region,Location,Google CFE,Grid carbon intensity (gCO2eq / kWh)\n";
  const auto load = [&](const std::string& rows) {
    EXPECT_TRUE(WriteFileAtomically(folder.path() / "two.yaml", named));
    EXPECT_TRUE(WriteFileAtomically(folder.path() / "carbon.csv", std::string(kHead) + rows));
    return LoadScenario(folder.path() / "two.yaml");
  };
  EXPECT_THAT(ErrorOf(text), HasSubstr("carbon"));
  const auto scenario = load("paris,Paris,0.9,30\nsydney,Sydney,0.34,497.5\nlondon,London,0,1\n");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const std::vector<Region>& regions = scenario->regions->network->regions;
  EXPECT_EQ(regions[0].carbon_g_per_kwh[7], 163);  // Its own.
  EXPECT_EQ(regions[1].carbon_g_per_kwh[7], 497.5);
  EXPECT_EQ(ScenarioFiles(folder.path() / "two.yaml")->size(), 2U);
  // Once read it stands in the scenario; before, it is named there.
  EXPECT_THAT(ToYaml(*scenario), HasSubstr("carbon: 497.5"));
  const Scenario unread = ParseScenario(named, "two.yaml").value();
  EXPECT_EQ(ToYaml(ParseScenario(ToYaml(unread), "a.yaml").value()), ToYaml(unread));
  EXPECT_THAT(load("paris,Paris,0.9,30\n").error().message, HasSubstr("it has no region sydney"));
  EXPECT_THAT(
      load("sydney,Sydney,0.34,much\n").error().message,
      HasSubstr("carbon.csv:2:20: `Grid carbon intensity (gCO2eq / kWh)`: expected a number"));
}

constexpr std::string_view kServices = R"(busy_watts: 15}
  services:
    web: {demand: 0.7}
    orders: {pod_rate: 10, pods_per_node: 8, deadline: 1s, response: 1kB, stays: [eu],
      store: {region: sydney, trips: 2}}
)";

TEST(Regions, ServicesShareNodesByWhatTheyDifferIn) {
  const Scenario scenario = ParseScenario(With("busy_watts: 15}\n", kServices), "two.yaml").value();
  const RegionWorld& world = *scenario.regions;
  ASSERT_EQ(world.services.size(), 2U);
  const SharingService &web = world.services[0], &orders = world.services[1];
  EXPECT_EQ(web.demand, 0.7);
  EXPECT_EQ(web.own, world.network->service);
  EXPECT_EQ(orders.demand, 1);
  EXPECT_EQ(orders.own.pods_per_node, 8);
  // A pod has an eighth of a node.
  const RegionNetwork& pods = *orders.pods;
  EXPECT_EQ(pods.service.pods_per_node, 1);
  EXPECT_EQ(pods.regions[0].nodes_max, 80);
  EXPECT_DOUBLE_EQ(pods.regions[0].on_demand_per_h, 0.17 / 8);
  EXPECT_DOUBLE_EQ(pods.service.busy_watts, 15.0 / 8);
  // Londoners stay in Europe; in Sydney any may be served.
  EXPECT_FALSE(pods.Allows(0, 1));
  EXPECT_TRUE(pods.Allows(0, 0));
  EXPECT_TRUE(pods.Allows(1, 0));
  EXPECT_TRUE(web.pods->Allows(0, 1));
  // Two round trips to the data.
  EXPECT_DOUBLE_EQ(pods.TripS(0, 0), 2 * pods.rtt_s[pods.At(0, 1)]);
  EXPECT_EQ(pods.TripS(1, 1), 0);
  EXPECT_EQ(world.network->closed.size(), 0U);

  const Scenario again = ParseScenario(ToYaml(scenario), "again.yaml").value();
  ASSERT_EQ(again.regions->services.size(), 2U);
  for (size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(*again.regions->services[s].pods, *world.services[s].pods);
    EXPECT_EQ(again.regions->services[s].own, world.services[s].own);
    EXPECT_EQ(again.regions->services[s].bounds, world.services[s].bounds);
  }
}

TEST(Regions, AServiceAloneHasBoundsAsWell) {
  const std::string text = With("busy_watts: 15}", "busy_watts: 15, stays: [au]}");
  const Scenario scenario = ParseScenario(text, "two.yaml").value();
  const RegionNetwork& network = *scenario.regions->network;
  EXPECT_TRUE(network.Allows(0, 1));
  EXPECT_FALSE(network.Allows(1, 0));
}

TEST(Regions, WithFewerRegionsServicesKeepTheirBounds) {
  const Scenario scenario = ParseScenario(With("busy_watts: 15}\n", kServices), "two.yaml").value();
  const std::vector<std::string> names = {"sydney"};
  const auto part = WithRegions(scenario.regions, names).value();
  EXPECT_EQ(part->services[1].pods->size(), 1);
  EXPECT_EQ(part->services[1].pods->store_s, std::vector<double>{0});
}

TEST(Regions, RefuseServicesThatSayNoSense) {
  const auto error = [](std::string_view service) {
    return ErrorOf(
        With("busy_watts: 15}\n", fmt::format("busy_watts: 15}}\n  services: {}\n", service)));
  };
  EXPECT_THAT(error("{}"), HasSubstr("expected 1 to 32 services"));
  EXPECT_THAT(error("{web: {stays: [as]}}"), HasSubstr("no zone is called"));
  EXPECT_THAT(error("{web: {store: {region: paris}}}"), HasSubstr("no region is called"));
  EXPECT_THAT(error("{web: {store: {region: london, trips: 0}}}"), HasSubstr("1"));
  EXPECT_THAT(error("{web: {pod_rates: 3}}"), HasSubstr("pod_rate"));
  EXPECT_THAT(error("{web: {demand: 0}}"),
              HasSubstr("two.yaml:6:28: `regions.services.web.demand`"));
  EXPECT_THAT(
      ErrorOf(With("busy_watts: 15}\n", "busy_watts: 15, stays: [eu]}\n  services: {web: {}}\n")),
      HasSubstr("belong to one of `services`"));
}

}  // namespace
}  // namespace rudderfish
