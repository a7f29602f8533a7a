// SPDX-License-Identifier: Apache-2.0
#include "cluster/application.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/sha256.h"

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

std::string FingerprintOf(const Application& application) {
  constexpr size_t kDigits = 16;
  const CallGraph& calls = *application.calls;
  std::string text =
      fmt::format("{};{};{}", application.law, application.network.latency_ms, calls.execution_ms);
  for (const Call& call : calls.calls) {
    text += fmt::format(";{},{},{},{},{}", call.workload, call.caller, call.data_mbytes,
                        call.first_group, call.last_group);
  }
  for (const CallGroup& group : calls.groups)
    text += fmt::format(";{},{}", group.first, group.last);
  text += fmt::format(";{}", calls.sequence);
  return Sha256Hex(text).substr(0, kDigits);
}

}  // namespace rudderfish
