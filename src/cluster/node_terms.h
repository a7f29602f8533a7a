// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/application.h"

// Which nodes a pod or a volume asks for: plain values, in kube-scheduler's own terms.

namespace rudderfish {

// One of a term's matchExpressions, on labels, or matchFields, on the node's name.
struct NodeRequirement {
  enum class Operator : uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };
  std::string key;
  Operator op = Operator::kExists;
  std::vector<std::string> values;
  int64_t bound = 0;  // Of kGt and kLt.

  bool Holds(const Labels& labels) const;
  bool operator==(const NodeRequirement&) const = default;
};

// All requirements must hold; a term that is malformed or has none fits no node. Fields are asked
// of a node with a name only: those of a volume's affinity never are.
struct NodeTerm {
  std::vector<NodeRequirement> expressions;
  std::vector<NodeRequirement> fields;  // kIn or kNotIn with one value; the key is metadata.name.
  bool malformed = false;

  bool Matches(std::string_view node, const Labels& labels) const;
  bool operator==(const NodeTerm&) const = default;
};

bool AnyMatches(std::span<const NodeTerm> terms, std::string_view node, const Labels& labels);

struct PreferredNodes {
  NodeTerm term;
  int64_t weight = 0;

  bool operator==(const PreferredNodes&) const = default;
};

}  // namespace rudderfish
