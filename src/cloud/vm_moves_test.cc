// SPDX-License-Identifier: Apache-2.0
#include "cloud/vm_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Vm MovedVm(int number, std::string status, std::string host) {
  return {.id = fmt::format("{:08}-0000-4000-8000-000000000000", number),
          .name = fmt::format("vm-{}", number),
          .status = std::move(status),
          .host = std::move(host)};
}

VmMoves MovesOf(const std::vector<Vm>& vms, VmMoveLimits limits = {}) {
  std::vector<VmMoveGoal> goals;
  for (const Vm& vm : vms) goals.push_back({.vm_id = vm.id, .from = "a", .to = ""});
  return VmMoves(std::move(goals), limits);
}

TEST(VmMoves, MovesLiveWhatRunsAndColdWhatIsShutOff) {
  const std::vector<Vm> vms = {MovedVm(1, "ACTIVE", "a"), MovedVm(2, "SHUTOFF", "a"),
                               MovedVm(3, "ACTIVE", "b"), MovedVm(4, "VERIFY_RESIZE", "b")};
  const VmMovePlan plan = MovesOf(vms).Plan(vms);
  EXPECT_EQ(plan.moved, 1);
  ASSERT_EQ(plan.steps.size(), 3);
  EXPECT_TRUE(plan.steps[0].is_confirmation);
  EXPECT_THAT(plan.steps[1].request.body, HasSubstr("os-migrateLive"));
  EXPECT_EQ(plan.steps[2].request.body, R"({"migrate":null})");
  EXPECT_FALSE(plan.is_settled());
}

TEST(VmMoves, WaitsForWhatIsUnderWayAndKeepsToItsNumber) {
  std::vector<Vm> vms = {MovedVm(1, "MIGRATING", "a"), MovedVm(2, "ACTIVE", "a"),
                         MovedVm(3, "ACTIVE", "a"), MovedVm(4, "ACTIVE", "a")};
  vms[1].task = "migrating";
  const VmMovePlan plan = MovesOf(vms, {.at_once = 3}).Plan(vms);
  EXPECT_EQ(plan.moving, 3);
  EXPECT_EQ(plan.waiting, 1);
  EXPECT_EQ(plan.steps.size(), 1);
}

TEST(VmMoves, GivesUpWhatItMustNotTouchAndIsDoneWithWhatIsGone) {
  std::vector<Vm> vms = {MovedVm(1, "ERROR", "a"), MovedVm(2, "PAUSED", "a")};
  vms[0].fault = "disk";
  VmMoves moves({{.vm_id = vms[0].id, .from = "a", .to = ""},
                 {.vm_id = vms[1].id, .from = "a", .to = ""},
                 {.vm_id = "gone", .from = "a", .to = ""}},
                {});
  const VmMovePlan plan = moves.Plan(vms);
  EXPECT_THAT(plan.steps, IsEmpty());
  EXPECT_THAT(plan.given_up,
              ElementsAre("vm-1: its status is ERROR: disk", "vm-2: its status is PAUSED"));
  EXPECT_EQ(plan.moved, 1);
  EXPECT_TRUE(plan.is_settled());
}

}  // namespace
}  // namespace rudderfish
