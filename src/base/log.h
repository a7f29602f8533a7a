// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

// Log messages for the operator: one line each, on stderr, so that stdout holds only results.
// Arguments are formatted only if the level is on. Never pass a secret (token, password, key): logs
// are copied into bug reports. Any thread may log.

namespace rudderfish {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// At and above this level messages are written; kInfo until set.
void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();

// How lines look: "info: MESSAGE", or an object with time (UTC), level and message.
enum class LogFormat { kText, kJson };
void SetLogFormat(LogFormat format);

// Writes one finished line. The four functions below are what code calls.
void WriteLog(LogLevel level, std::string_view message);

namespace internal {

template <class... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level >= GetLogLevel()) WriteLog(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace internal

template <class... Args>
void LogDebug(fmt::format_string<Args...> format, Args&&... args) {
  internal::Log(LogLevel::kDebug, format, std::forward<Args>(args)...);
}

template <class... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  internal::Log(LogLevel::kInfo, format, std::forward<Args>(args)...);
}

template <class... Args>
void LogWarning(fmt::format_string<Args...> format, Args&&... args) {
  internal::Log(LogLevel::kWarning, format, std::forward<Args>(args)...);
}

template <class... Args>
void LogError(fmt::format_string<Args...> format, Args&&... args) {
  internal::Log(LogLevel::kError, format, std::forward<Args>(args)...);
}

}  // namespace rudderfish
