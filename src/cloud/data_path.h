// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cloud/split.h"
#include "cloud/split_guard.h"

// Where requests are split for real: something that holds a weight for each of some backends. One
// backend is one region. All of it may block, for seconds.

namespace rudderfish {

struct WeightedBackend {
  std::string region;  // As people call it.
  std::string name;    // As the data path calls it.
  int weight = 0;
  RegionState state = RegionState::kUnseen;
};

class DataPath {
 public:
  virtual ~DataPath() = default;

  virtual std::string name() const = 0;  // "httproute/shop/web, rule 0"
  virtual int weight_total() const = 0;  // What weights are made to sum to.
  virtual Result<std::vector<WeightedBackend>> Read() = 0;

  // What Write sends, exactly, for these weights; of the backends that were read last.
  virtual Result<std::string> RequestOf(const std::vector<int>& weights) const = 0;

  // Sends it. kConflict: somebody changed it since it was read, and nothing was written.
  virtual Result<void> Write(const std::vector<int>& weights) = 0;
};

struct EnactedSplit {
  std::string path;                            // DataPath::name.
  std::vector<WeightedBackend> before, after;  // `after` is empty unless something was written.
  GuardedSplit guarded;
  std::vector<int> weights;  // That stand for `guarded`.
  std::string request;       // Empty: nothing changes.

  bool written() const { return !after.empty(); }
};

enum class Enacting { kDryRun, kWrite };

// Reads what stands, guards what is wanted, and writes it. `wanted` names each region of the path
// once, and no other; where it does not, the error says which. What stands afterwards is read back:
// kFailedPrecondition if it is not what was written.
Result<EnactedSplit> EnactSplit(DataPath* path, const std::vector<RegionShare>& wanted,
                                const SplitLimits& limits, Enacting enacting);

// Shares of what stands; even ones where all weights are 0.
std::vector<double> SharesOf(const std::vector<WeightedBackend>& backends);

// A table of regions with what stands and, where it is not the same, what comes; notes below it.
std::string SplitText(const EnactedSplit& split);
OrderedJson SplitJson(const EnactedSplit& split);

}  // namespace rudderfish
