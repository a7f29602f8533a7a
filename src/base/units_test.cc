// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace rudderfish {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(ParseCpuMillis, ReadsKubernetesQuantities) {
  EXPECT_EQ(ParseCpuMillis("700m").value(), 700);
  EXPECT_EQ(ParseCpuMillis("2").value(), 2000);
  EXPECT_EQ(ParseCpuMillis("1.5").value(), 1500);
  EXPECT_EQ(ParseCpuMillis("0").value(), 0);
  EXPECT_EQ(ParseCpuMillis("250000u").value(), 250);
  EXPECT_EQ(ParseCpuMillis("1k").value(), 1000000);
  EXPECT_EQ(ParseCpuMillis("2e3m").value(), 2000);
}

TEST(ParseCpuMillis, RoundsUpUnlessAskedToRoundDown) {
  EXPECT_EQ(ParseCpuMillis("1n").value(), 1);
  EXPECT_EQ(ParseCpuMillis("0.1m").value(), 1);
  EXPECT_EQ(ParseCpuMillis("1e-100").value(), 1);
  EXPECT_EQ(ParseCpuMillis("1n", Rounding::kDown).value(), 0);
  EXPECT_EQ(ParseCpuMillis("1e-100", Rounding::kDown).value(), 0);
  EXPECT_EQ(ParseCpuMillis("0.0019999999", Rounding::kDown).value(), 1);
  EXPECT_EQ(ParseCpuMillis("0.0010000000", Rounding::kUp).value(), 1);
}

TEST(ParseMemoryBytes, ReadsDecimalAndBinarySuffixes) {
  EXPECT_EQ(ParseMemoryBytes("700Mi").value(), 700LL << 20);
  EXPECT_EQ(ParseMemoryBytes("1G").value(), 1000000000);
  EXPECT_EQ(ParseMemoryBytes("128974848").value(), 128974848);
  EXPECT_EQ(ParseMemoryBytes("129e6").value(), 129000000);
  EXPECT_EQ(ParseMemoryBytes("128974848000m").value(), 128974848);
  EXPECT_EQ(ParseMemoryBytes("1.5Ki").value(), 1536);
  EXPECT_EQ(ParseMemoryBytes("100k").value(), 100000);
  EXPECT_EQ(ParseMemoryBytes("2E").value(), 2000000000000000000);
  EXPECT_EQ(ParseMemoryBytes("2E3").value(), 2000);
  EXPECT_EQ(ParseMemoryBytes("7Ei").value(), 7LL << 60);
}

TEST(ParseMemoryBytes, IsExactWhereADoubleIsNot) {
  EXPECT_EQ(ParseMemoryBytes("9007199254740993").value(), 9007199254740993);  // 2^53 + 1.
  // 27.68 * 2^30 = 29721173688.32.
  EXPECT_EQ(ParseMemoryBytes("27.68Gi").value(), 29721173689);
  EXPECT_EQ(ParseMemoryBytes("27.68Gi", Rounding::kDown).value(), 29721173688);
}

TEST(ParseMemoryBytes, RefusesWhatDoesNotFit) {
  EXPECT_EQ(ParseMemoryBytes("8Ei").error().message,
            "\"8Ei\" is too large for an amount of memory");
  EXPECT_FALSE(ParseMemoryBytes("1e30"));
  EXPECT_FALSE(ParseMemoryBytes("1e999999999999"));
  EXPECT_FALSE(ParseMemoryBytes("9.3E"));
}

TEST(Units, RefuseWhatIsNoNumber) {
  for (const char* text : {"", " ", "nan", "inf", "-1", "+1", "Mi", ".", "e3", "0x10", "1,5",
                           "12345678901234567890"}) {
    EXPECT_FALSE(ParseCpuMillis(text)) << text;
    EXPECT_FALSE(ParseMemoryBytes(text)) << text;
    EXPECT_FALSE(ParseDurationMs(text)) << text;
  }
}

TEST(Units, UnknownUnitIsNamedBesideTheAcceptedOnes) {
  EXPECT_EQ(ParseDurationMs("3 sec").error().message,
            "unknown unit \"sec\" in \"3 sec\": a duration is given in ns us µs ms s m min h");
  EXPECT_EQ(ParseDurationMs("3").error().message,
            "\"3\" lacks a unit: a duration is given in ns us µs ms s m min h");
  EXPECT_EQ(ParseCpuMillis("1Gi").error().message,
            "unknown unit \"Gi\" in \"1Gi\": an amount of CPU is given in n u m (none) k M");
  EXPECT_FALSE(ParseBandwidthMbytesPerS("500m"));
  EXPECT_FALSE(ParseDataSizeBytes("1Mb"));
}

