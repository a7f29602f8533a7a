// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What a YAML document is once parsed: its nodes in one vector, in the order of the text, the root
// first. Behind YamlNode (base/yaml.h), which is how everyone else sees it. Nothing changes after
// LoadYamlTree.

namespace rudderfish {

enum class YamlKind { kNull, kPlain, kQuoted, kList, kMap };  // Plain and quoted are scalars.

struct YamlEntry {
  YamlKind kind = YamlKind::kNull;
  int line = 0;    // From 1; of a map's value, where the value starts.
  int column = 0;  // From 1.
  int parent = -1;
  int position = 0;  // Within the parent.
  std::string text;  // Of a scalar.
  std::string key;   // In the parent, if that is a map.
  int key_line = 0;
  int key_column = 0;
  std::vector<int> children;
};

struct YamlTree {
  std::string source_name;
  std::vector<YamlEntry> entries;
};

Result<YamlTree> LoadYamlTree(std::string_view text, std::string_view source_name);

}  // namespace rudderfish
