// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/ids.h"

// Names of things of one sort and their positions, for readers of files that refer to things by
// name.

namespace rudderfish {

class NameIndex {
 public:
  // `sort` is what messages call such a thing: layer, workload.
  explicit NameIndex(std::string sort) : sort_(std::move(sort)) {}

  // False, and nothing is added, if the name is taken.
  bool Add(std::string name);

  int Find(std::string_view name) const;  // kNone if there is none.
  int size() const { return static_cast<int>(names_.size()); }

  // `no workload is called "agregator"; did you mean `aggregator`?`
  std::string Unknown(std::string_view name) const;

 private:
  std::string sort_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int> position_;
};

}  // namespace rudderfish
