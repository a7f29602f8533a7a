// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "base/yaml.h"
#include "cluster/call_graph.h"
#include "cluster/catalog.h"
#include "scenario/load.h"
#include "scenario/name_index.h"

// The part `load:` of a scenario file, read and written; docs/load.md describes it.

namespace rudderfish {

class YamlWriter;

// `calls`: the first pattern, whose endpoints a limit may name.
Result<Load> ParseLoad(const YamlNode& node, const NameIndex& workloads,
                       const std::shared_ptr<const CallGraph>& calls);

// A map of one shape of load by its name: `{steady: {rate: 20}}`.
Result<Traffic> ParseTraffic(const YamlNode& node);
void WriteTraffic(const Traffic& traffic, YamlWriter* out);

// Reads what a traffic replays, if it does, relative to `folder`; `whose` in words, for messages.
Result<void> ReadRequestTrace(const std::filesystem::path& folder, std::string_view whose,
                              Traffic* traffic);

// Reads the traces that its loads replay, likewise.
Result<void> ReadRequestTraces(const std::filesystem::path& folder, Load* load);

// ParseLoad of what this writes is the same load.
void WriteLoad(const Load& load, const Catalog& catalog, const CallGraph& calls, YamlWriter* out);

}  // namespace rudderfish
