// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "kube/kubeconfig.h"

// Any bytes as two kubeconfigs, which a line of `---` separates: refused in one line, or a server
// to talk to.

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
  return 0;
}
