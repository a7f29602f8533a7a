// SPDX-License-Identifier: Apache-2.0
#include "cloud/data_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

TEST(DataPath, EachObjectIsFoundByItsName) {
  for (const std::string_view name : kObjectPaths) {
    if (name == kObjectPaths.back()) continue;
    const auto path = ObjectPath(name, "shop/web", std::nullopt, {"argo"});
    ASSERT_TRUE(path) << name;
    EXPECT_EQ(DataPathText(*path), std::string(name) + " shop/web");
    const auto object = ObjectOf(*path);
    ASSERT_TRUE(object);
    EXPECT_EQ(object->object->may_change, std::vector<std::string>{"argo"});
    EXPECT_NE(MakeEnactor(*path, nullptr, nullptr), nullptr);
  }
  EXPECT_EQ(ObjectOf(ObjectPath("dnsendpoint", "a/b", {}, {}).value())->plural, "dnsendpoints");
  EXPECT_FALSE(ObjectOf(ObjectPath("dnsendpoint", "a/b", {}, {}).value())->shows_health);
  EXPECT_EQ(ObjectOf(ObjectPath("destinationrule", "a/b", 1, {}).value())->kind, "DestinationRule");
}

TEST(DataPath, ScoresAreOfOneObjectForEachCluster) {
  const DataPath path = ObjectPath("placementscores", "web", std::nullopt, {}).value();
  EXPECT_EQ(DataPathText(path), "placementscores web/share");
  EXPECT_TRUE(ObjectOf(path)->is_of_clusters);
  EXPECT_EQ(MakeEnactor(path, nullptr, nullptr)->weight_sum(), 100);
  EXPECT_FALSE(ObjectPath("placementscores", "web", 1, {}));
  EXPECT_FALSE(ObjectPath("placementscores", "web", std::nullopt, {"argo"}));
}

TEST(DataPath, HaproxyNeedsNoApiServer) {
  const DataPath path =
      HaproxyChoice{.socket = ParseStreamPeer("/run/h.sock").value(), .backend = "web"};
  EXPECT_FALSE(ObjectOf(path));
  EXPECT_EQ(DataPathText(path), "haproxy /run/h.sock backend web");
  EXPECT_EQ(MakeEnactor(path, nullptr, nullptr)->weight_sum(), 256);
}

TEST(DataPath, ARuleIsRefusedWhereThereIsNone) {
  const auto path = ObjectPath("dnsendpoint", "shop/web", 1, {});
  ASSERT_FALSE(path);
  EXPECT_THAT(path.error().message, HasSubstr("has no rules"));
  EXPECT_FALSE(ObjectPath("httproute", "shop", {}, {}));
}

}  // namespace
}  // namespace rudderfish
