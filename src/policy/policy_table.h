// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "cluster/task_kind.h"
#include "policy/policy_makers.h"
#include "policy/policy_options.h"

// The table of all policies that have a name: `rudderfish policies` prints it, specs are read by it
// (policy_spec.h), and registry.h makes them. A new policy is a row here.

namespace rudderfish {

struct PolicyRow {
  TaskKind task;
  std::string_view name;
  std::string_view help;  // One line, without a full stop.
  std::variant<MoveMaker, PlaceMaker, ScaleMaker, RouteMaker> maker;
  std::vector<PolicyOption> options;
  std::string_view example;  // Where the defaults alone make no policy; "RUN" stands for a run.
};

// By task, in the order in which help lists them.
const std::vector<PolicyRow>& PolicyTable();

// Null if the task has no such policy.
const PolicyRow* FindPolicy(TaskKind task, std::string_view name);

// Of all tasks, each once.
std::vector<std::string_view> PolicyNames();
std::vector<std::string_view> PolicyNamesOf(TaskKind task);
bool IsPolicyName(std::string_view name);
std::vector<std::string_view> OptionsOfPolicy(std::string_view name);  // In any task.

// The option by which a policy takes a trained network.
inline constexpr std::string_view kRunOption = "run";

}  // namespace rudderfish
