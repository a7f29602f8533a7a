// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

// A test binary that mentions this counter has an operator new that counts, so that a test can say
// that nothing was allocated.

namespace rudderfish {

extern std::atomic<long> allocation_count;

}  // namespace rudderfish
