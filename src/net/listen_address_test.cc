// SPDX-License-Identifier: Apache-2.0
#include "net/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

TEST(ListenAddress, IsALiteralWithAPortOrAPath) {
  const ListenAddress four = ParseListenAddress("127.0.0.1:5000").value();
  EXPECT_EQ(four.ip, "127.0.0.1");
  EXPECT_EQ(four.port, 5000);
  EXPECT_FALSE(four.is_unix());
  EXPECT_EQ(ParseListenAddress("[::1]:0")->ip, "::1");
  EXPECT_EQ(ParseListenAddress("localhost:65535")->ip, "127.0.0.1");
  const ListenAddress socket = ParseListenAddress("unix:/run/a.sock").value();
  EXPECT_TRUE(socket.is_unix());
  EXPECT_EQ(socket.path, "/run/a.sock");
}

TEST(ListenAddress, WhatIsNoneIsRefusedWithWhatWasExpected) {
  for (const char* text : {"", "5000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80",
                           "example.org:80", "127.0.0.1:8x"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_FALSE(address.has_value()) << text;
    EXPECT_THAT(address.error().message, HasSubstr("such as 127.0.0.1:5000")) << text;
  }
  EXPECT_THAT(ParseListenAddress("unix:" + std::string(200, 'a')).error().message,
              HasSubstr("at most 107 bytes"));
}

TEST(ListenAddress, AFileThatIsNoSocketIsNotRemoved) {
  const std::string path = ::testing::TempDir() + "/no-socket";
  std::ofstream(path) << "mine";
  EXPECT_THAT(RemoveStaleSocket(path).error().message, HasSubstr("is no socket"));
  EXPECT_TRUE(std::filesystem::remove(path));
  EXPECT_TRUE(RemoveStaleSocket(path).has_value());  // Nothing is there.
}

}  // namespace
}  // namespace rudderfish
