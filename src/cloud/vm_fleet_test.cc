// SPDX-License-Identifier: Apache-2.0
#include "cloud/vm_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace rudderfish {
namespace {

using Kind = VmFleetStep::Kind;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr VmFleetLimits kLimits{.vms_max = 50,
                                .steps_per_turn = 10,
                                .listed_within = seconds(30),
                                .retry_first = seconds(2),
                                .retry_last = seconds(60)};

Vm VmOf(int slot, std::string status, std::string created = "2026-01-01T00:00:00Z") {
  static int number = 0;
  return {.id = fmt::format("{:08}-0000-4000-8000-000000000000", ++number),
          .name = fmt::format("shop-{}", slot),
          .status = std::move(status),
          .created = std::move(created),
          .fleet = "shop",
          .slot = slot};
}

class VmFleetTest : public ::testing::Test {
 protected:
  std::vector<std::string> Steps(const VmFleetPlan& plan) {
    constexpr std::string_view kNames[] = {"create", "start", "stop", "delete"};
    std::vector<std::string> steps;
    for (const VmFleetStep& one : plan.steps)
      steps.push_back(fmt::format("{} {}", kNames[static_cast<int>(one.kind)], one.slot));
    return steps;
  }

  ManualClock clock_;
  VmFleet fleet_{{.name = "shop", .flavor = {.id = "1"}}, kLimits, &clock_};
};

TEST_F(VmFleetTest, FillsEmptySlotsOnce) {
  const std::vector<Vm> vms = {VmOf(1, "ACTIVE"), VmOf(3, "BUILD")};
  VmFleetPlan plan = fleet_.Plan(vms, 4, {});
  EXPECT_THAT(Steps(plan), ElementsAre("create 2", "create 4"));
  EXPECT_EQ(plan.ready, 1);
  EXPECT_EQ(plan.starting, 1);
  EXPECT_FALSE(plan.is_settled(4));
}

TEST_F(VmFleetTest, ShutsDownWhatIsNotNeededAndThenDeletesIt) {
  std::vector<Vm> vms = {VmOf(1, "ACTIVE"), VmOf(2, "ACTIVE"), VmOf(3, "SHUTOFF")};
  EXPECT_THAT(Steps(fleet_.Plan(vms, 1, {})), ElementsAre("delete 3", "stop 2"));
  vms[1].task = "powering-off";
  EXPECT_THAT(Steps(fleet_.Plan(vms, 1, {})), ElementsAre("delete 3"));
  EXPECT_FALSE(fleet_.Plan(vms, 1, {}).is_settled(1));
  // One that is needed after all is started again.
  vms = {VmOf(1, "SHUTOFF")};
  EXPECT_THAT(Steps(fleet_.Plan(vms, 1, {})), ElementsAre("start 1"));
}

TEST_F(VmFleetTest, KeepsTheMoreUsefulOfTwoAndThenTheElder) {
  EXPECT_THAT(Steps(fleet_.Plan({VmOf(1, "BUILD", "2026-01-01T00:00:00Z"),
                                 VmOf(1, "ACTIVE", "2026-01-01T00:00:09Z")},
                                1, {})),
              ElementsAre("delete 1"));
  const std::vector<Vm> both = {VmOf(1, "ACTIVE", "2026-01-01T00:00:09Z"),
                                VmOf(1, "ACTIVE", "2026-01-01T00:00:00Z")};
  const VmFleetPlan plan = fleet_.Plan(both, 1, {});
  ASSERT_THAT(Steps(plan), ElementsAre("stop 1"));
  EXPECT_THAT(plan.steps[0].request.path, HasSubstr(both[0].id));
  EXPECT_EQ(plan.doubled, 1);
}

TEST_F(VmFleetTest, LeavesAFailedVmThatHasRunToPeople) {
  Vm failed = VmOf(1, "ERROR");
  failed.fault = "migration";
  EXPECT_THAT(Steps(fleet_.Plan({failed}, 1, {})), ElementsAre("delete 1"));
  failed.has_run = true;
  const VmFleetPlan plan = fleet_.Plan({failed}, 1, {});
  EXPECT_THAT(plan.steps, IsEmpty());
  EXPECT_EQ(plan.failed, 1);
  EXPECT_THAT(plan.last_fault, HasSubstr("has run and is in ERROR"));
  EXPECT_FALSE(plan.is_settled(1));
  EXPECT_THAT(Steps(fleet_.Plan({failed}, 0, {})), ElementsAre("delete 1"));
}

TEST_F(VmFleetTest, WaitsForWhatOthersDoToAVm) {
  for (const char* status : {"MIGRATING", "VERIFY_RESIZE", "RESIZE", "REBOOT", "PAUSED"})
    EXPECT_THAT(fleet_.Plan({VmOf(1, status)}, 0, {}).steps, IsEmpty()) << status;
  EXPECT_EQ(fleet_.Plan({VmOf(1, "MIGRATING")}, 1, {}).ready, 1);
}

TEST_F(VmFleetTest, TouchesNoOthers) {
  Vm others = VmOf(1, "ERROR"), none = VmOf(2, "ACTIVE");
  others.fleet = "others";
  none.fleet.clear();
  EXPECT_THAT(fleet_.Plan({others, none}, 0, {}).steps, IsEmpty());
  EXPECT_TRUE(fleet_.Plan({others, none}, 0, {}).is_settled(0));
}

TEST_F(VmFleetTest, AsksForNoMoreThanThereIsRoomForAndLimitsATurn) {
  const VmFleetPlan plan = fleet_.Plan({}, 5, 3);
  EXPECT_EQ(plan.steps.size(), 3);
  EXPECT_EQ(plan.without_room, 2);
  EXPECT_EQ(fleet_.Plan({}, 30, {}).steps.size(), kLimits.steps_per_turn);
}

// A cloud in memory whose answers are lost, whose VMs fail and whose listing is late.
struct UnreliableCloud {
  struct Entry {
    Vm vm;
    Instant listed;
  };
  std::vector<Entry> entries;
  std::mt19937 random{7};
  int made = 0;

