// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/escape.h"
#include "base/progress.h"
#include "base/wall_time.h"

namespace rudderfish {
namespace {

constexpr const char* kTextPattern = "%^%l%$: %v";

std::atomic<LogLevel> g_level{LogLevel::kInfo};
std::atomic<LogFormat> g_format{LogFormat::kText};

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    const char* no_color = std::getenv("NO_COLOR");
    const bool plain = no_color != nullptr && *no_color != '\0';
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(
        plain ? spdlog::color_mode::never : spdlog::color_mode::automatic);
    auto created = std::make_shared<spdlog::logger>("rudderfish", std::move(sink));
    created->set_pattern(kTextPattern);
    created->set_level(
        spdlog::level::trace);  // The level is ours to check, before anything is formatted.
    created->flush_on(spdlog::level::trace);
    return created;
  }();
  return *logger;
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

std::string JsonLine(LogLevel level, std::string_view message) {
  const nlohmann::ordered_json line{
      {"time", Rfc3339(UnixNow())},
      {"level", spdlog::level::to_string_view(SpdlogLevel(level)).data()},
      {"message", message}};
  return line.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

void SetLogLevel(LogLevel level) { g_level.store(level, std::memory_order_relaxed); }

LogLevel GetLogLevel() { return g_level.load(std::memory_order_relaxed); }

void SetLogFormat(LogFormat format) {
  g_format.store(format, std::memory_order_relaxed);
  if (format == LogFormat::kText) {
    Logger().set_pattern(kTextPattern);
  } else {
    Logger().set_pattern("%v");
  }
}

void WriteLog(LogLevel level, std::string_view message) {
  internal::EraseStatusLine();
  if (g_format.load(std::memory_order_relaxed) == LogFormat::kJson) {
    Logger().log(SpdlogLevel(level), JsonLine(level, message));
    return;
  }
  // Most messages hold names that others chose: none writes a line of its own or steers a terminal.
  const std::string escaped = IsPrintable(message) ? "" : Escaped(message);
  if (!escaped.empty()) message = escaped;
  Logger().log(SpdlogLevel(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace rudderfish
