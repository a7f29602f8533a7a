// SPDX-License-Identifier: Apache-2.0
#include "serve/operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

class Operations : public ::testing::Test {
 protected:
  Operations() {
    ready_.Add("policy", [] { return std::string(); });
    ready_.Add("mirror", [this] { return mirror_.reason(); });
    HttpRoutes routes;
    AddOperations(&live_, &ready_, &metrics_, &routes);
    handler_ = Observed(std::move(routes), &clock_, &metrics_);
  }
  HttpResponse Get(std::string_view path, std::string_view query = {}) const {
    return handler_({.method = "GET", .path = path, .query = query});
  }

  Condition mirror_{"nothing was listed yet"};
  HealthChecks live_{"livez"}, ready_{"readyz"};
  MetricRegistry metrics_;
  ManualClock clock_;
  HttpHandler handler_;
};

TEST_F(Operations, ReadyIsWhatAllChecksHold) {
  HttpResponse response = Get("/readyz");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body,
            "[+]policy ok\n[-]mirror failed: nothing was listed yet\nreadyz check failed\n");
  mirror_.Hold();
  response = Get("/readyz");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "ok");
  EXPECT_EQ(Get("/readyz", "verbose").body, "[+]policy ok\n[+]mirror ok\nreadyz check passed\n");
  mirror_.Fail("the API server is gone");
  EXPECT_EQ(Get("/readyz").status, 503);
}

TEST_F(Operations, AliveDoesNotMeanReady) {
  EXPECT_EQ(Get("/livez").status, 200);
  EXPECT_EQ(Get("/readyz").status, 503);
}

TEST_F(Operations, RequestsAreCountedByPathAndCode) {
  Get("/livez");
  Get("/livez");
  Get("/readyz");
  for (const char* path : {"/a", "/b", "/c"}) Get(path);
  const HttpResponse response = Get("/metrics");
  EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  for (const char* line : {"rudderfish_http_requests_total{code=\"200\",path=\"/livez\"} 2\n",
                           "rudderfish_http_requests_total{code=\"503\",path=\"/readyz\"} 1\n",
                           "rudderfish_http_requests_total{code=\"404\",path=\"other\"} 3\n",
                           "rudderfish_http_request_duration_seconds_count{path=\"/livez\"} 2\n"}) {
    EXPECT_THAT(response.body, HasSubstr(line));
  }
}

}  // namespace
}  // namespace rudderfish
