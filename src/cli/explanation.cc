// SPDX-License-Identifier: Apache-2.0
#include "cli/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/evaluator.h"

namespace rudderfish {
namespace {

constexpr size_t kEffectsTold = 3;

using CallCost = Evaluator::CallCost;

class Comparer {
 public:
  Comparer(const State& state, const Evaluator& model) : state_(state), model_(model) {}

  // What one call costs before and after. A workload may be called in many places: equal sentences
  // are one effect.
  void Add(CallId call, const CallCost& before, const CallCost& after) {
    const CallGraph& calls = *state_.calls;
    const std::string& callee = NameOf(calls.calls[call].workload);
    Note(after.execution_ms - before.execution_ms, [&](double ms) {
      return fmt::format("{} runs {:.1f} ms {}", callee, std::abs(ms),
                         ms < 0 ? "faster" : "slower");
    });
    Note(after.queueing_ms - before.queueing_ms, [&](double ms) {
      return fmt::format("requests wait {:.1f} ms {} for {}", std::abs(ms),
                         ms < 0 ? "less" : "more", callee);
    });
    const WorkloadId caller = model_.CallerOf(call);
    if (caller == kNone) return;
    Note(after.hop_ms - before.hop_ms, [&](double ms) {
      return fmt::format("{} to {} is {:.1f} ms {}", NameOf(caller), callee, std::abs(ms),
                         ms < 0 ? "nearer" : "farther");
    });
    Note(after.transfer_ms - before.transfer_ms, [&](double ms) {
      return fmt::format("data from {} to {} takes {:.1f} ms {}", NameOf(caller), callee,
                         std::abs(ms), ms < 0 ? "less" : "more");
    });
  }

  std::vector<Effect> Take() {
    std::stable_sort(effects_.begin(), effects_.end(), [](const Effect& a, const Effect& b) {
      return std::abs(a.change_ms) > std::abs(b.change_ms);
    });
    return std::move(effects_);
  }

 private:
  const std::string& NameOf(WorkloadId workload) const {
    return state_.catalog->workloads[workload].name;
  }

  template <class Sentence>
  void Note(double change_ms, const Sentence& sentence) {
    if (std::abs(change_ms) < kVisibleMs) return;
    Effect effect{.change_ms = change_ms, .text = sentence(change_ms)};
    const bool told = std::any_of(effects_.begin(), effects_.end(),
                                  [&](const Effect& other) { return other.text == effect.text; });
    if (!told) effects_.push_back(std::move(effect));
  }

  const State& state_;
  const Evaluator& model_;
  std::vector<Effect> effects_;
};

std::string NameOfMove(const JournalMove& move) {
  return fmt::format("{} to {}", move.pod, move.to);
}

}  // namespace

std::vector<Effect> EffectsOf(const State& state, const LatencyLaw& law, const Migrate& move) {
  Evaluator model(law);
  model.Reset(state);
  const int count = state.calls->call_count();
  std::vector<CallCost> before(count);
  for (CallId call = 0; call < count; ++call) before[call] = model.cost(call);
  model.Commit(Action(move));
  Comparer comparer(state, model);
  for (CallId call = 0; call < count; ++call) comparer.Add(call, before[call], model.cost(call));
  return comparer.Take();
}

std::string WhyMove(const JournalRow& row, const std::vector<Effect>& effects, Motive motive) {
  std::string why;
  for (size_t i = 0; i < std::min(effects.size(), kEffectsTold); ++i) {
    why += fmt::format("{}{}", i == 0 ? "" : "; ", effects[i].text);
  }
  if (why.empty()) why = "no call gets faster or slower by a tenth of a millisecond";
  if (!effects.empty() && std::abs(row.predicted_gain_ms) < kVisibleMs) {
    why += "; in all, latency stays as it is";
  }
  if (row.predicted_gain_ms >= row.step_cost_ms) return why;
  switch (motive) {
    case Motive::kLatency:
      return why + (row.predicted_gain_ms < -kVisibleMs
                        ? "; it costs latency now: the policy counts on a later move"
                        : "; alone it is not worth its step: the policy counts on a later move");
    case Motive::kOwnScore:
      return why + "; the policy goes by a score of its own";
    case Motive::kChance:
      break;
  }
  return why + "; it was drawn by lot";
}

std::string WhyStop(const JournalRow& row, double step_cost_ms, Motive motive) {
  const Alternative* best = nullptr;
  for (const Alternative& alternative : row.considered) {
    if (!alternative.move) continue;
    if (best == nullptr || alternative.predicted.latency_ms < best->predicted.latency_ms) {
      best = &alternative;
    }
  }
  if (best == nullptr) return "no move is allowed";
  const double gain_ms = row.seen.latency_ms - best->predicted.latency_ms;
  if (gain_ms <= step_cost_ms) {
    return fmt::format(
        "no move gains more than the cost of a step ({:.1f} ms); the best, {}, {} {:.1f} ms",
        step_cost_ms, NameOfMove(*best->move), gain_ms < 0 ? "loses" : "gains", std::abs(gain_ms));
  }
  return fmt::format("{}, although {} would gain {:.1f} ms for a step of {:.1f} ms",
                     motive == Motive::kChance ? "stopping was drawn by lot" : "the policy stops",
                     NameOfMove(*best->move), gain_ms, step_cost_ms);
}

}  // namespace rudderfish
