// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace rudderfish {
namespace {

// Examples of FIPS 180-4 and NIST's SHA test vectors.
TEST(Sha256, AnswersThePublishedVectors) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

RC_GTEST_PROP(Sha256, DoesNotDependOnHowTheTextIsCut, ()) {
  const std::string text(*rc::gen::inRange(0, 300), 't');
  const size_t cut = *rc::gen::inRange<size_t>(0, text.size() + 1);
  Sha256 hash;
  hash.Update(std::string_view(text).substr(0, cut));
  hash.Update(std::string_view(text).substr(cut));
  RC_ASSERT(hash.Hex() == Sha256Hex(text));
}

}  // namespace
}  // namespace rudderfish
