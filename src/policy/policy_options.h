// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/policy_spec.h"

// The options of a policy: what each may be, and the values that one was given.

namespace rudderfish {

struct PolicyOption {
  enum class Kind { kInteger, kNumber, kPercent, kDuration, kWord, kPath };

  std::string_view key;
  Kind kind = Kind::kNumber;
  std::string_view fallback;  // The default, as one would write it; empty: the policy goes without.
  double low = 0, high = 0;   // Of numbers, inclusive; of a duration in ms.
  std::string_view help;
  std::vector<std::string_view> words;  // Of kWord.

  std::string_view KindName() const;
  std::string RangeText() const;  // "an integer from 1 to 16"; "keep or ignore".
};

// The options of one policy with the values that were given, each checked, and the defaults of the
// others. REQUIRES of all that ask: the policy has the option, and it is of that kind.
class PolicyOptions {
 public:
  // Messages name the option, what is expected there, or the options that there are.
  static Result<PolicyOptions> Read(const PolicySpec& spec, std::span<const PolicyOption> known);

  const std::string& name() const { return name_; }  // Of the policy,
  const std::string& text() const { return text_; }  // and as it was written.

  bool IsGiven(std::string_view key) const { return At(key).is_given; }
  double Number(std::string_view key) const { return At(key).number; }  // Percent, too.
  int Integer(std::string_view key) const { return static_cast<int>(At(key).number); }
  int64_t LargeInteger(std::string_view key) const { return static_cast<int64_t>(At(key).number); }
  double Ms(std::string_view key) const { return At(key).number; }
  int Seconds(std::string_view key) const { return static_cast<int>(At(key).number / 1000); }
  const std::string& Text(std::string_view key) const { return At(key).text; }

 private:
  struct Value {
    bool is_given = false;
    double number = 0;
    std::string text;
  };
  static Result<Value> ValueOf(const PolicyOption& option, std::string_view text);
  const Value& At(std::string_view key) const;

  std::string name_, text_;
  std::map<std::string_view, Value> values_;
};

}  // namespace rudderfish
