// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

// Dates as Kubernetes and others write them (RFC 3339, UTC), and the date of this machine, which
// may jump: nothing is judged by it that base/clock.h can judge. Any thread.

namespace rudderfish {

using Date = std::chrono::sys_time<std::chrono::microseconds>;

Date Today();

std::string ToMicroTime(Date date);  // 2026-11-21T07:26:52.782687Z

// With or without a fraction, Z or an offset; nothing if it is anything else.
std::optional<Date> ParseDate(std::string_view text);

}  // namespace rudderfish
