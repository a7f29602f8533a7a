// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/files.h"

namespace rudderfish {
namespace {

std::string Gzipped(std::string_view text) {
  z_stream stream = {};
  EXPECT_EQ(
      deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY),
      Z_OK);
  std::string bytes(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

TEST(Gzip, AFileIsReadWhetherItIsCompressedOrNot) {
  const std::filesystem::path folder = ::testing::TempDir();
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + ",row\n";
  ASSERT_TRUE(WriteFileAtomically(folder / "gzip-plain.csv", text).has_value());
  ASSERT_TRUE(WriteFileAtomically(folder / "gzip-named.csv", Gzipped(text)).has_value());
  EXPECT_EQ(ReadDataFile(folder / "gzip-plain.csv").value(), text);
  EXPECT_EQ(ReadDataFile(folder / "gzip-named.csv").value(), text);
}

TEST(Gzip, MembersFollowOneAnotherAndPaddingIsIgnored) {
  const std::string bytes = Gzipped("a,b\n") + Gzipped("") + Gzipped("1,2\n");
  EXPECT_EQ(Decompress(bytes + std::string(512, '\0'), "x").value(), "a,b\n1,2\n");
}

TEST(Gzip, ASmallFileThatHoldsTooMuchIsRefusedBeforeItIsInMemory) {
  const std::string bytes = Gzipped(std::string(size_t{64} << 20, '0'));
  ASSERT_LT(bytes.size(), size_t{1} << 20);
  EXPECT_EQ(Decompress(bytes, "a.gz", size_t{2} << 20).error().message,
            "a.gz: holds more than 2 MiB when decompressed; split it");
  EXPECT_EQ(Decompress(bytes, "a.gz").value().size(), size_t{64} << 20);
}

TEST(Gzip, ATruncatedFileAndADamagedOneAreTold) {
  const std::string bytes = Gzipped(std::string(1000, 'x') + "and an end");
  for (size_t length = 2; length < bytes.size(); ++length) {
    EXPECT_EQ(Decompress(bytes.substr(0, length), "a.gz").error().message,
              "a.gz: the gzip file is truncated; fetch it again")
        << length;
  }
  std::string damaged = bytes;
  damaged[bytes.size() - 6] ^= 1;  // Its checksum.
  EXPECT_EQ(Decompress(damaged, "a.gz").error().message,
            "a.gz: the gzip file is damaged; fetch it again");
}

}  // namespace
}  // namespace rudderfish
