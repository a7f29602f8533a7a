// SPDX-License-Identifier: Apache-2.0
#include "tests/support/count_allocations.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace rudderfish {

std::atomic<long> allocation_count{0};

}  // namespace rudderfish

// Not inlined: the compiler would pair malloc with delete and warn.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++rudderfish::allocation_count;
  if (void* p = std::malloc(std::max<size_t>(bytes, 1))) return p;
  throw std::bad_alloc();
}

[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++rudderfish::allocation_count;
  return std::malloc(std::max<size_t>(bytes, 1));
}

[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment) {
  ++rudderfish::allocation_count;
  const auto align = static_cast<size_t>(alignment);
  if (void* p = std::aligned_alloc(align, (std::max<size_t>(bytes, 1) + align - 1) / align * align))
    return p;
  throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
