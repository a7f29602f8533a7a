// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

// SHA-256 (FIPS 180-4): a stable name for a feature table, a scenario, a checkpoint. Not used to
// keep secrets.

namespace rudderfish {

class Sha256 {
 public:
  void Update(std::string_view bytes);

  // 64 lower-case hexadecimal digits. Nothing may be added after it.
  std::string Hex();

 private:
  void Compress(const uint8_t* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  uint64_t length_ = 0;  // Bytes.
};

std::string Sha256Hex(std::string_view bytes);

}  // namespace rudderfish
