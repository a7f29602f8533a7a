// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml_change.h"
#include "cli/arguments.h"
#include "cli/policy_list.h"
#include "evaluation/calibration.h"
#include "learn/train_options.h"
#include "scenario/scenario.h"
#include "sim/scaling_evaluation.h"
#include "sim/scaling_run.h"

// What commands about scaling are told on the command line.

namespace rudderfish {

// An error for a scenario without `load`; `path` is what it is called.
Result<void> CheckIsServed(const Scenario& scenario, const std::filesystem::path& path);

// With values changed before they are read. An error if it has no `load`.
Result<Scenario> LoadServedScenario(const std::filesystem::path& path,
                                    std::span<const YamlChange> changes = {});

// Positions in Load::loads: those of --load, all if it was not given.
Result<std::vector<int>> LoadsOf(const Arguments& arguments, const Load& load);

// --violations: a share of all requests, as 1% or 0.01; else the limit of the scenario.
Result<double> ViolationsOf(const Arguments& arguments, const Scenario& scenario);

// What `calibrate` wrote; an error if that was of another scenario than the one at `scenario`.
Result<Calibration> ReadCalibration(const std::filesystem::path& path,
                                    const std::filesystem::path& scenario);

// The best of them all, as training takes it: the first are autoscalers, whose late requests a
// network may hardly exceed, nor may others that it would step back to. Where none of all keeps the
// limit, what the first have is allowed (LimitAmong). REQUIRES: they are of the same episodes and
// limit.
ScalingRival RivalOf(std::span<const Calibration> calibrations);

// To be said before training; empty where a setting keeps the limit.
std::string UnkeptLimitText(const ScalingRival& rival, double violations_max);

// What `calibrate` wrote.
struct CalibratedFile {
  std::string path;
  std::vector<std::string> loads;  // That it was calibrated for.
};

// Whether a policy is the best setting in a file of `calibrate`.
bool IsCalibrated(const PolicySpec& policy);

// A file of `calibrate` is refused if it is of another scenario than the one at `scenario`.
struct ScalingPolicies {
  std::vector<NamedScalingPolicy> list;
  std::vector<int> stepped_back;  // [policy] How many of its members are a calibrated rule,
  std::vector<std::vector<std::string>> rules;  // and which, each once.
  std::vector<CalibratedFile> calibrated;       // Whose settings are among them.
  std::vector<std::string> notes;               // Of learned ones: whether the network decides.
};
Result<ScalingPolicies> ScalingPoliciesOf(const std::vector<ListedPolicy>& listed,
                                          const std::filesystem::path& scenario);

// What is to be said where a file is used under loads that it was not calibrated for.
std::vector<std::string> UncalibratedNotes(const ScalingPolicies& policies, const Load& load,
                                           const std::vector<int>& loads);

}  // namespace rudderfish
