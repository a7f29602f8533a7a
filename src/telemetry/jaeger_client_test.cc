// SPDX-License-Identifier: Apache-2.0
#include "telemetry/jaeger_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "net/http_server.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two services of which each answers with the same trace.
class JaegerClientTest : public ::testing::Test {
 protected:
  JaegerClientTest() {
    HttpRoutes routes;
    routes.Add("GET", "/api/services",
               [this](const HttpRequest&) { return HttpResponse{.body = services_}; });
    routes.Add("GET", "/api/traces", [this](const HttpRequest& request) {
      query_ = std::string(request.query);
      return HttpResponse{.status = status_, .body = traces_};
    });
    auto server = HttpServer::Start({.listen = {"127.0.0.1:0"}}, std::move(routes));
    CHECK(server.has_value());
    server_ = *std::move(server);
  }

  Result<JaegerAnswer> Fetch(int traces_max = 10) {
    return FetchSpans({.url = "http://" + server_->addresses()[0] + "/",
                       .from_unix = 100,
                       .to_unix = 200,
                       .traces_max = traces_max},
                      &set_);
  }

  std::string services_ = R"({"data": ["web", "a b"]})";
  std::string traces_ = R"({"data": [{"traceID": "af", "spans": [
    {"traceID": "af", "spanID": "1", "operationName": "GET /", "startTime": 1000000,
     "duration": 20, "processID": "p1"}], "processes": {"p1": {"serviceName": "web"}}}]})";
  int status_ = 200;
  std::string query_;
  SpanSet set_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(JaegerClientTest, TakesATraceOfSeveralServicesOnce) {
  const Result<JaegerAnswer> answer = Fetch();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->services, 2);
  EXPECT_TRUE(answer->cut.empty());
  EXPECT_EQ(set_.spans.size(), 1u);
  EXPECT_EQ(query_, "service=a%20b&start=100000000&end=200000000&limit=10");
}

TEST_F(JaegerClientTest, SaysWhichServicesHadMoreTraces) {
  EXPECT_THAT(Fetch(1).value().cut, ElementsAre("web", "a b"));
}

TEST_F(JaegerClientTest, WhatIsNoJaegerOrHasNoTraceIsAnError) {
  traces_ = R"({"data": []})";
  EXPECT_THAT(Fetch().error().message, HasSubstr("no trace of that time"));
  status_ = 500;
  EXPECT_THAT(Fetch().error().message, HasSubstr("status 500"));
  services_ = "<html>";
  EXPECT_THAT(Fetch().error().message, HasSubstr("is this Jaeger's query service?"));
}

}  // namespace
}  // namespace rudderfish
