// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "node/proc_files.h"

// Any bytes as the files of /proc that an agent reads: read, or refused in one line.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto is_one_line = [](const auto& result) {
    return result.has_value() || result.error().message.find('\n') == std::string::npos;
  };
  const auto stat = ParseProcStat(text);
  CHECK(is_one_line(stat));
  if (stat) CHECK(stat->busy_ticks >= 0 && stat->busy_ticks <= stat->total_ticks);
  const auto memory = ParseProcMeminfo(text);
  CHECK(is_one_line(memory));
  if (memory) CHECK(memory->available_bytes >= 0 && memory->available_bytes <= memory->total_bytes);
  CHECK(is_one_line(ParseProcNetDev(text)));
  CHECK(is_one_line(ParseProcDiskstats(text)));
  return 0;
}
