// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "evaluation/evaluation.h"
#include "policy/policy_spec.h"
#include "report/report.h"

// Policies as a command or an experiment lists them (policy/policy_spec.h), where a path may stand
// for several training seeds of one recipe:
//
//   learned=runs/a:runs/b       those of two runs
//   learned=runs/a              the same, if there are seed-1, seed-2 ... in runs/a
//   plan=best-of:run=runs/a:runs/b
//
// A run of a group has no colon and no comma in its name.

namespace rudderfish {

struct ListedPolicy {
  std::string name;                 // In tables and results; unlike all others of the list.
  std::vector<PolicySpec> members;  // One for each training seed.
  bool shares_network = false;      // One of its networks is one of the last policy's of the list.
};

// Looks at the file system for seeds of a run, and changes nothing there.
Result<ListedPolicy> WithSeeds(const NamedPolicySpec& policy);
Result<std::vector<ListedPolicy>> WithSeeds(const std::vector<NamedPolicySpec>& policies);
Result<std::vector<ListedPolicy>> ParsePolicies(std::string_view text);

// Of exactly one policy, alone.
struct OnePolicy {
  std::string name;
  PolicySpec spec;
};
Result<OnePolicy> ParseOnePolicy(std::string_view text);

Result<PolicyGroup> MakePolicyGroup(const ListedPolicy& policy, const Task& task);

// The files that it is read from: of a run the checkpoint that is taken.
std::vector<std::filesystem::path> FilesOf(const ListedPolicy& policy);

// The run folders of a policy whose members are nothing else; empty otherwise.
std::vector<std::filesystem::path> RunsOf(const ListedPolicy& policy);

// How the policies learned of which there are run folders.
Result<std::vector<LearningCurve>> LearningCurvesOf(const std::vector<ListedPolicy>& policies);

}  // namespace rudderfish
