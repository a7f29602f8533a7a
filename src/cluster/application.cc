// SPDX-License-Identifier: Apache-2.0
#include "cluster/application.h"

#include <algorithm>

namespace rudderfish {
namespace {

bool Holds(const LabelRequirement& requirement, const Labels& labels) {
  using Operator = LabelRequirement::Operator;
  const std::string* value = FindLabel(labels, requirement.key);
  const auto listed = [&] {
    return std::find(requirement.values.begin(), requirement.values.end(), *value) !=
           requirement.values.end();
  };
  switch (requirement.op) {
    case Operator::kIn:
      return value && listed();
    case Operator::kNotIn:
      return !value || !listed();
    case Operator::kExists:
      return value;
    case Operator::kDoesNotExist:
      return !value;
  }
  return false;
}

}  // namespace

const std::string* FindLabel(const Labels& labels, std::string_view key) {
  const auto at = std::lower_bound(labels.begin(), labels.end(), key,
                                   [](const auto& label, auto k) { return label.first < k; });
  return at != labels.end() && at->first == key ? &at->second : nullptr;
}

bool LabelSelector::Matches(const Labels& labels) const {
  return std::all_of(requirements.begin(), requirements.end(),
                     [&](const LabelRequirement& r) { return Holds(r, labels); });
}

}  // namespace rudderfish
