// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "cluster/catalog.h"
#include "scenario/distribution.h"
#include "scenario/name_index.h"

// The parts of a file that scenarios and applications share: its head, layers, the latency between
// them, and what nodes of one kind have in common. Names read are added to the index that later
// parts refer to them by.

namespace rudderfish {

// `rudderfish: FORMAT`, `name:`, and `model:`, which may be absent: then `law` is left as it is.
Result<void> ParseHead(std::string_view format, YamlMap* map, std::string* name, std::string* law);

// `layers:` {cloud: {}, client: {accepts_moves: false}}.
Result<std::vector<Layer>> ParseLayers(const YamlNode& node, NameIndex* layers);

Result<LayerId> ParseLayerName(const YamlNode& node, const NameIndex& layers);

// `latency:` {cloud: {cloud: 1ms, edge: 10ms}, ...}; [from][to], each pair given, one way.
// `parse` reads one of them.
Result<std::vector<Distribution>> ParseLatencies(const YamlNode& node,
                                                 const std::vector<Layer>& layers,
                                                 const NameIndex& names,
                                                 Result<Distribution> (*parse)(const YamlNode&));

// Layer, cpu_type and bandwidth of a kind of node; whatever else stands there is the caller's.
Result<NodeKind> ParseNodeKind(std::string_view name, YamlMap* fields, const NameIndex& layers);

// `power:` {idle_watts, busy_watts, asleep_watts, curve} and `price_per_hour:` of a kind of node;
// all 0 if they are absent.
Result<NodeCosts> ParseNodeCosts(YamlMap* fields);

// `measured:` of a workload, a number each.
inline constexpr std::pair<const char*, double MeasuredUsage::*> kMeasuredKeys[] = {
    {"connections", &MeasuredUsage::connections},
    {"received_kb_per_s", &MeasuredUsage::received_kb_per_s},
    {"sent_kb_per_s", &MeasuredUsage::sent_kb_per_s},
    {"read_kb_per_s", &MeasuredUsage::read_kb_per_s},
    {"written_kb_per_s", &MeasuredUsage::written_kb_per_s}};
inline constexpr double kMostMeasured = 1e9;

}  // namespace rudderfish
