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
#include "base/yaml_change.h"

// What was typed after the name of a command, as text; a command asks for each value by the name of
// its option and says what it expects. Errors name the option, what was expected and what was
// found.

namespace rudderfish {

class Arguments {
 public:
  void SetOption(std::string name, std::string value) {
    options_[std::move(name)] = std::move(value);
  }
  void AddOperand(std::string operand) { operands_.push_back(std::move(operand)); }

  const std::vector<std::string>& operands() const { return operands_; }

  bool Has(std::string_view name) const { return options_.contains(std::string(name)); }
  std::optional<std::string> Text(std::string_view name) const;

  // An error if it was not given, which says what it is for.
  Result<std::string> RequiredText(std::string_view name, std::string_view what) const;

  Result<int64_t> Integer(std::string_view name, int64_t fallback, int64_t low, int64_t high) const;

  // "60s", "2min"; more than 0.
  Result<double> Seconds(std::string_view name, double fallback) const;

  // The position of the value among those that are accepted.
  Result<int> Choice(std::string_view name, std::span<const std::string_view> accepted,
                     int fallback) const;

  // Parts between commas, none of them empty.
  Result<std::vector<std::string>> List(std::string_view name) const;

  // Refuses two options that cannot be given together,
  Result<void> Exclude(std::string_view name, std::string_view other) const;

  // and one that means nothing without the other.
  Result<void> Require(std::string_view name, std::string_view other) const;

 private:
  std::map<std::string, std::string> options_;
  std::vector<std::string> operands_;
};

Result<std::vector<std::string>> SplitList(std::string_view text, char separator);

// The position of a word among those that are accepted.
Result<int> ChoiceOf(std::string_view word, std::span<const std::string_view> accepted);

// What was made of an option's value; an error names the option.
template <class T>
Result<T> OfOption(std::string_view name, Result<T> made) {
  if (!made) return Fail(made.error().code, "--{}: {}", name, made.error().message);
  return made;
}

// A number above 0 and up to 1; 1 if it was not given.
Result<double> ShareOf(const Arguments& arguments, std::string_view option);

// The value of --threads; as many as the machine has cores if it was not given.
Result<int> ThreadsOf(const Arguments& arguments);

// The values of --set, KEY=VALUE[,...], where a value may be a list or a map; none if it was not
// given.
Result<std::vector<YamlChange>> ChangesOf(const Arguments& arguments, std::string_view example);

// The value of --seed; 1 if it was not given.
Result<uint64_t> SeedOf(const Arguments& arguments);

}  // namespace rudderfish
