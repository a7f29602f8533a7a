// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cloud/data_path.h"
#include "kube/api_client.h"

// Weights of the backends of an HTTPRoute (gateway.networking.k8s.io/v1), read from and written to
// an API server. A backend takes its weight's part of the sum of its rule; at most 16 of them, with
// weights up to 1,000,000 (Gateway API, HTTPBackendRef).
//
// A write is one JSON patch that tests the version of the object and the names of the backends, and
// replaces weights alone, so that it applies as a whole or not at all; it also notes on the object
// what stood before (kSplitKey). A backend that is a Service is healthy if one of its endpoints is
// ready; of others nothing is known.

namespace rudderfish {

inline constexpr std::string_view kSplitKey = "rudderfish.io/split";

struct HttpRouteRule {
  std::string version;  // metadata.resourceVersion
  std::string route;    // "shop/web"
  int rule = 0;
  int rules = 1;  // Of the route.
  struct Backend {
    std::string name, name_space;  // The route's, if it names none.
    std::string kind;              // "Service" unless it says another.
    int weight = 1;
    bool has_weight = false;  // In the object.
  };
  std::vector<Backend> backends;
  bool has_annotations = false;
  std::string owner;    // "Rollout/web", a controller that owns the object; empty: none.
  std::string manager;  // The field manager that wrote `spec` last, beside us; empty: unknown.
};

// `json`: the object. kFailedPrecondition where its weights cannot be ours: several rules and no
// choice of one, more than 16 backends, one alone, a weight out of range.
Result<HttpRouteRule> ReadHttpRoute(std::string_view json, std::string_view source_name,
                                    std::optional<int> rule);

// The JSON patch, on several lines. `note`: what is kept under kSplitKey.
std::string HttpRoutePatch(const HttpRouteRule& rule, const std::vector<int>& weights,
                           const std::string& note);

// Whether any endpoint of an EndpointSliceList is ready.
Result<RegionState> ReadyEndpoints(std::string_view json, std::string_view source_name);

struct HttpRouteOptions {
  std::string name_space, name;
  std::optional<int> rule;                     // None: the route has one alone.
  std::map<std::string, std::string> regions;  // Of backends by name; none: the backend's name.
  bool take_over = false;                      // Write weights that another manager wrote last.
};

class HttpRoutePath final : public DataPath {
 public:
  HttpRoutePath(kube::ApiClient* client, HttpRouteOptions options)
      : client_(client), options_(std::move(options)) {}

  std::string name() const override;
  int weight_total() const override { return 1'000'000; }
  Result<std::vector<WeightedBackend>> Read() override;
  Result<std::string> RequestOf(const std::vector<int>& weights) const override;
  Result<void> Write(const std::vector<int>& weights) override;

 private:
  std::string ObjectPath() const;
  std::string Patch(const std::vector<int>& weights) const;
  Result<void> CheckOwner() const;
  Result<RegionState> StateOf(const HttpRouteRule::Backend& backend);

  kube::ApiClient* client_;
  HttpRouteOptions options_;
  HttpRouteRule read_;
};

}  // namespace rudderfish
