// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/mirror.h"

// What `kubectl get nodes,pods,... -A -o json` prints, in one file or several, as the content of a
// mirror: a List of any kinds, or a list of one kind (PodList). The first error in an object
// refuses the whole dump: otherwise users would not know what is missing.

namespace rudderfish::kube {

struct DumpContent {
  std::map<Resource, int> counts;
  std::map<std::string, int> skipped;  // By kind: what the mirror has no use for.
};

// Reads one dump of possibly several into what a mirror holds; errors name the source.
// REQUIRES: the sinks of the mirror are between BeginList and EndList.
Result<void> ReadDump(std::string_view text, std::string_view source_name, Mirror* mirror,
                      DumpContent* content);

// All files as the whole cluster. A resource of which no dump holds an object counts as not seen.
Result<DumpContent> LoadDumps(std::span<const std::filesystem::path> paths, Mirror* mirror);

}  // namespace rudderfish::kube
