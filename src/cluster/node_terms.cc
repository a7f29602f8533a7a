// SPDX-License-Identifier: Apache-2.0
#include "cluster/node_terms.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace rudderfish {
namespace {

// As strconv.ParseInt: a sign, decimal digits, nothing else, 64 bits.
std::optional<int64_t> WholeNumber(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(text.starts_with("+-") ? 0 : 1);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool FieldHolds(const NodeRequirement& field, std::string_view node) {
  const std::string_view found = field.key == "metadata.name" ? node : std::string_view();
  const bool equal = !field.values.empty() && field.values.front() == found;
  return field.op == NodeRequirement::Operator::kNotIn ? !equal : equal;
}

}  // namespace

bool NodeRequirement::Holds(const Labels& labels) const {
  const std::string* value = FindLabel(labels, key);
  const auto is_listed = [&] {
    return std::find(values.begin(), values.end(), *value) != values.end();
  };
  switch (op) {
    case Operator::kIn:
      return value != nullptr && is_listed();
    case Operator::kNotIn:
      return value == nullptr || !is_listed();
    case Operator::kExists:
      return value != nullptr;
    case Operator::kDoesNotExist:
      return value == nullptr;
    case Operator::kGt:
    case Operator::kLt:
      break;
  }
  const std::optional<int64_t> number = value == nullptr ? std::nullopt : WholeNumber(*value);
  if (!number) return false;
  return op == Operator::kGt ? *number > bound : *number < bound;
}

bool NodeTerm::Matches(std::string_view node, const Labels& labels) const {
  if (malformed || (expressions.empty() && fields.empty())) return false;
  return std::all_of(expressions.begin(), expressions.end(),
                     [&](const NodeRequirement& r) { return r.Holds(labels); }) &&
         (node.empty() || std::all_of(fields.begin(), fields.end(), [&](const NodeRequirement& f) {
            return FieldHolds(f, node);
          }));
}

bool AnyMatches(std::span<const NodeTerm> terms, std::string_view node, const Labels& labels) {
  return std::any_of(terms.begin(), terms.end(),
                     [&](const NodeTerm& term) { return term.Matches(node, labels); });
}

}  // namespace rudderfish
