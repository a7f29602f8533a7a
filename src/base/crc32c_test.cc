// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace rudderfish {
namespace {

TEST(Crc32c, AnswersThePublishedVectors) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(Crc32c(""), 0U);
}

TEST(Crc32c, ContinuesFromAnEarlierPart) {
  EXPECT_EQ(Crc32c("6789", Crc32c("12345")), Crc32c("123456789"));
}

TEST(Crc32c, MaskRotatesByFifteenAndAddsAConstant) {
  // 0xE3069283 rotated right by 15 is 0x2507C60D.
  EXPECT_EQ(MaskedCrc32c("123456789"), 0x2507C60DU + 0xA282EAD8U);
}

}  // namespace
}  // namespace rudderfish
