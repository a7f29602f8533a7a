// SPDX-License-Identifier: Apache-2.0
#define RUDDERFISH_LANES 4
#define RUDDERFISH_TILE_ROWS 6
#include "nn/kernel_body.h"
#include "nn/kernel_tables.h"

namespace rudderfish::nn {

constinit const Kernels kPortableKernels = MakeKernels(Isa::kPortable, "portable");

}  // namespace rudderfish::nn
