// SPDX-License-Identifier: Apache-2.0
#include "run/move_window.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"

namespace rudderfish {

bool MoveWindow::IsOpen(const std::vector<TimeWindow>& windows, UnixMillis now) {
  if (windows.empty()) return true;
  if (const int64_t minute = now / 60'000; minute != std::exchange(minute_, minute)) {
    const bool is_open = rudderfish::IsOpen(windows, now);
    if (is_open != std::exchange(is_open_, is_open))
      LogInfo("migration: the time window {}", is_open ? "opens" : "closes");
  }
  return is_open_;
}

OrderedJson MoveWindow::Status(const std::vector<TimeWindow>& windows, UnixMillis now) const {
  if (windows.empty()) return nullptr;
  const UnixMillis next = NextOpening(windows, now);
  return {{"open", is_open_},
          {"opens", next == 0 ? OrderedJson(nullptr) : OrderedJson(Rfc3339(next))}};
}

}  // namespace rudderfish
