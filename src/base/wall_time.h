// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

// Dates, for what people read and ask by: journals and logs. It may jump, forward and back, so that
// nothing that waits, ages or decides goes by it; that is base/clock.h. Any thread.

namespace rudderfish {

using UnixMillis = int64_t;  // Milliseconds since 1970, UTC.

UnixMillis UnixNow();

// "2026-11-21 09:30:05", and "2026-11-21T09:30:05.123Z" as RFC 3339 has it. UTC.
std::string DateAndTime(UnixMillis at);
std::string Rfc3339(UnixMillis at);

}  // namespace rudderfish
