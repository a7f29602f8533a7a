// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#define RUDDERFISH_LANES 8
#define RUDDERFISH_TILE_ROWS 6
#include "nn/kernel_body.h"
#include "nn/kernel_tables.h"

namespace rudderfish::nn {

constinit const Kernels kAvx2Kernels = MakeKernels(Isa::kAvx2, "avx2");

}  // namespace rudderfish::nn
#endif
