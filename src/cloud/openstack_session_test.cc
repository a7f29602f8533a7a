// SPDX-License-Identifier: Apache-2.0
#include "cloud/openstack_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "cloud/openstack_vms.h"
#include "net/http_server.h"

// Against answers of a real Keystone v3.14, Nova 2.93 and Placement 1.39, shortened. The real ones
// are asked by tests/openstack_live_test.py.

namespace rudderfish {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::string_view kServer =
    R"({"id": "24d4486b-ceb3-4208-9a48-1d7aea24a10%d", "name": "shop-%d", "status": "ACTIVE",
     "metadata": {"rudderfish_fleet": "shop", "rudderfish_slot": "%d"}, "image": null,
     "flavor": {"vcpus": 1, "ram": 64, "original_name": "tiny"}, "created": "2026-01-01T00:00:00Z",
     "OS-EXT-AZ:availability_zone": "eu", "OS-EXT-STS:task_state": null,
     "OS-EXT-SRV-ATTR:host": "eu-2", "OS-EXT-SRV-ATTR:hypervisor_hostname": "eu-2"})";

std::string ServerOf(int number) {
  std::string text(kServer);
  for (size_t at = 0; (at = text.find("%d")) != std::string::npos;)
    text.replace(at, 2, fmt::format("{}", number));
  return text;
}

class OpenStackSessionTest : public ::testing::Test {
 protected:
  OpenStackSessionTest() {
    HttpRoutes routes;
    routes.Add("POST", "/v3/auth/tokens", [this](const HttpRequest& request) {
      const std::lock_guard lock(mutex_);
      logins_.emplace_back(request.body);
      if (login_status_ != 200)
        return HttpResponse{.status = login_status_,
                            .body = R"({"error": {"code": 401, "message": "Wrong credentials."}})"};
      return HttpResponse{
          .status = 201,
          .body = catalog_,
          .headers = {{"X-Subject-Token", fmt::format("token-{}", logins_.size())}}};
    });
    routes.Add("GET", "/nova/v2.1/", [this](const HttpRequest&) {
      return HttpResponse{
          .body = fmt::format(R"({{"version": {{"id": "v2.1", "version": "{}"}}}})", nova_)};
    });
    routes.Add("GET", "/nova/v2.1/servers/detail", [this](const HttpRequest& request) {
      if (--refusals_ >= 0) return HttpResponse{.status = refusal_, .body = "{}"};
      const bool is_second = request.query.find("marker=") != std::string_view::npos;
      const std::string next = is_second ? "" : R"(, "servers_links": [{"rel": "next",
                        "href": "http://inside:1/nova/v2.1/servers/detail?limit=1&marker=a"}])";
      return HttpResponse{
          .body = fmt::format(R"({{"servers": [{}]{}}})", ServerOf(is_second ? 2 : 1), next)};
    });
    routes.Add("POST", "/nova/v2.1/servers", [this](const HttpRequest&) {
      ++posts_;
      return HttpResponse{.status = post_status_,
                          .body = R"({"forbidden": {"code": 403, "message": "Quota exceeded"}})",
                          .headers = {{"X-Openstack-Request-Id", "req-1"}}};
    });
    auto server = HttpServer::Start(
        {.listen = {"127.0.0.1:0"},
         .body_limits = {{"/v3/auth/tokens", 1 << 20}, {"/nova/v2.1/servers", 1 << 20}}},
        std::move(routes));
    CHECK(server.has_value());
    server_ = *std::move(server);
    url_ = "http://" + server_->addresses()[0];
    catalog_ = CatalogOf("RegionOne");
  }

  std::string CatalogOf(std::string_view region) const {
    const auto endpoint = [&](std::string_view type, std::string_view path) {
      return fmt::format(
          R"({{"type": "{}", "name": "x", "endpoints": [{{"interface": "public",
             "region_id": "{}", "url": "{}{}"}}]}})",
          type, region, url_, path);
    };
    return fmt::format(
        R"({{"token": {{"expires_at": "2026-01-01T00:00:00Z", "catalog": [{}, {}]}}}})",
        endpoint("compute", "/nova/v2.1"), endpoint("placement", "/placement"));
  }

  OpenStackSession SessionOf(std::string region = "RegionOne") const {
    return OpenStackSession({.name = "eu",
                             .auth_url = url_,
                             .user = "admin",
                             .user_domain = "Default",
                             .password = "hush",
                             .project = "admin",
                             .project_domain = "Default",
                             .region = std::move(region)});
  }

  std::mutex mutex_;
  std::vector<std::string> logins_;
  std::string url_, catalog_, nova_ = "2.93";
  std::atomic<int> login_status_ = 200, refusals_ = 0, refusal_ = 401, posts_ = 0,
                   post_status_ = 403;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(OpenStackSessionTest, ListsOverPagesWhereverTheNextOneSeemsToBe) {
  OpenStackSession session = SessionOf();
  const Result<std::vector<Vm>> vms = OpenStackVms(&session).List();
  ASSERT_TRUE(vms.has_value()) << vms.error().message;
  ASSERT_THAT(*vms, SizeIs(2));
  EXPECT_EQ((*vms)[1].name, "shop-2");
  EXPECT_EQ((*vms)[1].slot, 2);
  EXPECT_EQ((*vms)[1].host, "eu-2");
  EXPECT_EQ((*vms)[1].flavor, "tiny");
  EXPECT_TRUE((*vms)[1].IsReady());
  EXPECT_EQ(session.compute_minor(), 93);
}

