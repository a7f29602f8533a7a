// SPDX-License-Identifier: Apache-2.0
#include "cloud/openstack_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/one_line.h"

namespace rudderfish {
namespace {

using std::chrono::milliseconds;

constexpr int kComputeMinorBest = 93, kComputeMinorLeast = 56;  // 2.56: cold migration to a host.
constexpr std::string_view kPlacementVersion = "1.29";  // Nested providers, of all since 2018.
constexpr size_t kOpenStackBytesMax = 64 << 20;
constexpr int kLogIns = 2;  // Of one request: a proxy may have kept an old token.
constexpr int kTries = 5, kPagesMax = 10'000;
constexpr milliseconds kFirstWait{200};

constexpr std::string_view kTypes[kOpenStackServices] = {"compute", "placement", "image"};

ErrorCode CodeOf(int status) {
  if (status == 404) return ErrorCode::kNotFound;
  if (status == 409) return ErrorCode::kConflict;
  if (status == 401 || status == 403 || status == 406) return ErrorCode::kFailedPrecondition;
  // Too many requests: this one was not carried out, but GET may be tried again.
  if (status / 100 == 4 && status != 408 && status != 413 && status != 429)
    return ErrorCode::kInvalidArgument;
  return ErrorCode::kUnavailable;
}

bool MayHaveHappened(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded;
}

std::optional<int> MinorOf(std::string_view version, std::string_view major) {
  if (!version.starts_with(major)) return {};
  version.remove_prefix(major.size());
  int minor = 0;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), minor);
  if (error != std::errc{} || end != version.data() + version.size()) return {};
  return minor;
}

Json LogInBody(const OpenStackCloud& cloud) {
  if (cloud.has_credential()) {
    return {{"auth",
             {{"identity",
               {{"methods", {"application_credential"}},
                {"application_credential",
                 {{"id", cloud.credential_id}, {"secret", cloud.credential_secret}}}}}}}};
  }
  const Json user = {{"name", cloud.user},
                     {"domain", {{"name", cloud.user_domain}}},
                     {"password", cloud.password}};
  return {
      {"auth",
       {{"identity", {{"methods", {"password"}}, {"password", {{"user", user}}}}},
        {"scope",
         {{"project", {{"name", cloud.project}, {"domain", {{"name", cloud.project_domain}}}}}}}}}};
}

Error Refusal(const HttpReply& reply, std::string_view what) {
  std::string_view id = reply.Header("x-openstack-request-id");
  if (id.empty()) id = reply.Header("x-compute-request-id");
  const std::string told = OpenStackMessage(reply.body);
  return {CodeOf(reply.status),
          fmt::format("{}: status {}{}{}{}", what, reply.status, told.empty() ? "" : ": ", told,
                      id.empty() ? "" : fmt::format(" ({})", OneLine(id, 60)))};
}

Result<std::string> TextOf(const JsonReader& at, std::string_view key) {
  TRY_ASSIGN(const JsonReader found, at.At(key));
  return found.AsString();
}

}  // namespace

// Nova: {"badRequest": {"message"}}; Keystone: {"error": {"message"}}; Placement: {"errors":
// [{"title", "detail"}]}.
std::string OpenStackMessage(std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object() || json.empty()) return "";
  const Json* found = &json.begin().value();
  if (found->is_array() && !found->empty()) found = &(*found)[0];
  if (!found->is_object()) return "";
  for (const char* key : {"message", "detail", "title"}) {
    const auto at = found->find(key);
    if (at != found->end() && at->is_string()) return OneLine(at->get<std::string>(), 300);
  }
  return "";
}

OpenStackSession::OpenStackSession(OpenStackCloud cloud, Duration deadline,
                                   const std::atomic<bool>* stop)
    : cloud_(std::move(cloud)), deadline_(deadline), stop_(stop) {}

Result<void> OpenStackSession::Open() {
  if (!token_.empty() && compute_minor_ > 0) return {};
  TRY(LogIn());
  return AgreeOnVersions();
}

