// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cluster/state.h"
#include "scenario/scenario.h"

// Start states: JSON Lines, one state a line, so that different programs can be compared from the
// same starts.
//
//   {"config": "7-21", "pattern": "chain",
//    "latency_between_layer": {"edge": {"cloud": 52.9, ...}, ...},
//    "nodes": [{"name", "layer", "cpu_free", "mem_free"}, ...],
//    "pods": [{"name", "service", "node"}, ...]}
//
// Free resources are cores and GiB after the pods are placed; they are floored to milli-cores and
// bytes. Latencies are one way, in ms. Other keys are ignored on input, except a node's
// `background_mbytes_per_s`, which we add where a scenario has such traffic. A line of another
// config, pattern or cluster than the scenario's is refused by name.

namespace rudderfish {

struct StartState {
  int line = 0;  // From 0: its id in results. Messages count lines from 1, as editors do.
  State state;   // Nodes in the order of the scenario, pods in that of the line.
};

// Which lines of a file to take; an empty field takes all.
struct StartStateFilter {
  std::string config;
  std::string pattern;
};

// What is free of a node of a line, at least 0.
struct FreeOfNode {
  double cores = 0, gib = 0;
};
Result<FreeOfNode> ReadFreeOfNode(const JsonReader& node);

// "config=7-21,pattern=chain", either part alone, in any order.
Result<StartStateFilter> ParseStartStateFilter(std::string_view text);

// All states of the text that pass the filter, at least one, or the first thing that is wrong with
// it.
Result<std::vector<StartState>> ParseStartStates(std::string_view text,
                                                 std::string_view source_name,
                                                 const Scenario& scenario,
                                                 const StartStateFilter& filter = {});
// Line `number`, from 0, of a file whose other lines are not looked at.
Result<StartState> ParseStartState(std::string_view line, std::string_view source_name, int number,
                                   const Scenario& scenario);
Result<std::vector<StartState>> LoadStartStates(const std::filesystem::path& path,
                                                const Scenario& scenario,
                                                const StartStateFilter& filter = {});

// One line, without its end. ParseStartStates gives the same state back, to the bit.
// REQUIRES: the state is one of the scenario's, all pods bound, nothing overcommitted.
std::string StartStateLine(const Scenario& scenario, const State& state);

}  // namespace rudderfish
