// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// How a policy is written, in every task and in every place: on the command line, in
// rudderfish.yaml, in experiments, in what `calibrate` writes and in checkpoints.
//
//   NAME                        greedy                   a policy of the table (policy_table.h)
//   NAME:KEY=VALUE,KEY=VALUE    hpa:cpu=60,down=120s     with options
//   PATH                        runs/a                   anything else is a path: a run folder, a
//                                                        checkpoint, a file of `calibrate`
//
// A policy that builds on a trained network takes it as the option `run`:
// best-of:samples=16,run=runs/a. A path that is called like a policy is written ./greedy.
//
// Where several are listed, commas stand between them, too: a part KEY=VALUE goes on with the
// options of the policy before it if that policy has options and knows KEY, else it is a policy
// under another name.
//
//   NAME=POLICY                 learned=runs/a           under that name in results

namespace rudderfish {

struct PolicySpec {
  std::string name;  // Of the table; empty: a path is all there is.
  std::vector<std::pair<std::string, std::string>> options;  // As they were written.
  std::string bare_path;

  // The path itself, or the value of `run`; empty: it needs no file.
  std::string_view path() const;
  void SetPath(std::string path);  // REQUIRES: path() is not empty.
  std::string text() const;        // As it was written.
  bool operator==(const PolicySpec&) const = default;
};

// Whether a name and its options are known, CheckPolicy says (policy/registry.h).
Result<PolicySpec> ParsePolicySpec(std::string_view text);

// With its path relative to this folder, unless it is a bare word and no such file is there.
PolicySpec WithinFolder(PolicySpec spec, const std::filesystem::path& folder);

// Whether it can be nothing but a path, or such a file is there.
bool ReadsLikeAPath(std::string_view text);

struct NamedPolicySpec {
  std::string name;  // What was written before `=`, or all that was written.
  PolicySpec policy;
  bool operator==(const NamedPolicySpec&) const = default;
};

Result<NamedPolicySpec> ParseNamedPolicy(std::string_view text);
// At least one; no two of one name.
Result<std::vector<NamedPolicySpec>> ParsePolicyList(std::string_view text);
Result<void> CheckNamesDiffer(const std::vector<NamedPolicySpec>& policies);

}  // namespace rudderfish
