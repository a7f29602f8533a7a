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

// What places pods: a rule that picks a node for each, and the ratings of all nodes that it picks
// by.

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

// The network of the run folder or checkpoint at `path`, with these scores added to its logits;
// called `name`.
Result<PlacementPolicy> LoadedPlacement(const std::string& name, const std::string& path,
                                        const PlacementTask& task, const PlacementMix& added);

// The best by the mix, of equals the first.
PlacementPolicy MixedPlacement(std::string name, const PlacementTask& task,
                               const PlacementMix& mix);

}  // namespace rudderfish
