// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

// The suggestions server that a scheduler plugin asks for scores of nodes, over TCP 8765: one
// request a connection, `COMMAND` or `COMMAND JSON`, answered by JSON as Python's json.dumps writes
// it, without an end of line. Six commands: getSuggestion, setSuggestion, getStep, setStep,
// setResourceValues, getResourceValues.
//
// The original read once, 1024 bytes at most, and so broke with some 40 nodes. Here a request is
// whole when it ends with a line feed, when the client sends nothing more or is quiet, or when it
// is a command whose JSON is complete; so clients that send no line feed are answered at once.
//
// With an adviser, setResourceValues asks it, and what it says replaces the suggestion, so that the
// getSuggestion that follows is about this pod and not about the one before. Without one the
// suggestion is what the last setSuggestion said. NaN and Infinity, which Python's JSON has,
// are invalid here.

namespace rudderfish {

// What a pod asks for, as the plugin says it: quantities of Kubernetes, and round trips to users
// in ms, where a limit that is not above 0 is none.
struct SuggestedPod {
  int64_t cpu_millis = 0, memory_bytes = 0;
  double soft_ms = 0, hard_ms = 0;
};

// Scores of nodes by their addresses.
using Suggestion = std::vector<std::pair<std::string, int>>;

class SuggestionsServer {
 public:
  static constexpr size_t kRequestBytesMax = 256 << 10;
  static constexpr size_t kNodesMax = 10'000;  // Of a suggestion; further ones are left out.

  using Adviser = std::function<Result<Suggestion>(const SuggestedPod& pod)>;

  // Without an adviser (null) only what is set is answered.
  explicit SuggestionsServer(Adviser adviser);
  ~SuggestionsServer();
  SuggestionsServer(const SuggestionsServer&) = delete;
  SuggestionsServer& operator=(const SuggestionsServer&) = delete;

  // The answer; nothing: the request is not whole yet. One thread.
  enum class Arrival { kMoreMayCome, kComplete };
  std::optional<std::string> Answer(std::string_view received, Arrival arrival);

  // Why the adviser had no answer the last time; empty: it had one, or was not asked.
  const std::string& last_trouble() const { return last_trouble_; }

 private:
  struct Kept;

  std::string Set(std::string_view command, const OrderedJson& value);
  void Advise();

  Adviser adviser_;
  std::unique_ptr<Kept> kept_;
  std::string last_trouble_;
};

// An error where a quantity is none that Kubernetes has.
Result<SuggestedPod> SuggestedPodOf(const OrderedJson& values);

}  // namespace rudderfish
