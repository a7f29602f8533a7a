// SPDX-License-Identifier: Apache-2.0
#include "kube/base64.h"

#include <gtest/gtest.h>

namespace rudderfish::kube {
namespace {

TEST(Base64, DecodesWhatIsEncodedAndNothingElse) {
  EXPECT_EQ(DecodeBase64("AAECAwQ="), std::string("\0\1\2\3\4", 5));
  EXPECT_EQ(DecodeBase64("+/+/\n"), "\xfb\xff\xbf");
  EXPECT_EQ(DecodeBase64(""), "");
  for (const char* wrong : {"A", "AA", "AAA", "AA=A", "A===", "AA==AA==", "AAAA="})
    EXPECT_EQ(DecodeBase64(wrong), std::nullopt) << wrong;
}

TEST(Base64, WhatIsEncodedIsDecodedAgain) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes) << i;
    bytes.push_back(static_cast<char>(i * 7));
  }
  EXPECT_EQ(EncodeBase64("ab"), "YWI=");
}

}  // namespace
}  // namespace rudderfish::kube
