// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/graph_batch.h"
#include "base/result.h"

// How unlike training a question of placement is. Of each feature a checkpoint keeps between which
// values nearly all of training's questions lay; the strangeness of a question is how far its most
// unlike feature lies outside of them, in units of their width: 0 within all of them, 1 as far out
// again as training was wide. Looked at are what is said of the question as a whole and of the
// candidate that was chosen: a hundred comparisons, nothing allocated.
//
// It knows features one by one: what is usual in each and unusual together is not told.

namespace rudderfish {

// Plain value; an empty one finds nothing strange.
struct Familiarity {
  // By feature, as the network sees them (scaled); high is no less than low.
  struct Ranges {
    std::vector<float> low, high;

    bool operator==(const Ranges&) const = default;
  };
  Ranges candidate, context;

  bool empty() const { return context.low.empty(); }
  // What either of them has seen. REQUIRES: of the same features, or one is empty.
  void Join(const Familiarity& other);
  bool operator==(const Familiarity&) const = default;
};

struct Strangeness {
  double score = 0;
  bool is_of_candidate = false;        // Else of the question as a whole.
  int feature = -1;                    // Of that table; -1: none is strange.
  float value = 0, low = 0, high = 0;  // As the network sees them.
};

// REQUIRES: rows are as wide as the ranges, or wider.
Strangeness StrangenessOf(const Familiarity& familiarity, std::span<const float> candidate,
                          std::span<const float> context);

// "`choices` is 7.2 log candidates, of 0.69 to 4.1 in training".
std::string StrangenessText(const Strangeness& strangeness);

// Rows of questions, from which ranges are made.
class FamiliaritySample {
 public:
  // Adds the one question of a batch: its context and some of its candidates, the chosen one among
  // them. REQUIRES: batch.samples is 1.
  void Add(const GraphBatch& batch, int chosen);
  void Append(const FamiliaritySample& other);

  // Between the quantiles of 0.001 and 0.999 of each feature.
  Familiarity Ranges() const;

 private:
  std::vector<float> candidates_, contexts_;  // Rows, without padding.
};

}  // namespace rudderfish
