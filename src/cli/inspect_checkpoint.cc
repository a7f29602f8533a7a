// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text_table.h"
#include "base/units.h"
#include "cli/inspection.h"
#include "cli/output.h"
#include "nn/checkpoint.h"
#include "nn/safetensors.h"
#include "task/migration.h"
#include "task/placement.h"
#include "task/scaling.h"
#include "task/scaling_preset.h"

namespace rudderfish {
namespace {

using Align = TextTable::Align;

// Tensors whose names begin alike: net, adam, env, run ...
struct Part {
  int64_t tensors = 0, values = 0, bytes = 0;
};

std::map<std::string, Part> PartsOf(const nn::SafetensorsFile& file) {
  std::map<std::string, Part> parts;
  for (const auto& [name, tensor] : file.tensors()) {
    Part& part = parts[name.substr(0, name.find('.'))];
    ++part.tensors;
    part.values += static_cast<int64_t>(tensor.bytes.size() / nn::ElementBytes(tensor.type));
    part.bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  return parts;
}

std::string ShapeText(const nn::TensorShape& shape) {
  std::string text;
  for (const int64_t size : shape) text += fmt::format("{}{}", text.empty() ? "" : " x ", size);
  return text.empty() ? "1" : text;
}

// Which feature table of this version it is.
std::string FeaturesText(const std::string& hash) {
  if (hash == PlacementTask::FeatureHash()) return "placement";
  for (const PlacementPreset preset : {PlacementPreset::kThesisEe, PlacementPreset::kThesisLc,
                                       PlacementPreset::kThesisElRl, PlacementPreset::kDrsCode}) {
    if (hash == PlacementTask::FeatureHash(preset)) return "placement, as an earlier system saw it";
  }
  if (hash == ScalingTask::FeatureHash()) return "scaling";
  if (hash == ScalingTask::FeatureHash(ScalingRows::kCallGraph)) return "scaling, call graph";
  for (const ScalingPreset preset : {ScalingPreset::kGymHpaCost, ScalingPreset::kGraphGymHpaSlo}) {
    if (hash == ScalingPresetTask::FeatureHash(preset))
      return "scaling, as an earlier system saw it";
  }
  for (const FeaturePreset preset : {FeaturePreset::kModel, FeaturePreset::kReachAgent}) {
    const MigrationTask task(MigrationOptions{.features = preset});
    if (task.FeatureHash() != hash) continue;
    return preset == FeaturePreset::kModel ? "model" : "reach-agent";
  }
  return "of another version: this one refuses it";
}

// What is known of it, in the order in which people ask.
constexpr std::string_view kFirst[] = {"violations_max",
                                       "decides",
                                       "price",
                                       "least_share",
                                       "serves_per_s",
                                       "cores",
                                       "learned_core_hours",
                                       "learned_violations",
                                       "rule",
                                       "rule_core_hours",
                                       "rule_violations",
                                       "scenario",
                                       "algorithm",
                                       "seed",
                                       "iteration",
                                       "env_steps",
                                       "validation_final_ms",
                                       "version"};

std::string AsText(const std::filesystem::path& path, const nn::SafetensorsFile& file,
                   const nn::NetShape& shape) {
  const std::map<std::string, Part> parts = PartsOf(file);
  const auto& metadata = file.metadata();
  std::string text = fmt::format(
      "{}: a network that scores alternatives: {} weights, hidden {}, {} of message passing, "
      "encoder {}{}\n\n",
      path.string(), Grouped(parts.at("net").values), shape.hidden, Counted(shape.rounds, "round"),
      nn::EncoderName(shape.encoder), shape.memory() > 0 ? ", remembers" : "");
  TextTable facts({{""}, {""}}, 2);
  for (const std::string_view key : {"task", "preset", "objective", "features"}) {
    const auto found = metadata.find(std::string(key));
    if (found == metadata.end()) continue;
    facts.Row(
        {std::string(key), key == "features"
                               ? fmt::format("{} ({})", FeaturesText(found->second), found->second)
                               : found->second});
  }
  for (const std::string_view key : kFirst) {
    if (const auto found = metadata.find(std::string(key)); found != metadata.end()) {
      facts.Row({std::string(key), found->second});
    }
  }
  text += facts.Text() + "\n";
  TextTable table(
      {{"PART"}, {"TENSORS", Align::kRight}, {"VALUES", Align::kRight}, {"SIZE", Align::kRight}},
      2);
  for (const auto& [name, part] : parts) {
    table.Row({name, Grouped(part.tensors), Grouped(part.values), FormatBytes(part.bytes)});
  }
  text += table.Text() + "\n";
  TextTable tensors({{"WEIGHTS"}, {"SHAPE"}}, 2);
  for (const auto& [name, tensor] : file.tensors()) {
    if (name.starts_with(nn::kNetPrefix)) tensors.Row({name, ShapeText(tensor.shape)});
  }
  return text + tensors.Text();
}

std::string AsJson(const std::filesystem::path& path, const nn::SafetensorsFile& file,
                   const nn::NetShape& shape) {
  OrderedJson json{{"kind", "checkpoint"},
                   {"file", path.string()},
                   {"network",
                    {{"hidden", shape.hidden},
                     {"rounds", shape.rounds},
                     {"encoder", nn::EncoderName(shape.encoder)},
                     {"memory", shape.memory()}}},
                   {"weights", PartsOf(file).at("net").values},
                   {"metadata", file.metadata()}};
  OrderedJson& tensors = json["tensors"] = OrderedJson::array();
  for (const auto& [name, tensor] : file.tensors()) {
    tensors.push_back(
        {{"name", name}, {"type", nn::ElementTypeName(tensor.type)}, {"shape", tensor.shape}});
  }
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

Result<std::string> InspectCheckpoint(const std::filesystem::path& path, OutputFormat format) {
  TRY_ASSIGN(const nn::SafetensorsFile file, nn::SafetensorsFile::Read(path));
  TRY_ASSIGN(const nn::NetShape shape, nn::StoredNetShape(file));
  nn::CandidateNet net(shape);
  TRY(nn::LoadNet(file, &net));  // Says what is missing, if something is.
  return format == OutputFormat::kJson ? AsJson(path, file, shape) : AsText(path, file, shape);
}

}  // namespace rudderfish
