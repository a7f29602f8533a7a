// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "policy/policy_table.h"
#include "policy/registry.h"

// Any bytes as a list of policies: refused, or policies that are the same when they are written and
// read again, whatever their options are then.

namespace {

void CheckRefusal(const rudderfish::Error& error) { CHECK(!error.message.empty()); }

void CheckSpec(const rudderfish::PolicySpec& spec) {
  const auto again = rudderfish::ParsePolicySpec(spec.text());
  CHECK(again.has_value());
  CHECK(*again == spec);
  CHECK_EQ(rudderfish::IsPolicyName(spec.name), !spec.name.empty());
  for (int task = 0; task < 3; ++task) {
    const auto known = rudderfish::CheckPolicy(spec, static_cast<rudderfish::TaskKind>(task));
    if (!known) CheckRefusal(known.error());
  }
  // A path would be read.
  if (!spec.path().empty()) return;
  const auto made = rudderfish::MakeScalingPolicy(spec);
  if (!made) CheckRefusal(made.error());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto policies = rudderfish::ParsePolicyList(text);
  if (!policies) {
    CheckRefusal(policies.error());
    return 0;
  }
  for (const rudderfish::NamedPolicySpec& one : *policies) CheckSpec(one.policy);
  return 0;
}
