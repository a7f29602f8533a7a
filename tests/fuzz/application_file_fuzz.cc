// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "scenario/application_file.h"

// Any bytes as application.yaml: refused in one line, or an application whose columns fit together.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto application = rudderfish::ParseApplication(text, "fuzz.yaml");
  if (!application) {
    CHECK(!application.error().message.empty());
    CHECK(application.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const auto workloads = static_cast<size_t>(application->catalog->workload_count());
  const auto kinds = static_cast<size_t>(application->catalog->kind_count());
  CHECK_EQ(application->objects.size(), workloads);
  CHECK_EQ(application->external_layers.size(), workloads);
  CHECK_EQ(application->kind_nodes.size(), kinds);
  CHECK_EQ(application->kind_costs.size(), kinds);
  for (size_t w = 0; w < workloads; ++w) {
    const bool external = application->external_layers[w] != rudderfish::kNone;
    CHECK_EQ(application->objects[w].is_external(), external);
  }
  return 0;
}
