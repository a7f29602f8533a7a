// SPDX-License-Identifier: Apache-2.0
#include "base/start_pages.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace rudderfish {
namespace {

struct Mapping {
  uintptr_t begin = 0, end = 0;
  bool is_clean_file = false;  // Of a file, not writable, and as the file has it.
  int64_t resident_bytes = 0;
};

constexpr int kModeLetters = 4;
constexpr int64_t kKib = 1024;

// proc(5): a line of its range, mode and path, then lines "Name: N kB". A page that was written to
// before its mapping became read-only (relocations are) counts as anonymous, and must stay.
std::vector<Mapping> MappingsOf(std::string_view smaps) {
  std::vector<Mapping> mappings;
  while (!smaps.empty()) {
    const std::string line(smaps.substr(0, smaps.find('\n')));
    smaps.remove_prefix(std::min(smaps.size(), line.size() + 1));
    uintptr_t begin = 0, end = 0;
    char mode[kModeLetters + 1] = "";
    int64_t kib = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, mode) == 3) {
      const std::string_view how = mode;
      mappings.push_back({.begin = begin,
                          .end = end,
                          .is_clean_file = how.starts_with("r-") && how.ends_with('p') &&
                                           line.find(" /") != std::string::npos});
    } else if (mappings.empty()) {
      continue;
    } else if (std::sscanf(line.c_str(), "Rss: %" SCNd64, &kib) == 1) {
      mappings.back().resident_bytes = kib * kKib;
    } else if (std::sscanf(line.c_str(), "Anonymous: %" SCNd64, &kib) == 1 && kib != 0) {
      mappings.back().is_clean_file = false;
    }
  }
  return mappings;
}

}  // namespace

Result<int64_t> ReleaseStartPages() {
  TRY_ASSIGN(const std::string smaps, ReadFile("/proc/self/smaps"));
  int64_t bytes = 0;
  for (const Mapping& one : MappingsOf(smaps)) {
    if (!one.is_clean_file) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel says where it is.
    void* const at = reinterpret_cast<void*>(one.begin);
    if (::madvise(at, one.end - one.begin, MADV_DONTNEED) == 0) bytes += one.resident_bytes;
  }
  return bytes;
}

void ReturnFreedMemory() {
#ifdef __GLIBC__
  constexpr int kBytes = 64 << 10;
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TRIM_THRESHOLD, kBytes);
  ::mallopt(M_MMAP_THRESHOLD, kBytes);
#endif
}

}  // namespace rudderfish
