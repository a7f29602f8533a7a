// SPDX-License-Identifier: Apache-2.0
#include "run/capacity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

Result<std::vector<CapacityConfig>> CapacityOf(std::string_view text,
                                               const std::filesystem::path& folder = ".") {
  return ParseCapacity(ParseYaml(text, "rudderfish.yaml").value(), folder);
}

TEST(Capacity, GoesByStepsAndStaysWithinBounds) {
  const CapacityConfig config{.least = 2, .most = 10, .step = 3};
  EXPECT_EQ(AllowedCapacity(config, {5, 7, true}), 7);
  EXPECT_EQ(AllowedCapacity(config, {5, 10, true}), 8);
  EXPECT_EQ(AllowedCapacity(config, {9, 40, true}), 10);
  EXPECT_EQ(AllowedCapacity(config, {5, 0, true}), 2);
  EXPECT_EQ(AllowedCapacity(config, {0, 0, true}), 2);
  EXPECT_EQ(AllowedCapacity(config, {20, 0, true}), 17);  // Somebody else made some of them.
  EXPECT_EQ(AllowedCapacity(config, {5, 0, false}), 5);
  EXPECT_EQ(AllowedCapacity(config, {5, 7, false}), 7);
  // A Deployment without pods was switched off by a person.
  const CapacityConfig pods{.cluster = OtherCluster(), .least = 2, .most = 10, .step = 3};
  EXPECT_EQ(AllowedCapacity(pods, {0, 9, true}), 0);
  EXPECT_EQ(AllowedCapacity(pods, {1, 9, true}), 4);
}

TEST(Capacity, OfPodsIsADeploymentOfItsCluster) {
  constexpr std::string_view kTwo =
      "{eu/web: {deployment: shop/web, pods_min: 2, pods_max: 20, step: 4},"
      " us/web: {deployment: shop/web, cluster: {kubeconfig: us.yaml, context: us}, pods_max: 9}}";
  const std::vector<CapacityConfig> read = CapacityOf(kTwo, "/etc").value();
  ASSERT_THAT(read, SizeIs(2));
  EXPECT_EQ(read[0].region, "eu");
  EXPECT_EQ(read[0].service, "web");
  EXPECT_EQ(read[0].Subject(), "capacity/eu/web");
  EXPECT_FALSE(read[0].cluster->is_named);
  EXPECT_EQ(read[1].cluster->kubeconfig, "/etc/us.yaml");
  EXPECT_EQ(read[1].Target(), "deployment shop/web of us");
  EXPECT_EQ(read[1].Unit(1), "1 pod");
  // Both are of the cluster of the configuration.
  std::vector<CapacityConfig> same = {read[0], read[0]};
  EXPECT_THAT(ReadClouds(&same).error().message,
              HasSubstr("region eu has the deployment shop/web of the same cluster"));
}

TEST(Capacity, IsReadWithItsClouds) {
  const testing::TestFolder folder;
  ASSERT_TRUE(WriteFileAtomically(
      folder / "clouds.yaml",
      "clouds: {a: {auth: {auth_url: 'http://a', username: u, password: p, project_name: x}}}"));
  constexpr std::string_view kTwo =
      "{eu: {cloud: a, clouds: clouds.yaml, fleet: shop-eu, flavor: small, image: i, vms_max: 9},"
      " us: {cloud: a, clouds: clouds.yaml, fleet: shop-us, flavor: small, image: i, vms_max: 9}}";
  std::vector<CapacityConfig> fleets = CapacityOf(kTwo, folder.path()).value();
  ASSERT_THAT(fleets, SizeIs(2));
  EXPECT_EQ(fleets[0].network, "auto");
  EXPECT_EQ(fleets[0].least, 1);
  ASSERT_TRUE(ReadClouds(&fleets).has_value());
  EXPECT_EQ(fleets[1].cloud.user, "u");
  fleets[1].fleet = "shop-eu";
  EXPECT_THAT(ReadClouds(&fleets).error().message,
              HasSubstr("region eu has the fleet shop-eu of the same cloud"));
  fleets[1].cloud_name = "b";
  EXPECT_THAT(ReadClouds(&fleets).error().message, HasSubstr("no cloud `b`; there are a"));
}

TEST(Capacity, RefusesWhatItCannotBe) {
  const auto refusal = [](std::string_view text) {
    const auto read = CapacityOf(text);
    return read ? std::string("it was taken") : read.error().message;
  };
  EXPECT_THAT(refusal("{eu: {cloud: a, fleet: Shop, flavor: s, image: i, vms_max: 9}}"),
              HasSubstr("at most 50 lower-case letters"));
  EXPECT_THAT(refusal("{eu: {cloud: a, fleet: s, flavor: s, image: i, vms_min: 4, vms_max: 3}}"),
              HasSubstr("`vms_min` is more than `vms_max`"));
  EXPECT_THAT(refusal("{eu: {cloud: a, fleet: s, flavor: s, image: i, vms: 3, vms_max: 9}}"),
              HasSubstr("unknown key `vms`"));
  EXPECT_THAT(refusal("{eu: {cloud: a, fleet: s, flavor: s, image: i}}"), HasSubstr("vms_max"));
  EXPECT_THAT(refusal("{eu: {deployment: web, pods_max: 9}}"), HasSubstr("NAMESPACE/NAME"));
  EXPECT_THAT(refusal("{eu: {deployment: a/b, vms_max: 9}}"), HasSubstr("pods_max"));
  EXPECT_THAT(refusal("{eu: {deployment: a/b, pods_min: 0, pods_max: 9}}"), HasSubstr("pods_min"));
  EXPECT_THAT(refusal("{eu: {deployment: a/b, pods_max: 9, cluster: {}}}"),
              HasSubstr("`kubeconfig` or `context`"));
}

// No server listens at the address. The driver says so, and ends without waiting for it.
TEST(CapacityDriver, SaysWhyACloudIsAway) {
  const SystemClock clock;
  CapacityConfig config{.region = "eu", .cloud = {.name = "a", .auth_url = "http://127.0.0.1:9"}};
  CapacityDriver driver({config}, &clock);
  driver.Aim(0, 3, clock.Now() + std::chrono::seconds(60));
  for (int i = 0; i < 1000 && driver.Get(0).trouble.empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_THAT(driver.Get(0).trouble, HasSubstr("127.0.0.1:9"));
  EXPECT_FALSE(driver.Get(0).sight.has_value());
  EXPECT_EQ(driver.Get(0).aim, 3);
  driver.DropAims();
  EXPECT_FALSE(driver.Get(0).aim.has_value());
}

}  // namespace
}  // namespace rudderfish
