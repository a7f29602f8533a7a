// SPDX-License-Identifier: Apache-2.0
#include "learn/routing_training.h"

#include <utility>

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
  const auto read = [&](std::string_view key, std::vector<std::string>* texts) -> Result<void> {
    TRY_ASSIGN(const std::vector<YamlNode> list, fields.RequiredList(key));
    for (const YamlNode& one : list) {
      TRY_ASSIGN(std::string text, one.AsString());
      texts->push_back(std::move(text));
    }
    return {};
  };
  TRY(read("variants", &routing.variants));
  TRY(read("regions", &routing.regions));
  TRY_ASSIGN(routing.rule, fields.RequiredString("rule"));
  TRY(read("rivals", &routing.rivals));
  TRY(fields.Finish());
  return routing;
}

}  // namespace rudderfish
