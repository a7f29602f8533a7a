// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

// Quantities as people write them, turned into the integers and doubles we count with, and back.
// Numbers are decimal, unsigned, with an optional fraction and exponent; they are converted exactly
// (no detour over double) where the result is an integer. An unknown unit, a missing one, nan, inf,
// a sign, or a value that does not fit is refused, with the accepted units in the message. Messages
// name the text only; callers add where it stood.

namespace rudderfish {

// What becomes of a part smaller than the unit counted in. Kubernetes rounds quantities up.
enum class Rounding { kUp, kDown };

// "700m", "2", "1.5" -> thousandths of a core. Suffixes n u m (none) k M.
Result<int64_t> ParseCpuMillis(std::string_view text, Rounding rounding = Rounding::kUp);

// "700Mi", "27.68Gi", "1G", "128974848" -> bytes. Suffixes of a Kubernetes quantity: n u m (none) k
// M G T P E Ki Mi Gi Ti Pi Ei.
Result<int64_t> ParseMemoryBytes(std::string_view text, Rounding rounding = Rounding::kUp);

// "46ms", "2s", "1.5us" -> milliseconds. Units ns us µs ms s m min h.
Result<double> ParseDurationMs(std::string_view text);

// "500Mbit", "1Gbit", "62.5MB" -> 10^6 bytes a second. Units bit kbit Mbit Gbit Tbit, B kB MB GB
// TB, KiB MiB GiB TiB, each also with "/s", and bps kbps Mbps Gbps Tbps.
Result<double> ParseBandwidthMbytesPerS(std::string_view text);

// "0.1MB", "100kB", "0.1MiB" -> bytes, possibly a fraction. Units B kB MB GB TB, KiB MiB GiB TiB.
Result<double> ParseDataSizeBytes(std::string_view text);

// Exact, and accepted by the parsers above: 700 -> "700m", 2000 -> "2"; 734003200 -> "700Mi", 1000
// -> "1000". REQUIRES: not negative.
std::string FormatMillis(int64_t cpu_millis);
std::string FormatMemoryQuantity(int64_t bytes);

// For humans, to three digits: "27.7 GiB"; "850 ns", "46 ms", "1 min 30 s", "10 min", "2 h 5 min",
// "3 d 4 h"; "1.23 M", "950".
std::string FormatBytes(int64_t bytes);
std::string FormatDuration(Duration duration);
std::string FormatCount(double count);

}  // namespace rudderfish
