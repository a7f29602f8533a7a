// SPDX-License-Identifier: Apache-2.0
#include "cloud/placement_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

PlacementScoresChoice Choice() { return ParsePlacementScores("web").value(); }

TEST(PlacementScores, AreNamedByObjectAndScore) {
  EXPECT_EQ(Choice().name, "web");
  EXPECT_EQ(Choice().score, "share");
  EXPECT_EQ(ParsePlacementScores("web/load")->score, "load");
  for (const char* wrong : {"", "/", "web/", "/share", "Web", "a/b/c"}) {
    EXPECT_FALSE(ParsePlacementScores(wrong)) << wrong;
  }
}

TEST(PlacementScores, ThoseOfTheNameAreReadByClusterAndOthersAreKept) {
  const auto scores = ReadPlacementScores(R"({"items": [
      {"metadata": {"name": "web", "namespace": "us", "resourceVersion": "7"}},
      {"metadata": {"name": "other", "namespace": "eu", "resourceVersion": "8"}},
      {"metadata": {"name": "web", "namespace": "eu", "resourceVersion": "9"},
       "status": {"scores": [{"name": "cpu", "value": -4}, {"name": "share", "value": 60}]}}]})",
                                          Choice());
  ASSERT_TRUE(scores) << scores.error().message;
  ASSERT_EQ(scores->size(), 2U);
  EXPECT_EQ((*scores)[0].cluster, "eu");
  EXPECT_EQ((*scores)[0].value, 60);
  EXPECT_EQ((*scores)[0].others, R"([{"name":"cpu","value":-4}])");
  EXPECT_EQ((*scores)[1].resource_version, "7");
  EXPECT_FALSE((*scores)[1].has_status);
  EXPECT_TRUE(ReadPlacementScores("{}", Choice())->empty());
}

TEST(PlacementScores, AScoreThatIsNoShareIsRefused) {
  const auto scores = ReadPlacementScores(
      R"({"items": [{"metadata": {"name": "web", "namespace": "eu"},
                     "status": {"scores": [{"name": "share", "value": -4}]}}]})",
      Choice());
  ASSERT_FALSE(scores);
  EXPECT_THAT(scores.error().message, HasSubstr("expected an integer from 0 to 100, found -4"));
}

TEST(PlacementScores, AClusterIsAvailableIfItSaysSo) {
  const auto clusters = ReadManagedClusters(R"({"items": [
      {"metadata": {"name": "eu"}, "status": {"conditions": [
        {"type": "HubAcceptedManagedCluster", "status": "False"},
        {"type": "ManagedClusterConditionAvailable", "status": "True"}]}},
      {"metadata": {"name": "us"}, "status": {"conditions": [
        {"type": "ManagedClusterConditionAvailable", "status": "Unknown"}]}},
      {"metadata": {"name": "new"}}]})");
  ASSERT_TRUE(clusters) << clusters.error().message;
  EXPECT_TRUE(clusters->at("eu"));
  EXPECT_FALSE(clusters->at("us"));
  EXPECT_FALSE(clusters->at("new"));
  EXPECT_FALSE(ReadManagedClusters("[]"));
}

}  // namespace
}  // namespace rudderfish
