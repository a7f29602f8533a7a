// SPDX-License-Identifier: Apache-2.0
#include "cloud/xds_session.h"

#include <cloud/xds.pb.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/one_line.h"

namespace rudderfish {
namespace {

enum Type { kListeners, kClusters, kAssignments };
constexpr std::string_view kTypeUrls[] = {
    "type.googleapis.com/envoy.config.listener.v3.Listener",
    "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"};
constexpr std::string_view kConnectionManager =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3."
    "HttpConnectionManager";
constexpr std::string_view kRouter =
    "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
constexpr int kVersion3 = 2;  // ApiVersion::V3.
constexpr int kEds = 3;       // Cluster::EDS.
constexpr int kHealthy = 1;
constexpr int64_t kReportSeconds = 5;
constexpr size_t kNameMax = 300;
constexpr size_t kRefusalMax = 300;

std::string ListenerOf(const XdsService& service) {
  xds::HttpConnectionManager manager;
  manager.set_stat_prefix(service.name);
  manager.mutable_route_config()->set_name(service.name);
  xds::VirtualHost* host = manager.mutable_route_config()->add_virtual_hosts();
  host->set_name(service.name);
  host->add_domains("*");
  xds::Route* route = host->add_routes();
  route->mutable_match()->set_prefix("");
  route->mutable_route()->set_cluster(service.name);
  xds::HttpFilter* filter = manager.add_http_filters();
  filter->set_name("router");
  filter->mutable_typed_config()->set_type_url(std::string(kRouter));
  xds::Listener listener;
  listener.set_name(service.name);
  xds::Any* any = listener.mutable_api_listener()->mutable_api_listener();
  any->set_type_url(std::string(kConnectionManager));
  any->set_value(manager.SerializeAsString());
  return listener.SerializeAsString();
}

std::string ClusterOf(const XdsService& service) {
  xds::Cluster cluster;
  cluster.set_name(service.name);
  cluster.set_type(kEds);
  xds::ConfigSource* source = cluster.mutable_eds_cluster_config()->mutable_eds_config();
  source->mutable_ads();
  source->set_resource_api_version(kVersion3);
  cluster.mutable_common_lb_config()->mutable_locality_weighted_lb_config();
  cluster.mutable_lrs_server()->mutable_self();
  cluster.mutable_lrs_server()->set_resource_api_version(kVersion3);
  return cluster.SerializeAsString();
}

// A region that gets nothing is not in it: weights are 1 or more.
std::string AssignmentOf(const XdsService& service) {
  xds::ClusterLoadAssignment assignment;
  assignment.set_cluster_name(service.name);
  for (const XdsRegion& region : service.regions) {
    if (region.weight == 0) continue;
    xds::LocalityLbEndpoints* locality = assignment.add_endpoints();
    locality->mutable_locality()->set_region(region.name);
    locality->mutable_load_balancing_weight()->set_value(static_cast<uint32_t>(region.weight));
    for (const SocketAddress& endpoint : region.endpoints) {
      xds::LbEndpoint* one = locality->add_lb_endpoints();
      one->set_health_status(kHealthy);
      xds::SocketAddress* address =
          one->mutable_endpoint()->mutable_address()->mutable_socket_address();
      address->set_address(endpoint.Ip());
      address->set_port_value(endpoint.port());
    }
  }
  return assignment.SerializeAsString();
}

}  // namespace

Result<void> XdsSession::Take(std::string_view request) {
  xds::DiscoveryRequest said;
  if (!said.ParseFromArray(request.data(), static_cast<int>(request.size())))
    return Invalid("it is no DiscoveryRequest");
  const auto type = std::find(std::begin(kTypeUrls), std::end(kTypeUrls), said.type_url());
  if (type == std::end(kTypeUrls)) return {};  // We have nothing of that kind.
  Subscription& one = subscriptions_[static_cast<size_t>(type - std::begin(kTypeUrls))];
  if (!said.response_nonce().empty() && said.response_nonce() != one.nonce) return {};  // Stale.
  if (static_cast<size_t>(said.resource_names_size()) > kNamesMax)
    return Invalid("it asks for {} resources of one kind; {} at most", said.resource_names_size(),
                   kNamesMax);
  if (&one == &subscriptions_[kAssignments] && !said.response_nonce().empty()) {
    const std::string& why = said.error_detail().message();
    TakeVerdict(!said.has_error_detail()
                    ? ""
                    : "refused: " + OneLine(why.empty() ? "no reason" : why, kRefusalMax));
  }
  one.is_asked = true;
  one.names.clear();
  for (const std::string& name : said.resource_names()) {
    if (name.size() <= kNameMax) one.names.insert(name);
  }
  return {};
}

void XdsSession::TakeVerdict(const std::string& refusal) {
  const Subscription& assignments = subscriptions_[kAssignments];
  for (const std::string& service : assignments.of)
    board_->Note(id_, service, {.version = assignments.newest, .refusal = refusal});
}

std::set<std::string> XdsSession::Wanted(int type) const {
  const Subscription& one = subscriptions_[static_cast<size_t>(type)];
  if (!one.names.empty() || type == kAssignments) return one.names;
  const std::vector<std::string> all = board_->Services();
  return {all.begin(), all.end()};
}

std::optional<std::string> XdsSession::Next() {
  for (int type = 0; type < kTypes; ++type) {
    Subscription& one = subscriptions_[static_cast<size_t>(type)];
    if (!one.is_asked) continue;
    std::vector<XdsService> services;
    std::string told = "of";
    UnixMillis newest = 0;
    for (const std::string& name : Wanted(type)) {
      std::optional<XdsService> service = board_->Find(name);
      told += fmt::format(" {}", name);
      if (!service) continue;
      if (type == kAssignments) told += fmt::format("@{}", service->version);
      newest = std::max(newest, service->version);
      services.push_back(*std::move(service));
    }
    if (told == one.told) continue;
    xds::DiscoveryResponse response;
    response.set_type_url(std::string(kTypeUrls[type]));
    response.set_version_info(type == kAssignments ? fmt::to_string(newest) : "1");
    response.set_nonce(fmt::to_string(++responses_));
    one.of.clear();
    for (const XdsService& service : services) {
      one.of.insert(service.name);
      xds::Any* any = response.add_resources();
      any->set_type_url(std::string(kTypeUrls[type]));
      any->set_value(type == kListeners  ? ListenerOf(service)
                     : type == kClusters ? ClusterOf(service)
                                         : AssignmentOf(service));
    }
    one.told = std::move(told);
    one.nonce = response.nonce();
    one.newest = newest;
    return response.SerializeAsString();
  }
  return std::nullopt;
}

std::string LoadReportsWanted(const XdsBoard& board) {
  xds::LoadStatsResponse response;
  for (const std::string& name : board.Services()) response.add_clusters(name);
  response.mutable_load_reporting_interval()->set_seconds(kReportSeconds);
  return response.SerializeAsString();
}

Result<void> TakeLoadReport(std::string_view request, XdsBoard* board) {
  xds::LoadStatsRequest said;
  if (!said.ParseFromArray(request.data(), static_cast<int>(request.size())))
    return Invalid("it is no LoadStatsRequest");
  for (const xds::ClusterStats& cluster : said.cluster_stats()) {
    for (const xds::UpstreamLocalityStats& one : cluster.upstream_locality_stats()) {
      board->Count(cluster.cluster_name(), one.locality().region(),
                   {.issued = one.total_issued_requests(),
                    .succeeded = one.total_successful_requests(),
                    .failed = one.total_error_requests()});
    }
  }
  return {};
}

}  // namespace rudderfish
