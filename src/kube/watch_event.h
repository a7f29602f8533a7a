// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <string_view>

#include "base/result.h"

// What a list and a watch consist of, as the API server writes it. All that is told lies in the
// parser, and is gone when that parses again.

namespace rudderfish::kube {

enum class WatchEventKind {
  kAdded,
  kModified,
  kDeleted,
  kBookmark,
  kInitialEnd,  // The bookmark that ends an initial stream.
  kError,       // `object` is a Status.
};

struct WatchEvent {
  WatchEventKind kind = WatchEventKind::kError;
  simdjson::dom::element object;
  std::string_view version;  // Of the object; empty for an error.
};

Result<WatchEvent> ReadWatchEvent(simdjson::dom::parser* parser, std::string_view line);

struct ListPage {
  simdjson::dom::element items;  // An array, or null.
  std::string_view version;
  std::string_view next;  // The token of the next page; empty: the last one.
};

Result<ListPage> ReadListPage(simdjson::dom::parser* parser, std::string_view body);

}  // namespace rudderfish::kube
