// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

// What the API server says when it says no: a Status object in an answer, or in the ERROR event of
// a watch. Becomes one line that names the request; a 403 names the RBAC rule that would allow it.
// Answers from anything between us and the server (a proxy's HTML) are told by their code alone.

namespace rudderfish::kube {

enum class Method {
  kGet,
  kPost,
  kPut,
  kMergePatch,
  kStrategicMergePatch,
  kJsonPatch,
  kApply,
  kDelete
};

// As HTTP calls it.
std::string_view MethodName(Method method);

struct ApiStatus {
  int code = 0;
  std::string reason;   // Expired, NotFound, Conflict, ...; empty if none was given.
  std::string message;  // One line.
  std::optional<Duration> retry_after;
  bool is_version_too_large = false;  // The version asked for is one the server has not reached.

  bool IsExpired() const { return code == 410 || reason == "Expired" || reason == "Gone"; }
};

ApiStatus ReadStatus(const simdjson::dom::element& object);

// Of the body of an answer; if it is no Status, code and message are those of HTTP.
ApiStatus ParseStatus(std::string_view body, int http_code);

// The parts of a path of the API: /apis/apps/v1/namespaces/shop/deployments/cart/scale?...
struct ApiPath {
  std::string group, name_space, resource, name, subresource;
  bool is_watch = false;
};
ApiPath ParseApiPath(std::string_view path);

// As RBAC calls it: get, list, watch, create, update, patch, delete, deletecollection.
std::string_view RbacVerb(Method method, const ApiPath& path);

Error ToError(const ApiStatus& status, Method method, std::string_view path);

}  // namespace rudderfish::kube