TEST_F(OpenStackSessionTest, ReplacesATokenThatIsNotValidAnyMore) {
  OpenStackSession session = SessionOf();
  ASSERT_TRUE(session.Open().has_value());
  refusals_ = 1;
  EXPECT_TRUE(OpenStackVms(&session).List().has_value());
  EXPECT_THAT(logins_, SizeIs(2));
  refusals_ = 100;
  const auto vms = OpenStackVms(&session).List();
  ASSERT_FALSE(vms.has_value());
  EXPECT_EQ(vms.error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(OpenStackSessionTest, SendsAGetAgainAndAPostOnce) {
  OpenStackSession session = SessionOf();
  refusals_ = 2;
  refusal_ = 503;
  EXPECT_TRUE(OpenStackVms(&session).List().has_value());
  post_status_ = 503;
  const Result<void> made = OpenStackVms(&session).Send(CreateRequest({.name = "a"}));
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(posts_, 1);
}

TEST_F(OpenStackSessionTest, SaysWhyAndNeverWhoAsks) {
  OpenStackSession session = SessionOf();
  Result<void> made = OpenStackVms(&session).Send(CreateRequest({.name = "a"}));
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(made.error().message, HasSubstr("status 403: Quota exceeded (req-1)"));
  EXPECT_THAT(session.RequestText("POST", OpenStackService::kCompute, "/servers", ""),
              Not(HasSubstr("token-1")));
  login_status_ = 401;
  OpenStackSession other = SessionOf();
  const Result<void> opened = other.Open();
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("status 401: Wrong credentials."));
  EXPECT_THAT(opened.error().message, Not(HasSubstr("hush")));
}

TEST_F(OpenStackSessionTest, AsksForAnApplicationCredentialWithoutAScope) {
  OpenStackSession session({.name = "eu",
                            .auth_url = url_,
                            .credential_id = "abc",
                            .credential_secret = "hush",
                            .region = "RegionOne"});
  ASSERT_TRUE(session.Open().has_value());
  ASSERT_THAT(logins_, SizeIs(1));
  EXPECT_EQ(Json::parse(logins_[0]), Json::parse(R"({"auth": {"identity": {
      "methods": ["application_credential"],
      "application_credential": {"id": "abc", "secret": "hush"}}}})"));
}

