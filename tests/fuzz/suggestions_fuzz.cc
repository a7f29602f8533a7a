// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "compat/suggestions.h"

// Any bytes as requests to the suggestions server, in one piece and as they come: each is answered
// by JSON on one line, whatever was set before. A zero byte ends a request.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;
  SuggestionsServer server([](const SuggestedPod& pod) -> Result<Suggestion> {
    CHECK(pod.cpu_millis >= 0 && pod.memory_bytes >= 0);
    return Suggestion{{"10.0.0.1", 10}};
  });
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    const std::string_view request = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    server.Answer(request.substr(0, request.size() / 2), SuggestionsServer::Arrival::kMoreMayCome);
    const auto reply = server.Answer(request, SuggestionsServer::Arrival::kComplete);
    CHECK(reply.has_value());
    CHECK(!reply->empty());
    for (const char c : *reply) CHECK(c >= ' ' && c < 0x7f);
  }
  return 0;
}
