// SPDX-License-Identifier: Apache-2.0
#include "run/host.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json.h"
#include "tests/support/source_path.h"
#include "tests/support/test_folder.h"

// On a simulated cluster; with a Lease, and Bindings: tests/place_test.py, tests/modes_test.py.

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

class HostTest : public ::testing::Test {
 protected:
  void SetUp() override { server_ = ControlServer::Start("", &clock_).value(); }
  Config ConfigOf(std::string_view migration, std::string_view more = "") const {
    return ParseConfig(fmt::format("rudderfish: config/v1\n"
                                   "cluster: {{scenario: {}}}\n"
                                   "decisions: {{migration: {{interval: 10ms, {}}}}}\n{}",
                                   SourcePath("scenarios/continuum-7x21.yaml"), migration, more),
                       folder_ / "rudderfish.yaml")
        .value();
  }
  void Start(std::string_view migration) {
    host_.reset();
    host_ = Host::Start(ConfigOf(migration), &clock_, server_.get()).value();
  }
  OrderedJson Ask(std::string_view request) {
    return ParseOrderedJson(host_->Answer(request), "the answer").value();
  }
  OrderedJson Migration() { return Ask("status")["decisions"]["migration"]; }
  int64_t Decisions() { return Migration()["applications"][0]["decisions"].get<int64_t>(); }
  // Until nothing is left to decide at once, and no policy is being asked any more.
  void Drive() {
    for (int quiet = 0; quiet < 20; ++quiet) {
      host_->Poll(std::chrono::milliseconds(0));
      if (host_->Turn()) quiet = 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  SystemClock clock_;
  testing::TestFolder folder_;
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<Host> host_;
};

TEST_F(HostTest, HostsTheKindsThatTheConfigurationNames) {
  Start("policy: greedy");
  Drive();
  const OrderedJson status = Ask("status");
  EXPECT_EQ(status["decisions"].size(), 1u);
  EXPECT_GT(Decisions(), 0);
  EXPECT_TRUE(status["leads"].get<bool>()) << "an instance that is alone leads";
  EXPECT_THAT(Ask("promote placement")["error"].get<std::string>(),
              HasSubstr("no `decisions.placement`"));
}

TEST_F(HostTest, EachKindIsPromotedByItsOwnEvidenceAndReloaded) {
  Start("policy: greedy");
  Drive();
  EXPECT_THAT(Ask("promote migration")["error"].get<std::string>(),
              HasSubstr("migration stays in shadow; missing for advise: continuum-7x21: "
                        "1 of the 100 shadowed plans that are needed"));
  EXPECT_EQ(Ask("promote migration force")["mode"], "advise");
  OrderedJson migration = Migration();
  EXPECT_EQ(migration["configured_mode"], "shadow");
  EXPECT_EQ(migration["mode"], "advise");
  EXPECT_EQ(migration["standing"]["mode"], "advise");
  EXPECT_EQ(migration["standing"]["next"]["mode"], "canary");
  Start("policy: greedy");
  EXPECT_EQ(Migration()["mode"], "advise") << "kept in the journal";
  ASSERT_TRUE(host_->Reload(ConfigOf("policy: greedy, rest: 1min")));
  EXPECT_EQ(Migration()["mode"], "advise") << "the file says the same mode";
  ASSERT_TRUE(host_->Reload(ConfigOf("policy: stay")));
  EXPECT_EQ(Migration()["mode"], "shadow") << "what was earned was another policy's";
  ASSERT_TRUE(host_->Reload(ConfigOf("policy: stay, mode: advise")));
  EXPECT_EQ(Migration()["mode"], "advise");
  EXPECT_EQ(Ask("demote migration")["mode"], "shadow");
  EXPECT_EQ(Ask("status")["decisions"]["migration"]["standing"]["why"],
            "demoted from advise by the command line");
}

TEST_F(HostTest, WhatIsPausedDecidesNothingAlsoAfterARestart) {
  Start("policy: greedy");
  EXPECT_EQ(Ask("pause")["kinds"][0]["mode"], "off");
  Drive();
  EXPECT_EQ(Decisions(), 0);
  Start("policy: greedy");
  Drive();
  EXPECT_EQ(Decisions(), 0);
  EXPECT_TRUE(Ask("status")["paused"].get<bool>());
  EXPECT_EQ(Ask("resume")["kinds"][0]["mode"], "shadow");
  Drive();
  EXPECT_GT(Decisions(), 0);
}

TEST_F(HostTest, WhatActsPlansAtOnceWhenItIsResumed) {
  Start("policy: stay, mode: enforce, rest: 1h");
  Drive();
  const auto plans = [&] { return Migration()["applications"][0]["plans"].get<int64_t>(); };
  ASSERT_EQ(plans(), 1);
  Drive();
  EXPECT_EQ(plans(), 1) << "nothing has changed";
  Ask("pause");
  Drive();
  EXPECT_EQ(plans(), 1);
  Ask("resume");
  Drive();
  EXPECT_EQ(plans(), 2);
}

TEST_F(HostTest, AReloadAppliesWhatCanChangeOrChangesNothing) {
  Start("policy: greedy");
  ASSERT_TRUE(host_->Reload(ConfigOf("policy: stay, mode: off")));
  EXPECT_EQ(Migration()["policy"], "stay");
  EXPECT_EQ(Migration()["mode"], "off");
  const auto refused = host_->Reload(ConfigOf("policy: greedy", "journal: {size: 64Mi}\n"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "journal cannot change at run time; restart to apply it");
  EXPECT_EQ(Migration()["policy"], "stay");
  const auto unknown = host_->Reload(ConfigOf("policy: runs/nowhere"));
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("no such checkpoint or run folder"));
  EXPECT_EQ(Migration()["mode"], "off");
}

}  // namespace
}  // namespace rudderfish
