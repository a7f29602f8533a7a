// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/clock.h"
#include "kube/kubeconfig.h"
#include "kube/transfers.h"

// Any bytes as two kubeconfigs, which a line of `---` separates: refused in one line, or a server
// to talk to. Two requests to it end with an answer or an error within their time. The process has
// a network of its own, in which no name and no address is found.

namespace {

using rudderfish::Duration;
using rudderfish::kube::ClusterAccess;
using rudderfish::kube::HttpResult;
using rudderfish::kube::Transfers;

constexpr Duration kRequestLimit = std::chrono::milliseconds(200);

// True if nothing of this process reaches another machine.
bool LeaveTheNetwork() { return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0; }

void Ask(ClusterAccess access) {
  static const bool is_alone = LeaveTheNetwork();
  if (!is_alone) access.proxy_url = "http://127.0.0.1:1";  // Then the server's name is only read.
  Transfers transfers(access, 1);
  for (int i = 0; i < 2; ++i) {
    bool is_over = false;
    transfers.Begin({.method = "GET",
                     .path = "/version",
                     .identity = std::make_shared<rudderfish::kube::Identity>(),
                     .connect_timeout = kRequestLimit,
                     .timeout = kRequestLimit},
                    [&](const HttpResult& result) {
                      CHECK(result.status != 0 || !result.why.empty());
                      is_over = true;
                    });
    std::vector<Transfers::Waited> none;
    while (!is_over) transfers.Poll(kRequestLimit, &none);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::string_view kSeparator = "\n---\n";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find(kSeparator);
  std::vector<rudderfish::kube::KubeconfigText> files = {{"/a", std::string(text.substr(0, end))}};
  if (end != std::string_view::npos)
    files.push_back({"/b", std::string(text.substr(end + kSeparator.size()))});
  const auto access = rudderfish::kube::ParseKubeconfigs(files, {});
  if (!access) {
    CHECK(!access.error().message.empty());
    return 0;
  }
  CHECK(access->server.starts_with("http://") || access->server.starts_with("https://"));
  CHECK_EQ(access->certificate.empty(), access->key.empty());
  CHECK(access->token.find('\n') == std::string::npos);
  Ask(*access);
  return 0;
}
