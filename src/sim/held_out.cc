// SPDX-License-Identifier: Apache-2.0
#include "sim/held_out.h"

#include "base/check.h"
#include "base/rng.h"

namespace rudderfish {
namespace {

constexpr uint64_t kTrialStream = uint64_t{6} << 40;  // Of a seed.

}  // namespace

Result<std::vector<StartState>> DrawStarts(const World& world, uint64_t seed, int episodes) {
  CHECK_GT(episodes, 0);
  std::vector<StartState> starts(episodes);
  for (int i = 0; i < episodes; ++i) {
    starts[i].line = i;
    Rng rng(seed, kHeldOutStream + i);
    TRY(world.Draw(&rng, &starts[i].state));
  }
  return starts;
}

uint64_t HeldOutSeed(uint64_t seed, int episode) {
  return Rng(seed, kHeldOutStream + static_cast<uint64_t>(episode)).Next64();
}

uint64_t TrialSeed(uint64_t seed, int episode) {
  return Rng(seed, kTrialStream, static_cast<uint64_t>(episode)).Next64();
}

}  // namespace rudderfish
