// SPDX-License-Identifier: Apache-2.0
#include "cloud/xds_session.h"

#include <cloud/xds.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kListeners = "type.googleapis.com/envoy.config.listener.v3.Listener";
constexpr const char* kAssignments =
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

XdsService Service(const std::string& name) {
  return {.name = name,
          .regions = {{"eu", {SocketAddress::Of("10.0.0.1", 80).value()}, 6000},
                      {"us", {SocketAddress::Of("10.0.0.2", 81).value()}, 4000}}};
}

class XdsSessionTest : public ::testing::Test {
 protected:
  static std::string Request(const char* type, std::initializer_list<const char*> names,
                             const std::string& nonce = "", const std::string& refusal = "") {
    xds::DiscoveryRequest request;
    request.set_type_url(type);
    for (const char* name : names) request.add_resource_names(name);
    request.set_response_nonce(nonce);
    if (!refusal.empty()) request.mutable_error_detail()->set_message(refusal);
    return request.SerializeAsString();
  }

  xds::DiscoveryResponse Next() {
    xds::DiscoveryResponse response;
    const std::optional<std::string> text = session_.Next();
    EXPECT_TRUE(text && response.ParseFromString(*text));
    return response;
  }

  // Weights by region, of the first assignment.
  static std::vector<std::pair<std::string, uint32_t>> Weights(
      const xds::DiscoveryResponse& response) {
    xds::ClusterLoadAssignment assignment;
    EXPECT_TRUE(assignment.ParseFromString(response.resources(0).value()));
    std::vector<std::pair<std::string, uint32_t>> weights;
    for (const auto& one : assignment.endpoints())
      weights.emplace_back(one.locality().region(), one.load_balancing_weight().value());
    return weights;
  }

  XdsBoard board_{{Service("web"), Service("api")}};
  XdsSession session_{&board_, 7};
};

TEST_F(XdsSessionTest, TellsEachVersionOnceAndOnlyToWhoAsked) {
  EXPECT_FALSE(session_.Next());
  ASSERT_TRUE(session_.Take(Request(kAssignments, {"web"})));
  const xds::DiscoveryResponse first = Next();
  EXPECT_EQ(first.type_url(), kAssignments);
  EXPECT_THAT(Weights(first), ElementsAre(std::pair("eu", 6000U), std::pair("us", 4000U)));
  EXPECT_FALSE(session_.Next());
  ASSERT_TRUE(session_.Take(Request(kAssignments, {"web"}, first.nonce())));
  EXPECT_FALSE(session_.Next()) << "it has accepted it";
  board_.Set("api", {1, 9999});
  EXPECT_FALSE(session_.Next()) << "it is of another service";
  board_.Set("web", {10'000, 0});
  const xds::DiscoveryResponse second = Next();
  EXPECT_NE(second.version_info(), first.version_info());
  EXPECT_THAT(Weights(second), ElementsAre(std::pair("eu", 10'000U)))
      << "a region that gets nothing is left out";
}

TEST_F(XdsSessionTest, KnowsWhoHasAcceptedAndWhoHasRefused) {
  ASSERT_TRUE(session_.Take(Request(kAssignments, {"web"})));
  const xds::DiscoveryResponse first = Next();
  EXPECT_TRUE(board_.Verdicts("web").empty());
  ASSERT_TRUE(session_.Take(Request(kAssignments, {"web"}, "of another stream", "no")));
  EXPECT_TRUE(board_.Verdicts("web").empty()) << "an answer to what was never told";
  ASSERT_TRUE(session_.Take(Request(kAssignments, {"web"}, first.nonce())));
  EXPECT_EQ(board_.Verdicts("web").at(0).refusal, "");
  const UnixMillis version = board_.Set("web", {5000, 5000});
  const xds::DiscoveryResponse second = Next();
  ASSERT_TRUE(session_.Take(Request(kAssignments, {"web"}, second.nonce(), "bad\nweights")));
  const XdsVerdict verdict = board_.Verdicts("web").at(0);
  EXPECT_EQ(verdict.version, version);
  EXPECT_THAT(verdict.refusal, HasSubstr("refused: bad"));
  EXPECT_FALSE(session_.Next()) << "what was refused is not told again";
  { const XdsSession other(&board_, 8); }
  EXPECT_EQ(board_.Verdicts("web").size(), 1U);
}

TEST_F(XdsSessionTest, WhoNamesNothingGetsAllListeners) {
  ASSERT_TRUE(session_.Take(Request(kListeners, {})));
  EXPECT_EQ(Next().resources_size(), 2);
  ASSERT_TRUE(session_.Take(Request(kAssignments, {"nothing"})));
  EXPECT_EQ(Next().resources_size(), 0) << "it is said that there is none";
  EXPECT_FALSE(session_.Take("\xff\xff"));
  ASSERT_TRUE(session_.Take(Request("type.googleapis.com/other", {})));
  EXPECT_FALSE(session_.Next());
}

TEST_F(XdsSessionTest, LoadsOfWhatThereIsAreCounted) {
  xds::LoadStatsResponse wanted;
  ASSERT_TRUE(wanted.ParseFromString(LoadReportsWanted(board_)));
  EXPECT_EQ(wanted.clusters_size(), 2);
  xds::LoadStatsRequest report;
  for (const char* region : {"eu", "mars"}) {
    xds::UpstreamLocalityStats* one = nullptr;
    xds::ClusterStats* cluster = report.add_cluster_stats();
    cluster->set_cluster_name("web");
    one = cluster->add_upstream_locality_stats();
    one->mutable_locality()->set_region(region);
    one->set_total_successful_requests(3);
    one->set_total_error_requests(1);
    one->set_total_issued_requests(4);
  }
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(TakeLoadReport(report.SerializeAsString(), &board_));
  EXPECT_EQ(board_.LoadOf("web", "eu").succeeded, 6U);
  EXPECT_EQ(board_.LoadOf("web", "eu").failed, 2U);
  EXPECT_EQ(board_.LoadOf("web", "mars").issued, 0U) << "a client cannot make it grow";
  EXPECT_FALSE(TakeLoadReport("\xff", &board_));
}

TEST_F(XdsSessionTest, WeightsAreKeptByServiceAndRegion) {
  board_.Set("web", {9000, 1000});
  std::vector<XdsService> services{Service("web"), Service("new")};
  services[0].regions.push_back({"asia", {SocketAddress::Of("10.0.0.3", 80).value()}, 1});
  XdsBoard next(services);
  ASSERT_TRUE(next.Recall(board_.Text(), "kept"));
  EXPECT_EQ(next.Find("web")->regions[0].weight, 9000);
  EXPECT_EQ(next.Find("web")->regions[2].weight, 0) << "a region that is new begins with nothing";
  EXPECT_EQ(next.Find("new")->regions[0].weight, 6000);
  for (const char* wrong :
       {"", "[]", "{}", R"({"services": [{}]})",
        R"({"services": [{"service": "new", "version": 1, "weights": {"eu": 1}}, {}]})"}) {
    EXPECT_FALSE(next.Recall(wrong, "kept")) << wrong;
  }
  EXPECT_EQ(next.Find("new")->regions[0].weight, 6000) << "an error changes nothing";
}

}  // namespace
}  // namespace rudderfish
