// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"

// For a process that runs for months on each node: it gives back what it does not need.

namespace rudderfish {

// Drops unmodified pages of files from this process' resident memory, as the kernel does when
// memory is short. The page cache keeps them, and a page that is needed again is mapped again.
// Starting needs a multiple of the pages that running needs. Returns how many bytes of them were
// resident; an error changes nothing.
Result<int64_t> ReleaseStartPages();

// Memory that is freed goes back to the system at once, at the price of asking for it again; all
// threads share what there is. Before the first of them begins.
void ReturnFreedMemory();

}  // namespace rudderfish
