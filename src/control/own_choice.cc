// SPDX-License-Identifier: Apache-2.0
#include "control/own_choice.h"

#include <cstdint>

namespace rudderfish {

bool IsInShare(std::string_view uid, double share) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : uid) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccd;
  hash ^= hash >> 33;
  return static_cast<double>(hash >> 11) * 0x1p-53 < share;
}

}  // namespace rudderfish
