// SPDX-License-Identifier: Apache-2.0
#include "learn/tensorboard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>

#include "base/crc32c.h"
#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::TestFolder;

// A reader of protocol buffers that knows only how values are framed.
struct Field {
  int number = 0;
  int wire = 0;
  uint64_t bits = 0;
  std::string bytes;
};

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return value;
}

std::vector<Field> Fields(std::string_view message) {
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.at(0));
      message.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  };
  std::vector<Field> fields;
  while (!message.empty()) {
    const uint64_t key = varint();
    Field field{.number = static_cast<int>(key >> 3), .wire = static_cast<int>(key & 7)};
    if (field.wire == 0) {
      field.bits = varint();
    } else {
      const size_t length = field.wire == 2 ? varint() : field.wire == 1 ? 8 : 4;
      field.bytes = std::string(message.substr(0, length));
      EXPECT_EQ(field.bytes.size(), length);
      message.remove_prefix(length);
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

const Field& Only(const std::vector<Field>& fields, int number) {
  const Field* found = nullptr;
  for (const Field& field : fields) {
    if (field.number != number) continue;
    EXPECT_EQ(found, nullptr) << "field " << number << " twice";
    found = &field;
  }
  if (found == nullptr) throw std::runtime_error("no field " + std::to_string(number));
  return *found;
}

std::vector<std::string> Records(const std::filesystem::path& path) {
  std::string content = *ReadFile(path);
  std::string_view rest = content;
  std::vector<std::string> records;
  while (!rest.empty()) {
    const std::string_view length = rest.substr(0, 8);
    EXPECT_EQ(LittleEndian(rest.substr(8, 4)), MaskedCrc32c(length));
    const std::string_view bytes = rest.substr(12, LittleEndian(length));
    EXPECT_EQ(LittleEndian(rest.substr(12 + bytes.size(), 4)), MaskedCrc32c(bytes));
    records.emplace_back(bytes);
    rest.remove_prefix(16 + bytes.size());
  }
  return records;
}

TEST(EventFile, ScalarsReadBackFromTheirRecords) {
  const TestFolder folder;
  Result<EventFile> file = EventFile::Create(folder / "");
  ASSERT_TRUE(file.has_value());
  const ScalarPoint points[] = {
      {"charts/SPS", 12345.5}, {"losses/entropy", std::nan("")}, {"losses/clipfrac", -0.25}};
  ASSERT_TRUE(file->Scalars(int64_t{1} << 40, points).has_value());
  ASSERT_TRUE(file->Text("config", "seed: 1\n").has_value());
  ASSERT_TRUE(file->Flush().has_value());
  EXPECT_TRUE(file->path().filename().string().starts_with("events.out.tfevents."));

  const std::vector<std::string> records = Records(file->path());
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(Only(Fields(records[0]), 3).bytes, "brain.Event:2");

  const std::vector<Field> event = Fields(records[1]);
  EXPECT_GT(std::bit_cast<double>(LittleEndian(Only(event, 1).bytes)), 1.6e9);
  EXPECT_EQ(Only(event, 2).bits, uint64_t{1} << 40);
  std::map<std::string, float> values;
  for (const Field& value : Fields(Only(event, 5).bytes)) {
    EXPECT_EQ(value.number, 1);
    const std::vector<Field> parts = Fields(value.bytes);
    values[Only(parts, 1).bytes] =
        std::bit_cast<float>(static_cast<uint32_t>(LittleEndian(Only(parts, 2).bytes)));
  }
  EXPECT_EQ(values,
            (std::map<std::string, float>{{"charts/SPS", 12345.5f}, {"losses/clipfrac", -0.25f}}));

  const std::vector<Field> text = Fields(Only(Fields(Only(Fields(records[2]), 5).bytes), 1).bytes);
  EXPECT_EQ(Only(text, 1).bytes, "config");
  EXPECT_EQ(Only(Fields(Only(text, 8).bytes), 8).bytes, "seed: 1\n");
  EXPECT_EQ(Only(Fields(Only(Fields(Only(text, 9).bytes), 1).bytes), 1).bytes, "text");
}

TEST(EventFile, SecondFileOfAProcessTakesAnotherName) {
  const TestFolder folder;
  const Result<EventFile> one = EventFile::Create(folder / ""),
                          two = EventFile::Create(folder / "");
  ASSERT_TRUE(one.has_value() && two.has_value());
  EXPECT_NE(one->path(), two->path());
}

TEST(EventFile, UnwritableFolderIsAnError) {
  EXPECT_FALSE(EventFile::Create("/nonexistent/folder").has_value());
}

}  // namespace
}  // namespace rudderfish
