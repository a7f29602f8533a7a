// SPDX-License-Identifier: Apache-2.0
#include "nn/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "base/json.h"

namespace rudderfish::nn {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are copied to and from files byte by byte");

constexpr size_t kLengthBytes = 8;
constexpr size_t kDataAlignment = 64;
constexpr std::string_view kMetadataKey = "__metadata__";

struct TypeRow {
  ElementType type;
  std::string_view name;
  size_t bytes;
};
constexpr std::array<TypeRow, 6> kTypes = {{{ElementType::kU8, "U8", 1},
                                            {ElementType::kI32, "I32", 4},
                                            {ElementType::kF32, "F32", 4},
                                            {ElementType::kI64, "I64", 8},
                                            {ElementType::kU64, "U64", 8},
                                            {ElementType::kF64, "F64", 8}}};

const TypeRow& Row(ElementType type) { return kTypes[static_cast<size_t>(type)]; }

// The bytes of a tensor, nothing if they do not fit 63 bits.
std::optional<uint64_t> ShapeBytes(const TensorShape& shape, ElementType type) {
  uint64_t bytes = Row(type).bytes;
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size != 0 && bytes > kMost / static_cast<uint64_t>(size)) return std::nullopt;
    bytes *= static_cast<uint64_t>(size);
  }
  return bytes;
}

std::string ShapeText(const TensorShape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

struct HeaderEntry {
  std::string name;
  ElementType type = ElementType::kF32;
  TensorShape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

Result<HeaderEntry> ReadEntry(const std::string& name, const OrderedJsonReader& json,
                              uint64_t data_bytes) {
  HeaderEntry entry{.name = name};
  TRY(json.CheckKeys({"dtype", "shape", "data_offsets"}));
  TRY_ASSIGN(const OrderedJsonReader dtype, json.At("dtype"));
  TRY_ASSIGN(const std::string type_name, dtype.AsString());
  const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                 [&](const TypeRow& row) { return row.name == type_name; });
  if (type == kTypes.end()) return dtype.Expected("one of U8, I32, F32, I64, U64, F64");
  entry.type = type->type;

  TRY_ASSIGN(const OrderedJsonReader shape, json.At("shape"));
  TRY_ASSIGN(const std::vector<OrderedJsonReader> sizes, shape.Elements());
  for (const OrderedJsonReader& size : sizes) {
    TRY_ASSIGN(const int64_t value, size.AsInt(0));
    entry.shape.push_back(value);
  }

  TRY_ASSIGN(const OrderedJsonReader offsets, json.At("data_offsets"));
  TRY_ASSIGN(const std::vector<OrderedJsonReader> pair, offsets.Elements());
  if (pair.size() != 2) return offsets.Expected("two offsets");
  TRY_ASSIGN(const int64_t begin, pair[0].AsInt(0));
  TRY_ASSIGN(const int64_t end, pair[1].AsInt(0));
  entry.begin = static_cast<uint64_t>(begin);
  entry.end = static_cast<uint64_t>(end);
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return offsets.Refuse(
        fmt::format("[{}, {}] does not lie in the {} bytes of data; the file is cut off or damaged",
                    begin, end, data_bytes));
  }
  const std::optional<uint64_t> bytes = ShapeBytes(entry.shape, entry.type);
  if (!bytes) return shape.Refuse("more elements than can be counted");
  if (*bytes != entry.end - entry.begin) {
    return json.Refuse(fmt::format("shape {} of {} needs {} bytes, data_offsets span {}",
                                   ShapeText(entry.shape), type_name, *bytes,
                                   entry.end - entry.begin));
  }
  return entry;
}

// The tensors must tile the data: bytes of two tensors, or of none, would hide something from one
// reader or another.
Result<void> CheckTiling(std::vector<HeaderEntry>* entries, uint64_t data_bytes,
                         std::string_view source_name) {
  std::sort(entries->begin(), entries->end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t at = 0;
  for (const HeaderEntry& entry : *entries) {
    if (entry.begin != at) {
      return Fail(
          ErrorCode::kCorruption,
          "{}: tensor \"{}\" begins at byte {} of the data, {} the tensors before it end at {}",
          source_name, entry.name, entry.begin,
          entry.begin < at ? "overlapping:" : "leaving a hole:", at);
    }
    at = entry.end;
  }
  if (at != data_bytes) {
    return Fail(ErrorCode::kCorruption, "{}: {} bytes of data after the last tensor", source_name,
                data_bytes - at);
  }
  return {};
}

// The JSON text between the length and the data.
Result<std::string_view> HeaderOf(std::string_view content, std::string_view source_name) {
  if (content.size() < kLengthBytes) {
    return Fail(ErrorCode::kCorruption,
                "{}: not a safetensors file: {} bytes, at least {} expected", source_name,
                content.size(), kLengthBytes);
  }
  uint64_t length = 0;
  std::memcpy(&length, content.data(), sizeof length);
  if (length > SafetensorsFile::kMaxHeaderBytes) {
    return Fail(
        ErrorCode::kCorruption,
        "{}: not a safetensors file: it does not begin with the length of a header, {} bytes "
        "at most",
        source_name, SafetensorsFile::kMaxHeaderBytes);
  }
  if (length > content.size() - kLengthBytes) {
    return Fail(ErrorCode::kCorruption, "{}: cut off: a header of {} bytes in a file of {}",
                source_name, length, content.size());
  }
  const std::string_view header = content.substr(kLengthBytes, length);
  if (header.empty() || header[0] != '{') {
    return Fail(ErrorCode::kCorruption,
                "{}: not a safetensors file: the header does not begin with '{{'", source_name);
  }
  return header;
}

}  // namespace

