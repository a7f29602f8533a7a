// SPDX-License-Identifier: Apache-2.0
#include "net/socket_address.h"

#include <gtest/gtest.h>

namespace rudderfish {
namespace {

TEST(SocketAddress, PeopleWriteHostsWithAndWithoutPorts) {
  EXPECT_EQ(*ParseHostAndPort("node-1:9100"), (HostAndPort{"node-1", 9100, true}));
  EXPECT_EQ(*ParseHostAndPort("10.0.0.7"), (HostAndPort{"10.0.0.7", 0, false}));
  EXPECT_EQ(*ParseHostAndPort("[fd00::7]:80"), (HostAndPort{"fd00::7", 80, true}));
  EXPECT_EQ(*ParseHostAndPort("fd00::7"), (HostAndPort{"fd00::7", 0, false}));
  for (const char* bad : {"", ":1", "a:", "a:0", "a:70000", "a:1x", "[::1", "[::1]x", "a b"})
    EXPECT_FALSE(ParseHostAndPort(bad)) << bad;
}

TEST(SocketAddress, TextIsWhatItWasMadeOf) {
  EXPECT_EQ(SocketAddress::Of("10.0.0.7", 9100)->Text(), "10.0.0.7:9100");
  EXPECT_EQ(SocketAddress::Of("fd00::7", 9100)->Text(), "[fd00::7]:9100");
  EXPECT_EQ(SocketAddress::Of("fd00::7", 9100)->Ip(), "fd00::7");
  EXPECT_FALSE(SocketAddress::Of("host", 1));
}

TEST(SocketAddress, LiteralsResolveToThemselves) {
  const auto found = Resolve({"127.0.0.1", 9100, true});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().Text(), "127.0.0.1:9100");
  EXPECT_FALSE(Resolve({"no-such-name.invalid", 1, true}));
}

}  // namespace
}  // namespace rudderfish
