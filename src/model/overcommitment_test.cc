// SPDX-License-Identifier: Apache-2.0
#include "model/overcommitment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMebibyte = 1024 * 1024;

class OvercommittedNode : public ::testing::Test {
 protected:
  OvercommittedNode() {
    SchedulingNode node;
    node.name = "a";
    node.allocatable = {1000, 1024 * kMebibyte};
    node.ephemeral_bytes = 100 * kMebibyte;
    node.pods_max = 3;
    node.scalars = {{"hugepages-2Mi", 4 * kMebibyte}, {"nvidia.com/gpu", 2}};
    rules.Reset({node}, {});
  }

  static PodClass Holding(const ScalarAmounts& scalars) {
    PodClass pod;
    pod.amounts.scalars = scalars;
    return pod;
  }
  static PodClass OnPort(const std::string& ip, int64_t port, const std::string& protocol = "TCP") {
    PodClass pod;
    pod.host_ports = {{ip, protocol, port}};
    return pod;
  }
  void Put(const PodClass& pod, PodLife life = PodLife::kServing) {
    rules.Assume(rules.RegisterPlaced(std::make_shared<PodClass>(pod)), 0, life);
  }

  SchedulingRules rules;
};

TEST_F(OvercommittedNode, IsNoneThatIsFull) {
  PodClass pod = Holding({{"hugepages-2Mi", 4 * kMebibyte}, {"nvidia.com/gpu", 2}});
  pod.amounts.held = {1000, 1024 * kMebibyte};
  pod.amounts.ephemeral_bytes = 100 * kMebibyte;
  Put(pod);
  Put(OnPort("0.0.0.0", 80));
  Put(OnPort("0.0.0.0", 81));
  EXPECT_THAT(OvercommittedOn(rules, 0), IsEmpty());
}

TEST_F(OvercommittedNode, NamesEveryResourceOfWhichMoreIsHeldThanThereIs) {
  PodClass pod = Holding({{"example.com/unknown", 1}, {"hugepages-2Mi", 3 * kMebibyte}});
  pod.amounts.held = {501, 600 * kMebibyte};
  pod.amounts.ephemeral_bytes = 51 * kMebibyte;
  Put(pod);
  Put(pod, PodLife::kTerminating);
  EXPECT_THAT(OvercommittedOn(rules, 0),
              ElementsAre("cpu (1002m of 1)", "memory (1200Mi of 1Gi)",
                          "ephemeral-storage (102Mi of 100Mi)", "example.com/unknown (2 of 0)",
                          "hugepages-2Mi (6Mi of 4Mi)"));
  Put(Holding({{"nvidia.com/gpu", 3}}));
  Put({});
  EXPECT_THAT(OvercommittedOn(rules, 0), ::testing::Contains("nvidia.com/gpu (3 of 2)"));
  EXPECT_THAT(OvercommittedOn(rules, 0), ::testing::Contains("pods (4 of 3)"));
}

TEST_F(OvercommittedNode, NamesHostPortsThatPodsHoldAgainstEachOther) {
  Put(OnPort("127.0.0.1", 80));
  Put(OnPort("127.0.0.2", 80));
  Put(OnPort("0.0.0.0", 80, "UDP"));
  EXPECT_THAT(OvercommittedOn(rules, 0), IsEmpty());
  rules.Reset({rules.nodes().node(0)}, {});
  Put(OnPort("127.0.0.1", 80));
  Put(OnPort("0.0.0.0", 80));
  EXPECT_THAT(OvercommittedOn(rules, 0), ElementsAre("host port 80/TCP (by 2 pods)"));
  Put(OnPort("127.0.0.1", 80));
  EXPECT_THAT(OvercommittedOn(rules, 0), ElementsAre("host port 80/TCP (by 3 pods)"));
}

TEST_F(OvercommittedNode, IsNoneForAPodThatNamesAPortTwice) {
  PodClass pod = OnPort("0.0.0.0", 80);
  pod.host_ports.push_back({"127.0.0.1", "TCP", 80});
  Put(pod);
  EXPECT_THAT(OvercommittedOn(rules, 0), IsEmpty());
}

TEST_F(OvercommittedNode, NamesDriversThatHaveMoreVolumesToAttachThanTheyCan) {
  SchedulingNode node = rules.nodes().node(0);
  node.volume_limits = {{"disk", 2}, {"share", 1}};
  rules.ReplaceNode(0, node);
  PodClass two, again, third;
  two.attached = {{"disk", "a"}, {"disk", "b"}, {"other", "c"}};
  again.attached = {{"disk", "b"}, {"share", "a"}};
  third.attached = {{"disk", "d"}};
  Put(two);
  Put(again);
  rules.SetAttached(0, std::vector<CsiVolume>{{"disk", "on its way out"}});
  EXPECT_THAT(OvercommittedOn(rules, 0), IsEmpty());
  Put(third);
  EXPECT_THAT(OvercommittedOn(rules, 0), ElementsAre("volumes of disk (3 of 2)"));
}

}  // namespace
}  // namespace rudderfish
