// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <filesystem>
#include <limits>
#include <utility>

#include "policy/descheduler.h"
#include "policy/lookahead.h"
#include "policy/neural.h"
#include "policy/policy_makers.h"
#include "policy/policy_table.h"
#include "policy/walks.h"

namespace rudderfish {
namespace {

constexpr int kWidthOfBudgets = 1 << 15;  // More would take hundreds of megabytes in a deep search.

// Beside a learned plan a narrow search finds most of what is left to find.
constexpr int kWidthBesideWalk = 64;

}  // namespace

Result<std::unique_ptr<Policy>> MakeLookahead(const PolicyOptions& given, const Task& task) {
  LookaheadOptions options;
  options.budget.width = given.Integer("width");
  if (given.IsGiven(kRunOption)) {
    TRY_ASSIGN(options.stepper,
               LoadNeuralPolicy(std::filesystem::path(given.Text(kRunOption)), task));
    if (!given.IsGiven("width")) options.budget.width = kWidthBesideWalk;
    options.walks.directed = given.Integer("directed");
  } else if (given.IsGiven("directed")) {
    return Invalid("policy `{}`: option `directed` needs `run`, whose walks it directs",
                   given.text());
  }
  options.budget.patience = given.Integer("patience");
  options.budget.evaluations = given.LargeInteger("evaluations");
  if (given.IsGiven("time")) {
    options.budget.time = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::milli>(given.Ms("time")));
  }
  // A budget that was asked for is used up, whatever width it takes; a width that was asked for is
  // reached.
  const bool is_limited = given.IsGiven("evaluations") || given.IsGiven("time");
  if (is_limited && !given.IsGiven("width")) options.budget.width = kWidthOfBudgets;
  if ((is_limited || given.IsGiven("width")) && !given.IsGiven("evaluations"))
    options.budget.evaluations = std::numeric_limits<int64_t>::max();
  return std::make_unique<LookaheadPolicy>(given.text(), std::move(options));
}

Result<std::unique_ptr<Policy>> MakeDescheduler(const PolicyOptions& given, const Task&) {
  const DeschedulerThresholds thresholds{.low = given.Number("low"), .high = given.Number("high")};
  if (thresholds.low >= thresholds.high) {
    return Invalid("policy `{}`: low ({} %) must be less than high ({} %)", given.text(),
                   thresholds.low, thresholds.high);
  }
  return std::make_unique<DeschedulerPolicy>(thresholds);
}

Result<std::unique_ptr<Policy>> MakeBestOf(const PolicyOptions& given, const Task& task) {
  if (!given.IsGiven(kRunOption)) {
    return Invalid("policy `{}`: option `run` is missing, as in best-of:samples=16,run=runs/a",
                   given.text());
  }
  TRY_ASSIGN(std::shared_ptr<const Policy> learned,
             LoadNeuralPolicy(std::filesystem::path(given.Text(kRunOption)), task));
  return std::make_unique<WalkPolicy>(given.text(), std::move(learned),
                                      WalkOptions{.samples = given.Integer("samples"),
                                                  .directed = given.Integer("directed"),
                                                  .beside_greedy = true});
}

}  // namespace rudderfish
