// SPDX-License-Identifier: Apache-2.0
#include "cli/routing_options.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/files.h"
#include "cli/files.h"
#include "cli/scaling_options.h"
#include "evaluation/limit_check.h"
#include "policy/neural_routing.h"
#include "policy/registry.h"

namespace rudderfish {
namespace {

// A file of `calibrate` by the best setting in it; all else as it is.
Result<PolicySpec> SettingOf(const PolicySpec& policy, const std::filesystem::path& scenario) {
  if (!IsCalibrated(policy)) return policy;
  TRY_ASSIGN(const RoutingCalibration calibration,
             ReadRoutingCalibration(policy.bare_path, scenario));
  return ParsePolicySpec(calibration.finalists[0].policy);
}

}  // namespace

Result<std::shared_ptr<const RegionWorld>> RegionsOf(const Arguments& arguments,
                                                     const Scenario& scenario) {
  std::vector<std::string> names;
  if (arguments.Has("regions")) {
    TRY_ASSIGN(names, arguments.List("regions"));
  }
  return OfOption("regions", WithRegions(scenario.regions, names));
}

Result<std::vector<int>> VariantsOf(const Arguments& arguments, const RegionWorld& world) {
  std::vector<std::string> names;
  if (arguments.Has("variant")) {
    TRY_ASSIGN(names, arguments.List("variant"));
  }
  return OfOption("variant", VariantsNamed(world, names));
}

Result<RoutingCalibration> ReadRoutingCalibration(const std::filesystem::path& path,
                                                  const std::filesystem::path& scenario) {
  TRY_ASSIGN(const std::string text, ReadFile(path));
  TRY_ASSIGN(const YamlNode root, ParseYaml(text, path.string()));
  TRY_ASSIGN(RoutingCalibration calibration, ParseRoutingCalibration(root));
  TRY_ASSIGN(const std::string digest, DigestOfScenario(scenario));
  if (calibration.sha256 == digest) return calibration;
  return Fail(ErrorCode::kFailedPrecondition,
              "{}: was calibrated for the scenario {}, which was not as {} is now; calibrate again",
              path.string(), calibration.scenario, scenario.string());
}

Result<RoutingPolicies> RoutingPoliciesOf(const std::vector<ListedPolicy>& listed,
                                          const std::filesystem::path& scenario) {
  RoutingPolicies policies;
  for (const ListedPolicy& one : listed) {
    NamedRoutingPolicy policy{.name = one.name, .members = {}};
    int back = 0;
    std::set<std::string> rules;
    for (const PolicySpec& member : one.members) {
      TRY_ASSIGN(const PolicySpec setting, SettingOf(member, scenario));
      TRY_ASSIGN(std::shared_ptr<const RoutingPolicy> made, MakeRoutingPolicy(setting));
      policy.members.push_back(std::move(made));
      if (!setting.name.empty()) continue;
      TRY_ASSIGN(const std::string rule, RoutingStepsBackTo(setting.bare_path));
      if (rule.empty()) continue;
      ++back;
      rules.insert(rule);
    }
    policies.stepped_back.push_back(back);
    policies.rules.emplace_back(rules.begin(), rules.end());
    policies.list.push_back(std::move(policy));
  }
  return policies;
}

Result<RoutingTraining> RoutingTrainingOf(const Arguments& arguments, const Scenario& scenario) {
  RoutingTraining routing;
  if (arguments.Has("regions")) {
    TRY_ASSIGN(routing.regions, arguments.List("regions"));
  }
  if (arguments.Has("variant")) {
    TRY_ASSIGN(routing.variants, arguments.List("variant"));
  }
  TRY_ASSIGN(const std::shared_ptr<const RegionWorld> world, RegionsOf(arguments, scenario));
  TRY_ASSIGN(const std::vector<int> variants, VariantsOf(arguments, *scenario.regions));
  ThreadPool pool(1);
  TRY(CheckLimits(world, variants, &pool));
  if (arguments.Has("rule")) {
    TRY_ASSIGN(const std::vector<NamedPolicySpec> rules,
               OfOption("rule", ParsePolicyList(*arguments.Text("rule"))));
    for (const NamedPolicySpec& one : rules) {
      TRY_ASSIGN(const PolicySpec rule,
                 OfOption("rule", SettingOf(one.policy, arguments.operands()[0])));
      TRY(OfOption("rule", MakeRoutingRule(rule.text())));
      if (routing.rule.empty() && rule.name == kPlannedRule) routing.rule = rule.text();
      routing.rivals.push_back(rule.text());
    }
  }
  if (routing.rule.empty()) {
    routing.rule = kPlannedRule;
    routing.rivals.emplace_back(kPlannedRule);
  }
  return routing;
}

}  // namespace rudderfish
