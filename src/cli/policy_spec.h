// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "evaluation/evaluation.h"
#include "evaluation/report.h"

// Policies as they are named on the command line. What one is called alone, policy/registry.h says;
// here are lists, names and groups of training seeds:
//
//   stay,greedy,runs/a              several, each under what was typed
//   learned=runs/a                  under another name
//   learned=runs/a:runs/b           one recipe, trained from several seeds
//   learned=runs/a                  the same, if there are seed-1, seed-2 ... in runs/a
//   best-of:16+runs/a:runs/b        search with each of the group; a prefix counts for what follows
//   lookahead:width=8,time=1ms      one policy with two options
//
// A name cannot hold any of `: + / ,`, a run of a group no colon and no comma. So that commas can
// stand between policies and between options: after `lookahead:...`, what reads KEY=NUMBER (or a
// duration) goes on with its options, unless a file of the number's name is there.

namespace rudderfish {

struct PolicySpec {
  std::string name;                  // In tables and results; unlike all others of the list.
  std::vector<std::string> members;  // One for each training seed, as the registry spells them.
};

// Looks at the file system for seeds of a run, and changes nothing there.
Result<std::vector<PolicySpec>> ParsePolicySpecs(std::string_view text);

// Of exactly one policy, alone.
Result<PolicySpec> ParsePolicySpec(std::string_view text);

Result<PolicyGroup> MakePolicyGroup(const PolicySpec& spec, const Task& task);

// The run folders of a spec whose members are nothing else; empty otherwise.
std::vector<std::filesystem::path> RunsOf(const PolicySpec& spec);

// How the policies learned of which there are run folders.
Result<std::vector<LearningCurve>> LearningCurvesOf(const std::vector<PolicySpec>& specs);

}  // namespace rudderfish
