// SPDX-License-Identifier: Apache-2.0
#include "node/probe_wire.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace rudderfish {
namespace {

TEST(ProbeWire, AnswersRepeatTheNumberAndNameTheNode) {
  const std::string request = ProbeRequest(0x0123456789abcdefu);
  EXPECT_EQ(request.size(), kProbeBytes);
  EXPECT_EQ(ReadProbeRequest(request), 0x0123456789abcdefu);
  const std::string answer = ProbeAnswer(*ReadProbeRequest(request), "node-1");
  EXPECT_EQ(answer.size(), request.size());  // Never longer than what was asked.
  const auto answered = ReadProbeAnswer(answer);
  ASSERT_TRUE(answered);
  EXPECT_EQ(answered->number, 0x0123456789abcdefu);
  EXPECT_EQ(answered->name, "node-1");
}

TEST(ProbeWire, AnAnswerIsNoRequest) {
  EXPECT_FALSE(ReadProbeRequest(ProbeAnswer(1, "a")));
  EXPECT_FALSE(ReadProbeAnswer(ProbeRequest(1)));
  EXPECT_FALSE(ReadProbeRequest("RFq1"));
  EXPECT_FALSE(ReadProbeAnswer(ProbeAnswer(1, "a") + "x"));
}

TEST(ProbeWire, NamesThatWouldSpoilALabelAreNone) {
  EXPECT_EQ(ReadProbeAnswer(ProbeAnswer(1, "a\"b"))->name, "");
  EXPECT_EQ(ReadProbeAnswer(ProbeAnswer(1, "a\nb"))->name, "");
  EXPECT_EQ(ReadProbeAnswer(ProbeAnswer(1, std::string(300, 'n')))->name,
            std::string(kProbeNameMax, 'n'));
}

TEST(ProbeWire, PingsComeBackWithTheirNumber) {
  for (const int family : {AF_INET, AF_INET6}) {
    std::string bytes = PingRequest(77, family);
    EXPECT_FALSE(ReadPingAnswer(bytes, family));
    bytes[0] = static_cast<char>(family == AF_INET6 ? 129 : 0);
    EXPECT_EQ(ReadPingAnswer(bytes, family), 77u);
    EXPECT_FALSE(ReadPingAnswer(bytes.substr(1), family));
  }
}

}  // namespace
}  // namespace rudderfish
