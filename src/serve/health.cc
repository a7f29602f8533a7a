// SPDX-License-Identifier: Apache-2.0
#include "serve/health.h"

#include <fmt/format.h>

#include <utility>

namespace rudderfish {

void HealthChecks::Add(std::string name, HealthCheck check) {
  checks_.push_back({std::move(name), std::move(check)});
}

HttpResponse HealthChecks::operator()(const HttpRequest& request) const {
  std::string list;
  bool good = true;
  for (const Named& named : checks_) {
    const std::string reason = named.check();
    good &= reason.empty();
    list += reason.empty() ? fmt::format("[+]{} ok\n", named.name)
                           : fmt::format("[-]{} failed: {}\n", named.name, reason);
  }
  list += fmt::format("{} check {}\n", name_, good ? "passed" : "failed");
  const bool verbose = request.query.starts_with("verbose");
  return {.status = good ? 200 : 503,
          .content_type = "text/plain; charset=utf-8",
          .body = good && !verbose ? "ok" : list};
}

void Condition::Fail(std::string reason) {
  const std::lock_guard lock(mutex_);
  reason_ = std::move(reason);
}

std::string Condition::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

}  // namespace rudderfish
