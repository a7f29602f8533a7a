// SPDX-License-Identifier: Apache-2.0
#include "kube/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using ::testing::HasSubstr;

class DumpTest : public ::testing::Test {
 protected:
  DumpTest() {
    for (int i = 0; i < kMirroredCount; ++i) mirror_.SinkOf(static_cast<Resource>(i))->BeginList();
  }

  std::string ErrorOf(const std::string& text) {
    const Result<void> read = ReadDump(text, "dump", &mirror_, &content_);
    return read ? "" : read.error().message;
  }

  ManualClock clock_;
  Mirror mirror_{&clock_};
  DumpContent content_;
};

const std::string kPods =
    R"({"kind":"List","items":[)" + rudderfish::testing::PodJson{.name = "p"}.Text() + "]}";

// As `kubectl cluster-info dump` writes a list of which there is none.
TEST_F(DumpTest, AListOfNullIsEmpty) {
  EXPECT_EQ(ErrorOf(R"({"kind":"DaemonSetList","items":null})"), "");
  EXPECT_TRUE(content_.counts.contains(Resource::kDaemonSets));
  EXPECT_EQ(content_.counts[Resource::kDaemonSets], 0);
  EXPECT_THAT(ErrorOf(R"({"kind":"PodList"})"), HasSubstr("`items` is missing"));
  EXPECT_THAT(ErrorOf(R"({"kind":"PodList","items":7})"), HasSubstr("`items` is missing"));
}

TEST_F(DumpTest, AByteOrderMarkIsPassedOver) {
  EXPECT_EQ(ErrorOf("\xEF\xBB\xBF" + kPods), "");
  EXPECT_EQ(content_.counts[Resource::kPods], 1);
}

TEST_F(DumpTest, WhatIsNotJsonIsNamedAsWhatItIs) {
  EXPECT_THAT(ErrorOf("\xFF\xFE{"), HasSubstr("is UTF-16"));
  EXPECT_THAT(ErrorOf("apiVersion: v1\nitems: []\nkind: List\n"), HasSubstr("is YAML, not JSON"));
  EXPECT_THAT(ErrorOf("no kind of anything"), HasSubstr("is no JSON"));
}

}  // namespace
}  // namespace rudderfish::kube
