// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "scenario/scenario.h"

// REACH's configuration (arXiv 2510.06675), as its newest generation reads it:
//
//   DIR/7-21/nodes.json            what the cluster may be, drawn each episode;
//                                  nodes-simple.json: at full capacity
//   DIR/7-21/services.json         services_full.json is looked for here and in DIR
//   DIR/chain_call_patterns.json   or in DIR/7-21
//
// The order of keys counts: it numbers nodes, pods and the calls of a group. A list of exactly two
// values is a range, any other list a choice. REACH reads a memory or data size with any unit but M
// and G as 0, and stops with an assertion where a latency, an execution time or a service is
// missing: here each is refused by name. Its M and G are powers of 1024; a data size of 0.1M is
// handed on as 0.1 MB, and the `reach` law divides it as REACH does.

namespace rudderfish {

enum class ReachCapacity { kDrawn, kFull };  // nodes.json or nodes-simple.json.

struct ReachImportOptions {
  ReachCapacity capacity = ReachCapacity::kDrawn;
  std::string services_file = "services.json";
  std::string name;  // Empty: reach-<config>.
  uint64_t seed = 1;
};

struct ReachText {
  std::string source_name;  // For messages.
  std::string text;
};

struct ReachTexts {
  ReachText nodes;
  ReachText services;
  std::vector<std::pair<std::string, ReachText>> patterns;  // By name.
};

Result<Scenario> ImportReach(const std::filesystem::path& dir, std::string_view config,
                             std::span<const std::string> patterns,
                             const ReachImportOptions& options = {});

// The same from memory.
Result<Scenario> ParseReach(const ReachTexts& texts, std::string_view config,
                            const ReachImportOptions& options = {});

}  // namespace rudderfish
