// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "kube/extender_args.h"

// What kube-scheduler, or a client that poses as it, sends to the extender: read, or refused in one
// line.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish::kube;
  static simdjson::dom::parser parser;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto args = ReadExtenderArgs(body, {}, &parser);
  if (!args) {
    CHECK(!args.error().message.empty());
    CHECK(args.error().message.find('\n') == std::string::npos);
    return 0;
  }
  HostPriorityText(args->nodes, std::vector<int>(args->nodes.size(), 3));
  return 0;
}
