// SPDX-License-Identifier: Apache-2.0
#include "base/start_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>
#include <string>

#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

int64_t ResidentPages() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident;
}

TEST(StartPages, PagesOfFilesAreReleasedAndReadAgain) {
  constexpr size_t kSize = 4 << 20;
  const testing::TestFolder folder;
  const auto path = folder.path() / "large";
  std::ofstream(path) << std::string(kSize, 'x');
  std::FILE* file = std::fopen(path.c_str(), "rb");
  ASSERT_NE(file, nullptr);
  void* const mapped = ::mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE, ::fileno(file), 0);
  // Written to, and read-only afterwards: not what the file has any more.
  void* const written =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE, ::fileno(file), 0);
  std::fclose(file);
  ASSERT_NE(mapped, MAP_FAILED);
  ASSERT_NE(written, MAP_FAILED);
  const auto* text = static_cast<const volatile char*>(mapped);
  for (size_t i = 0; i < kSize; i += 4096) ASSERT_EQ(text[i], 'x');
  static_cast<char*>(written)[5000] = 'y';
  ASSERT_EQ(::mprotect(written, kSize, PROT_READ), 0);
  const int64_t before = ResidentPages();
  const Result<int64_t> bytes = ReleaseStartPages();
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_GE(*bytes, static_cast<int64_t>(kSize));
  EXPECT_LT(ResidentPages(), before - static_cast<int64_t>(kSize / 4096) / 2);
  for (size_t i = 0; i < kSize; i += 4096) ASSERT_EQ(text[i], 'x');
  EXPECT_EQ(static_cast<const char*>(written)[5000], 'y');
  ::munmap(mapped, kSize);
  ::munmap(written, kSize);
}

}  // namespace
}  // namespace rudderfish
