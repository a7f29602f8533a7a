// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cloud/haproxy.h"

// Any bytes as HAProxy's answer: refused in one line, or servers whose names cannot end a command.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;  // NOLINT(google-build-using-namespace)
  const std::string_view answer(reinterpret_cast<const char*>(data), size);
  const auto servers = ParseServersState(answer, "web");
  if (!servers) {
    CHECK(!servers.error().message.empty());
    CHECK(servers.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const HaproxyServer& server : *servers) {
    CHECK(CheckHaproxyName(server.name));
    CHECK(server.weight >= 0 && server.weight <= HaproxyEnactor::kWeightMax);
    CHECK(server.is_running == (server.state == "running"));
  }
  return 0;
}
