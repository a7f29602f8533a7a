// SPDX-License-Identifier: Apache-2.0
#include "compat/suggestions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/log.h"
#include "base/units.h"
#include "compat/python_text.h"

namespace rudderfish {
namespace {

constexpr std::string_view kPythonSpaces = " \t\n\r\f\v";
constexpr std::string_view kNotRequested = "Not requested";
constexpr size_t kQuantityBytesMax = 64;
constexpr const char* kResourceKeys[] = {"cpuRequest", "memoryRequest", "latencySoftConstraint",
                                         "latencyHardConstraint"};

std::string Succeeded(std::string_view what) {
  return PythonJson({{"status", "success"}, {"message", std::string(what)}});
}

std::string Refused(std::string what) {
  return PythonJson({{"status", "error"}, {"message", std::move(what)}});
}

std::string_view Stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(kPythonSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kPythonSpaces) - begin + 1);
}

bool IsGetter(std::string_view command) {
  return command == "getSuggestion" || command == "getStep" || command == "getResourceValues";
}

bool IsSetter(std::string_view command) {
  return command == "setSuggestion" || command == "setStep" || command == "setResourceValues";
}

Result<int64_t> QuantityOf(const OrderedJson& values, const char* key,
                           Result<int64_t> (*parse)(std::string_view, Rounding)) {
  const OrderedJson& value = values[key];
  if (value.is_number_unsigned()) return parse(value.dump(), Rounding::kUp);
  if (!value.is_string()) return Invalid("{}: expected a quantity", key);
  const auto& text = value.get_ref<const std::string&>();
  if (text == kNotRequested) return 0;
  if (text.size() > kQuantityBytesMax) return Invalid("{}: expected a quantity", key);
  Result<int64_t> parsed = parse(text, Rounding::kUp);
  if (!parsed) return Invalid("{}: {}", key, parsed.error().message);
  return parsed;
}

Result<double> LimitOf(const OrderedJson& values, const char* key) {
  const OrderedJson& value = values[key];
  if (!value.is_number()) return Invalid("{}: expected a number of ms", key);
  return std::max(value.get<double>(), 0.0);
}

}  // namespace

// What commands set. The suggestion keeps the order in which nodes were named first.
struct SuggestionsServer::Kept {
  std::vector<std::pair<std::string, OrderedJson>> suggestion;
  std::unordered_map<std::string, size_t> places;  // In it.
  OrderedJson values{{kResourceKeys[0], "0"},
                     {kResourceKeys[1], "0"},
                     {kResourceKeys[2], -1},
                     {kResourceKeys[3], -1}};
  bool step = false;

  void Suggest(const std::string& node, const OrderedJson& score) {
    if (const auto found = places.find(node); found != places.end()) {
      suggestion[found->second].second = score;
    } else if (suggestion.size() < kNodesMax) {
      places.emplace(node, suggestion.size());
      suggestion.emplace_back(node, score);
    }
  }
  void Forget() {
    suggestion.clear();
    places.clear();
  }
  std::string SuggestionText() const {
    std::string text = "{";
    for (const auto& [node, score] : suggestion) {
      if (text.size() > 1) text += ", ";
      text += PythonJson(node) + ": " + PythonJson(score);
    }
    return text + "}";
  }
};

SuggestionsServer::SuggestionsServer(Adviser adviser)
    : adviser_(std::move(adviser)), kept_(std::make_unique<Kept>()) {}

SuggestionsServer::~SuggestionsServer() = default;

std::optional<std::string> SuggestionsServer::Answer(std::string_view received, Arrival arrival) {
  const bool is_whole = arrival == Arrival::kComplete || received.ends_with('\n');
  const std::string_view request = Stripped(received);
  const size_t space = request.find(' ');
  const std::string_view command = request.substr(0, space);
  const std::string_view text =
      space == std::string_view::npos ? std::string_view() : request.substr(space + 1);
  if (IsGetter(command) && (is_whole || received.size() == request.size())) {
    if (command == "getStep") return kept_->step ? "true" : "false";
    return command == "getSuggestion" ? kept_->SuggestionText() : PythonJson(kept_->values);
  }
  if (IsSetter(command) && !text.empty()) {
    // A number may go on; what ends with a bracket, a quote or a word does not.
    const char last = text.back();
    const bool may_be_complete = last == '}' || last == 'e';
    if (!is_whole && !may_be_complete) return std::nullopt;
    const Result<OrderedJson> value = ParseOrderedJson(text, command);
    if (value) return Set(command, *value);
    if (!is_whole) return std::nullopt;
    return Refused("Invalid JSON data.");
  }
  if (!is_whole) return std::nullopt;
  if (IsSetter(command)) return Refused(fmt::format("Missing value for {} command.", command));
  return Refused(fmt::format("Unknown command: {}", command));
}

std::string SuggestionsServer::Set(std::string_view command, const OrderedJson& value) {
  if (command == "setStep") {
    if (!value.is_boolean()) return Refused("Invalid JSON data.");
    kept_->step = value.get<bool>();
    return Succeeded("Step flag set successfully.");
  }
  if (!value.is_object()) return Refused("Invalid JSON data.");
  if (command == "setSuggestion") {
    for (const auto& [node, score] : value.items()) {
      if (!score.is_number()) return Refused("Invalid JSON data.");
    }
    for (const auto& [node, score] : value.items()) kept_->Suggest(node, score);
    return Succeeded("Suggestion set successfully.");
  }
  for (const char* key : kResourceKeys) {
    if (const auto found = value.find(key); found != value.end()) {
      if (found->is_structured()) return Refused("Invalid JSON data.");
      kept_->values[key] = *found;
    }
  }
  kept_->step = true;
  if (adviser_ != nullptr) Advise();
  return Succeeded("Resource values set successfully.");
}

// The plugin reads an answer that is no success as a failure of scheduling: what cannot be advised
// leaves no suggestion, and all nodes are alike to it.
void SuggestionsServer::Advise() {
  kept_->step = false;  // It is answered here.
  const Result<SuggestedPod> pod = SuggestedPodOf(kept_->values);
  const Result<Suggestion> advised = pod ? adviser_(*pod) : tl::unexpected(pod.error());
  kept_->Forget();
  if (!advised) {
    if (last_trouble_ != advised.error().message)
      LogWarning("setResourceValues: {}", advised.error().message);
    last_trouble_ = advised.error().message;
    return;
  }
  last_trouble_.clear();
  for (const auto& [node, score] : *advised) kept_->Suggest(node, score);
}

Result<SuggestedPod> SuggestedPodOf(const OrderedJson& values) {
  SuggestedPod pod;
  TRY_ASSIGN(pod.cpu_millis, QuantityOf(values, kResourceKeys[0], ParseCpuMillis));
  TRY_ASSIGN(pod.memory_bytes, QuantityOf(values, kResourceKeys[1], ParseMemoryBytes));
  TRY_ASSIGN(pod.soft_ms, LimitOf(values, kResourceKeys[2]));
  TRY_ASSIGN(pod.hard_ms, LimitOf(values, kResourceKeys[3]));
  return pod;
}

}  // namespace rudderfish
