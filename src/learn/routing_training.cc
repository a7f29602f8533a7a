// SPDX-License-Identifier: Apache-2.0
#include "learn/routing_training.h"

namespace rudderfish {

void WriteRoutingTraining(const RoutingTraining& routing, YamlWriter* out) {
  const auto list = [](const std::vector<std::string>& texts) {
    return std::vector<YamlScalar>(texts.begin(), texts.end());
  };
  out->BeginMap("routing");
  out->FlowList("variants", list(routing.variants));
  out->FlowList("regions", list(routing.regions));
  out->Field("rule", routing.rule);
  out->FlowList("rivals", list(routing.rivals));
  out->End();
}

Result<RoutingTraining> ReadRoutingTraining(const YamlNode& node) {
  RoutingTraining routing;
  TRY_ASSIGN(YamlMap fields, node.AsMap());
  TRY_ASSIGN(routing.variants, fields.RequiredStrings("variants"));
  TRY_ASSIGN(routing.regions, fields.RequiredStrings("regions"));
  TRY_ASSIGN(routing.rule, fields.RequiredString("rule"));
  TRY_ASSIGN(routing.rivals, fields.RequiredStrings("rivals"));
  TRY(fields.Finish());
  return routing;
}

}  // namespace rudderfish