std::string_view ElementTypeName(ElementType type) { return Row(type).name; }
size_t ElementBytes(ElementType type) { return Row(type).bytes; }

Result<SafetensorsFile> SafetensorsFile::Parse(std::string_view content,
                                               std::string_view source_name) {
  TRY_ASSIGN(const std::string_view header, HeaderOf(content, source_name));
  const std::string_view data = content.substr(kLengthBytes + header.size());
  TRY_ASSIGN(const OrderedJson json, ParseOrderedJson(header, source_name));

  SafetensorsFile file;
  file.source_name_ = source_name;
  std::vector<HeaderEntry> entries;
  TRY_ASSIGN(const auto members, OrderedJsonReader(json, source_name).Members());
  for (const auto& [name, member] : members) {
    if (name == kMetadataKey) {
      TRY_ASSIGN(const auto pairs, member.Members());
      for (const auto& [key, value] : pairs) {
        TRY_ASSIGN(file.metadata_[key], value.AsString());
      }
    } else {
      TRY_ASSIGN(HeaderEntry entry, ReadEntry(name, member, data.size()));
      entries.push_back(std::move(entry));
    }
  }
  TRY(CheckTiling(&entries, data.size(), source_name));
  for (HeaderEntry& entry : entries) {
    const std::string_view bytes = data.substr(entry.begin, entry.end - entry.begin);
    file.tensors_[entry.name] = {
        .type = entry.type, .shape = std::move(entry.shape), .bytes = std::string(bytes)};
  }
  return file;
}

Result<SafetensorsFile> SafetensorsFile::Read(const std::filesystem::path& path) {
  TRY_ASSIGN(const std::string content, ReadFile(path));
  return Parse(content, path.string());
}

std::string SafetensorsFile::Serialize() const {
  // Wide elements first, so that each tensor's data is aligned to its elements.
  std::vector<const std::pair<const std::string, StoredTensor>*> order;
  for (const auto& entry : tensors_) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return ElementBytes(a->second.type) > ElementBytes(b->second.type);
  });

  OrderedJson json = OrderedJson::object();
  if (!metadata_.empty()) json[std::string(kMetadataKey)] = metadata_;
  uint64_t at = 0;
  for (const auto* entry : order) {
    const uint64_t end = at + entry->second.bytes.size();
    json[entry->first] = {{"dtype", std::string(ElementTypeName(entry->second.type))},
                          {"shape", entry->second.shape},
                          {"data_offsets", {at, end}}};
    at = end;
  }
  std::string header = json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  const size_t padded =
      (kLengthBytes + header.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  header.resize(padded - kLengthBytes, ' ');

  std::string content(kLengthBytes, '\0');
  const uint64_t length = header.size();
  std::memcpy(content.data(), &length, sizeof length);
  content.reserve(padded + at);
  content += header;
  for (const auto* entry : order) content += entry->second.bytes;
  return content;
}

Result<void> SafetensorsFile::Write(const std::filesystem::path& path) const {
  return WriteFileAtomically(path, Serialize());
}

Result<std::string> SafetensorsFile::Metadata(std::string_view key) const {
  const auto found = metadata_.find(std::string(key));
  if (found == metadata_.end()) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: no \"{}\" in the metadata", source_name_, key);
  }
  return found->second;
}

void SafetensorsFile::AddBytes(std::string name, ElementType type, TensorShape shape,
                               std::string_view bytes) {
  CHECK(name != kMetadataKey);
  const std::optional<uint64_t> expected = ShapeBytes(shape, type);
  CHECK(expected.has_value());
  CHECK_EQ(*expected, bytes.size());
  const bool is_new =
      tensors_.emplace(std::move(name), StoredTensor{type, std::move(shape), std::string(bytes)})
          .second;
  CHECK(is_new);
}

Result<const StoredTensor*> SafetensorsFile::Find(std::string_view name, ElementType type) const {
  const auto found = tensors_.find(std::string(name));
  if (found == tensors_.end()) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: tensor \"{}\" is missing", source_name_, name);
  }
  if (found->second.type != type) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: tensor \"{}\": expected {}, found {}",
                source_name_, name, ElementTypeName(type), ElementTypeName(found->second.type));
  }
  return &found->second;
}

Result<void> SafetensorsFile::CheckShape(std::string_view name, const StoredTensor& tensor,
                                         const TensorShape& expected) const {
  if (tensor.shape == expected) return {};
  return Fail(ErrorCode::kFailedPrecondition, "{}: tensor \"{}\": expected shape {}, found {}",
              source_name_, name, ShapeText(expected), ShapeText(tensor.shape));
}

}  // namespace rudderfish::nn
