// SPDX-License-Identifier: Apache-2.0
#include "policy/policy_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "base/check.h"
#include "base/suggest.h"
#include "policy/policy_table.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

// "learned=runs/a" is "learned" and "runs/a"; neither "hpa:cpu=60" nor "./a=b" has a name.
std::pair<std::string_view, std::string_view> NameAndPolicy(std::string_view text) {
  const size_t sign = text.find_first_of(":/=");
  if (sign == std::string_view::npos || text[sign] != '=') return {"", text};
  return {text.substr(0, sign), text.substr(sign + 1)};
}

bool ReadsLikeAnAmount(std::string_view value) {
  return !value.empty() &&
         (value[0] == '-' || value[0] == '.' || (value[0] >= '0' && value[0] <= '9')) &&
         value.find('/') == std::string_view::npos && !value.ends_with(".safetensors");
}

// Whether a part of a list goes on with the options of the item before it; an error if it can be
// neither that nor a policy.
Result<bool> GoesOn(std::string_view item, std::string_view part) {
  const auto [key, value] = NameAndPolicy(part);
  if (value == part) return false;
  const std::string_view policy = NameAndPolicy(item).second;
  const std::string_view name = policy.substr(0, policy.find(':'));
  const bool has_options = name.size() < policy.size();
  const std::vector<std::string_view> known = OptionsOfPolicy(name);
  if (has_options && std::find(known.begin(), known.end(), key) != known.end()) return true;
  if (!ReadsLikeAnAmount(value)) return false;
  if (has_options && !known.empty()) {
    return Invalid("policy `{}`: unknown option `{}`{} (there are {})", policy, key,
                   DidYouMean(key, known), fmt::join(known, ", "));
  }
  return Invalid(
      "`{}` is neither a policy nor an option of one; options follow the name of their policy and "
      "a colon, as in lookahead:width=8,patience=2",
      part);
}

Result<std::vector<std::string>> ItemsOf(std::string_view text) {
  std::vector<std::string> items;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    at = end + 1;
    if (part.empty()) return Invalid("`{}`: a policy is empty between commas", text);
    bool goes_on = false;
    if (!items.empty()) {
      TRY_ASSIGN(goes_on, GoesOn(items.back(), part));
    } else {
      TRY(GoesOn("", part));
    }
    if (goes_on) {
      items.back() += fmt::format(",{}", part);
    } else {
      items.emplace_back(part);
    }
  }
  return items;
}

}  // namespace

std::string_view PolicySpec::path() const {
  if (name.empty()) return bare_path;
  for (const auto& [key, value] : options) {
    if (key == kRunOption) return value;
  }
  return {};
}

void PolicySpec::SetPath(std::string path) {
  if (name.empty()) {
    bare_path = std::move(path);
    return;
  }
  const auto run = std::find_if(options.begin(), options.end(),
                                [](const auto& option) { return option.first == kRunOption; });
  CHECK(run != options.end());
  run->second = std::move(path);
}

std::string PolicySpec::text() const {
  if (name.empty()) return bare_path;
  std::string text = name;
  char before = ':';
  for (const auto& [key, value] : options) {
    text += fmt::format("{}{}={}", before, key, value);
    before = ',';
  }
  return text;
}

Result<PolicySpec> ParsePolicySpec(std::string_view text) {
  if (text.empty()) return Invalid("the name of a policy is missing");
  const std::string_view name = text.substr(0, text.find(':'));
  if (!IsPolicyName(name)) return PolicySpec{.bare_path = std::string(text)};
  PolicySpec spec{.name = std::string(name)};
  for (size_t at = name.size() + 1; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view option = text.substr(at, end - at);
    at = end + 1;
    const size_t sign = option.find('=');
    if (sign == std::string_view::npos || sign == 0 || sign + 1 == option.size()) {
      return Invalid("policy `{}`: expected options such as KEY=VALUE,KEY=VALUE, found `{}`", text,
                     option);
    }
    const std::string_view key = option.substr(0, sign);
    const bool is_there = std::any_of(spec.options.begin(), spec.options.end(),
                                      [&](const auto& other) { return other.first == key; });
    if (is_there) return Invalid("policy `{}`: option `{}` is given twice", text, key);
    spec.options.emplace_back(key, option.substr(sign + 1));
  }
  return spec;
}

bool ReadsLikeAPath(std::string_view text) {
  std::error_code ignored;
  return text.find('/') != std::string_view::npos || text.ends_with(".safetensors") ||
         fs::exists(fs::path(text), ignored);
}

PolicySpec WithinFolder(PolicySpec spec, const fs::path& folder) {
  if (spec.path().empty()) return spec;
  const fs::path path = (folder / spec.path()).lexically_normal();
  std::error_code ignored;
  const bool is_word = spec.name.empty() && spec.bare_path.find('/') == std::string::npos &&
                       !spec.bare_path.ends_with(".safetensors");
  if (!is_word || fs::exists(path, ignored)) spec.SetPath(path.string());
  return spec;
}

Result<NamedPolicySpec> ParseNamedPolicy(std::string_view text) {
  const auto [name, policy] = NameAndPolicy(text);
  const bool is_named = policy.size() < text.size();
  if (is_named && name.empty()) return Invalid("`{}`: a name is missing before `=`", text);
  if (is_named && policy.empty()) return Invalid("`{}`: a policy is missing after `=`", text);
  TRY_ASSIGN(PolicySpec spec, ParsePolicySpec(policy));
  return NamedPolicySpec{std::string(is_named ? name : text), std::move(spec)};
}

Result<void> CheckNamesDiffer(const std::vector<NamedPolicySpec>& policies) {
  std::set<std::string_view> names;
  for (const NamedPolicySpec& one : policies) {
    if (names.insert(one.name).second) continue;
    return Invalid("`{0}` is named twice; give one another name, as in other={1}", one.name,
                   one.policy.text());
  }
  return {};
}

Result<std::vector<NamedPolicySpec>> ParsePolicyList(std::string_view text) {
  TRY_ASSIGN(const std::vector<std::string> items, ItemsOf(text));
  std::vector<NamedPolicySpec> policies;
  for (const std::string& item : items) {
    TRY_ASSIGN(NamedPolicySpec one, ParseNamedPolicy(item));
    policies.push_back(std::move(one));
  }
  TRY(CheckNamesDiffer(policies));
  return policies;
}

}  // namespace rudderfish
