// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "base/yaml.h"
#include "cluster/application.h"

// application.yaml: what an API server does not know of an application. Layers, latency and call
// graph are written as in a scenario (scenario/scenario.h), but for latency, which is one value for
// each pair; nodes and pods are not listed but found, by label and by name.
//
// The format is described by examples/application.schema.json, with examples beside it.

namespace rudderfish {

// Whether endpoints and execution times must be there. Where traces tell them they may be missing:
// without endpoints the call graph has none, and a time that is missing is 0.
enum class CallsInFile { kNeeded, kOptional };

// Messages read as those of ParseScenario.
Result<Application> ParseApplication(std::string_view text, std::string_view source_name,
                                     CallsInFile calls = CallsInFile::kNeeded);
Result<Application> LoadApplication(const std::filesystem::path& path,
                                    CallsInFile calls = CallsInFile::kNeeded);

// {matchLabels: {...}, matchExpressions: [...]} as Kubernetes has it; both are optional. Also the
// selector of a configuration's scope.
Result<LabelSelector> ParseLabelSelector(const YamlNode& node);

}  // namespace rudderfish
