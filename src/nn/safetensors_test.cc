// SPDX-License-Identifier: Apache-2.0
#include "nn/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "base/files.h"

namespace rudderfish::nn {
namespace {

using testing::HasSubstr;

// A file of any header and data, right or wrong.
std::string FileOf(const std::string& header, const std::string& data) {
  std::string content(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(content.data(), &length, 8);
  return content + header + data;
}

std::string RefusalOf(const std::string& content) {
  const auto file = SafetensorsFile::Parse(content, "weights.safetensors");
  if (file) return "accepted";
  EXPECT_THAT(file.error().message, HasSubstr("weights.safetensors"));
  return file.error().message;
}

SafetensorsFile EveryType() {
  SafetensorsFile file;
  file.Add<uint8_t>("bytes", {3}, std::vector<uint8_t>{1, 2, 255});
  file.Add<int32_t>("ints", {2}, std::vector<int32_t>{-7, 1 << 30});
  file.Add<float>("floats", {2, 3}, std::vector<float>{1, -2.5F, 3e-40F, 1e30F, 0, -0.0F});
  file.Add<int64_t>("longs", {1}, std::vector<int64_t>{std::numeric_limits<int64_t>::min()});
  file.Add<uint64_t>("words", {}, std::vector<uint64_t>{~0ULL});
  file.Add<double>("doubles", {2}, std::vector<double>{0.1, -1e300});
  file.Add<float>("empty", {0, 4}, std::vector<float>{});
  file.SetMetadata("task", "migration");
  file.SetMetadata("note", "caf\xC3\xA9 \"quoted\"\n");
  return file;
}

TEST(Safetensors, EveryTypeComesBackAsItWent) {
  const auto read = SafetensorsFile::Parse(EveryType().Serialize(), "weights.safetensors");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->tensors().size(), 7U);
  EXPECT_EQ(*read->Values<uint8_t>("bytes"), (std::vector<uint8_t>{1, 2, 255}));
  EXPECT_EQ(*read->Values<int32_t>("ints"), (std::vector<int32_t>{-7, 1 << 30}));
  EXPECT_EQ(*read->Values<float>("floats"),
            (std::vector<float>{1, -2.5F, 3e-40F, 1e30F, 0, -0.0F}));
  EXPECT_EQ(*read->Values<int64_t>("longs"),
            (std::vector<int64_t>{std::numeric_limits<int64_t>::min()}));
  EXPECT_EQ(*read->Values<uint64_t>("words"), (std::vector<uint64_t>{~0ULL}));
  EXPECT_EQ(*read->Values<double>("doubles"), (std::vector<double>{0.1, -1e300}));
  EXPECT_TRUE(read->Values<float>("empty")->empty());
  EXPECT_EQ(read->tensors().at("floats").shape, (TensorShape{2, 3}));
  EXPECT_EQ(read->metadata(), EveryType().metadata());
}

TEST(Safetensors, SameContentIsTheSameBytesInWhateverOrderItWasAdded) {
  SafetensorsFile a, b;
  a.Add<float>("x", {1}, std::vector<float>{1});
  a.Add<uint8_t>("y", {1}, std::vector<uint8_t>{2});
  b.Add<uint8_t>("y", {1}, std::vector<uint8_t>{2});
  b.Add<float>("x", {1}, std::vector<float>{1});
  EXPECT_EQ(a.Serialize(), b.Serialize());
}

TEST(Safetensors, DataBeginsAtACacheLineAndEachTensorAtItsElements) {
  const std::string content = EveryType().Serialize();
  uint64_t length = 0;
  std::memcpy(&length, content.data(), 8);
  EXPECT_EQ((8 + length) % 64, 0U);
  const std::string header = content.substr(8, length);
  EXPECT_LT(header.find("\"doubles\""), header.find("\"floats\""));
  EXPECT_LT(header.find("\"floats\""), header.find("\"bytes\""));
}

TEST(Safetensors, IsWrittenToAndReadFromDisk) {
  const auto path =
      std::filesystem::temp_directory_path() / "rudderfish_safetensors_test.safetensors";
  ASSERT_TRUE(EveryType().Write(path).has_value());
  const auto read = SafetensorsFile::Read(path);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->Serialize(), EveryType().Serialize());
  std::filesystem::remove(path);
  const auto missing = SafetensorsFile::Read(path);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST(Safetensors, EveryCutIsRefused) {
  const std::string content = EveryType().Serialize();
  for (size_t length = 0; length < content.size(); ++length) {
    EXPECT_FALSE(SafetensorsFile::Parse(content.substr(0, length), "cut").has_value()) << length;
  }
  EXPECT_THAT(RefusalOf(content + "x"), HasSubstr("1 bytes of data after the last tensor"));
}

TEST(Safetensors, EveryFlippedBitIsReadOrRefusedButNeverTrustedBlindly) {
  const std::string content = EveryType().Serialize();
  for (size_t bit = 0; bit < content.size() * 8; bit += 3) {
    std::string damaged = content;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const auto read = SafetensorsFile::Parse(damaged, "damaged");
    if (!read) continue;
    size_t bytes = 0;
    for (const auto& [name, tensor] : read->tensors()) bytes += tensor.bytes.size();
    EXPECT_EQ(bytes, 3U + 8 + 24 + 8 + 8 + 16);
  }
}

TEST(Safetensors, LengthsOfTheHeaderAreChecked) {
  EXPECT_THAT(RefusalOf(""), HasSubstr("not a safetensors file: 0 bytes"));
  EXPECT_THAT(RefusalOf(std::string(8, '\xFF')), HasSubstr("100000000 bytes at most"));
  std::string content = FileOf("{}", "");
  content[0] = 50;
  EXPECT_THAT(RefusalOf(content), HasSubstr("cut off: a header of 50 bytes in a file of 10"));
  EXPECT_THAT(RefusalOf(FileOf("", "")), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(RefusalOf(FileOf("[]", "")), HasSubstr("does not begin with '{'"));
  EXPECT_EQ(RefusalOf(FileOf("{}", "")), "accepted");
  EXPECT_EQ(RefusalOf(FileOf("{}      ", "")), "accepted");
}

TEST(Safetensors, HeaderMustBeJsonOfTheFormat) {
  EXPECT_NE(RefusalOf(FileOf("{\"a\":", "")), "accepted");
  EXPECT_NE(RefusalOf(FileOf("{} {}", "")), "accepted");
  EXPECT_NE(RefusalOf(FileOf(R"({"a":7})", "")), "accepted");
  EXPECT_NE(RefusalOf(FileOf(R"({"__metadata__":{"a":7}})", "")), "accepted");
  EXPECT_NE(RefusalOf(FileOf(R"({"__metadata__":"a"})", "")), "accepted");
  EXPECT_NE(RefusalOf(FileOf("{\"" + std::string("\xFF\xFE") + "\":7}", "")), "accepted");
  const std::string twice = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                            R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  EXPECT_THAT(RefusalOf(FileOf(twice, "xy")), HasSubstr("a"));
}

TEST(Safetensors, EachFieldOfATensorIsChecked) {
  const auto refusal = [](const std::string& tensor, const std::string& data) {
    return RefusalOf(FileOf("{\"w\":{" + tensor + "}}", data));
  };
  EXPECT_EQ(refusal(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])", "1234"), "accepted");
  EXPECT_THAT(refusal(R"("dtype":"BF16","shape":[2],"data_offsets":[0,4])", "1234"),
              HasSubstr("F32"));
  EXPECT_THAT(refusal(R"("dtype":4,"shape":[1],"data_offsets":[0,4])", "1234"), HasSubstr("dtype"));
  EXPECT_THAT(refusal(R"("shape":[1],"data_offsets":[0,4])", "1234"), HasSubstr("dtype"));
  EXPECT_THAT(refusal(R"("dtype":"F32","data_offsets":[0,4])", "1234"), HasSubstr("shape"));
  EXPECT_THAT(refusal(R"("dtype":"F32","shape":[1])", "1234"), HasSubstr("data_offsets"));
  EXPECT_THAT(refusal(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", "1234"),
              HasSubstr("shape"));
  EXPECT_THAT(refusal(R"("dtype":"F32","shape":[1.5],"data_offsets":[0,4])", "1234"),
              HasSubstr("shape"));
  EXPECT_THAT(refusal(R"("dtype":"F32","shape":1,"data_offsets":[0,4])", "1234"),
              HasSubstr("shape"));
  EXPECT_THAT(refusal(R"("dtype":"F32","shape":[1],"data_offsets":[0])", "1234"),
              HasSubstr("two offsets"));
  EXPECT_THAT(refusal(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])", "1234"),
              HasSubstr("data_offsets"));
  EXPECT_THAT(refusal(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])", "1234"),
              HasSubstr("does not lie"));
  EXPECT_THAT(refusal(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])", "1234"),
              HasSubstr("cut off"));
  EXPECT_THAT(refusal(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", "1234"),
              HasSubstr("needs 8 bytes"));
  EXPECT_THAT(refusal(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1)", "1234"),
              HasSubstr("x"));
  EXPECT_THAT(refusal(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0])", ""),
              HasSubstr("more elements than can be counted"));
  EXPECT_THAT(
      refusal(R"("dtype":"F32","shape":[18446744073709551617],"data_offsets":[0,4])", "1234"),
      HasSubstr("shape"));
  EXPECT_EQ(refusal(R"("dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[0,0])", ""),
            "accepted");
}

TEST(Safetensors, OverlapsAndHolesAreRefused) {
  const auto two = [](const std::string& first, const std::string& second) {
    return RefusalOf(FileOf(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + first +
                                R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + second +
                                "}}",
                            "1234"));
  };
  EXPECT_EQ(two("[0,2]", "[2,4]"), "accepted");
  EXPECT_EQ(two("[2,4]", "[0,2]"), "accepted");
  EXPECT_THAT(two("[0,2]", "[1,3]"), HasSubstr("tensor \"b\""));
  EXPECT_THAT(two("[0,2]", "[1,3]"), HasSubstr("overlapping"));
  EXPECT_THAT(two("[0,2]", "[0,2]"), HasSubstr("overlapping"));
  EXPECT_THAT(RefusalOf(FileOf(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})", "1234")),
              HasSubstr("hole"));
  EXPECT_THAT(RefusalOf(FileOf(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "1234")),
              HasSubstr("2 bytes of data after the last tensor"));
}

TEST(Safetensors, AskingForWhatIsNotThereNamesIt) {
  const auto file = SafetensorsFile::Parse(EveryType().Serialize(), "weights.safetensors");
  const auto message = [](const auto& result) {
    return result ? "accepted" : result.error().message;
  };
  EXPECT_THAT(message(file->Values<float>("absent")), HasSubstr("tensor \"absent\" is missing"));
  EXPECT_THAT(message(file->Values<double>("floats")),
              HasSubstr("tensor \"floats\": expected F64, found F32"));
  std::vector<float> six(6);
  EXPECT_THAT(message(file->CopyTo<float>("floats", {3, 2}, six)),
              HasSubstr("expected shape [3, 2], found [2, 3]"));
  EXPECT_TRUE(file->CopyTo<float>("floats", {2, 3}, six).has_value());
  EXPECT_EQ(six[1], -2.5F);
  EXPECT_THAT(message(file->Metadata("absent")), HasSubstr("no \"absent\" in the metadata"));
  EXPECT_EQ(*file->Metadata("task"), "migration");
}

TEST(SafetensorsDeathTest, ANameTwiceOrAWrongSizeIsABug) {
  SafetensorsFile file;
  file.Add<float>("x", {1}, std::vector<float>{1});
  EXPECT_DEATH(file.Add<float>("x", {1}, std::vector<float>{1}), "is_new");
  EXPECT_DEATH(file.Add<float>("y", {2}, std::vector<float>{1}), "8 against 4");
}

}  // namespace
}  // namespace rudderfish::nn
