// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cloud/split.h"
#include "cloud/split_guard.h"

// A split of requests on a data path: what stands there, what is to change under the guard, the
// exact request, and what stands after it. One request carries the whole split: a process that is
// killed leaves the old one or the new one.

namespace rudderfish {

struct StandingBackend {
  std::string name;
  int64_t weight = 0;
  bool is_healthy = false;
  std::string health;                           // What says so: "2 endpoints are ready".
  std::optional<int64_t> ready = std::nullopt;  // Endpoints that serve, where that is seen.
  bool is_health_seen = true;                   // False: the data path does not show it.
  bool is_closed = false;  // These requests may not be served there, however healthy it is.
};

struct StandingWeights {
  std::string target;  // For people: "httproute shop/web, rule 0".
  std::vector<StandingBackend> backends;
  std::vector<std::string> notes;  // What people should know of it.
};

class SplitEnactor {
 public:
  virtual ~SplitEnactor() = default;

  // What stands there now. What follows is about this reading.
  virtual Result<StandingWeights> Read() = 0;

  // What the weights of one split sum to.
  virtual int64_t weight_sum() const = 0;

  // The exact request that sets these weights, one for each backend in the order of Read.
  // REQUIRES: Read has succeeded.
  virtual std::string Request(const std::vector<int64_t>& weights) const = 0;

  // Sends it. kConflict: something else was changed there since Read; nothing was done.
  virtual Result<void> Send(const std::vector<int64_t>& weights) = 0;
};

struct RegionBackend {
  std::string region, backend;
};

// "eu=shop-eu,us=shop-us".
Result<std::vector<RegionBackend>> ParseRegionBackends(std::string_view text);

// Shares by weight; empty if all weights are 0.
Split SplitOf(const StandingWeights& standing, const std::vector<RegionBackend>& map);

// Takes regions for healthy, or not, where the data path does not show it: those that are named
// are, as somebody says who sees them otherwise.
void TellHealth(const std::vector<std::string>& healthy, const std::vector<RegionBackend>& map,
                StandingWeights* standing);

struct SplitPlan {
  Split standing;  // Empty: all weights are 0.
  SplitReview review;
  std::vector<int64_t> weights;  // In the order of the backends.
  bool changes = false;          // False: the shares stand already.
};

// What of `wanted` is to be enacted now. `map` names the backend of regions; a region that it lacks
// has a backend of its own name. kInvalidArgument, kNotFound: a region without a backend, or a
// backend without a share.
Result<SplitPlan> PlanSplit(const StandingWeights& standing, const Split& wanted,
                            const std::vector<RegionBackend>& map, int64_t weight_sum,
                            Duration signals_age, const SplitLimits& limits);

// Sends the plan, and reads back what stands. A request whose answer was lost is judged by what
// stands. kConflict: other weights than those sent.
Result<StandingWeights> EnactSplit(SplitEnactor* enactor, const SplitPlan& plan);

}  // namespace rudderfish
