// SPDX-License-Identifier: Apache-2.0
#include "serve/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace rudderfish {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(Health, AConditionIsAskedWhileAnotherThreadSetsIt) {
  Condition journal("not opened yet");
  HealthChecks ready("readyz");
  ready.Add("journal", [&journal] { return journal.reason(); });
  std::vector<std::thread> probes;
  for (int i = 0; i < 3; ++i) {
    probes.emplace_back([&ready] {
      for (int j = 0; j < 500; ++j) {
        const HttpResponse response = ready(HttpRequest{.method = "GET", .path = "/readyz"});
        if (response.status == 200) continue;
        EXPECT_THAT(response.body,
                    AnyOf(HasSubstr("not opened yet"), HasSubstr("the disk is full")));
      }
    });
  }
  for (int i = 0; i < 500; ++i) {
    journal.Fail("the disk is full");
    journal.Hold();
  }
  for (std::thread& probe : probes) probe.join();
  EXPECT_EQ(ready(HttpRequest{.method = "GET", .path = "/readyz"}).status, 200);
}

}  // namespace
}  // namespace rudderfish