  bool Chance(double share) { return std::uniform_real_distribution<>(0, 1)(random) < share; }

  std::vector<Vm> List(Instant now) {
    std::vector<Vm> vms;
    for (Entry& entry : entries) {
      if (entry.vm.status == "BUILD" && Chance(0.5))
        entry.vm.status = Chance(0.1) ? "ERROR" : "ACTIVE";
      if (now >= entry.listed) vms.push_back(entry.vm);
    }
    return vms;
  }

  void Do(const VmFleetStep& step, Instant now) {
    const auto at = std::find_if(entries.begin(), entries.end(), [&](const Entry& one) {
      return step.request.path.find(one.vm.id) != std::string::npos;
    });
    if (step.kind == Kind::kCreate) {
      entries.push_back({VmOf(step.slot, "BUILD", fmt::format("{:09}", ++made)),
                         now + seconds(Chance(0.2) ? 40 : 0)});  // Longer than it is waited for.
    } else if (at != entries.end() && step.kind == Kind::kStop) {
      at->vm.status = "SHUTOFF";
    } else if (at != entries.end() && step.kind == Kind::kDelete) {
      entries.erase(at);
    }
  }
};

TEST_F(VmFleetTest, ComesToRestWithOneVmInEachSlotWhateverIsLost) {
  UnreliableCloud cloud;
  for (const int wanted : {20, 35, 5, 0, 12}) {
    auto fleet = std::make_unique<VmFleet>(fleet_.spec(), kLimits, &clock_);
    int turns = 0;
    for (;; ++turns) {
      ASSERT_LT(turns, 400);
      if (cloud.Chance(0.05))  // Killed and begun again: nothing is remembered.
        fleet = std::make_unique<VmFleet>(fleet_.spec(), kLimits, &clock_);
      const VmFleetPlan plan = fleet->Plan(cloud.List(clock_.Now()), wanted, {});
      const bool all_listed = std::all_of(cloud.entries.begin(), cloud.entries.end(),
                                          [&](auto& one) { return clock_.Now() >= one.listed; });
      if (plan.is_settled(wanted) && all_listed) break;
      for (const VmFleetStep& step : plan.steps) {
        if (!cloud.Chance(0.1)) cloud.Do(step, clock_.Now());
      }
      clock_.Advance(seconds(3));
    }
    std::map<int, int> slots;
    for (const auto& entry : cloud.entries) ++slots[entry.vm.slot];
    EXPECT_EQ(static_cast<int>(slots.size()), wanted);
    for (const auto& [slot, count] : slots) EXPECT_EQ(count, 1) << slot;
  }
}

TEST_F(VmFleetTest, RefusesNamesThatNovaWouldNotTake) {
  EXPECT_TRUE(CheckFleetName("shop-2").has_value());
  for (const std::string& name : {std::string(), std::string("Shop"), std::string("-shop"),
                                  std::string("a b"), std::string(51, 'a')})
    EXPECT_FALSE(CheckFleetName(name).has_value()) << name;
}

}  // namespace
}  // namespace rudderfish
