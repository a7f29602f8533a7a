// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "scenario/scenario.h"
#include "tests/support/source_path.h"

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

}  // namespace
}  // namespace rudderfish
