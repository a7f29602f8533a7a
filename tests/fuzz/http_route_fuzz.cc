// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "cloud/http_route.h"

// Any bytes as an HTTPRoute of an API server: refused in one line, or a rule within the API's
// bounds.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;  // NOLINT(google-build-using-namespace)
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  for (const std::optional<int> rule : {std::optional<int>(), std::optional<int>(1)}) {
    const auto read = ReadHttpRoute(json, {{.name_space = "shop", .name = "web"}, rule});
    if (!read) {
      CHECK(!read.error().message.empty());
      CHECK(read.error().message.find('\n') == std::string::npos);
      continue;
    }
    CHECK(!read->backends.empty() && read->backends.size() <= HttpRouteEnactor::kBackendsMax);
    for (const HttpRouteRule::Backend& backend : read->backends)
      CHECK(backend.weight >= 0 && backend.weight <= HttpRouteEnactor::kWeightMax);
    for (const std::string& note : read->notes) CHECK(note.find('\n') == std::string::npos);
  }
  return 0;
}