Result<void> OpenStackSession::LogIn() {
  token_.clear();
  const std::string url = cloud_.auth_url + "/v3/auth/tokens";
  Result<HttpReply> reply;
  milliseconds wait = kFirstWait;
  for (int tried = 1;; ++tried) {
    reply = http_.Fetch({.url = url,
                         .headers = {"Content-Type: application/json"},
                         .body = LogInBody(cloud_).dump(),
                         .deadline = deadline_,
                         .body_limit_bytes = kOpenStackBytesMax,
                         .ca_file = cloud_.ca_file});
    const bool again =
        !reply ? MayHaveHappened(reply.error().code) : reply->status >= 500 || reply->status == 429;
    if (!again || tried == kTries || IsStopped()) break;  // An extra token does no harm.
    std::this_thread::sleep_for(wait);
    wait *= 2;
  }
  if (!reply) return tl::unexpected(reply.error());
  if (reply->status / 100 != 2)
    return tl::unexpected(Refusal(*reply, fmt::format("cannot log in at {}", PublicUrl(url))));
  const std::string source = "the answer of " + PublicUrl(url);
  TRY_ASSIGN(const Json json, ParseJson(reply->body, source));
  TRY_ASSIGN(const JsonReader token, JsonReader(json, source).At("token"));
  TRY(ReadCatalog(token));
  token_ = reply->Header("x-subject-token");
  if (token_.empty())
    return Fail(ErrorCode::kUnavailable, "{} has no token in X-Subject-Token", source);
  return {};
}

Result<void> OpenStackSession::ReadCatalog(const JsonReader& token) {
  TRY_ASSIGN(const auto catalog, token.Find("catalog"));
  std::vector<JsonReader> services;
  if (catalog) {
    TRY_ASSIGN(services, catalog->Elements());
  }
  std::array<std::vector<std::pair<std::string, std::string>>, kOpenStackServices> found;
  for (const JsonReader& service : services) {
    TRY_ASSIGN(const std::string type, TextOf(service, "type"));
    const auto* const at = std::find(std::begin(kTypes), std::end(kTypes), type);
    if (at == std::end(kTypes)) continue;
    TRY_ASSIGN(const JsonReader list, service.At("endpoints"));
    TRY_ASSIGN(const std::vector<JsonReader> endpoints, list.Elements());
    for (const JsonReader& endpoint : endpoints) {
      TRY_ASSIGN(const std::string interface, TextOf(endpoint, "interface"));
      TRY_ASSIGN(const auto region, endpoint.Find("region_id"));
      std::string name;
      if (region) {
        TRY_ASSIGN(name, region->AsString());
      }
      if (interface != cloud_.interface || (!cloud_.region.empty() && name != cloud_.region))
        continue;
      TRY_ASSIGN(std::string url, TextOf(endpoint, "url"));
      while (url.ends_with('/')) url.pop_back();
      found[static_cast<size_t>(at - std::begin(kTypes))].emplace_back(name, std::move(url));
    }
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string where =
        cloud_.region.empty() ? "" : fmt::format(" in region `{}`", OneLine(cloud_.region, 100));
    if (found[i].empty() && static_cast<OpenStackService>(i) == OpenStackService::kImage)
      continue;  // Images may be named by id.
    if (found[i].empty()) {
      return Fail(ErrorCode::kNotFound, "{}: the catalog has no {} endpoint of {}{}",
                  PublicUrl(cloud_.auth_url), cloud_.interface, kTypes[i], where);
    }
    if (found[i].size() > 1 && cloud_.region.empty()) {
      return Invalid("{}: {} has endpoints in several regions; set region_name in clouds.yaml",
                     PublicUrl(cloud_.auth_url), kTypes[i]);
    }
    endpoints_[i] = found[i][0].second;
  }
  return {};
}

Result<void> OpenStackSession::AgreeOnVersions() {
  compute_minor_ = 0;  // None is asked for yet.
  TRY_ASSIGN(const Json json, Get(OpenStackService::kCompute, "/"));
  const std::string source = "the version of Nova";
  TRY_ASSIGN(const JsonReader version, JsonReader(json, source).At("version"));
  TRY_ASSIGN(const std::string newest, TextOf(version, "version"));
  const std::optional<int> minor = MinorOf(newest, "2.");
  if (!minor || *minor < kComputeMinorLeast) {
    return Fail(
        ErrorCode::kFailedPrecondition, "{}: Nova has microversion {}; at least 2.{} is needed",
        PublicUrl(EndpointOf(OpenStackService::kCompute)), OneLine(newest, 20), kComputeMinorLeast);
  }
  compute_minor_ = std::min(*minor, kComputeMinorBest);
  return {};
}

std::vector<std::string> OpenStackSession::HeadersOf(OpenStackService service) const {
  std::vector<std::string> headers = {"Content-Type: application/json", "Accept: application/json"};
  if (service == OpenStackService::kPlacement)
    headers.push_back(fmt::format("OpenStack-API-Version: placement {}", kPlacementVersion));
  else if (service == OpenStackService::kCompute && compute_minor_ > 0)
    headers.push_back(fmt::format("OpenStack-API-Version: compute 2.{}", compute_minor_));
  return headers;
}