TEST(ParseDurationMs, ReadsEveryUnit) {
  EXPECT_DOUBLE_EQ(ParseDurationMs("46ms").value(), 46);
  EXPECT_DOUBLE_EQ(ParseDurationMs("2s").value(), 2000);
  EXPECT_DOUBLE_EQ(ParseDurationMs("1.5us").value(), 0.0015);
  EXPECT_DOUBLE_EQ(ParseDurationMs("1.5µs").value(), 0.0015);
  EXPECT_DOUBLE_EQ(ParseDurationMs("100ns").value(), 0.0001);
  EXPECT_DOUBLE_EQ(ParseDurationMs("2min").value(), 120000);
  EXPECT_DOUBLE_EQ(ParseDurationMs("2m").value(), 120000);
  EXPECT_DOUBLE_EQ(ParseDurationMs("0.5h").value(), 1800000);
  EXPECT_EQ(ParseDurationMs("1e-999ms").value(), 0);
  EXPECT_FALSE(ParseDurationMs("1e999ms"));
}

TEST(ParseBandwidthMbytesPerS, ReadsBitsAndBytes) {
  EXPECT_DOUBLE_EQ(ParseBandwidthMbytesPerS("500Mbit").value(), 62.5);
  EXPECT_DOUBLE_EQ(ParseBandwidthMbytesPerS("1Gbit").value(), 125);
  EXPECT_DOUBLE_EQ(ParseBandwidthMbytesPerS("1Gbps").value(), 125);
  EXPECT_DOUBLE_EQ(ParseBandwidthMbytesPerS("62.5MB").value(), 62.5);
  EXPECT_DOUBLE_EQ(ParseBandwidthMbytesPerS("62.5 MB/s").value(), 62.5);
  EXPECT_DOUBLE_EQ(ParseBandwidthMbytesPerS("1MiB/s").value(), 1.048576);
  EXPECT_DOUBLE_EQ(ParseBandwidthMbytesPerS("8kbit/s").value(), 0.001);
}

TEST(ParseDataSizeBytes, ReadsDecimalAndBinaryUnits) {
  EXPECT_EQ(ParseDataSizeBytes("0.1MB").value(), 100000);
  EXPECT_EQ(ParseDataSizeBytes("100kB").value(), 100000);
  EXPECT_DOUBLE_EQ(ParseDataSizeBytes("0.1MiB").value(), 104857.6);
  EXPECT_EQ(ParseDataSizeBytes("3B").value(), 3);
}

RC_GTEST_PROP(Units, ExactFormatsReadBack, ()) {
  const int64_t amount = *rc::gen::inRange<int64_t>(0, kMost) >> *rc::gen::inRange(0, 63);
  RC_ASSERT(ParseMemoryBytes(FormatMemoryQuantity(amount)).value() == amount);
  RC_ASSERT(ParseCpuMillis(FormatMillis(amount)).value() == amount);
}

RC_GTEST_PROP(Units, AnyTextIsReadOrRefused, (const std::string& text)) {
  for (const auto& result : {ParseCpuMillis(text), ParseMemoryBytes(text)}) {
    RC_ASSERT(!result || *result >= 0);
  }
}

TEST(FormatQuantities, PickTheLargestExactUnit) {
  EXPECT_EQ(FormatMillis(700), "700m");
  EXPECT_EQ(FormatMillis(2000), "2");
  EXPECT_EQ(FormatMillis(0), "0");
  EXPECT_EQ(FormatMemoryQuantity(734003200), "700Mi");
  EXPECT_EQ(FormatMemoryQuantity(1000), "1000");
  EXPECT_EQ(FormatMemoryQuantity(0), "0");
}

TEST(FormatBytes, KeepsThreeDigits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1 KiB");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(29721173688), "27.7 GiB");
  EXPECT_EQ(FormatBytes(-2048), "-2 KiB");
  EXPECT_EQ(FormatBytes(kMost), "8 EiB");
}

TEST(FormatDuration, ChoosesTheUnitThatReadsBest) {
  using namespace std::chrono_literals;
  EXPECT_EQ(FormatDuration(850ns), "850 ns");
  EXPECT_EQ(FormatDuration(1500ns), "1.50 us");
  EXPECT_EQ(FormatDuration(46ms), "46 ms");
  EXPECT_EQ(FormatDuration(46120us), "46.1 ms");
  EXPECT_EQ(FormatDuration(999700us), "1.00 s");
  EXPECT_EQ(FormatDuration(59s), "59 s");
  EXPECT_EQ(FormatDuration(59700ms), "1 min");
  EXPECT_EQ(FormatDuration(10min), "10 min");
  EXPECT_EQ(FormatDuration(2h), "2 h");
  EXPECT_EQ(FormatDuration(72h), "3 d");
  EXPECT_EQ(FormatDuration(90s), "1 min 30 s");
  EXPECT_EQ(FormatDuration(2h + 5min), "2 h 5 min");
  EXPECT_EQ(FormatDuration(76h), "3 d 4 h");
  EXPECT_EQ(FormatDuration(-2s), "-2 s");
}

TEST(FormatCount, UsesThousands) {
  EXPECT_EQ(FormatCount(1234567), "1.23 M");
  EXPECT_EQ(FormatCount(950), "950");
  EXPECT_EQ(FormatCount(12.345), "12.3");
  EXPECT_EQ(FormatCount(999.7), "1.00 k");
  EXPECT_EQ(FormatCount(-80500), "-80.5 k");
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(std::numeric_limits<double>::infinity()), "inf");
}

}  // namespace
}  // namespace rudderfish
