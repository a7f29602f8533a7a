// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/scheduler.h"

// What ends the wait of a pod that no node can attach volumes for.

namespace rudderfish {
namespace {

using std::chrono::seconds;

// Binds whatever is asked, and tells of what waits.
class WillingServer final : public PlacementActuator {
 public:
  void Bind(const PodIdentity& pod, const std::string& node, OnDone done) override {
    bound.push_back(pod.name + " on " + node);
    done(BindingOutcome::kBound, "");
  }
  void LookUp(const PodIdentity&, OnFound) override {}
  void TellPlaced(const PodIdentity&, const std::string&) override {}
  void TellWaiting(const PodIdentity&, const std::string& message) override {
    waits.push_back(message);
  }
  void TellWaitsNoLonger(const PodIdentity&) override {}
  void TellOvercommitted(const std::string&, const std::string&) override {}
  void TellNameShared(const PodIdentity&, const std::string&) override {}

  std::vector<std::string> bound, waits;
};

class VolumeWaits : public ::testing::Test {
 protected:
  static constexpr char kFull[] = "0/1 nodes are available: 1 node(s) exceed max volume count.";

  VolumeWaits()
      : scheduler_(SchedulerOptions{}, &clock_, *NodeScorerNamed("kube-default"), &server_,
                   &journal_, [] { return true; }) {}

  static std::shared_ptr<PodClass> Using(std::vector<std::string> handles) {
    auto shape = std::make_shared<PodClass>();
    shape->object_namespace = "default";
    shape->scheduler = "rudderfish";
    for (std::string& handle : handles) shape->attached.push_back({"disk", std::move(handle)});
    return shape;
  }
  static SchedulingNode ThatTakes(int64_t volumes_max) {
    SchedulingNode node;
    node.name = "a";
    node.pods_max = 110;
    node.volume_limits = {{"disk", volumes_max}};
    return node;
  }
  void See(const std::string& name, std::shared_ptr<const PodClass> shape,
           const std::string& node = "") {
    scheduler_.PodSeen({{"default", name, name}, std::move(shape), node});
  }
  void Turn() {
    clock_.Advance(seconds(15));  // No pod backs off for longer.
    const Result<bool> turned = scheduler_.Turn();
    ASSERT_TRUE(turned.has_value()) << turned.error().message;
  }
  // How often the pod has been tried in vain.
  size_t waits() const { return server_.waits.size(); }

  ManualClock clock_{Instant(seconds(1000))};
  WillingServer server_;
  MemoryPlacementJournal journal_;
  Scheduler scheduler_;
};

TEST_F(VolumeWaits, ItEndsWhenAPodThatUsesVolumesLeaves) {
  scheduler_.NodeSeen(ThatTakes(1));
  See("first", Using({"x"}), "a");
  See("second", Using({"y"}));
  Turn();
  EXPECT_EQ(server_.waits, std::vector<std::string>{kFull});
  Turn();
  EXPECT_EQ(waits(), 1u);  // It sleeps.
  scheduler_.PodGone("default/first");
  Turn();
  EXPECT_EQ(server_.bound, std::vector<std::string>{"second on a"});
}

TEST_F(VolumeWaits, ItEndsWhenTheNodeTakesMore) {
  scheduler_.NodeSeen(ThatTakes(0));
  See("x", Using({"x"}));
  Turn();
  EXPECT_EQ(server_.waits, std::vector<std::string>{kFull});
  scheduler_.NodeSeen(ThatTakes(1));
  Turn();
  EXPECT_EQ(server_.bound.size(), 1u);
}

TEST_F(VolumeWaits, ItEndsWhenAVolumeIsDetachedAndNotWhenOneIsAttached) {
  scheduler_.NodeSeen(ThatTakes(2));
  scheduler_.AttachmentsSeen("a", {{"disk", "old"}});
  See("x", Using({"x", "y"}));
  Turn();
  EXPECT_EQ(waits(), 1u);
  scheduler_.AttachmentsSeen("a", {{"disk", "new"}, {"disk", "old"}});
  Turn();
  EXPECT_EQ(waits(), 1u);  // Not tried again for that.
  scheduler_.AttachmentsSeen("a", {{"disk", "new"}});
  Turn();
  EXPECT_EQ(waits(), 2u);  // In vain.
  scheduler_.AttachmentsSeen("a", {});
  Turn();
  EXPECT_EQ(server_.bound, std::vector<std::string>{"x on a"});
}

TEST_F(VolumeWaits, ItEndsWhenAPodComesThatUsesTheSameVolume) {
  scheduler_.NodeSeen(ThatTakes(2));
  scheduler_.AttachmentsSeen("a", {{"disk", "shared"}});
  See("x", Using({"own", "shared"}));
  Turn();
  EXPECT_EQ(waits(), 1u);
  See("plain", Using({}), "a");
  Turn();
  EXPECT_EQ(waits(), 1u);  // No volume, no news.
  See("other", Using({"shared"}), "a");
  Turn();
  EXPECT_EQ(server_.bound, std::vector<std::string>{"x on a"});
}

TEST_F(VolumeWaits, ItEndsWhenWhatIsAttachedForAPodThereTurnsOutToBeLess) {
  scheduler_.NodeSeen(ThatTakes(1));
  See("other", Using({"y"}), "a");
  See("x", Using({"x"}));
  Turn();
  EXPECT_EQ(waits(), 1u);
  See("other", Using({}), "a");  // Its volume has become another one.
  Turn();
  EXPECT_EQ(server_.bound, std::vector<std::string>{"x on a"});
}

TEST_F(VolumeWaits, ItEndsWhenAllVolumesThereAreKnown) {
  scheduler_.NodeSeen(ThatTakes(5));
  auto unknown = Using({});
  unknown->attaches_unknown = true;
  See("odd", unknown, "a");
  See("x", Using({"x"}));
  Turn();
  EXPECT_EQ(server_.waits,
            std::vector<std::string>{"0/1 nodes are available: 1 node(s) held a pod whose volumes "
                                     "cannot be counted."});
  scheduler_.PodGone("default/odd");
  Turn();
  EXPECT_EQ(server_.bound.size(), 1u);
}

}  // namespace
}  // namespace rudderfish
