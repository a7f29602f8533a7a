// SPDX-License-Identifier: Apache-2.0
#include "learn/routing_training.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

TEST(RoutingTraining, ReadsBackWhatItWrote) {
  const RoutingTraining routing{.variants = {"spot"},
                                .regions = {"us-east4", "europe-west3"},
                                .rule = "mpc:use=70,hold=2min",
                                .rivals = {"lp:use=70", "mpc:use=70,hold=2min"},
                                .tiers = {.route = false, .scale = true}};
  YamlWriter out;
  WriteRoutingTraining(routing, &out);
  const Result<YamlNode> root = ParseYaml(out.Take(), "config.yaml");
  YamlMap map = *root->AsMap();
  EXPECT_EQ(ReadRoutingTraining(*map.Optional("routing")).value(), routing);
}

TEST(RoutingTraining, RefusesWhatItDoesNotKnow) {
  const Result<YamlNode> root = ParseYaml(
      "variants: []\nregions: []\ntiers: route\nrule: mpc\nrivals: [mpc]\nrivets: [mpc]\n",
      "config.yaml");
  EXPECT_NE(ReadRoutingTraining(*root).error().message.find("rivets"), std::string::npos);
}

TEST(RoutingTraining, NamesItsTiers) {
  for (const char* text : {"route", "scale", "route,scale"})
    EXPECT_EQ(RoutingTiersText(*ParseRoutingTiers(text)), text);
  EXPECT_EQ(*ParseRoutingTiers("scale,route"), RoutingTiers());
  EXPECT_FALSE(ParseRoutingTiers("move").has_value());
  EXPECT_FALSE(ParseRoutingTiers("").has_value());
}

}  // namespace
}  // namespace rudderfish
