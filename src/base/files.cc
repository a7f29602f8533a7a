// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr size_t kMostBytesRead = size_t{1} << 30;

ErrorCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EIO:
    case EMFILE:
    case ENFILE:
    case EBUSY:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInvalidArgument;
  }
}

// "write runs/a/metrics.csv: No space left on device".
tl::unexpected<Error> SystemError(std::string_view verb, const std::filesystem::path& path,
                                  int error) {
  return Fail(CodeOf(error), "{} {}: {}", verb, path.native(),
              std::generic_category().message(error));
}

// A descriptor that is closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

int OpenRetrying(const std::filesystem::path& path, int flags, mode_t mode = 0666) {
  int descriptor;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

// 0 or errno.
int WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

// Writes and syncs a file of the given permissions; 0 or errno.
int WriteWhole(const std::filesystem::path& path, std::string_view content, mode_t mode) {
  Descriptor file(OpenRetrying(path, O_WRONLY | O_CREAT | O_TRUNC, mode));
  if (file.number() < 0) return errno;
  if (const int error = WriteAll(file.number(), content); error != 0) return error;
  if (::fsync(file.number()) != 0) return errno;
  return ::close(file.Release()) == 0 ? 0 : errno;
}

// Makes a rename in `folder` survive a power cut. Some file systems cannot; the rename stands
// regardless.
void SyncFolder(const std::filesystem::path& folder) {
  const Descriptor descriptor(OpenRetrying(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY));
  if (descriptor.number() >= 0) ::fsync(descriptor.number());
}

Result<void> WriteToDevice(const std::filesystem::path& path, std::string_view content) {
  const Descriptor device(OpenRetrying(path, O_WRONLY));
  if (device.number() < 0) return SystemError("open", path, errno);
  const int error = WriteAll(device.number(), content);
  if (error != 0) return SystemError("write", path, error);
  return {};
}

}  // namespace

Result<std::string> ReadFile(const std::filesystem::path& path) {
  const Descriptor file(OpenRetrying(path, O_RDONLY));
  if (file.number() < 0) return SystemError("open", path, errno);
  struct stat status = {};
  if (::fstat(file.number(), &status) != 0) return SystemError("read", path, errno);
  if (S_ISDIR(status.st_mode)) return SystemError("read", path, EISDIR);
  std::string content;
  size_t size = 0;
  size_t room = static_cast<size_t>(status.st_size) + 1;  // One more, to meet the end in one round.
  for (;;) {
    if (room > kMostBytesRead) return Invalid("read {}: larger than 1 GiB", path.native());
    content.resize(room);
    const ssize_t count = ::read(file.number(), content.data() + size, room - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("read", path, errno);
    if (count == 0) break;
    size += static_cast<size_t>(count);
    if (size == room) room += room / 2 + kBufferBytes;
  }
  content.resize(size);
  return content;
}

Result<void> WriteFileAtomically(const std::filesystem::path& path, std::string_view content) {
  std::error_code ignored;
  std::filesystem::path target = path;
  if (std::filesystem::is_symlink(path, ignored)) {
    if (auto real = std::filesystem::canonical(path, ignored); !real.empty()) target = real;
  }
  mode_t mode = 0666;
  struct stat status = {};
  if (::stat(target.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return SystemError("write", path, EISDIR);
    if (!S_ISREG(status.st_mode)) return WriteToDevice(target, content);
    mode = status.st_mode & 0777;
  }
  std::filesystem::path temporary = target;
  temporary += fmt::format(".tmp-{}", ::getpid());
  int error = WriteWhole(temporary, content, mode);
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return SystemError("write", path, error);
  }
  SyncFolder(target.parent_path());
  return {};
}

Result<void> MakeDirectories(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return SystemError("create folder", path, error.value());
  if (!std::filesystem::is_directory(path, error)) {
    return SystemError("create folder", path, EEXIST);
  }
  return {};
}

Result<FolderLock> FolderLock::Take(const std::filesystem::path& folder) {
  FolderLock lock;
  const auto held = std::make_shared<Descriptor>(OpenRetrying(folder, O_RDONLY | O_DIRECTORY));
  if (held->number() < 0) return SystemError("open", folder, errno);
  if (::flock(held->number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Fail(
        ErrorCode::kConflict,
        "{}: another process is at work in this folder; wait until it ends, or name another",
        folder.native());
  }
  lock.held_ = held;
  return lock;
}

Result<AppendFile> AppendFile::Open(const std::filesystem::path& path, int64_t keep_bytes) {
  Descriptor file(OpenRetrying(path, O_WRONLY | O_CREAT | O_APPEND));
  if (file.number() < 0) return SystemError("open", path, errno);
  struct stat status = {};
  if (::fstat(file.number(), &status) != 0) return SystemError("open", path, errno);
  if (keep_bytes == kKeepAll) keep_bytes = status.st_size;
  CHECK_GE(keep_bytes, 0);
  if (status.st_size < keep_bytes) {
    return Fail(ErrorCode::kCorruption,
                "{} has {} bytes, but {} were written to it before: the file was truncated; start "
                "a new run",
                path.native(), status.st_size, keep_bytes);
  }
  if (status.st_size > keep_bytes && ::ftruncate(file.number(), keep_bytes) != 0) {
    return SystemError("truncate", path, errno);
  }
  return AppendFile(path, file.Release(), keep_bytes);
}

AppendFile::AppendFile(std::filesystem::path path, int descriptor, int64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {
  buffer_.reserve(kBufferBytes);
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      buffer_(std::exchange(other.buffer_, {})) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) static_cast<void>(Close());
}

Result<void> AppendFile::Append(std::string_view bytes) {
  CHECK_GE(descriptor_, 0);
  if (buffer_.size() + bytes.size() > kBufferBytes) TRY(Flush());
  buffer_.append(bytes);
  size_ += static_cast<int64_t>(bytes.size());
  return {};
}

Result<void> AppendFile::Flush() {
  CHECK_GE(descriptor_, 0);
  const int error = WriteAll(descriptor_, buffer_);
  buffer_.clear();
  if (error != 0) return SystemError("write", path_, error);
  return {};
}

Result<void> AppendFile::Close() {
  Result<void> flushed = Flush();
  const int error = ::close(std::exchange(descriptor_, -1)) == 0 ? 0 : errno;
  if (flushed && error != 0) return SystemError("close", path_, error);
  return flushed;
}

}  // namespace rudderfish
