// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "evaluation/judge.h"
#include "sim/routing_evaluation.h"

// What is compared of an evaluation of routing. Pure functions of the evaluation.

namespace rudderfish {

// Under one variant: the objective and its parts per request, late requests in percent, requests
// served elsewhere, and changes of nodes.
Outcomes OutcomesOf(const RoutingEvaluation& evaluation, int variant);

// A smaller objective, with late requests at most 0.1 points above.
JudgeRule RoutingRule();

// The best of the others under that variant on episodes for choosing; -1: there is none.
int BaselineOf(const RoutingEvaluation& evaluation, int variant);

// A block a variant, with its verdict; JSON with schema_version 1; a row an episode.
std::string RoutingTable(const RoutingEvaluation& evaluation);
std::string RoutingJson(const RoutingEvaluation& evaluation);
std::string RoutingCsv(const RoutingEvaluation& evaluation);

// True without baselines.
bool BetterEverywhere(const RoutingEvaluation& evaluation);

}  // namespace rudderfish
