// SPDX-License-Identifier: Apache-2.0
#include "node/proc_files.h"

#include <charconv>
#include <limits>
#include <optional>

namespace rudderfish {
namespace {

constexpr uint64_t kSectorBytes = 512;  // Of /proc/diskstats, whatever the disk's are.
constexpr int64_t kKibMax = std::numeric_limits<int64_t>::max() / 1024;

// The next word of a line, or nothing.
std::string_view NextWord(std::string_view* line) {
  const size_t begin = line->find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  const size_t end = std::min(line->find_first_of(" \t", begin), line->size());
  const std::string_view word = line->substr(begin, end - begin);
  line->remove_prefix(end);
  return word;
}

std::string_view NextLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

template <class T>
std::optional<T> NextNumber(std::string_view* line) {
  const std::string_view word = NextWord(line);
  T value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

bool IsCore(std::string_view word) {
  return word.size() > 3 && word.starts_with("cpu") && word[3] >= '0' && word[3] <= '9';
}

}  // namespace

Result<CpuTimes> ParseProcStat(std::string_view text) {
  CpuTimes times;
  bool found = false;
  while (!text.empty()) {
    std::string_view line = NextLine(&text);
    const std::string_view word = NextWord(&line);
    if (IsCore(word)) {
      ++times.cores;
      continue;
    }
    if (word != "cpu" || found) continue;
    // user nice system idle iowait irq softirq steal; time of guests is within that of users.
    constexpr int kFields = 8, kFieldsMin = 4, kIdle = 3, kWaiting = 4;
    for (int i = 0; i < kFields; ++i) {
      const auto ticks = NextNumber<int64_t>(&line);
      if (!ticks && i >= kFieldsMin) break;
      if (!ticks || *ticks < 0 || *ticks > std::numeric_limits<int64_t>::max() / (2 * kFields))
        return Invalid("stat: the line `cpu` is not as proc(5) says");
      times.total_ticks += *ticks;
      if (i != kIdle && i != kWaiting) times.busy_ticks += *ticks;
    }
    found = true;
  }
  if (!found) return Invalid("stat: there is no line `cpu`");
  return times;
}

Result<MemoryAmounts> ParseProcMeminfo(std::string_view text) {
  std::optional<int64_t> total, available;
  while (!text.empty() && !(total && available)) {
    std::string_view line = NextLine(&text);
    const std::string_view word = NextWord(&line);
    if (word != "MemTotal:" && word != "MemAvailable:") continue;
    const auto kib = NextNumber<int64_t>(&line);
    if (!kib || *kib < 0 || *kib > kKibMax || NextWord(&line) != "kB")
      return Invalid("meminfo: {} expected a number of kB", word);
    (word == "MemTotal:" ? total : available) = *kib * 1024;
  }
  if (!total || !available || *total <= 0 || *available > *total)
    return Invalid("meminfo: expected MemTotal and MemAvailable");
  return MemoryAmounts{.total_bytes = *total, .available_bytes = *available};
}

Result<std::vector<DeviceBytes>> ParseProcNetDev(std::string_view text) {
  std::vector<DeviceBytes> devices;
  while (!text.empty()) {
    std::string_view line = NextLine(&text);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;  // A heading.
    std::string_view before = line.substr(0, colon);
    const std::string_view name = NextWord(&before);
    line.remove_prefix(colon + 1);
    DeviceBytes device{.name = std::string(name)};
    constexpr int kFields = 9, kReceived = 0, kTransmitted = 8;
    for (int i = 0; i < kFields; ++i) {
      const auto value = NextNumber<uint64_t>(&line);
      if (!value || name.empty()) return Invalid("net/dev: a line is not as proc(5) says");
      if (i == kReceived) device.in = *value;
      if (i == kTransmitted) device.out = *value;
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

Result<std::vector<DeviceBytes>> ParseProcDiskstats(std::string_view text) {
  std::vector<DeviceBytes> devices;
  while (!text.empty()) {
    std::string_view line = NextLine(&text);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    const bool has_numbers = NextNumber<uint64_t>(&line) && NextNumber<uint64_t>(&line);
    DeviceBytes device{.name = std::string(NextWord(&line))};
    constexpr int kFields = 7, kRead = 2, kWritten = 6;
    for (int i = 0; i < kFields; ++i) {
      const auto value = NextNumber<uint64_t>(&line);
      if (!value || !has_numbers || device.name.empty())
        return Invalid("diskstats: a line is not as proc(5) says");
      if (i == kRead) device.in = *value * kSectorBytes;
      if (i == kWritten) device.out = *value * kSectorBytes;
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace rudderfish
