// SPDX-License-Identifier: Apache-2.0
#include "nn/checkpoint.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "nn/candidate_pass.h"

namespace rudderfish::nn {
namespace {

// Wider than any network of this kind; a file cannot make us allocate more.
constexpr int kWidest = 4096;

constexpr std::string_view kMemoryNames[] = {"none", "gru"};  // As Recurrence.

std::string ShapeKey(std::string_view prefix) { return std::string(prefix) + "shape"; }

std::string ShapeJson(const NetShape& shape) {
  return OrderedJson{{"candidate", shape.widths.candidate},
                     {"node", shape.widths.node},
                     {"workload", shape.widths.workload},
                     {"context", shape.widths.context},
                     {"hidden", shape.hidden},
                     {"rounds", shape.rounds},
                     {"encoder", EncoderName(shape.encoder)},
                     {"memory", kMemoryNames[static_cast<int>(shape.recurrence)]}}
      .dump();
}

Result<int> ReadWidth(const JsonReader& json, std::string_view key, int low) {
  TRY_ASSIGN(const JsonReader value, json.At(key));
  TRY_ASSIGN(const int64_t width, value.AsInt(low, kWidest));
  if (width % 16 != 0) return value.Expected("a multiple of 16");
  return static_cast<int>(width);
}

Result<void> CheckNames(const SafetensorsFile& file, const CandidateNet& net,
                        std::string_view prefix) {
  std::set<std::string> known;
  for (const NamedTensor& tensor : net.tensors()) known.insert(std::string(prefix) + tensor.name);
  for (const auto& [name, stored] : file.tensors()) {
    if (name.starts_with(prefix) && !known.contains(name)) {
      return Fail(ErrorCode::kFailedPrecondition, "{}: tensor \"{}\" is not one of this network's",
                  file.source_name(), name);
    }
  }
  return {};
}

}  // namespace

void AddNet(const CandidateNet& net, SafetensorsFile* file, std::string_view prefix) {
  for (const NamedTensor& tensor : net.tensors()) {
    file->Add<float>(std::string(prefix) + tensor.name, {tensor.rows, tensor.columns},
                     net.tensor(tensor.name));
  }
  file->SetMetadata(ShapeKey(prefix), ShapeJson(net.shape()));
}

Result<NetShape> StoredNetShape(const SafetensorsFile& file, std::string_view prefix) {
  TRY_ASSIGN(const std::string text, file.Metadata(ShapeKey(prefix)));
  const std::string source = file.source_name() + ": metadata " + ShapeKey(prefix);
  TRY_ASSIGN(const Json json, ParseJson(text, source));
  const JsonReader reader(json, source);
  TRY(reader.CheckKeys(
      {"candidate", "node", "workload", "context", "hidden", "rounds", "encoder", "memory"}));
  NetShape shape;
  TRY_ASSIGN(shape.widths.candidate, ReadWidth(reader, "candidate", 0));
  TRY_ASSIGN(shape.widths.node, ReadWidth(reader, "node", 0));
  TRY_ASSIGN(shape.widths.workload, ReadWidth(reader, "workload", 0));
  TRY_ASSIGN(shape.widths.context, ReadWidth(reader, "context", 0));
  TRY_ASSIGN(shape.hidden, ReadWidth(reader, "hidden", 16));
  TRY_ASSIGN(const JsonReader rounds, reader.At("rounds"));
  TRY_ASSIGN(const int64_t count, rounds.AsInt(1, CandidatePass::kMaxRounds));
  shape.rounds = static_cast<int>(count);
  // What was stored before there were others says nothing.
  TRY_ASSIGN(const std::optional<JsonReader> encoder, reader.Find("encoder"));
  if (encoder) {
    TRY_ASSIGN(const std::string name, encoder->AsString());
    const Result<Encoder> known = EncoderNamed(name);
    if (!known) return encoder->Refuse(known.error().message);
    shape.encoder = *known;
  }
  TRY_ASSIGN(const std::optional<JsonReader> memory, reader.Find("memory"));
  if (memory) {
    TRY_ASSIGN(const std::string name, memory->AsString());
    if (name != kMemoryNames[0] && name != kMemoryNames[1]) {
      return memory->Expected("`none` or `gru`");
    }
    if (name == kMemoryNames[1]) shape.recurrence = Recurrence::kGated;
  }
  return shape;
}

Result<void> LoadNet(const SafetensorsFile& file, CandidateNet* net, std::string_view prefix) {
  if (file.metadata().contains(ShapeKey(prefix))) {
    TRY_ASSIGN(const NetShape stored, StoredNetShape(file, prefix));
    if (stored.encoder != net->shape().encoder) {
      return Fail(ErrorCode::kFailedPrecondition, "{}: has the encoder {}, not {}",
                  file.source_name(), EncoderName(stored.encoder),
                  EncoderName(net->shape().encoder));
    }
  }
  CandidateNet loaded = *net;
  for (const NamedTensor& tensor : loaded.tensors()) {
    const std::string name = std::string(prefix) + tensor.name;
    const std::span<float> values = loaded.tensor(tensor.name);
    TRY(file.CopyTo<float>(name, {tensor.rows, tensor.columns}, values));
    for (const float value : values) {
      if (!std::isfinite(value)) {
        return Fail(ErrorCode::kCorruption, "{}: tensor \"{}\" holds a number that is not finite",
                    file.source_name(), name);
      }
    }
  }
  TRY(CheckNames(file, loaded, prefix));
  *net = std::move(loaded);
  return {};
}

Result<void> SaveNet(const CandidateNet& net, const std::filesystem::path& path) {
  SafetensorsFile file;
  AddNet(net, &file);
  return file.Write(path);
}

Result<CandidateNet> OpenNet(const std::filesystem::path& path) {
  TRY_ASSIGN(const SafetensorsFile file, SafetensorsFile::Read(path));
  TRY_ASSIGN(const NetShape shape, StoredNetShape(file));
  CandidateNet net(shape);
  TRY(LoadNet(file, &net));
  return net;
}

}  // namespace rudderfish::nn
