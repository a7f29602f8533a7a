// SPDX-License-Identifier: Apache-2.0
#include "cli/policy_list.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "cli/arguments.h"
#include "learn/run_folder.h"
#include "learn/run_tables.h"
#include "policy/checkpoint.h"
#include "policy/registry.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

// The runs between colons, and the seeds of each in place of their folder. A path that is there is
// one, whatever its name holds, and so is what cannot be a list of paths.
Result<std::vector<std::string>> RunsBetweenColons(std::string_view path) {
  std::error_code ignored;
  std::vector<std::string> paths = {std::string(path)};
  if (!fs::exists(fs::path(path), ignored) && path.find('=') == std::string_view::npos) {
    TRY_ASSIGN(paths, SplitList(path, ':'));
  }
  std::vector<std::string> runs;
  for (const std::string& one : paths) {
    const int seeds = SeedFolders(one);
    if (seeds == 0) runs.push_back(one);
    for (int number = 1; number <= seeds; ++number)
      runs.push_back(RunPaths{one}.seed(number).folder.string());
  }
  return runs;
}

// A mix, a search or a plan may build on the candidate's network, under a name that does not tell.
void NoteSharedNetworks(std::vector<ListedPolicy>* listed) {
  if (listed->empty()) return;
  const auto file = [](const PolicySpec& member) {
    Result<fs::path> checkpoint = CheckpointOf(member.path());
    return (checkpoint ? *std::move(checkpoint) : fs::path(member.path())).lexically_normal();
  };
  std::set<fs::path> of_candidate;
  for (const PolicySpec& member : listed->back().members) {
    if (!member.path().empty()) of_candidate.insert(file(member));
  }
  for (size_t i = 0; i + 1 < listed->size(); ++i) {
    for (const PolicySpec& member : (*listed)[i].members) {
      if (!member.path().empty() && of_candidate.contains(file(member)))
        (*listed)[i].shares_network = true;
    }
  }
}

}  // namespace

Result<ListedPolicy> WithSeeds(const NamedPolicySpec& policy) {
  ListedPolicy listed{.name = policy.name, .members = {policy.policy}};
  const std::string_view path = policy.policy.path();
  if (path.empty()) return listed;
  TRY_ASSIGN(const std::vector<std::string> runs, RunsBetweenColons(path));
  const bool is_list = runs.size() > 1 && SeedFolders(path) == 0;
  if (is_list && policy.name == policy.policy.text()) {
    return Invalid("`{0}`: several runs need one name, as in learned={0}", policy.name);
  }
  listed.members.assign(runs.size(), policy.policy);
  for (size_t i = 0; i < runs.size(); ++i) listed.members[i].SetPath(runs[i]);
  return listed;
}

Result<std::vector<ListedPolicy>> WithSeeds(const std::vector<NamedPolicySpec>& policies) {
  std::vector<ListedPolicy> listed;
  for (const NamedPolicySpec& policy : policies) {
    TRY_ASSIGN(ListedPolicy one, WithSeeds(policy));
    listed.push_back(std::move(one));
  }
  NoteSharedNetworks(&listed);
  return listed;
}

Result<std::vector<ListedPolicy>> ParsePolicies(std::string_view text) {
  TRY_ASSIGN(const std::vector<NamedPolicySpec> policies, ParsePolicyList(text));
  return WithSeeds(policies);
}

Result<OnePolicy> ParseOnePolicy(std::string_view text) {
  TRY_ASSIGN(std::vector<ListedPolicy> policies, ParsePolicies(text));
  if (policies.size() > 1) return Invalid("expected one policy, found {}", policies.size());
  ListedPolicy& one = policies[0];
  if (one.members.size() > 1) {
    return Invalid("`{}` has {} training seeds; expected one, such as {}", one.name,
                   one.members.size(), one.members[0].text());
  }
  return OnePolicy{std::move(one.name), std::move(one.members[0])};
}

Result<PolicyGroup> MakePolicyGroup(const ListedPolicy& listed, const Task& task) {
  PolicyGroup group{.name = listed.name, .shares_network = listed.shares_network};
  for (const PolicySpec& member : listed.members) {
    TRY_ASSIGN(std::unique_ptr<Policy> policy, MakePolicy(member, task));
    group.training_seeds.push_back(std::move(policy));
  }
  return group;
}

std::vector<fs::path> FilesOf(const ListedPolicy& policy) {
  std::vector<fs::path> files;
  for (const PolicySpec& member : policy.members) {
    if (member.path().empty()) continue;
    Result<fs::path> file = CheckpointOf(member.path());
    if (file) files.push_back(*std::move(file));
  }
  return files;
}

std::vector<fs::path> RunsOf(const ListedPolicy& policy) {
  std::vector<fs::path> runs;
  for (const PolicySpec& member : policy.members) {
    std::error_code ignored;
    if (!member.name.empty() || !fs::is_directory(member.bare_path, ignored) ||
        !HasRun(member.bare_path))
      return {};
    runs.emplace_back(member.bare_path);
  }
  return runs;
}

Result<std::vector<LearningCurve>> LearningCurvesOf(const std::vector<ListedPolicy>& policies) {
  std::vector<LearningCurve> curves;
  for (const ListedPolicy& policy : policies) {
    LearningCurve curve{.name = policy.name};
    for (const fs::path& run : RunsOf(policy)) {
      TRY_ASSIGN(std::vector<CurvePoint> points, ReadLearningCurve(RunPaths{run}));
      if (!points.empty()) curve.runs.push_back(std::move(points));
    }
    if (!curve.runs.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace rudderfish
