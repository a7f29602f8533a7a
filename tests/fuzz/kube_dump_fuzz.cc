// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "kube/draft_application.h"
#include "kube/dump.h"
#include "kube/kube_cluster.h"

// Any bytes as a dump of kubectl: refused in one line, or a mirror of which an application can be
// drafted and a consistent State be made, or said why not.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;
  const ManualClock clock;
  kube::Mirror mirror(&clock);
  kube::DumpContent content;
  for (int i = 0; i < kube::kMirroredCount; ++i) {
    mirror.SinkOf(static_cast<kube::Resource>(i))->BeginList();
  }
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto read = kube::ReadDump(text, "fuzz.json", &mirror, &content); !read) {
    CHECK(!read.error().message.empty());
    return 0;
  }
  for (int i = 0; i < kube::kMirroredCount; ++i) {
    mirror.SinkOf(static_cast<kube::Resource>(i))->EndList();
  }
  const auto application = kube::DraftApplication(mirror, {});
  if (!application) return 0;
  kube::KubeCluster cluster(&mirror, std::make_shared<const Application>(*application));
  State state;
  if (cluster.Refresh(&state)) CheckConsistent(state);
  return 0;
}
