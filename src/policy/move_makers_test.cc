// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/registry.h"
#include "task/migration.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

std::string NameOrRefusal(const std::string& spec) {
  const MigrationTask task{{}};
  const auto policy = MakePolicy(spec, task);
  return policy ? std::string((*policy)->name()) : policy.error().message;
}

TEST(MoveMakers, ASearchTakesATrainedPolicy) {
  const std::string shipped = SourcePath("policies/continuum.safetensors");
  for (const char* search : {"lookahead:", "lookahead:width=8,patience=2,", "lookahead:directed=0,",
                             "best-of:", "best-of:samples=4,", "best-of:samples=0,directed=4,"}) {
    const std::string spec = search + ("run=" + shipped);
    EXPECT_EQ(NameOrRefusal(spec), spec);
  }
}

TEST(MoveMakers, ASearchNamesTheRunThatIsMissing) {
  EXPECT_THAT(NameOrRefusal("best-of"), HasSubstr("best-of:samples=16,run=runs/a"));
  EXPECT_THAT(NameOrRefusal("lookahead:run=no/such/run"),
              HasSubstr("no/such/run: no such checkpoint"));
  EXPECT_THAT(NameOrRefusal("best-of:run=no/such/run"),
              HasSubstr("no/such/run: no such checkpoint"));
}

TEST(MoveMakers, OnlyWalksAreDirected) {
  EXPECT_THAT(NameOrRefusal("lookahead:directed=2"), HasSubstr("option `directed` needs `run`"));
}

}  // namespace
}  // namespace rudderfish
