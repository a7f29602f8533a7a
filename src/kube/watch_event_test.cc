// SPDX-License-Identifier: Apache-2.0
#include "kube/watch_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish::kube {
namespace {

using ::testing::HasSubstr;

std::string EventError(const std::string& line) {
  simdjson::dom::parser parser;
  const auto event = ReadWatchEvent(&parser, line);
  return event.has_value() ? "no error" : event.error().message;
}

std::string PageError(const std::string& body) {
  simdjson::dom::parser parser;
  const auto page = ReadListPage(&parser, body);
  return page.has_value() ? "no error" : page.error().message;
}

TEST(WatchEvent, KindsAndVersionsAreRead) {
  const std::pair<const char*, WatchEventKind> kinds[] = {{"ADDED", WatchEventKind::kAdded},
                                                          {"MODIFIED", WatchEventKind::kModified},
                                                          {"DELETED", WatchEventKind::kDeleted},
                                                          {"BOOKMARK", WatchEventKind::kBookmark},
                                                          {"ERROR", WatchEventKind::kError}};
  for (const auto& [type, kind] : kinds) {
    simdjson::dom::parser parser;
    const auto event =
        ReadWatchEvent(&parser, R"({"type":")" + std::string(type) +
                                    R"(","object":{"metadata":{"resourceVersion":"7"}}})");
    ASSERT_TRUE(event.has_value()) << event.error().message;
    EXPECT_EQ(event->kind, kind);
    EXPECT_EQ(event->version, kind == WatchEventKind::kError ? "" : "7");
  }
}

TEST(WatchEvent, BookmarkThatEndsTheInitialStreamIsKnownByItsAnnotation) {
  simdjson::dom::parser parser;
  const auto event =
      ReadWatchEvent(&parser, R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7",)"
                              R"("annotations":{"k8s.io/initial-events-end":"true"}}}})");
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->kind, WatchEventKind::kInitialEnd);
}

TEST(WatchEvent, WhatIsNoneIsRefused) {
  EXPECT_EQ(EventError(""), "a line that is not JSON");
  EXPECT_EQ(EventError("[]"), "an event without an object");
  EXPECT_EQ(EventError(R"({"type":"ADDED","object":7})"), "an event without an object");
  EXPECT_THAT(EventError(R"({"type":"SANG","object":{}})"), HasSubstr("type \"SANG\""));
  EXPECT_THAT(EventError(R"({"type":7,"object":{}})"), HasSubstr("type \"\""));
  EXPECT_THAT(EventError(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":7}}})"),
              HasSubstr("resourceVersion"));
}

TEST(ListPage, ItemsMayBeNull) {
  EXPECT_EQ(PageError(R"({"metadata":{"resourceVersion":"1"},"items":null})"), "no error");
  EXPECT_EQ(PageError(R"({"metadata":{"resourceVersion":"1"},"items":[]})"), "no error");
  EXPECT_EQ(PageError(R"({"metadata":{"resourceVersion":"1"},"items":{}})"),
            "a list without items");
  EXPECT_EQ(PageError(R"({"metadata":{"resourceVersion":"1"}})"), "a list without items");
  EXPECT_EQ(PageError(R"({"metadata":{}})"), "a list without a resourceVersion");
  EXPECT_EQ(PageError("{}"), "a list without metadata");
  EXPECT_EQ(PageError("{"), "a list that is not JSON");
}

}  // namespace
}  // namespace rudderfish::kube
