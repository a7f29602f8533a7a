// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "base/files.h"

namespace rudderfish {
namespace {

constexpr std::string_view kGzipMark = "\x1f\x8b";
constexpr size_t kInflateChunk = size_t{256} << 10;
constexpr int kGzipOnly = 16;  // Added to the window's bits: no bare zlib streams.

}  // namespace

bool IsGzip(std::string_view bytes) { return bytes.starts_with(kGzipMark); }

Result<std::string> Decompress(std::string_view bytes, std::string_view source_name,
                               size_t most_bytes) {
  z_stream stream = {};
  if (inflateInit2(&stream, MAX_WBITS + kGzipOnly) != Z_OK)
    return Fail(ErrorCode::kUnavailable, "{}: no memory to decompress it", source_name);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::string text;
  size_t size = 0;
  while (true) {
    // zlib counts what it is given in 32 bits.
    const size_t given = std::min(bytes.size(), kInflateChunk);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(given);
    text.resize(size + kInflateChunk);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + size);
    stream.avail_out = static_cast<uInt>(kInflateChunk);
    const int status = inflate(&stream, Z_NO_FLUSH);
    bytes.remove_prefix(given - stream.avail_in);
    size += kInflateChunk - stream.avail_out;
    if (size > most_bytes) {
      return Invalid("{}: holds more than {} MiB when decompressed; split it", source_name,
                     most_bytes >> 20);
    }
    if (status == Z_STREAM_END) {
      if (!IsGzip(bytes)) break;  // What follows the last member is padding, as for gunzip.
      if (inflateReset(&stream) != Z_OK) return Invalid("{}: cannot be decompressed", source_name);
      continue;
    }
    if (status == Z_OK && (given > 0 || stream.avail_out == 0)) continue;
    return Invalid("{}: {}", source_name,
                   status == Z_OK || status == Z_BUF_ERROR
                       ? "the gzip file is truncated; fetch it again"
                       : "the gzip file is damaged; fetch it again");
  }
  text.resize(size);
  return text;
}

Result<std::string> ReadDataFile(const std::filesystem::path& path) {
  TRY_ASSIGN(std::string bytes, ReadFile(path));
  if (!IsGzip(bytes)) return bytes;
  return Decompress(bytes, path.native());
}

}  // namespace rudderfish
