// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

// CRC-32C (Castagnoli; RFC 3720, appendix B.4), which guards the records of TensorBoard event
// files.

namespace rudderfish {

// Of `bytes`; of a longer string if `before` is the checksum of what came before them.
uint32_t Crc32c(std::string_view bytes, uint32_t before = 0);

// Rotated and offset, as the TFRecord format stores it, so that a checksum over data with checksums
// stays useful.
uint32_t MaskedCrc32c(std::string_view bytes);

}  // namespace rudderfish
