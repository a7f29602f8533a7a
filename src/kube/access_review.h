// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/api_client.h"

// What we may do, as the API server itself says it (SelfSubjectAccessReview of
// authorization.k8s.io/v1): any authenticated user may ask, and the server keeps nothing of it.

namespace rudderfish::kube {

// One verb on one resource, as RBAC has it.
struct Right {
  std::string verb;
  std::string group;       // "" is core.
  std::string resource;    // pods, or pods/binding.
  std::string name_space;  // Empty: in all of them, or of the whole cluster.
  std::string name;        // Empty: whatever it is called.

  bool operator==(const Right&) const = default;
};

// Whether each may be done. `deadline` is of all of them together.
Result<std::vector<bool>> ReviewAccess(ApiClient* client, const std::vector<Right>& rights,
                                       Duration deadline);

// What is to be added where, a line for each resource; verbs on one resource stand together.
std::vector<std::string> RulesToAdd(const std::vector<Right>& missing);

namespace internal {

// The body of a request, and what its answer says.
std::string AccessReviewBody(const Right& right);
Result<bool> ReadAccessReview(std::string_view body);

}  // namespace internal

}  // namespace rudderfish::kube
