// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

// Normal numbers many at once, for who draws millions a second.

namespace rudderfish {

// What Rng::Normal makes of each of these words, to the bit, in a third of the time. REQUIRES: as
// many of both.
void NormalsOf(std::span<const uint64_t> words, std::span<double> normals);

}  // namespace rudderfish
