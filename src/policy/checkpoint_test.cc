// SPDX-License-Identifier: Apache-2.0
#include "policy/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(Checkpoint, OfARunIsTheBestOrElseTheLast) {
  const fs::path run =
      fs::temp_directory_path() / fmt::format("rudderfish-checkpoint-{}", ::getpid());
  fs::create_directories(run);
  EXPECT_THAT(CheckpointOf(run).error().message, HasSubstr("is it a run of `train`?"));
  ASSERT_TRUE(WriteFileAtomically(run / "last.safetensors", "x"));
  EXPECT_EQ(CheckpointOf(run).value(), run / "last.safetensors");
  ASSERT_TRUE(WriteFileAtomically(run / "best.safetensors", "x"));
  EXPECT_EQ(CheckpointOf(run).value(), run / "best.safetensors");
  EXPECT_EQ(CheckpointOf(run / "last.safetensors").value(), run / "last.safetensors");
  fs::remove_all(run);
  EXPECT_THAT(OpenCheckpoint(run).error().message, HasSubstr("no such checkpoint or run folder"));
}

TEST(Checkpoint, OfAnotherTaskIsRefused) {
  const auto file = OpenCheckpoint(SourcePath("policies/continuum.safetensors")).value();
  EXPECT_TRUE(CheckTrainedFor(file, "migration"));
  EXPECT_THAT(CheckTrainedFor(file, "placement").error().message,
              HasSubstr("trained for the task migration, not placement"));
}

}  // namespace
}  // namespace rudderfish
