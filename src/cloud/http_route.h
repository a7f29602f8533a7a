// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cloud/weighted_object.h"
#include "kube/api_client.h"

// The weights of one rule of a Gateway API HTTPRoute, set by one JSON patch that names the version
// of the object it was read at. A region is healthy if its Service has an endpoint that is ready.

namespace rudderfish {

struct HttpRouteChoice : ObjectChoice {
  std::optional<int> rule;  // From 0; none: the only one.
};

// A rule of a route as the API server has it.
struct HttpRouteRule {
  struct Backend {
    std::string kind, name, name_space;  // Kind with its group, where it has one.
    int64_t weight = 1;                  // What the API takes where none is given.
  };
  std::string resource_version;
  int rule = 0;
  std::vector<Backend> backends;
  std::vector<std::string> notes;
};

// Reads an HTTPRoute. kInvalidArgument: not such an object, or weights out of range; kNotFound: no
// such rule; kFailedPrecondition: a route that a controller owns, or rules owned by a field manager
// other than us, kubectl and `may_change`.
Result<HttpRouteRule> ReadHttpRoute(std::string_view json, const HttpRouteChoice& choice);

class HttpRouteEnactor final : public WeightedObjectEnactor {
 public:
  static constexpr int64_t kWeightMax = 1'000'000;
  static constexpr size_t kBackendsMax = 16;

  // REQUIRES: `client` outlives this.
  HttpRouteEnactor(kube::ApiClient* client, HttpRouteChoice choice);

 protected:
  Result<WeightedObject> Parse(std::string_view json) const override;
  std::string Target() const override;

 private:
  HttpRouteChoice choice_;
};

}  // namespace rudderfish
