// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#define RUDDERFISH_LANES 16
#define RUDDERFISH_TILE_ROWS 12
#include "nn/kernel_body.h"
#include "nn/kernel_tables.h"

namespace rudderfish::nn {

constinit const Kernels kAvx512Kernels = MakeKernels(Isa::kAvx512, "avx512");

}  // namespace rudderfish::nn
#endif
