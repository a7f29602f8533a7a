// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/yaml.h"
#include "evaluation/placement_comparison.h"

// What earlier works have published, quoted beside our figures: the part `published:` of an
// experiment on placement. Each figure says in which cells it is quoted and which of our figures
// stands beside it.
//
//   published:
//     - by: Jian et al., "DRS", Software: Practice and Experience 54(10), 2024
//       note: They are not the same quantity: ...
//       figures:
//         - what: kube-scheduler's imbalance, divided by DRS's
//           said: "4.39"
//           scenario: drs-even                # Likewise objective, variant; of all if absent.
//           ours: {metric: imbalance_cpu, policy: kube-default, over: learned}
//
// `ours` is the mean over episodes and training seeds of a measure (PlacementMetrics, or
// `overhead`, the share of the makespan that decisions take, in %); with `over` divided by that of
// another policy, with `above` its distance from that in %. Without `ours` nothing compares.

namespace rudderfish {

struct OwnFigure {
  // Alone, divided by the other policy's, or how far above that, in %.
  enum class As { kValue, kRatio, kPercentAbove };

  std::string metric;  // Empty: there is none.
  std::string policy, other;
  As as = As::kValue;
};

struct PublishedFigure {
  std::string what, said;
  std::string scenario, objective, variant;  // Of the cells that it is quoted in; empty: any.
  OwnFigure ours;

  bool IsOf(const PlacementPlace& place) const;
};

struct PublishedWork {
  std::string by;    // Who has published it, and where.
  std::string note;  // What tells it apart from ours; may be empty.
  std::vector<PublishedFigure> figures;
};

// Of an experiment of which parts were left out, figures may name what is not there: they are not
// quoted, or with nothing of ours beside them.
enum class Quoting { kAll, kWhatIsThere };

// What of an experiment figures may name. `objectives` empty: each scenario has its own.
struct PublishedNames {
  std::vector<std::string> scenarios, objectives, variants, policies;
  Quoting quoting = Quoting::kAll;
};

// Of all, refuses names that the experiment does not have, naming the nearest.
Result<std::vector<PublishedWork>> ParsePublished(const YamlNode& node,
                                                  const PublishedNames& names);

// Those of a cell, beside what was found there:
//   [{"cell","by","note","what","said","metric","ours":number|null,"ours_text","ours_of"}, ...]
// `ours` is null where there is none: nothing compares, a policy is not there, or the other's is 0.
OrderedJson QuotesOf(std::span<const PublishedWork> works, const PlacementPlace& place,
                     std::string_view cell, const PlacementEvaluation& evaluation);

// The same without what the clock says.
OrderedJson WithoutClock(const OrderedJson& quotes);

}  // namespace rudderfish
