// SPDX-License-Identifier: Apache-2.0
#include "learn/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cmath>

#include "base/crc32c.h"

namespace rudderfish {
namespace {

// Wire types of protocol buffers.
enum class Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

template <class Bits>
void AppendFixed(Bits bits, std::string* out) {
  for (size_t i = 0; i < sizeof(Bits); ++i) out->push_back(static_cast<char>(bits >> (8 * i)));
}

void AppendKey(int field, Wire wire, std::string* out) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire), out);
}

void AppendBytes(int field, std::string_view bytes, std::string* out) {
  AppendKey(field, Wire::kBytes, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

std::string EventHead() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  AppendKey(1, Wire::kFixed64, &event);
  AppendFixed(std::bit_cast<uint64_t>(std::chrono::duration<double>(now).count()), &event);
  return event;
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace

Result<EventFile> EventFile::Create(const std::filesystem::path& folder) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  for (int n = 0;; ++n) {
    const auto path =
        folder / fmt::format("events.out.tfevents.{}.{}.{}.{}", seconds, HostName(), getpid(), n);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) continue;
    TRY_ASSIGN(AppendFile file, AppendFile::Open(path));
    EventFile events(std::move(file));
    std::string event = EventHead();
    AppendBytes(3, "brain.Event:2", &event);
    TRY(events.Write(event));
    return events;
  }
}

Result<void> EventFile::Scalars(int64_t step, std::span<const ScalarPoint> points) {
  std::string summary;
  for (const ScalarPoint& point : points) {
    if (!std::isfinite(point.value)) continue;
    std::string value;
    AppendBytes(1, point.tag, &value);
    AppendKey(2, Wire::kFixed32, &value);
    AppendFixed(std::bit_cast<uint32_t>(static_cast<float>(point.value)), &value);
    AppendBytes(1, value, &summary);
  }
  std::string event = EventHead();
  AppendKey(2, Wire::kVarint, &event);
  AppendVarint(static_cast<uint64_t>(step), &event);
  AppendBytes(5, summary, &event);
  return Write(event);
}

Result<void> EventFile::Text(std::string_view tag, std::string_view text) {
  constexpr uint64_t kStringType = 7;  // DT_STRING of tensorflow/core/framework/types.proto
  std::string tensor;
  AppendKey(1, Wire::kVarint, &tensor);
  AppendVarint(kStringType, &tensor);
  AppendBytes(2, "", &tensor);  // The shape of a scalar.
  AppendBytes(8, text, &tensor);
  std::string plugin, metadata, value, summary;
  AppendBytes(1, "text", &plugin);
  AppendBytes(1, plugin, &metadata);
  AppendBytes(1, tag, &value);
  AppendBytes(8, tensor, &value);
  AppendBytes(9, metadata, &value);
  AppendBytes(1, value, &summary);
  std::string event = EventHead();
  AppendBytes(5, summary, &event);
  return Write(event);
}

Result<void> EventFile::Write(std::string_view event) {
  std::string length, record;
  AppendFixed<uint64_t>(event.size(), &length);
  record = length;
  AppendFixed(MaskedCrc32c(length), &record);
  record.append(event);
  AppendFixed(MaskedCrc32c(event), &record);
  return file_.Append(record);
}

}  // namespace rudderfish
