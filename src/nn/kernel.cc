// SPDX-License-Identifier: Apache-2.0
#include "nn/kernel.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "nn/kernel_tables.h"

namespace rudderfish::nn {

bool IsSupported(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return true;
#if defined(__x86_64__)
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("fma");
#endif
    default:
      return false;
  }
}

const Kernels& SelectKernels(Isa isa) {
  CHECK(IsSupported(isa));
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return kAvx512Kernels;
  if (isa == Isa::kAvx2) return kAvx2Kernels;
#endif
  return kPortableKernels;
}

const Kernels& BestKernels() {
  static const Kernels* const best = [] {
    for (const Isa isa : {Isa::kAvx512, Isa::kAvx2}) {
      if (IsSupported(isa)) return &SelectKernels(isa);
    }
    return &SelectKernels(Isa::kPortable);
  }();
  return *best;
}

double MeasureFmaPeakGflops(const Kernels& kernels, int slices) {
  CHECK_GT(slices, 0);
  float sink[3] = {0.999F, 0.001F, 0};
  const auto run = [&](int64_t rounds, double* flops) {
    const Instant start = SystemClock().Now();
    *flops = kernels.burn(rounds, sink);
    return Seconds(SystemClock().Now() - start);
  };
  int64_t rounds = 1000;
  double flops = 0;
  while (run(rounds, &flops) < 1e-3) rounds *= 2;
  double best = 0;
  for (int i = 0; i < slices; ++i) {
    const double seconds = run(rounds, &flops);
    best = std::max(best, flops / seconds * 1e-9);
  }
  return best;
}

}  // namespace rudderfish::nn
