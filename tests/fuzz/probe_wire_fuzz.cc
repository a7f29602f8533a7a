// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "net/socket_address.h"
#include "node/probe_wire.h"

// Any bytes as packets between agents and as addresses that people write: never both a request and
// an answer, and no name that would break a label.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto request = ReadProbeRequest(text);
  const auto answer = ReadProbeAnswer(text);
  CHECK(!request || !answer);
  if (answer) {
    for (const char c : answer->name) CHECK(c > ' ' && c < 0x7f && c != '"' && c != '\\');
  }
  ReadPingAnswer(text, AF_INET);
  ReadPingAnswer(text, AF_INET6);
  if (const auto host = ParseHostAndPort(text)) CHECK(!host->host.empty());
  return 0;
}
