// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "evaluation/judge.h"
#include "sim/routing_evaluation.h"

// What is compared of an evaluation of routing. Pure functions of the evaluation.

namespace rudderfish {

// Under one variant: the objective and its parts per request, late requests in percent, requests
// served elsewhere, changes of nodes, and what an hour costs in carbon and dollars.
Outcomes OutcomesOf(const RoutingEvaluation& evaluation, int variant);

// A smaller objective, with late requests at most 0.1 points above; or, where there are limits,
// with those kept: late requests to 0.2 points, others to 2 %.
JudgeRule RoutingRule(const RoutingLimits& limits);

// The best of the others under that variant on episodes for choosing, of those that keep the
// limits, or are least beyond them; -1: there is none.
int BaselineOf(const RoutingEvaluation& evaluation, int variant);

// A block a variant, with its verdict; JSON with schema_version 1; a row an episode.
std::string RoutingTable(const RoutingEvaluation& evaluation);
std::string RoutingJson(const RoutingEvaluation& evaluation);
std::string RoutingCsv(const RoutingEvaluation& evaluation);

// True without baselines.
bool BetterEverywhere(const RoutingEvaluation& evaluation);

}  // namespace rudderfish
