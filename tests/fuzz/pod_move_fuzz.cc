// SPDX-License-Identifier: Apache-2.0
#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cluster/pod_move.h"
#include "kube/move_document.h"

// Any bytes as the annotation of a move, and as a pod.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;  // NOLINT
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto move = PodMoveOf(text)) {
    CHECK(PodMoveOf(PodMoveText(*move)).has_value());
  } else {
    CHECK(!move.error().message.empty());
    CHECK(move.error().message.find('\n') == std::string::npos);
  }
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(text.data(), text.size()).get(root) == simdjson::SUCCESS) {
    const auto pod = kube::internal::ReadMovedPod(root);
    CHECK(pod || !pod.error().message.empty());
  }
  return 0;
}
