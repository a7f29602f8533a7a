// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "base/yaml.h"

// One value of a document replaced by another, as `--set key=value` and the variants of an
// experiment do.

namespace rudderfish {

struct YamlChange {
  std::string path;   // services[2].cpu, as messages write it.
  std::string value;  // Itself YAML: 3, 50ms, [1, 2].

  bool operator==(const YamlChange&) const = default;
};

// The document of `root` with the change made. The last key of a path may be new where its parent
// is a map; the reader of the document rejects unknown keys. Messages about the new
// value name the place of the old one. Errors name the part of the path that is not there, and the
// nearest key that is. REQUIRES: `root` is the root of its document.
Result<YamlNode> ChangeYaml(const YamlNode& root, const YamlChange& change);

}  // namespace rudderfish
