// SPDX-License-Identifier: Apache-2.0
#include "kube/extender_args.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "kube/object_reader.h"

namespace rudderfish::kube {
namespace {

constexpr size_t kNodesMax = 100'000;

Result<void> ReadNodeNames(const Element& root, std::vector<std::string_view>* nodes) {
  Element names;
  if (root["NodeNames"].get(names) != simdjson::SUCCESS || names.is_null()) {
    return Invalid("NodeNames: is missing; set nodeCacheCapable: true for this extender");
  }
  simdjson::dom::array list;
  if (names.get(list) != simdjson::SUCCESS) return Invalid("NodeNames: expected a list");
  for (const Element name : list) {
    std::string_view text;
    if (name.get(text) != simdjson::SUCCESS)
      return Invalid("NodeNames[{}]: expected text", nodes->size());
    if (nodes->size() >= kNodesMax)
      return Invalid("NodeNames: expected at most {} of them", kNodesMax);
    nodes->emplace_back(text);
  }
  return {};
}

std::string DumpWire(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// As JSON. Names of nodes have nothing that must be written otherwise.
void AppendText(std::string_view name, std::string* text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  if (!std::all_of(name.begin(), name.end(), is_plain)) {
    *text += DumpWire(name);
    return;
  }
  *text += '"';
  *text += name;
  *text += '"';
}

}  // namespace

Result<ExtenderArgs> ReadExtenderArgs(std::string_view body, const SchedulingReferences& references,
                                      simdjson::dom::parser* parser) {
  Element root, pod;
  if (const auto error = parser->parse(body.data(), body.size()).get(root))
    return Invalid("this is no JSON: {}", simdjson::error_message(error));
  if (!root.is_object()) return Invalid("expected an ExtenderArgs object");
  if (root["Pod"].get(pod) != simdjson::SUCCESS || !pod.is_object())
    return Invalid("Pod: is missing; expected an ExtenderArgs object");
  ExtenderArgs args;
  TRY_ASSIGN(const Metadata meta, internal::ReadMetadata(Fields(pod)));
  args.pod = {meta.key.object_namespace, meta.key.name, meta.uid};
  TRY_ASSIGN(args.shape, ReadPodClass(pod, references));
  TRY_ASSIGN(args.is_opted_out, IsOptedOut(Fields(pod)));
  TRY(ReadNodeNames(root, &args.nodes));
  return args;
}

std::string FilterResultText(const std::vector<std::string_view>& nodes,
                             const std::vector<std::string>& reasons) {
  OrderedJson kept = OrderedJson::array(), failed = OrderedJson::object();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (reasons[i].empty()) {
      kept.push_back(nodes[i]);
    } else {
      failed[std::string(nodes[i])] = reasons[i];
    }
  }
  return DumpWire({{"Nodes", nullptr},
                   {"NodeNames", std::move(kept)},
                   {"FailedNodes", OrderedJson::object()},
                   {"FailedAndUnresolvableNodes", std::move(failed)},
                   {"Error", ""}});
}

std::string HostPriorityText(const std::vector<std::string_view>& nodes,
                             const std::vector<int>& grades) {
  constexpr size_t kBytesOfOne = 48;
  std::string text = "[";
  text.reserve(nodes.size() * kBytesOfOne);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (grades[i] == 0) continue;
    if (text.size() > 1) text += ',';
    text += R"({"Host":)";
    AppendText(nodes[i], &text);
    fmt::format_to(std::back_inserter(text), R"(,"Score":{}}})", grades[i]);
  }
  text += ']';
  return text;
}

}  // namespace rudderfish::kube
