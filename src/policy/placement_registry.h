// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/familiarity.h"
#include "policy/lookahead_placement.h"
#include "policy/placement_rules.h"
#include "task/placement.h"

// Ways to place pods by name, as the command line spells them:
//
//   round-robin  least-allocated  most-allocated  kube-default  greedy
//   lookahead  lookahead:width=32,depth=4  with the pods in mind that wait behind
//                                          (lookahead_placement.h)
//   mixed:greedy=1,most-allocated=0.1      the best by a sum of scores (task/placement.h)
//   blind-kube-default, blind-greedy ...   one of these that knows nothing of limits of latency
//   RUN or CHECKPOINT                      a learned policy
//   mixed:most-allocated=1+RUN             a learned one with such scores added to its logits
//
// An unknown name is refused with the nearest known one.

namespace rudderfish {

// How good each candidate of a question is. One a thread: it keeps its working space.
class PlacementRater {
 public:
  virtual ~PlacementRater() = default;

  // One a candidate of space(), larger is better; none: the pod may run nowhere. `allowed` is as
  // PlacementTask::Space takes it. Valid until the next question.
  virtual std::span<const double> Rate(const PlacementQuestion& question,
                                       std::span<const uint8_t> allowed) = 0;
  virtual const PlacementSpace& space() const = 0;

  // Of the last question: how unlike those of training it was, with this candidate chosen.
  virtual Strangeness strangeness(int /*candidate*/) const { return {}; }
};

// Immutable; any thread may start a run of it.
struct PlacementPolicy {
  std::string name;
  std::function<PlacementRule()> start;  // What one episode is placed by.
  // The same choices with what they rest on; none: it does not rate (round-robin).
  std::function<std::unique_ptr<PlacementRater>()> rate;
  PlacementMix mix{};                              // Of simple scores, alone or beside a network.
  bool knows_its_questions = false;                // Its strangeness says something.
  bool is_blind = false;                           // To limits of latency.
  std::optional<PlacementPreset> preset;           // Of an earlier system, as which it was trained.
  std::optional<QueueLookaheadOptions> lookahead;  // It looks at the pods behind, too.
};

// Those that need nothing, by which learned ones are judged.
std::vector<std::string_view> PlacementHeuristics();

// Whether a name is a run's or a checkpoint's; and what of a name is, after `mixed:...+`; empty:
// nothing of it.
bool LooksLikeARun(std::string_view text);
std::string_view RunOf(std::string_view spec);

// `left_out`: a score that whoever asks adds himself. It stays in `mix`, and nothing goes by it.
Result<PlacementPolicy> MakePlacementPolicy(std::string_view spec, const PlacementTask& task,
                                            std::optional<PlacementScore> left_out = {});

// The best by the mix, of equals the first.
PlacementPolicy MixedPlacement(std::string name, const PlacementTask& task,
                               const PlacementMix& mix);

}  // namespace rudderfish
