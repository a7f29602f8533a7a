// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/result.h"

// TensorBoard event files, which curve viewers open as they are. The format, from
// tensorflow/core/lib/io/record_writer.h and tensorflow/core/util/event.proto:
//
//   record   u64 length, u32 masked crc32c of the length, event, u32 masked crc32c of the event
//   event    {1: wall_time double, 2: step int64, 3: file_version string, 5: {1: repeated value}}
//   value    {1: tag string, 2: simple_value float}
//            {1: tag string, 8: TensorProto, 9: {1: {1: plugin name}}} for text
//
// Little endian. The first event is the version "brain.Event:2". One thread at a time.

namespace rudderfish {

struct ScalarPoint {
  std::string_view tag;
  double value = 0;  // Not written if it is not a number.
};

class EventFile {
 public:
  // A new file in `folder`, under a name that no other has:
  // events.out.tfevents.<seconds>.<host>.<process>.<n>
  static Result<EventFile> Create(const std::filesystem::path& folder);

  // Points at one step, in one record.
  Result<void> Scalars(int64_t step, std::span<const ScalarPoint> points);

  // A page of Markdown.
  Result<void> Text(std::string_view tag, std::string_view text);

  Result<void> Flush() { return file_.Flush(); }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  explicit EventFile(AppendFile file) : file_(std::move(file)) {}
  Result<void> Write(std::string_view event);

  AppendFile file_;
};

}  // namespace rudderfish
