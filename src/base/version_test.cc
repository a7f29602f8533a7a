// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/source_path.h"

namespace rudderfish {
namespace {

TEST(Version, IsTheNewestOfTheChangelog) {
  const Result<std::string> changes = ReadFile(SourcePath("CHANGELOG.md"));
  ASSERT_TRUE(changes.has_value());
  const size_t heading = changes->find("\n## ");
  ASSERT_NE(heading, std::string::npos);
  EXPECT_EQ(changes->substr(heading + 4, ProgramVersion().size() + 1),
            fmt::format("{} ", ProgramVersion()));
}

}  // namespace
}  // namespace rudderfish
