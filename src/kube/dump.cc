// SPDX-License-Identifier: Apache-2.0
#include "kube/dump.h"

#include <fmt/format.h>

#include <optional>

#include "base/files.h"
#include "kube/fields.h"

namespace rudderfish::kube {
namespace {

constexpr std::string_view kHow =
    "write one with `kubectl get nodes,pods,deployments,replicasets -A -o json`";

Result<void> ReadItems(const Fields& root, std::string_view list_kind, Mirror* mirror,
                       DumpContent* content) {
  // A PodList need not say of each item that it is a pod.
  std::string_view kind_of_all = list_kind;
  kind_of_all.remove_suffix(std::string_view("List").size());
  simdjson::dom::array items;
  TRY_ASSIGN(const Fields list, root.Find("items"));
  if (!list.there() || list.element().get(items) != simdjson::SUCCESS) {
    return Invalid("is no list: `items` is missing; {}", kHow);
  }
  int position = 0;
  for (const Element item : items) {
    const Result<std::string_view> kind = Fields(item).Text("kind");
    if (!kind) return Invalid("items[{}]: {}", position, kind.error().message);
    const std::string_view name = kind->empty() ? kind_of_all : *kind;
    if (name.empty()) return Invalid("items[{}]: kind: is missing", position);
    ++position;
    const std::optional<Resource> resource = ResourceOfKind(name);
    if (!resource) {
      ++content->skipped[std::string(name)];
      continue;
    }
    TRY(mirror->SinkOf(*resource)->Listed(item));
    ++content->counts[*resource];
  }
  const std::optional<Resource> resource = ResourceOfKind(kind_of_all);
  if (resource) content->counts[*resource] += 0;  // An empty list of a kind says there is none.
  return {};
}

Result<void> ReadRoot(std::string_view text, Mirror* mirror, DumpContent* content) {
  simdjson::dom::parser parser;
  Element root;
  if (const auto error = parser.parse(text.data(), text.size()).get(root)) {
    return Invalid("is no JSON: {}; {}", simdjson::error_message(error), kHow);
  }
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) {
    return Invalid("is no list of Kubernetes objects; {}", kHow);
  }
  const Fields fields(root);
  TRY_ASSIGN(const std::string_view kind, fields.Text("kind"));
  if (!kind.ends_with("List")) {
    return Invalid("is no list but {}; {}",
                   kind.empty() ? std::string("no Kubernetes object")
                                : fmt::format("one object of kind {}", kind),
                   kHow);
  }
  return ReadItems(fields, kind, mirror, content);
}

}  // namespace

Result<void> ReadDump(std::string_view text, std::string_view source_name, Mirror* mirror,
                      DumpContent* content) {
  const Result<void> read = ReadRoot(text, mirror, content);
  if (!read) return Invalid("{}: {}", source_name, read.error().message);
  return {};
}

Result<DumpContent> LoadDumps(std::span<const std::filesystem::path> paths, Mirror* mirror) {
  DumpContent content;
  for (int i = 0; i < kResourceCount; ++i) mirror->SinkOf(static_cast<Resource>(i))->BeginList();
  for (const std::filesystem::path& path : paths) {
    TRY_ASSIGN(const std::string text, ReadFile(path));
    TRY(ReadDump(text, path.string(), mirror, &content));
  }
  for (const auto& [resource, unused] : content.counts) mirror->SinkOf(resource)->EndList();
  return content;
}

}  // namespace rudderfish::kube
