// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/result.h"

// The safetensors format (github.com/huggingface/safetensors), readable by its published reader in
// any language:
//
//   u64 little endian: length of the header
//   header: JSON {"__metadata__": {string: string},
//                 NAME: {"dtype", "shape", "data_offsets": [begin, end]}, ...},
//           padded with spaces so that the data begins at a multiple of 64
//   data: the tensors without holes or overlaps, little endian, row-major
//
// Files come from outside: every length and offset is checked before it is used, and an error names
// the file, the tensor and what is wrong with it. A value type.

namespace rudderfish::nn {

enum class ElementType { kU8, kI32, kF32, kI64, kU64, kF64 };

std::string_view ElementTypeName(ElementType type);  // As in the file: "F32".
size_t ElementBytes(ElementType type);

template <class T>
inline constexpr ElementType kElementTypeOf = [] {
  static_assert(
      sizeof(T) == 0,
      "a safetensors file of ours holds uint8_t, int32_t, float, int64_t, uint64_t, double");
  return ElementType::kU8;
}();
template <>
inline constexpr ElementType kElementTypeOf<uint8_t> = ElementType::kU8;
template <>
inline constexpr ElementType kElementTypeOf<int32_t> = ElementType::kI32;
template <>
inline constexpr ElementType kElementTypeOf<float> = ElementType::kF32;
template <>
inline constexpr ElementType kElementTypeOf<int64_t> = ElementType::kI64;
template <>
inline constexpr ElementType kElementTypeOf<uint64_t> = ElementType::kU64;
template <>
inline constexpr ElementType kElementTypeOf<double> = ElementType::kF64;

using TensorShape = std::vector<int64_t>;  // Empty: a scalar.

struct StoredTensor {
  ElementType type = ElementType::kF32;
  TensorShape shape;
  std::string bytes;
};

class SafetensorsFile {
 public:
  static constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // The limit of the published readers.

  SafetensorsFile() = default;

  static Result<SafetensorsFile> Read(const std::filesystem::path& path);
  // `source_name` is what errors call it.
  static Result<SafetensorsFile> Parse(std::string_view content, std::string_view source_name);

  // The same tensors and metadata always become the same bytes.
  std::string Serialize() const;
  Result<void> Write(const std::filesystem::path& path) const;  // Atomically.

  const std::string& source_name() const { return source_name_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }

  void SetMetadata(std::string key, std::string value) {
    metadata_[std::move(key)] = std::move(value);
  }
  Result<std::string> Metadata(std::string_view key) const;

  // REQUIRES: the shape's product is values.size(); the name is new and not "__metadata__".
  template <class T>
  void Add(std::string name, TensorShape shape, std::span<const T> values) {
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    AddBytes(std::move(name), kElementTypeOf<T>, std::move(shape), bytes);
  }

  bool Has(std::string_view name) const { return tensors_.contains(std::string(name)); }

  // All elements of a tensor of any shape.
  template <class T>
  Result<std::vector<T>> Values(std::string_view name) const {
    TRY_ASSIGN(const StoredTensor* tensor, Find(name, kElementTypeOf<T>));
    std::vector<T> values(tensor->bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    return values;
  }

  // Fills `values` from a tensor that must have exactly this shape. REQUIRES: the shape's product
  // is values.size().
  template <class T>
  Result<void> CopyTo(std::string_view name, const TensorShape& shape, std::span<T> values) const {
    TRY_ASSIGN(const StoredTensor* tensor, Find(name, kElementTypeOf<T>));
    TRY(CheckShape(name, *tensor, shape));
    CHECK_EQ(tensor->bytes.size(), values.size_bytes());
    if (!values.empty()) std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    return {};
  }

 private:
  void AddBytes(std::string name, ElementType type, TensorShape shape, std::string_view bytes);
  Result<const StoredTensor*> Find(std::string_view name, ElementType type) const;
  Result<void> CheckShape(std::string_view name, const StoredTensor& tensor,
                          const TensorShape& expected) const;

  std::string source_name_ = "safetensors";
  std::map<std::string, std::string> metadata_;
  std::map<std::string, StoredTensor> tensors_;
};

}  // namespace rudderfish::nn
