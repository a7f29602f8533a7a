// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "base/check.h"
#include "cloud/haproxy.h"
#include "cloud/http_route.h"
#include "cloud/split.h"

// Any bytes as a split, as an HTTPRoute, as a list of EndpointSlices and as HAProxy's answer:
// refused with a message, or values within their bounds.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto split = ParseSplit(text)) {
    std::vector<double> shares;
    for (const RegionShare& one : *split) shares.push_back(one.share);
    for (const int total : {100, 256, 1'000'000}) {
      const std::vector<int> weights = WeightsOf(shares, total);
      CHECK_EQ(std::accumulate(weights.begin(), weights.end(), 0), total);
    }
  } else {
    CHECK(!split.error().message.empty());
  }
  if (const auto rule = ReadHttpRoute(text, "route", {})) {
    CHECK(rule->backends.size() >= 2 && rule->backends.size() <= 16);
    const std::string patch =
        HttpRoutePatch(*rule, std::vector<int>(rule->backends.size(), 1), "note");
    CHECK(!patch.empty());
  } else {
    CHECK(!rule.error().message.empty());
  }
  (void)ReadyEndpoints(text, "slices");
  if (const auto servers = ReadHaproxyServers(text, "shop")) {
    for (const HaproxyServer& one : *servers) CHECK(one.weight >= 0 && one.weight <= 256);
  } else {
    CHECK(!servers.error().message.empty());
  }
  return 0;
}
