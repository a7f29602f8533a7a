// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "cloud/openstack_cloud.h"
#include "net/http_client.h"

// Requests to an OpenStack's Nova, Placement and Glance: log in to Keystone, find them in its
// catalog, agree on a microversion, ask. Every call waits for its answer. One thread.
//
// What an error says of a request that changes something:
//   kInvalidArgument, kNotFound, kConflict, kFailedPrecondition   it was refused: nothing changed
//   kUnavailable, kDeadlineExceeded                               it may have been carried out
// Requests that may be sent twice (GET, PUT, DELETE) are, after errors of the second kind. A POST
// is not. A token that is not valid any more is replaced; the request was refused until then.
// Errors carry the request's id, and never a password or a token.

namespace rudderfish {

enum class OpenStackService { kCompute, kPlacement, kImage };  // Nova, Placement, Glance.
inline constexpr int kOpenStackServices = 3;

class OpenStackSession {
 public:
  // `deadline` is of each request. Once `stop` is set, none is sent again.
  explicit OpenStackSession(OpenStackCloud cloud, Duration deadline = std::chrono::seconds(30),
                            const std::atomic<bool>* stop = nullptr);

  // Logs in. All others do so if it has not been done.
  Result<void> Open();

  // `path` begins with a slash, below the service's endpoint. The answer is null if it has no body.
  Result<Json> Get(OpenStackService service, const std::string& path);
  Result<Json> Post(OpenStackService service, const std::string& path, const std::string& body);
  Result<Json> Put(OpenStackService service, const std::string& path, const std::string& body);
  Result<Json> Delete(OpenStackService service, const std::string& path);

  // All elements of `key`, over as many pages as there are. `path` may have a query.
  Result<std::vector<Json>> List(OpenStackService service, const std::string& path,
                                 std::string_view key);

  // The exact request, without its token. REQUIRES: Open has succeeded.
  std::string RequestText(std::string_view method, OpenStackService service, std::string_view path,
                          std::string_view body) const;

  const OpenStackCloud& cloud() const { return cloud_; }
  int compute_minor() const { return compute_minor_; }  // Of microversion 2.x.

 private:
  struct Call {
    std::string method;
    OpenStackService service = OpenStackService::kCompute;
    std::string path;
    std::string body;
  };

  Result<void> LogIn();
  Result<void> ReadCatalog(const JsonReader& token);
  Result<void> AgreeOnVersions();
  Result<Json> Ask(const Call& call);
  Result<HttpReply> Send(const Call& call);
  std::vector<std::string> HeadersOf(OpenStackService service) const;
  const std::string& EndpointOf(OpenStackService service) const {
    return endpoints_[static_cast<size_t>(service)];
  }

  bool IsStopped() const { return stop_ != nullptr && stop_->load(); }

  OpenStackCloud cloud_;
  Duration deadline_;
  const std::atomic<bool>* stop_;
  std::string token_;
  std::array<std::string, kOpenStackServices> endpoints_;  // [service] No slash at the end.
  int compute_minor_ = 0;
  HttpClient http_;
};

// What a refusal of Keystone, Nova or Placement says, in one line.
std::string OpenStackMessage(std::string_view body);

}  // namespace rudderfish
