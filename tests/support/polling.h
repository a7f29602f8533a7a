// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "kube/api_client.h"

// What tests of the client share: quick options, and polling until something holds.

namespace rudderfish::testing {

inline const Clock& RealClock() {
  static const SystemClock clock;
  return clock;
}

inline kube::ApiClientOptions QuickOptions() {
  kube::ApiClientOptions options;
  options.back_off = {.first = std::chrono::milliseconds(1), .last = std::chrono::milliseconds(5)};
  options.seed = 1;
  return options;
}

inline std::unique_ptr<kube::ApiClient> OpenClient(
    kube::ClusterAccess access, const kube::ApiClientOptions& options = QuickOptions(),
    const Clock& clock = RealClock()) {
  auto client = kube::ApiClient::Open(std::move(access), &clock, options);
  EXPECT_TRUE(client.has_value()) << client.error().message;
  return *std::move(client);
}

// Polls until `condition` holds; false after `limit`.
inline bool Eventually(kube::ApiClient* client, const std::function<bool()>& condition,
                       Duration limit = std::chrono::seconds(20)) {
  const Instant end = RealClock().Now() + limit;
  while (!condition()) {
    if (RealClock().Now() > end) return false;
    client->Poll(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace rudderfish::testing
