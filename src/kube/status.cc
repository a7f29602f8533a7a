// SPDX-License-Identifier: Apache-2.0
#include "kube/status.h"

#include <fmt/format.h>

#include <vector>

#include "base/one_line.h"
#include "kube/fields.h"

namespace rudderfish::kube {
namespace {

std::string_view HttpPhrase(int code) {
  switch (code) {
    case 400:
      return "bad request";
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 404:
      return "not found";
    case 409:
      return "conflict";
    case 410:
      return "gone";
    case 429:
      return "too many requests";
    case 503:
      return "service unavailable";
    default:
      return code >= 500 ? "server error" : "refused";
  }
}

ErrorCode CodeOf(int code) {
  if (code == 404) return ErrorCode::kNotFound;
  if (code == 409) return ErrorCode::kConflict;
  if (code == 401 || code == 403 || code == 410 || code == 412)
    return ErrorCode::kFailedPrecondition;
  if (code == 429 || code >= 500) return ErrorCode::kUnavailable;
  return ErrorCode::kInvalidArgument;
}

// The rule that a role lacks, as it would stand in its manifest.
std::string MissingRule(Method method, const ApiPath& path) {
  if (path.resource.empty()) return "";
  const std::string resource =
      path.subresource.empty() ? path.resource : path.resource + "/" + path.subresource;
  const std::string place = path.name_space.empty()
                                ? "a ClusterRole"
                                : "a Role in namespace " + path.name_space + ", or a ClusterRole,";
  return fmt::format(
      "; add to {} of this user: {{apiGroups: [\"{}\"], resources: [\"{}\"], "
      "verbs: [{}]}}",
      place, path.group, resource,
      // Who watches lists too, now or when the watch has ended.
      path.is_watch ? "\"list\", \"watch\"" : fmt::format("\"{}\"", RbacVerb(method, path)));
}

}  // namespace

ApiStatus ReadStatus(const simdjson::dom::element& object) {
  ApiStatus status;
  int64_t code = 0;
  if (object["code"].get(code) == simdjson::SUCCESS && code > 0 && code < 1000)
    status.code = static_cast<int>(code);
  status.reason = OneLine(TextOf(object, "reason"), 100);
  status.message = OneLine(TextOf(object, "message"));
  status.is_version_too_large =
      status.message.find("Too large resource version") != std::string::npos;
  simdjson::dom::element details;
  if (object["details"].get(details) != simdjson::SUCCESS) return status;
  int64_t seconds = 0;
  if (details["retryAfterSeconds"].get(seconds) == simdjson::SUCCESS && seconds > 0)
    status.retry_after = std::chrono::seconds(std::min<int64_t>(seconds, 3600));
  simdjson::dom::array causes;
  if (details["causes"].get(causes) != simdjson::SUCCESS) return status;
  for (const simdjson::dom::element cause : causes)
    status.is_version_too_large |= TextOf(cause, "reason") == "ResourceVersionTooLarge";
  return status;
}

ApiStatus ParseStatus(std::string_view body, int http_code) {
  ApiStatus status;
  simdjson::dom::parser parser;
  simdjson::dom::element object;
  if (parser.parse(body.data(), body.size()).get(object) == simdjson::SUCCESS &&
      TextOf(object, "kind") == "Status") {
    status = ReadStatus(object);
  }
  status.code = http_code;
  if (status.message.empty()) status.message = HttpPhrase(http_code);
  return status;
}

ApiPath ParseApiPath(std::string_view path) {
  const std::string_view query = path.substr(std::min(path.find('?'), path.size()));
  std::string_view rest = path.substr(0, path.size() - query.size());
  std::vector<std::string> words;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (!word.empty()) words.emplace_back(word);
  }
  ApiPath parts;
  parts.is_watch = query.find("watch=1") != std::string_view::npos ||
                   query.find("watch=true") != std::string_view::npos;
  size_t at = 0;
  if (words.size() >= 2 && words[0] == "api") {
    at = 2;
  } else if (words.size() >= 3 && words[0] == "apis") {
    parts.group = words[1];
    at = 3;
  } else {
    return parts;  // /version, /livez: no resources.
  }
  if (words.size() >= at + 3 && words[at] == "namespaces") {
    parts.name_space = words[at + 1];
    at += 2;
  }
  if (at < words.size()) parts.resource = words[at];
  if (at + 1 < words.size()) parts.name = words[at + 1];
  if (at + 2 < words.size()) parts.subresource = words[at + 2];
  return parts;
}

std::string_view MethodName(Method method) {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kPost:
      return "POST";
    case Method::kPut:
      return "PUT";
    case Method::kMergePatch:
    case Method::kStrategicMergePatch:
    case Method::kJsonPatch:
    case Method::kApply:
      return "PATCH";
    case Method::kDelete:
      return "DELETE";
  }
  return "";
}

std::string_view RbacVerb(Method method, const ApiPath& path) {
  switch (method) {
    case Method::kGet:
      if (path.is_watch) return "watch";
      return path.name.empty() ? "list" : "get";
    case Method::kPost:
      return "create";
    case Method::kPut:
      return "update";
    case Method::kMergePatch:
    case Method::kStrategicMergePatch:
    case Method::kJsonPatch:
    case Method::kApply:
      return "patch";
    case Method::kDelete:
      return path.name.empty() ? "deletecollection" : "delete";
  }
  return "";
}

Error ToError(const ApiStatus& status, Method method, std::string_view path) {
  std::string message = fmt::format(
      "{} {}: {}", MethodName(method), OneLine(path.substr(0, path.find('?')), 200),
      status.code == 0 ? status.message : fmt::format("{} {}", status.code, status.message));
  if (status.code == 403 && status.message.find("\"system:anonymous\"") != std::string::npos) {
    message += "; the kubeconfig names no credentials for this user, or the API server took none";
  } else if (status.code == 403) {
    message += OneLine(MissingRule(method, ParseApiPath(path)));
  }
  if (status.code == 401) message += "; the credentials are wrong or have expired";
  return {CodeOf(status.code), std::move(message)};
}

}  // namespace rudderfish::kube
