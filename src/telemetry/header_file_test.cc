// SPDX-License-Identifier: Apache-2.0
#include "telemetry/header_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Refusal(std::string_view text) {
  const auto headers = ParseHeaderFile(text, "door");
  EXPECT_FALSE(headers);
  return headers ? "" : headers.error().message;
}

TEST(HeaderFile, LinesAreHeadersAndCommentsArePassedOver) {
  EXPECT_THAT(
      ParseHeaderFile("# of the door\n\nAuthorization: Bearer s3cret\r\n X-Scope-OrgID:a\n", "door")
          .value(),
      ElementsAre("Authorization: Bearer s3cret", "X-Scope-OrgID: a"));
}

TEST(HeaderFile, MistakesNameTheLineAndShowNothingOfIt) {
  for (const char* line : {"s3cret", "s3cret value: x", ": s3cret", "A: s3cret\x01"}) {
    const std::string refusal = Refusal(std::string("X-A: 1\n") + line);
    EXPECT_THAT(refusal, HasSubstr("door:2: ")) << line;
    EXPECT_THAT(refusal, Not(HasSubstr("s3cret"))) << line;
  }
  EXPECT_THAT(Refusal("A:"), HasSubstr("A: expected a value"));
  EXPECT_THAT(Refusal("content-Length: 5"), HasSubstr("leave it out"));
  EXPECT_THAT(Refusal("# nothing\n"), HasSubstr("found nothing"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += "A: 1\n";
  EXPECT_THAT(Refusal(many), HasSubstr("door:65: expected at most 64"));
}

TEST(HeaderFile, TokenIsOneWord) {
  EXPECT_EQ(ParseBearerToken("s3cret\n", "token").value(), "Authorization: Bearer s3cret");
  EXPECT_FALSE(ParseBearerToken("", "token"));
  const auto two = ParseBearerToken("s3cret\nother", "token");
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message, Not(HasSubstr("s3cret")));
}

TEST(HeaderFile, BothFilesAreReadAsTheyAreNow) {
  const std::string folder = ::testing::TempDir();
  const HeaderFiles files{.headers = folder + "/headers", .bearer_token = folder + "/token"};
  ASSERT_TRUE(WriteFileAtomically(files.headers, "X-Scope-OrgID: a\n"));
  ASSERT_TRUE(WriteFileAtomically(files.bearer_token, "one\n"));
  EXPECT_THAT(ReadHeaders(files).value(),
              ElementsAre("X-Scope-OrgID: a", "Authorization: Bearer one"));
  ASSERT_TRUE(WriteFileAtomically(files.bearer_token, "two\n"));
  EXPECT_THAT(ReadHeaders(files).value()[1], "Authorization: Bearer two");
  EXPECT_THAT(ReadHeaders({.headers = folder + "/none", .bearer_token = {}}).error().message,
              HasSubstr("/none: No such file"));
}

}  // namespace
}  // namespace rudderfish
