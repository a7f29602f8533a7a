// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "net/http_message.h"

// What a kubelet asks: is the process alive (/livez), is it ready (/readyz). Each is a list of
// named checks; the answer is 200 if all hold and 503 otherwise, in the text Kubernetes' own
// components give:
//
//   [+]policy ok
//   [-]mirror failed: the last list is 31 s old
//   readyz check failed
//
// With everything well it is "ok", or the list where ?verbose asks for it.

namespace rudderfish {

// Why not, or empty. Called from the server's threads: it must be quick and thread safe.
using HealthCheck = std::function<std::string()>;

class HealthChecks {
 public:
  explicit HealthChecks(std::string name) : name_(std::move(name)) {}  // "readyz"

  // Before the server starts.
  void Add(std::string name, HealthCheck check);

  HttpResponse operator()(const HttpRequest& request) const;

 private:
  struct Named {
    std::string name;
    HealthCheck check;
  };

  std::string name_;
  std::vector<Named> checks_;
};

// A check whose answer another thread sets. Holds nothing until it is told so.
class Condition {
 public:
  explicit Condition(std::string reason) : reason_(std::move(reason)) {}

  void Hold() { Fail(""); }
  void Fail(std::string reason);
  std::string reason() const;  // Empty: it holds.

 private:
  mutable std::mutex mutex_;
  std::string reason_;
};

}  // namespace rudderfish
