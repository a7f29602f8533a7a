// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "base/result.h"
#include "base/yaml.h"
#include "cluster/catalog.h"
#include "scenario/load.h"
#include "scenario/name_index.h"

// The part `load:` of a scenario file, read and written; docs/load.md describes it.

namespace rudderfish {

class YamlWriter;

Result<Load> ParseLoad(const YamlNode& node, const NameIndex& workloads);

// Reads the traces that its loads replay, relative to `folder`.
Result<void> ReadRequestTraces(const std::filesystem::path& folder, Load* load);

// ParseLoad of what this writes is the same load.
void WriteLoad(const Load& load, const Catalog& catalog, YamlWriter* out);

}  // namespace rudderfish
