// SPDX-License-Identifier: Apache-2.0
#include "kube/watch_event.h"

#include <optional>

#include "base/one_line.h"
#include "kube/fields.h"
#include "kube/status.h"

namespace rudderfish::kube {
namespace {

std::optional<WatchEventKind> KindOf(std::string_view type) {
  if (type == "ADDED") return WatchEventKind::kAdded;
  if (type == "MODIFIED") return WatchEventKind::kModified;
  if (type == "DELETED") return WatchEventKind::kDeleted;
  if (type == "BOOKMARK") return WatchEventKind::kBookmark;
  if (type == "ERROR") return WatchEventKind::kError;
  return std::nullopt;
}

bool EndsInitialEvents(const simdjson::dom::element& metadata) {
  simdjson::dom::element annotations;
  return metadata["annotations"].get(annotations) == simdjson::SUCCESS &&
         TextOf(annotations, "k8s.io/initial-events-end") == "true";
}

}  // namespace

Result<WatchEvent> ReadWatchEvent(simdjson::dom::parser* parser, std::string_view line) {
  simdjson::dom::element event, metadata;
  if (parser->parse(line.data(), line.size()).get(event) != simdjson::SUCCESS)
    return Invalid("a line that is not JSON");
  WatchEvent result;
  if (event["object"].get(result.object) != simdjson::SUCCESS || !result.object.is_object())
    return Invalid("an event without an object");
  const std::string_view type = TextOf(event, "type");
  const std::optional<WatchEventKind> kind = KindOf(type);
  if (!kind) return Invalid("an event of type \"{}\"", OneLine(type, 40));
  result.kind = *kind;
  if (result.kind == WatchEventKind::kError) return result;
  if (result.object["metadata"].get(metadata) == simdjson::SUCCESS)
    result.version = TextOf(metadata, "resourceVersion");
  if (result.version.empty()) return Invalid("an object without a resourceVersion");
  if (result.kind == WatchEventKind::kBookmark && EndsInitialEvents(metadata))
    result.kind = WatchEventKind::kInitialEnd;
  return result;
}

Result<ListPage> ReadListPage(simdjson::dom::parser* parser, std::string_view body) {
  simdjson::dom::element list, metadata;
  if (const auto error = parser->parse(body.data(), body.size()).get(list);
      error != simdjson::SUCCESS) {
    return Invalid("a list that is not JSON");
  }
  if (list["metadata"].get(metadata) != simdjson::SUCCESS)
    return Invalid("a list without metadata");
  ListPage page;
  page.version = TextOf(metadata, "resourceVersion");
  page.next = TextOf(metadata, "continue");
  if (page.version.empty()) return Invalid("a list without a resourceVersion");
  if (list["items"].get(page.items) != simdjson::SUCCESS ||
      (!page.items.is_array() && !page.items.is_null())) {
    return Invalid("a list without items");
  }
  return page;
}

}  // namespace rudderfish::kube
