// SPDX-License-Identifier: Apache-2.0
#include "kube/access_review.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"

namespace rudderfish::kube {
namespace {

constexpr std::string_view kReviewPath = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
constexpr Duration kReviewStep = std::chrono::milliseconds(100);

bool IsOfOneRule(const Right& a, const Right& b) {
  return a.group == b.group && a.resource == b.resource && a.name_space == b.name_space &&
         a.name == b.name;
}

}  // namespace

namespace internal {

std::string AccessReviewBody(const Right& right) {
  const size_t slash = right.resource.find('/');
  OrderedJson attributes{
      {"verb", right.verb}, {"group", right.group}, {"resource", right.resource.substr(0, slash)}};
  if (slash != std::string::npos) attributes["subresource"] = right.resource.substr(slash + 1);
  if (!right.name_space.empty()) attributes["namespace"] = right.name_space;
  if (!right.name.empty()) attributes["name"] = right.name;
  const OrderedJson review{{"apiVersion", "authorization.k8s.io/v1"},
                           {"kind", "SelfSubjectAccessReview"},
                           {"spec", {{"resourceAttributes", std::move(attributes)}}}};
  return review.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<bool> ReadAccessReview(std::string_view body) {
  simdjson::dom::parser parser;
  simdjson::dom::element review, status;
  if (parser.parse(body.data(), body.size()).get(review) != simdjson::SUCCESS ||
      review["status"].get(status) != simdjson::SUCCESS) {
    return Invalid("{}: the answer is no review of access", kReviewPath);
  }
  bool allowed = false;
  if (status["allowed"].get(allowed) != simdjson::SUCCESS) {
    return Invalid("{}: status.allowed: expected true or false", kReviewPath);
  }
  return allowed;
}

}  // namespace internal

Result<std::vector<bool>> ReviewAccess(ApiClient* client, const std::vector<Right>& rights,
                                       Duration deadline) {
  std::vector<std::optional<ApiAnswer>> answers(rights.size());
  for (size_t i = 0; i < rights.size(); ++i) {
    client->Send({.method = Method::kPost,
                  .path = std::string(kReviewPath),
                  .body = internal::AccessReviewBody(rights[i]),
                  .deadline = deadline},
                 [&answers, i](ApiAnswer answer) { answers[i] = std::move(answer); });
  }
  // Each request has its deadline, so that all of them are answered.
  while (std::any_of(answers.begin(), answers.end(), [](const auto& one) { return !one; })) {
    client->Poll(kReviewStep);
  }
  std::vector<bool> allowed;
  for (const std::optional<ApiAnswer>& answer : answers) {
    if (!answer->ok()) return tl::unexpected(answer->outcome.error());
    TRY_ASSIGN(const bool one, internal::ReadAccessReview(answer->body));
    allowed.push_back(one);
  }
  return allowed;
}

std::vector<std::string> RulesToAdd(const std::vector<Right>& missing) {
  std::vector<std::string> rules;
  for (size_t i = 0; i < missing.size(); ++i) {
    const Right& first = missing[i];
    const auto same = [&](const Right& other) { return IsOfOneRule(first, other); };
    const auto begin = missing.begin();
    if (std::any_of(begin, begin + static_cast<std::ptrdiff_t>(i), same)) continue;
    std::vector<std::string> verbs;
    for (const Right& right : missing) {
      if (same(right)) verbs.push_back(fmt::format("\"{}\"", right.verb));
    }
    rules.push_back(fmt::format(
        "{}: {{apiGroups: [\"{}\"], resources: [\"{}\"]{}, verbs: [{}]}}",
        first.name_space.empty() ? "a ClusterRole" : "a Role in namespace " + first.name_space,
        first.group, first.resource,
        first.name.empty() ? "" : fmt::format(", resourceNames: [\"{}\"]", first.name),
        fmt::join(verbs, ", ")));
  }
  return rules;
}

}  // namespace rudderfish::kube
