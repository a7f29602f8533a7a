// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

// Files, with every failure as an Error that names the path and the system's reason. A file that is
// not there is kNotFound; a disk that is full or fails is kUnavailable; all else, a folder that may
// not be written too, is kInvalidArgument. Functions may be used by any thread, an AppendFile by
// one.

namespace rudderfish {

// The whole content of a file or pipe; refuses folders and more than 1 GiB.
Result<std::string> ReadFile(const std::filesystem::path& path);

// Under its name a reader sees the old content or the new, never a part, also after a crash: writes
// `path`.tmp-<pid>, syncs, renames; the temporary is removed on any failure. A link is followed; a
// device or a pipe is written to directly. One writer of a path at a time.
Result<void> WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

// With all parents; an existing folder is fine.
Result<void> MakeDirectories(const std::filesystem::path& path);

// The right to work in a folder, which one holder has at a time, until this and its copies are gone
// or the process ends, however it ends: nothing is written that could be left behind.
class FolderLock {
 public:
  FolderLock() = default;  // Of no folder.

  // kConflict if another holder has it. A file system without locks keeps no holder out.
  static Result<FolderLock> Take(const std::filesystem::path& folder);

  bool operator==(const FolderLock&) const = default;

 private:
  std::shared_ptr<const void> held_;
};

// A file that grows: metrics, logs. Buffers; what was flushed survives kill -9.
class AppendFile {
 public:
  static constexpr int64_t kKeepAll = -1;

  // Opens, or creates, a file. Appends after its first `keep_bytes` bytes and cuts off the rest: 0
  // empties the file, a length noted in a checkpoint continues from there. kCorruption if the file
  // is shorter than that.
  static Result<AppendFile> Open(const std::filesystem::path& path, int64_t keep_bytes = kKeepAll);

  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();  // Flushes and closes; call Close to learn whether that worked.

  Result<void> Append(std::string_view bytes);
  Result<void> Flush();  // To the operating system.
  Result<void> Close();  // Flushes; nothing may be appended after it.

  // Length including what is buffered: what a checkpoint notes after Flush.
  int64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  AppendFile(std::filesystem::path path, int descriptor, int64_t size);

  std::filesystem::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
  std::string buffer_;
};

}  // namespace rudderfish
