// SPDX-License-Identifier: Apache-2.0
#include "kube/dump.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/gzip.h"
#include "kube/fields.h"

namespace rudderfish::kube {
namespace {

constexpr std::string_view kHow =
    "write one with `kubectl get nodes,pods,deployments,replicasets -A -o json`";

std::optional<Resource> MirroredOfKind(std::string_view kind) {
  const std::optional<Resource> resource = ResourceOfKind(kind);
  return resource && IsMirrored(*resource) ? resource : std::nullopt;
}

Result<void> ReadItems(const Fields& root, std::string_view list_kind, Mirror* mirror,
                       DumpContent* content) {
  // A PodList need not say of each item that it is a pod.
  std::string_view kind_of_all = list_kind;
  kind_of_all.remove_suffix(std::string_view("List").size());
  Element list;
  if (root.element()["items"].get(list) != simdjson::SUCCESS ||
      (!list.is_array() && !list.is_null())) {
    return Invalid("is no list: `items` is missing; {}", kHow);
  }
  std::vector<Element> items;  // `kubectl cluster-info dump` writes null for none.
  if (simdjson::dom::array all; list.get(all) == simdjson::SUCCESS)
    items.assign(all.begin(), all.end());
  int position = 0;
  for (const Element& item : items) {
    const Result<std::string_view> kind = Fields(item).Text("kind");
    if (!kind) return Invalid("items[{}]: {}", position, kind.error().message);
    const std::string_view name = kind->empty() ? kind_of_all : *kind;
    if (name.empty()) return Invalid("items[{}]: kind: is missing", position);
    ++position;
    const std::optional<Resource> resource = MirroredOfKind(name);
    if (!resource) {
      ++content->skipped[std::string(name)];
      continue;
    }
    TRY(mirror->SinkOf(*resource)->Listed(item));
    ++content->counts[*resource];
  }
  const std::optional<Resource> resource = MirroredOfKind(kind_of_all);
  if (resource) content->counts[*resource] += 0;  // An empty list of a kind says there is none.
  return {};
}

Result<void> ReadRoot(std::string_view text, Mirror* mirror, DumpContent* content) {
  // PowerShell writes UTF-16 by `>` and a mark before UTF-8 by Out-File.
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return Invalid(
        "is UTF-16, as `>` of PowerShell writes it, not UTF-8; write it with `kubectl ... -o json "
        "| Out-File -Encoding utf8 FILE`");
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (const size_t begin = text.find_first_not_of(" \t\r\n");
      begin != std::string_view::npos && text[begin] != '{' && text[begin] != '[' &&
      text.find("kind:") != std::string_view::npos) {
    return Invalid("is YAML, not JSON; {}", kHow);
  }
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
    return Invalid("expected a list of Kubernetes objects, found {}; {}",
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
  for (int i = 0; i < kMirroredCount; ++i) mirror->SinkOf(static_cast<Resource>(i))->BeginList();
  for (const std::filesystem::path& path : paths) {
    TRY_ASSIGN(const std::string text, ReadDataFile(path));
    TRY(ReadDump(text, path.string(), mirror, &content));
  }
  for (const auto& [resource, unused] : content.counts) mirror->SinkOf(resource)->EndList();
  return content;
}

}  // namespace rudderfish::kube
