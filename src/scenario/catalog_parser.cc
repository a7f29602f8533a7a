// SPDX-License-Identifier: Apache-2.0
#include "scenario/catalog_parser.h"

#include <fmt/format.h>

#include "base/units.h"
#include "model/latency.h"
#include "scenario/scenario.h"
#include "scenario/yaml_values.h"

namespace rudderfish {
namespace {

constexpr double kMostBandwidth = 1e9;
constexpr double kMostWatts = 1e6, kMostPrice = 1e6;

Result<LayerId> LayerNamed(std::string_view name, const NameIndex& layers, const YamlNode& where) {
  const LayerId layer = layers.Find(name);
  if (layer == kNone) return where.Refuse(layers.Unknown(name));
  return layer;
}

// {0.1: 98, 0.5: 160}: watts at a use of CPU.
Result<PowerCurve> ParsePowerCurve(const YamlNode& node) {
  PowerCurve curve;
  double last = 0;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  for (const auto& [key, value] : map.Entries()) {
    if (curve.count == PowerCurve::kPointsMax)
      return node.Refuse(fmt::format("more than {} points", PowerCurve::kPointsMax));
    const Result<double> use = ParseFraction(key);
    if (!use || *use <= 0 || *use >= 1) {
      return value.Refuse(
          "expected a use of CPU between 0 and 1 as key, as 0.1; at 0 a node draws `idle_watts`, "
          "at 1 `busy_watts`");
    }
    if (*use <= last) return value.Refuse("points stand in ascending order of use");
    last = *use;
    TRY_ASSIGN(const double watts, value.AsDouble(0, kMostWatts));
    curve.Add({*use, watts});
  }
  if (curve.count == 0) return node.Refuse("expected at least one point");
  return curve;
}

}  // namespace

Result<void> ParseHead(std::string_view format, YamlMap* map, std::string* name, std::string* law) {
  TRY_ASSIGN(const YamlNode written, map->Required("rudderfish"));
  TRY_ASSIGN(const std::string its_format, written.AsString());
  if (its_format != format)
    return written.Expected(fmt::format("{}, the format of this version", format));
  TRY_ASSIGN(const YamlNode its_name, map->Required("name"));
  TRY_ASSIGN(*name, NameOf(its_name));
  if (const std::optional<YamlNode> model = map->Optional("model")) {
    TRY_ASSIGN(*law, model->AsString());
    const Result<LatencyLaw> known = LatencyLaw::Named(*law);
    if (!known) return model->Refuse(known.error().message);
  }
  return {};
}

Result<std::vector<Layer>> ParseLayers(const YamlNode& node, NameIndex* names) {
  std::vector<Layer> layers;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  for (const auto& [name, value] : map.Entries()) {
    if (!IsName(name)) return value.Refuse(fmt::format("expected {} as key", kNameInWords));
    Layer layer{.name = name};
    if (!value.IsNull()) {
      TRY_ASSIGN(YamlMap fields, value.AsMap());
      TRY_ASSIGN(layer.accepts_moves, fields.OptionalBool("accepts_moves", true));
      TRY(fields.Finish());
    }
    names->Add(name);
    layers.push_back(std::move(layer));
  }
  if (layers.empty() || layers.size() > kMaxLayers) {
    return node.Refuse(fmt::format("expected 1 to {} layers, found {}", kMaxLayers, layers.size()));
  }
  return layers;
}

Result<LayerId> ParseLayerName(const YamlNode& node, const NameIndex& layers) {
  TRY_ASSIGN(const std::string name, node.AsString());
  return LayerNamed(name, layers, node);
}

Result<std::vector<Distribution>> ParseLatencies(const YamlNode& node,
                                                 const std::vector<Layer>& layers,
                                                 const NameIndex& names,
                                                 Result<Distribution> (*parse)(const YamlNode&)) {
  const int count = static_cast<int>(layers.size());
  std::vector<Distribution> latency_ms(static_cast<size_t>(count) * count);
  std::vector<YamlNode> rows(count);
  std::vector<char> given(latency_ms.size(), 0);
  TRY_ASSIGN(YamlMap map, node.AsMap());
  for (const auto& [from_name, row] : map.Entries()) {
    TRY_ASSIGN(const LayerId from, LayerNamed(from_name, names, row));
    rows[from] = row;
    TRY_ASSIGN(YamlMap targets, row.AsMap());
    for (const auto& [to_name, value] : targets.Entries()) {
      TRY_ASSIGN(const LayerId to, LayerNamed(to_name, names, value));
      TRY_ASSIGN(latency_ms[from * count + to], parse(value));
      given[from * count + to] = 1;
    }
  }
  for (LayerId from = 0; from < count; ++from) {
    if (rows[from].IsNull()) return node.Refuse(fmt::format("missing key `{}`", layers[from].name));
    for (LayerId to = 0; to < count; ++to) {
      if (given[from * count + to]) continue;
      return rows[from].Refuse(fmt::format("missing key `{}`: the latency from {} to {}",
                                           layers[to].name, layers[from].name, layers[to].name));
    }
  }
  return latency_ms;
}

Result<NodeKind> ParseNodeKind(std::string_view name, YamlMap* fields, const NameIndex& layers) {
  NodeKind kind{.name = std::string(name)};
  TRY_ASSIGN(const YamlNode layer, fields->Required("layer"));
  TRY_ASSIGN(kind.layer, ParseLayerName(layer, layers));
  TRY_ASSIGN(const YamlNode cpu_type, fields->Required("cpu_type"));
  TRY_ASSIGN(kind.cpu_type, NameOf(cpu_type));
  TRY_ASSIGN(const YamlNode bandwidth, fields->Required("bandwidth"));
  TRY_ASSIGN(kind.bandwidth_mbytes_per_s, QuantityOf(bandwidth, ParseBandwidthMbytesPerS));
  if (kind.bandwidth_mbytes_per_s <= 0 || kind.bandwidth_mbytes_per_s > kMostBandwidth) {
    return bandwidth.Expected(fmt::format("a bandwidth above 0 and up to {}MB/s", kMostBandwidth));
  }
  return kind;
}

Result<NodeCosts> ParseNodeCosts(YamlMap* fields) {
  NodeCosts costs;
  TRY_ASSIGN(costs.price_per_hour, fields->OptionalDouble("price_per_hour", 0, kMostPrice, 0));
  if (const std::optional<YamlNode> power = fields->Optional("power")) {
    TRY_ASSIGN(YamlMap watts, power->AsMap());
    TRY_ASSIGN(costs.idle_watts, watts.RequiredDouble("idle_watts", 0, kMostWatts));
    TRY_ASSIGN(costs.busy_watts, watts.RequiredDouble("busy_watts", costs.idle_watts, kMostWatts));
    TRY_ASSIGN(costs.asleep_watts, watts.OptionalDouble("asleep_watts", 0, costs.idle_watts, 0));
    if (const std::optional<YamlNode> curve = watts.Optional("curve")) {
      TRY_ASSIGN(costs.curve, ParsePowerCurve(*curve));
    }
    TRY(watts.Finish());
  }
  return costs;
}

}  // namespace rudderfish
