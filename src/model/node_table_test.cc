// SPDX-License-Identifier: Apache-2.0
#include "model/node_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SchedulingNode WithImages(const std::string& name, std::vector<NodeImage> images) {
  SchedulingNode node;
  node.name = name;
  node.images = std::move(images);
  return node;
}

TEST(NodeTable, ReplacingANodeTellsWhichOfItsImagesAreOthers) {
  NodeTable nodes;
  nodes.Reset({WithImages("a", {{"kept", 10}, {"dropped", 20}, {"grown", 30}, {"twice", 5}}),
               WithImages("b", {{"kept", 10}, {"dropped", 20}})});
  EXPECT_THAT(nodes.Replace(
                  0, WithImages("a", {{"pulled", 40}, {"twice", 5}, {"grown", 31}, {"kept", 10}})),
              ElementsAre("dropped", "grown", "pulled"));
  EXPECT_THAT(nodes.FindImage("kept")->nodes, ElementsAre(0, 1));
  EXPECT_THAT(nodes.FindImage("dropped")->nodes, ElementsAre(1));
  EXPECT_THAT(nodes.FindImage("pulled")->nodes, ElementsAre(0));
  EXPECT_EQ(nodes.FindImage("pulled")->size_bytes, 40);
  EXPECT_EQ(nodes.FindImage("grown")->size_bytes, 31);
  // In another order they are the same.
  EXPECT_THAT(nodes.Replace(
                  0, WithImages("a", {{"kept", 10}, {"grown", 31}, {"twice", 5}, {"pulled", 40}})),
              IsEmpty());
  EXPECT_THAT(nodes.Replace(0, WithImages("a", {})),
              ElementsAre("grown", "kept", "pulled", "twice"));
  EXPECT_THAT(nodes.FindImage("kept")->nodes, ElementsAre(1));
  EXPECT_THAT(nodes.FindImage("pulled")->nodes, IsEmpty());
}

TEST(NodeTable, AnImageThatANodeNamesTwiceIsThereOnce) {
  NodeTable nodes;
  nodes.Reset({WithImages("a", {{"x", 10}})});
  EXPECT_THAT(nodes.Replace(0, WithImages("a", {{"x", 10}, {"x", 10}})), ElementsAre("x"));
  EXPECT_THAT(nodes.FindImage("x")->nodes, ElementsAre(0));
  EXPECT_THAT(nodes.Replace(0, WithImages("a", {{"x", 10}})), ElementsAre("x"));
  EXPECT_THAT(nodes.FindImage("x")->nodes, ElementsAre(0));
}

}  // namespace
}  // namespace rudderfish
