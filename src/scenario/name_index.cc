// SPDX-License-Identifier: Apache-2.0
#include "scenario/name_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/suggest.h"

namespace rudderfish {

bool NameIndex::Add(std::string name) {
  if (!position_.emplace(name, size()).second) return false;
  names_.push_back(std::move(name));
  return true;
}

int NameIndex::Find(std::string_view name) const {
  const auto found = position_.find(std::string(name));
  return found == position_.end() ? kNone : found->second;
}

std::string NameIndex::Unknown(std::string_view name) const {
  constexpr size_t kListed = 10;
  constexpr size_t kLongest = 60;
  const std::vector<std::string_view> known(names_.begin(), names_.end());
  const std::string_view shown = name.substr(0, kLongest);
  // Comparing with every name costs their lengths' product: not for a megabyte of a broken file.
  std::string hint = name.size() <= kLongest ? DidYouMean(name, known) : "";
  if (hint.empty() && !known.empty() && known.size() <= kListed)
    hint = fmt::format("; there are {}", fmt::join(known, ", "));
  return fmt::format("no {} is called \"{}{}\"{}", sort_, shown,
                     shown.size() < name.size() ? "..." : "", hint);
}

}  // namespace rudderfish