TEST_F(OpenStackSessionTest, RefusesRegionsAndVersionsThatItCannotUse) {
  OpenStackSession mars = SessionOf("mars");
  Result<void> opened = mars.Open();
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("no public endpoint of compute in region `mars`"));
  nova_ = "2.30";
  OpenStackSession old = SessionOf();
  opened = old.Open();
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("2.30; at least 2.56 is needed"));
}

TEST(OpenStackAnswers, RoomIsWhatTheScarcestResourceLeaves) {
  const Json json = Json::parse(R"({
      "allocation_requests": [{"allocations": {"p1": {"resources": {"VCPU": 1}}}, "mappings": {}},
                              {"allocations": {"p9": {"resources": {"VCPU": 1}}}, "mappings": {}}],
      "provider_summaries": {
        "p1": {"resources": {"VCPU": {"capacity": 40, "used": 38}, "MEMORY_MB": {"capacity": 8192,
               "used": 512}, "DISK_GB": {"capacity": 1028, "used": 0}}, "traits": []},
        "p9": {"resources": {"VCPU": {"capacity": 40, "used": 0}}, "traits": []}}})");
  const auto room = ReadRoom(JsonReader(json, "x"), {{"p1", "eu-1"}}, {1, 64, 1});
  ASSERT_TRUE(room.has_value()) << room.error().message;
  ASSERT_THAT(*room, SizeIs(1));
  EXPECT_EQ((*room)[0].host, "eu-1");
  EXPECT_EQ((*room)[0].vms, 2);
}

TEST(OpenStackAnswers, MessagesOfAllThreeServices) {
  EXPECT_EQ(OpenStackMessage(R"({"badRequest": {"code": 400, "message": "No host"}})"), "No host");
  EXPECT_EQ(OpenStackMessage(R"({"errors": [{"status": 404, "title": "Not Found",
                                 "detail": "no\nprovider"}]})"),
            "no provider");
  EXPECT_EQ(OpenStackMessage("<html>"), "");
}

TEST(OpenStackAnswers, AForeignMarkIsOfNoFleet) {
  Json json = Json::parse(ServerOf(3));
  json["metadata"]["rudderfish_slot"] = "three";
  const Result<Vm> vm = ReadVm(JsonReader(json, "x"));
  ASSERT_TRUE(vm.has_value());
  EXPECT_EQ(vm->fleet, "");
  json["id"] = "../flavors";
  EXPECT_FALSE(ReadVm(JsonReader(json, "x")).has_value());
}

TEST(OpenStackClouds, ReadsBothKindsOfCredentials) {
  constexpr std::string_view kClouds = R"(clouds:
  eu:
    auth: {auth_url: "http://a:5000/v3/", username: u, password: p, project_name: x}
    compute_api_version: "2.79"
  us:
    auth_type: v3applicationcredential
    auth: {auth_url: "https://b/identity/v3", application_credential_id: i,
           application_credential_secret: s}
    interface: internal
)";
  Result<OpenStackCloud> cloud = ParseClouds(kClouds, "clouds.yaml", "eu");
  ASSERT_TRUE(cloud.has_value()) << cloud.error().message;
  EXPECT_EQ(cloud->auth_url, "http://a:5000");
  EXPECT_EQ(cloud->user_domain, "Default");
  cloud = ParseClouds(kClouds, "clouds.yaml", "us");
  ASSERT_TRUE(cloud.has_value()) << cloud.error().message;
  EXPECT_EQ(cloud->auth_url, "https://b/identity");
  EXPECT_EQ(cloud->interface, "internal");
  EXPECT_TRUE(cloud->has_credential());
  EXPECT_THAT(ParseClouds(kClouds, "clouds.yaml", "").error().message,
              HasSubstr("choose a cloud with --cloud or OS_CLOUD; there are eu, us"));
  EXPECT_THAT(ParseClouds("clouds: {eu: {auth: {auth_url: x}}}", "c", "").error().message,
              HasSubstr("c:1:32: `clouds.eu.auth.auth_url`: expected a URL"));
}

}  // namespace
}  // namespace rudderfish