std::string OpenStackSession::RequestText(std::string_view method, OpenStackService service,
                                          std::string_view path, std::string_view body) const {
  std::string text = fmt::format("{} {}{}\n{}\n", method, EndpointOf(service), path,
                                 fmt::join(HeadersOf(service), "\n"));
  if (!body.empty()) text += fmt::format("\n{}\n", body);
  return text;
}

Result<HttpReply> OpenStackSession::Send(const Call& call) {
  std::vector<std::string> headers = HeadersOf(call.service);
  headers.push_back("X-Auth-Token: " + token_);
  return http_.Fetch({.url = EndpointOf(call.service) + call.path,
                      .headers = std::move(headers),
                      .body = call.body,
                      .method = call.method,
                      .deadline = deadline_,
                      .body_limit_bytes = kOpenStackBytesMax,
                      .ca_file = cloud_.ca_file});
}

Result<Json> OpenStackSession::Ask(const Call& call) {
  if (token_.empty()) TRY(Open());
  if (EndpointOf(call.service).empty()) {
    return Fail(ErrorCode::kNotFound, "{}: the catalog has no endpoint of type {}",
                PublicUrl(cloud_.auth_url), kTypes[static_cast<size_t>(call.service)]);
  }
  const std::string what =
      fmt::format("{} {}", call.method, PublicUrl(EndpointOf(call.service) + call.path));
  milliseconds wait = kFirstWait;
  int logged_in = 0;
  for (int tried = 1;; ++tried) {
    const Result<HttpReply> reply = Send(call);
    if (reply && reply->status == 401 && logged_in++ < kLogIns) {
      TRY(LogIn());
      continue;
    }
    if (reply && reply->status / 100 == 2) {
      if (reply->body.empty()) return Json(nullptr);
      Result<Json> json = ParseJson(reply->body, what);
      // Cut short: what was asked for may have happened.
      if (!json) return Fail(ErrorCode::kUnavailable, "{}", json.error().message);
      return json;
    }
    Error error = reply ? Refusal(*reply, what) : reply.error();
    if (!MayHaveHappened(error.code) || call.method == "POST" || tried == kTries || IsStopped())
      return tl::unexpected(std::move(error));
    std::this_thread::sleep_for(wait);
    wait *= 2;
  }
}

Result<Json> OpenStackSession::Get(OpenStackService service, const std::string& path) {
  return Ask({.method = "GET", .service = service, .path = path, .body = ""});
}

Result<Json> OpenStackSession::Post(OpenStackService service, const std::string& path,
                                    const std::string& body) {
  return Ask({.method = "POST", .service = service, .path = path, .body = body});
}

Result<Json> OpenStackSession::Put(OpenStackService service, const std::string& path,
                                   const std::string& body) {
  return Ask({.method = "PUT", .service = service, .path = path, .body = body});
}

Result<Json> OpenStackSession::Delete(OpenStackService service, const std::string& path) {
  return Ask({.method = "DELETE", .service = service, .path = path, .body = ""});
}

Result<std::vector<Json>> OpenStackSession::List(OpenStackService service, const std::string& path,
                                                 std::string_view key) {
  std::vector<Json> all;
  std::string next = path;
  for (int page = 0; page < kPagesMax; ++page) {
    TRY_ASSIGN(const Json json, Get(service, next));
    const JsonReader root(json, "GET " + path);
    TRY_ASSIGN(const JsonReader list, root.At(key));
    TRY_ASSIGN(const std::vector<JsonReader> elements, list.Elements());
    for (const JsonReader& one : elements) all.push_back(one.value());
    TRY_ASSIGN(const auto links, root.Find(fmt::format("{}_links", key)));
    next.clear();
    if (links) {
      TRY_ASSIGN(const std::vector<JsonReader> each, links->Elements());
      for (const JsonReader& link : each) {
        TRY_ASSIGN(const std::string rel, TextOf(link, "rel"));
        if (rel != "next") continue;
        // Only the query is taken: behind a proxy the rest is an address that only Nova knows.
        TRY_ASSIGN(const std::string href, TextOf(link, "href"));
        const size_t query = href.find('?');
        if (query == std::string::npos) return link.Refuse("the next page has no query");
        next = path.substr(0, path.find('?')) + href.substr(query);
      }
    }
    if (next.empty() || elements.empty()) return all;
  }
  return Fail(ErrorCode::kUnavailable, "GET {}: more than {} pages", path, kPagesMax);
}

}  // namespace rudderfish
