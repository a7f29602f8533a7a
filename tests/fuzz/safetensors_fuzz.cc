// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "nn/checkpoint.h"
#include "nn/safetensors.h"

// Any bytes as a checkpoint: refused, or tensors that survive being written; and a network is made
// of them only if its shape and all its tensors are there.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using rudderfish::nn::SafetensorsFile;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  const auto file = SafetensorsFile::Parse(content, "fuzz.safetensors");
  if (!file) {
    CHECK(!file.error().message.empty());
    return 0;
  }
  const auto again = SafetensorsFile::Parse(file->Serialize(), "written.safetensors");
  CHECK(again.has_value());
  CHECK_EQ(again->tensors().size(), file->tensors().size());
  for (const auto& [name, tensor] : file->tensors()) {
    const auto found = again->tensors().find(name);
    CHECK(found != again->tensors().end());
    CHECK(found->second.type == tensor.type && found->second.shape == tensor.shape);
    CHECK(found->second.bytes == tensor.bytes);
  }
  const auto shape = rudderfish::nn::StoredNetShape(*file);
  if (!shape || shape->hidden > 32) return 0;  // Wide networks only take long.
  rudderfish::nn::CandidateNet net(*shape);
  const auto loaded = rudderfish::nn::LoadNet(*file, &net);
  CHECK(loaded.has_value() || !loaded.error().message.empty());
  return 0;
}
