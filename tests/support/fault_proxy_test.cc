// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fault_proxy.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/support/raw_http.h"

namespace rudderfish::testing {
namespace {

constexpr char kAsk[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

// Bytes pass as they are, so that plain HTTP does.
class FaultProxied : public ::testing::Test {
 protected:
  static int PortOf(const std::string& url) { return std::stoi(url.substr(url.rfind(':') + 1)); }
  std::string Address() const { return proxy_.url().substr(proxy_.url().find("127")); }

  bool IsAskedTimes(size_t count) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (server_.requests().size() < count && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    return server_.requests().size() == count;
  }

  FaultyServer server_{[](const SeenRequest&, Connection* to) { to->Answer(200, "well"); }};
  FaultProxy proxy_{PortOf(server_.url())};
};

TEST_F(FaultProxied, PassesOnWhatIsSaid) {
  const std::string answer = Fetch(Address(), "/a");
  EXPECT_NE(answer.find("well"), std::string::npos) << answer;
  EXPECT_EQ(proxy_.resets(), 0);
}

TEST_F(FaultProxied, UnheardIsAskedAndItsAnswersAreLostAndThenAllIsCut) {
  RawConnection client(Address());
  client.Send(kAsk);
  ASSERT_NE(client.Receive().find("well"), std::string::npos);
  proxy_.Begin(Fault::kUnheard);
  EXPECT_EQ(proxy_.resets(), 0) << "what is open stays so";
  const Instant passed = proxy_.last_passed();
  client.Send(kAsk);
  RawConnection another(Address());
  another.Send(kAsk);
  ASSERT_TRUE(IsAskedTimes(3)) << "on what was open and on what is new";
  proxy_.Begin(Fault::kNone);
  EXPECT_EQ(client.Receive(), "");
  EXPECT_EQ(another.Receive(), "");
  EXPECT_TRUE(client.AtEnd());
  EXPECT_EQ(proxy_.resets(), 2);
  EXPECT_EQ(proxy_.last_passed(), passed);
  EXPECT_NE(Fetch(Address(), "/a").find("well"), std::string::npos) << "all is well again";
}

TEST_F(FaultProxied, WhatHasLostAPartIsCutEvenByAPartition) {
  RawConnection client(Address());
  client.Send(kAsk);
  ASSERT_NE(client.Receive().find("well"), std::string::npos);
  proxy_.Begin(Fault::kUnheard);
  client.Send(kAsk);
  ASSERT_TRUE(IsAskedTimes(2));
  proxy_.Begin(Fault::kPartition);
  EXPECT_EQ(proxy_.resets(), 1);
  EXPECT_TRUE(client.AtEnd());
  proxy_.Begin(Fault::kNone);
}

TEST_F(FaultProxied, PartitionHoldsBackWhatIsSaidUntilItEnds) {
  RawConnection client(Address());
  client.Send(kAsk);
  ASSERT_NE(client.Receive().find("well"), std::string::npos);
  proxy_.Begin(Fault::kPartition);
  client.Send(kAsk);
  EXPECT_EQ(server_.requests().size(), 1u);
  proxy_.Begin(Fault::kNone);
  EXPECT_NE(client.Receive().find("well"), std::string::npos);
  EXPECT_EQ(proxy_.resets(), 0);
}

}  // namespace
}  // namespace rudderfish::testing
