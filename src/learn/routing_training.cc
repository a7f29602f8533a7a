// SPDX-License-Identifier: Apache-2.0
#include "learn/routing_training.h"

namespace rudderfish {

Result<RoutingTiers> ParseRoutingTiers(std::string_view text) {
  if (text == "route,scale" || text == "scale,route") return RoutingTiers{};
  if (text == "route") return RoutingTiers{.route = true, .scale = false};
  if (text == "scale") return RoutingTiers{.route = false, .scale = true};
  return Invalid("expected route, scale or route,scale, found \"{}\"", text);
}

std::string RoutingTiersText(RoutingTiers tiers) {
  return tiers.route && tiers.scale ? "route,scale" : tiers.route ? "route" : "scale";
}

void WriteRoutingTraining(const RoutingTraining& routing, YamlWriter* out) {
  const auto list = [](const std::vector<std::string>& texts) {
    return std::vector<YamlScalar>(texts.begin(), texts.end());
  };
  out->BeginMap("routing");
  out->FlowList("variants", list(routing.variants));
  out->FlowList("regions", list(routing.regions));
  out->Field("tiers", RoutingTiersText(routing.tiers));
  out->Field("rule", routing.rule);
  out->FlowList("rivals", list(routing.rivals));
  out->End();
}

Result<RoutingTraining> ReadRoutingTraining(const YamlNode& node) {
  RoutingTraining routing;
  TRY_ASSIGN(YamlMap fields, node.AsMap());
  TRY_ASSIGN(routing.variants, fields.RequiredStrings("variants"));
  TRY_ASSIGN(routing.regions, fields.RequiredStrings("regions"));
  TRY_ASSIGN(const YamlNode tiers, fields.Required("tiers"));
  TRY_ASSIGN(const std::string named, tiers.AsString());
  const Result<RoutingTiers> parsed = ParseRoutingTiers(named);
  if (!parsed) return tiers.Refuse(parsed.error().message);
  routing.tiers = *parsed;
  TRY_ASSIGN(routing.rule, fields.RequiredString("rule"));
  TRY_ASSIGN(routing.rivals, fields.RequiredStrings("rivals"));
  TRY(fields.Finish());
  return routing;
}

}  // namespace rudderfish
