// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test, gone afterwards.
class Files : public testing::Test {
 protected:
  Files() {
    std::string name = fs::temp_directory_path() / "rudderfish-files-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~Files() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }

  int EntriesOfFolder() const {
    return static_cast<int>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

// Files may not grow beyond `bytes` while this lives: a disk that is full, without one.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(Files, ReadsBackWhatWasWritten) {
  std::string content(300000, 'x');
  content[1234] = '\0';
  ASSERT_TRUE(WriteFileAtomically(folder_ / "a", content));
  EXPECT_EQ(ReadFile(folder_ / "a").value(), content);
  ASSERT_TRUE(WriteFileAtomically(folder_ / "a", ""));
  EXPECT_EQ(ReadFile(folder_ / "a").value(), "");
  EXPECT_EQ(EntriesOfFolder(), 1);
}

TEST_F(Files, ReadsPipesWhoseLengthIsUnknown) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string content(200000, 'p');
  std::jthread writer([&] { EXPECT_TRUE(WriteFileAtomically(pipe, content)); });
  EXPECT_EQ(ReadFile(pipe).value(), content);
}

TEST_F(Files, MissingFileIsNotFoundAndNamed) {
  const auto result = ReadFile(folder_ / "none");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(result.error().message,
            "open " + (folder_ / "none").string() + ": No such file or directory");
}

TEST_F(Files, FoldersAreNeitherReadNorReplaced) {
  EXPECT_EQ(ReadFile(folder_).error().message, "read " + folder_.string() + ": Is a directory");
  EXPECT_FALSE(WriteFileAtomically(folder_, "x"));
}

TEST_F(Files, FullDiskLeavesTheOldContentAndNoTemporary) {
  const fs::path path = folder_ / "checkpoint";
  ASSERT_TRUE(WriteFileAtomically(path, "old"));
  Result<void> result;
  {
    const FileSizeLimit full(1000);
    result = WriteFileAtomically(path, std::string(5000, 'n'));
  }
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(result.error().message, "write " + path.string() + ": File too large");
  EXPECT_EQ(ReadFile(path).value(), "old");
  EXPECT_EQ(EntriesOfFolder(), 1);
}

TEST_F(Files, FullDeviceSaysNoSpaceLeft) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const auto result = WriteFileAtomically("/dev/full", "x");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(result.error().message, "write /dev/full: No space left on device");
}

TEST_F(Files, UnwritableFolderIsInvalid) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  const auto result = WriteFileAtomically(folder_ / "a", "x");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(Files, WritingFollowsALinkAndKeepsPermissions) {
  ASSERT_TRUE(WriteFileAtomically(folder_ / "real", "old"));
  fs::permissions(folder_ / "real", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real", folder_ / "link");
  ASSERT_TRUE(WriteFileAtomically(folder_ / "link", "new"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(ReadFile(folder_ / "real").value(), "new");
  EXPECT_EQ(fs::status(folder_ / "real").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Files, MakesFoldersWithTheirParents) {
  ASSERT_TRUE(MakeDirectories(folder_ / "a/b/c"));
  EXPECT_TRUE(fs::is_directory(folder_ / "a/b/c"));
  EXPECT_TRUE(MakeDirectories(folder_ / "a/b/c"));
  ASSERT_TRUE(WriteFileAtomically(folder_ / "file", ""));
  EXPECT_FALSE(MakeDirectories(folder_ / "file"));
  EXPECT_FALSE(MakeDirectories(folder_ / "file/below"));
}

TEST_F(Files, AppendFileGoesOnAtTheEnd) {
  const fs::path path = folder_ / "metrics.csv";
  auto first = AppendFile::Open(path);
  ASSERT_TRUE(first->Append("a,b\n"));
  ASSERT_TRUE(first->Close());
  auto second = AppendFile::Open(path);
  EXPECT_EQ(second->size(), 4);
  ASSERT_TRUE(second->Append("1,2\n"));
  EXPECT_EQ(second->size(), 8);
  EXPECT_EQ(ReadFile(path).value(), "a,b\n");
  ASSERT_TRUE(second->Flush());
  EXPECT_EQ(ReadFile(path).value(), "a,b\n1,2\n");
}

TEST_F(Files, AppendFileCutsOffWhatCameAfterACheckpoint) {
  const fs::path path = folder_ / "metrics.csv";
  ASSERT_TRUE(WriteFileAtomically(path, "kept\nlost\n"));
  auto resumed = AppendFile::Open(path, 5);
  ASSERT_TRUE(resumed->Append("again\n"));
  ASSERT_TRUE(resumed->Close());
  EXPECT_EQ(ReadFile(path).value(), "kept\nagain\n");
  const auto damaged = AppendFile::Open(path, 1000);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, ErrorCode::kCorruption);
}

TEST_F(Files, AppendFileWritesWhatItHoldsWhenItGoes) {
  const std::string long_row(100000, 'r');
  {
    auto file = AppendFile::Open(folder_ / "log", 0);
    ASSERT_TRUE(file->Append("row"));
    AppendFile moved = *std::move(file);
    ASSERT_TRUE(moved.Append(long_row));
  }
  EXPECT_EQ(ReadFile(folder_ / "log").value(), "row" + long_row);
}

TEST_F(Files, AppendFileReportsAFullDisk) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  auto file = AppendFile::Open("/dev/full");
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Append("x"));
  const auto result = file->Close();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "write /dev/full: No space left on device");
}

TEST_F(Files, FolderHasOneLockUntilItsHolderIsGone) {
  {
    const FolderLock lock = FolderLock::Take(folder_).value();
    const FolderLock copy = lock;
    EXPECT_EQ(FolderLock::Take(folder_).error().code, ErrorCode::kConflict);
    EXPECT_EQ(EntriesOfFolder(), 0);
  }
  EXPECT_TRUE(FolderLock::Take(folder_));
}

TEST_F(Files, LockOfAProcessEndsWithIt) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Result<FolderLock> lock = FolderLock::Take(folder_);
    const char taken = lock ? 'y' : 'n';
    if (::write(ready[1], &taken, 1) == 1) ::pause();
    ::_exit(0);
  }
  char taken = 0;
  ASSERT_EQ(::read(ready[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  EXPECT_EQ(FolderLock::Take(folder_).error().code, ErrorCode::kConflict);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(FolderLock::Take(folder_));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(Files, LockOfAFolderThatIsNotThereIsRefused) {
  EXPECT_EQ(FolderLock::Take(folder_ / "nothing").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace rudderfish
