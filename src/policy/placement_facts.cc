// SPDX-License-Identifier: Apache-2.0
#include "policy/placement_facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "base/json.h"
#include "base/sha256.h"
#include "policy/checkpoint.h"
#include "policy/neural_placement.h"
#include "task/placement.h"

namespace rudderfish {
namespace {

constexpr size_t kTypesMax = 64;  // Of a NodeKindSet.
constexpr size_t kShapesMax = 100'000;
constexpr double kWattsMax = 1e9;
constexpr double kPriceMax = 1e9;
constexpr int64_t kAmountMax = int64_t{1} << 56;

Result<double> CostAt(const JsonReader& type, std::string_view key, double most) {
  TRY_ASSIGN(const JsonReader value, type.At(key));
  return value.AsDouble(0, most);
}

Result<int64_t> AmountAt(const JsonReader& shape, std::string_view key, int64_t most) {
  TRY_ASSIGN(const JsonReader value, shape.At(key));
  return value.AsInt(0, most);
}

// [[0.1, 98], [0.5, 160]]
Result<PowerCurve> ReadCurve(const JsonReader& list) {
  PowerCurve curve;
  double last = 0;
  TRY_ASSIGN(const std::vector<JsonReader> points, list.Elements());
  if (points.size() > PowerCurve::kPointsMax) return list.Expected("at most 16 points");
  for (const JsonReader& one : points) {
    TRY_ASSIGN(const std::vector<JsonReader> both, one.Elements());
    if (both.size() != 2) return one.Expected("a use of CPU and its watts");
    PowerPoint point;
    TRY_ASSIGN(point.utilisation, both[0].AsDouble(0, 1));
    if (point.utilisation <= last || point.utilisation >= 1)
      return both[0].Expected("uses of CPU in ascending order, above 0 and below 1");
    last = point.utilisation;
    TRY_ASSIGN(point.watts, both[1].AsDouble(0, kWattsMax));
    curve.Add(point);
  }
  return curve;
}

Result<void> ReadType(const JsonReader& type, PlacementFacts* facts) {
  TRY(type.CheckKeys(
      {"name", "idle_watts", "busy_watts", "asleep_watts", "price_per_hour", "curve"}));
  TRY_ASSIGN(const JsonReader named, type.At("name"));
  TRY_ASSIGN(std::string name, named.AsString());
  if (facts->TypeNamed(name) != kNone) return named.Refuse("a type of that name is there already");
  facts->types.push_back(std::move(name));
  NodeCosts& costs = facts->laws.costs.emplace_back();
  TRY_ASSIGN(costs.idle_watts, CostAt(type, "idle_watts", kWattsMax));
  TRY_ASSIGN(costs.busy_watts, CostAt(type, "busy_watts", kWattsMax));
  TRY_ASSIGN(costs.asleep_watts, CostAt(type, "asleep_watts", kWattsMax));
  TRY_ASSIGN(costs.price_per_hour, CostAt(type, "price_per_hour", kPriceMax));
  TRY_ASSIGN(const auto curve, type.Find("curve"));
  if (curve) {
    TRY_ASSIGN(costs.curve, ReadCurve(*curve));
  }
  return {};
}

Result<void> ReadShape(const JsonReader& shape, PlacementFacts* facts) {
  TRY(shape.CheckKeys(
      {"cpu_millis", "memory_bytes", "devices", "device_millis", "types", "weight"}));
  Workload pod;
  TRY_ASSIGN(pod.requests.cpu_millis, AmountAt(shape, "cpu_millis", kAmountMax));
  TRY_ASSIGN(pod.requests.memory_bytes, AmountAt(shape, "memory_bytes", kAmountMax));
  TRY_ASSIGN(const int64_t devices, AmountAt(shape, "devices", kMaxDevices));
  TRY_ASSIGN(const int64_t millis, AmountAt(shape, "device_millis", kDeviceMillis));
  if ((devices > 0) != (millis > 0)) return shape.Refuse("devices of no size, or sizes of none");
  pod.devices = {static_cast<int16_t>(devices), static_cast<int16_t>(millis)};
  TRY_ASSIGN(const auto types, shape.Find("types"));
  if (types) {
    pod.node_kinds = 0;
    TRY_ASSIGN(const std::vector<JsonReader> elements, types->Elements());
    for (const JsonReader& element : elements) {
      TRY_ASSIGN(const std::string name, element.AsString());
      const int type = facts->TypeNamed(name);
      if (type == kNone) return element.Refuse("no type of node is called that");
      pod.node_kinds |= NodeKindSet{1} << type;
    }
  }
  TRY_ASSIGN(const int64_t weight,
             AmountAt(shape, "weight", PodShapes::kMaxWeight - facts->laws.shapes.total_weight));
  facts->laws.shapes.Add(pod, weight);
  return {};
}

}  // namespace

bool PlacementFacts::TypesMatter() const {
  if (types.size() <= 1) return false;
  const auto& costs = laws.costs;
  return std::any_of(costs.begin(), costs.end(),
                     [&](const NodeCosts& one) { return !(one == costs[0]); }) ||
         std::any_of(laws.shapes.shapes.begin(), laws.shapes.shapes.end(),
                     [](const PodShapes::Shape& one) { return one.node_kinds != kAnyKind; });
}

int PlacementFacts::TypeNamed(std::string_view name) const {
  const auto at = std::find(types.begin(), types.end(), name);
  return at == types.end() ? kNone : static_cast<int>(at - types.begin());
}

bool IsKnownLive(ObjectiveTerm term, const PlacementFacts& facts) {
  const auto any = [&](const auto& has) {
    return std::any_of(facts.laws.costs.begin(), facts.laws.costs.end(), has);
  };
  switch (term) {
    case ObjectiveTerm::kBalance:
    case ObjectiveTerm::kUtilisation:
      return true;
    case ObjectiveTerm::kEnergy:
      return any([](const NodeCosts& one) { return one.MostWatts() > 0; });
    case ObjectiveTerm::kCost:
      return any([](const NodeCosts& one) { return one.price_per_hour > 0; });
    case ObjectiveTerm::kFragmentation:
      return facts.laws.shapes.total_weight > 0;
    case ObjectiveTerm::kLatency:
    case ObjectiveTerm::kCalls:
      break;
  }
  return false;
}

std::string FactsText(const PlacementFacts& facts) {
  OrderedJson json{{"users", facts.laws.users != kNone},
                   {"types", OrderedJson::array()},
                   {"shapes", OrderedJson::array()}};
  if (facts.has_calls) json["calls"] = true;
  for (size_t i = 0; i < facts.types.size(); ++i) {
    const NodeCosts costs = facts.laws.costs.empty() ? NodeCosts() : facts.laws.costs[i];
    json["types"].push_back({{"name", facts.types[i]},
                             {"idle_watts", costs.idle_watts},
                             {"busy_watts", costs.busy_watts},
                             {"asleep_watts", costs.asleep_watts},
                             {"price_per_hour", costs.price_per_hour}});
    for (const PowerPoint& point : costs.curve)
      json["types"].back()["curve"].push_back({point.utilisation, point.watts});
  }
  for (const PodShapes::Shape& shape : facts.laws.shapes.shapes) {
    OrderedJson one{{"cpu_millis", shape.requests.cpu_millis},
                    {"memory_bytes", shape.requests.memory_bytes},
                    {"devices", shape.devices.count},
                    {"device_millis", shape.devices.millis},
                    {"weight", shape.weight}};
    if (shape.node_kinds != kAnyKind) {
      one["types"] = OrderedJson::array();
      for (size_t i = 0; i < facts.types.size(); ++i) {
        if (Contains(shape.node_kinds, static_cast<KindId>(i)))
          one["types"].push_back(facts.types[i]);
      }
    }
    json["shapes"].push_back(std::move(one));
  }
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<PlacementFacts> ParseFacts(std::string_view text, std::string_view source) {
  PlacementFacts facts;
  TRY_ASSIGN(const Json json, ParseJson(text, source));
  const JsonReader root(json, source);
  TRY(root.CheckKeys({"users", "types", "shapes", "calls"}));
  TRY_ASSIGN(const JsonReader users, root.At("users"));
  TRY_ASSIGN(const bool has_users, users.AsBool());
  if (has_users) facts.laws.users = 0;
  TRY_ASSIGN(const auto calls, root.Find("calls"));
  if (calls) {
    TRY_ASSIGN(facts.has_calls, calls->AsBool());
  }
  TRY_ASSIGN(const JsonReader types, root.At("types"));
  TRY_ASSIGN(const std::vector<JsonReader> listed, types.Elements());
  if (listed.size() > kTypesMax) return types.Expected("at most 64 types of node");
  for (const JsonReader& type : listed) TRY(ReadType(type, &facts));
  TRY_ASSIGN(const JsonReader shapes, root.At("shapes"));
  TRY_ASSIGN(const std::vector<JsonReader> pods, shapes.Elements());
  if (pods.size() > kShapesMax) return shapes.Expected("at most 100,000 shapes of pods");
  for (const JsonReader& shape : pods) TRY(ReadShape(shape, &facts));
  return facts;
}

Result<LearnedPlacement> ReadLearnedPlacement(const std::filesystem::path& path) {
  LearnedPlacement learned;
  TRY_ASSIGN(learned.checkpoint, CheckpointOf(path));
  TRY_ASSIGN(const std::string content, ReadFile(learned.checkpoint));
  const std::string name = learned.checkpoint.string();
  TRY_ASSIGN(const nn::SafetensorsFile file, nn::SafetensorsFile::Parse(content, name));
  learned.digest = Sha256Hex(content);
  TRY(CheckIsPlacement(file));
  TRY_ASSIGN(learned.preset, StoredPreset(file));
  TRY_ASSIGN(learned.objective, StoredObjective(file));
  const auto world = file.metadata().find("world");
  if (world == file.metadata().end()) return learned;
  TRY_ASSIGN(learned.facts, ParseFacts(world->second, name + ": world"));
  return learned;
}

}  // namespace rudderfish
