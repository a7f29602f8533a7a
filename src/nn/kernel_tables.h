// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/kernel.h"

// The tables that the kernel_*.cc files define and kernel.cc chooses from.

namespace rudderfish::nn {

extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace rudderfish::nn
