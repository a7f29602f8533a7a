// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

// Data files as people keep them: plain, or compressed by gzip. The content decides, not the name.

namespace rudderfish {

// Of what a file holds once it is decompressed; a small file may claim to hold any amount.
inline constexpr size_t kMostBytesDecompressed = size_t{1} << 30;

bool IsGzip(std::string_view bytes);

// All members of a gzip file, one after another. `source_name` is for messages. REQUIRES: IsGzip.
Result<std::string> Decompress(std::string_view bytes, std::string_view source_name,
                               size_t most_bytes = kMostBytesDecompressed);

// The whole content of a file, decompressed if it is compressed.
Result<std::string> ReadDataFile(const std::filesystem::path& path);

}  // namespace rudderfish
