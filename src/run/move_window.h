// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/cron.h"
#include "base/json.h"
#include "base/wall_time.h"

// Whether pods may be moved by the time windows of a configuration. Looks once a minute, and logs
// when one opens and closes. Not thread safe.

namespace rudderfish {

class MoveWindow {
 public:
  bool IsOpen(const std::vector<TimeWindow>& windows, UnixMillis now);

  // As it was looked at last, and when the next one opens; null where there are no windows.
  OrderedJson Status(const std::vector<TimeWindow>& windows, UnixMillis now) const;

  void Forget() { minute_ = 0; }  // The windows are others.

 private:
  int64_t minute_ = 0;  // At which it was looked last.
  bool is_open_ = true;
};

}  // namespace rudderfish
