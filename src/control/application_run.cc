// SPDX-License-Identifier: Apache-2.0
#include "control/application_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace rudderfish {
namespace {

constexpr int kAlternativesKept = 5;
constexpr int kRefusalsKept = 200;

}  // namespace

ApplicationRun::ApplicationRun(const ApplicationOptions& options, Cluster* cluster,
                               Journal* journal, EvidenceSink* evidence)
    : options_(options),
      cluster_(cluster),
      evidence_(options.name, options.law, options.evidence, evidence),
      model_(options.law),
      controller_(&cluster_, options_.task.get(), options_.law, options_.policy.get(),
                  options_.guard, journal,
                  {.seed = options.seed,
                   .alternatives_kept = kAlternativesKept,
                   .alternative_of_each_workload = true,
                   .refusals_kept = kRefusalsKept,
                   .baseline = options_.baseline.get(),
                   .application = options.name,
                   .policy = options_.policy_name,
                   .objective = options_.objective,
                   .mode = Mode::kShadow}) {}

Result<bool> ApplicationRun::Turn(Mode mode, std::span<const Reading> readings,
                                  std::string_view obstacle) {
  const auto note = [&](Result<bool> result) {
    status_.problem = result ? "" : result.error().message;
    return result;
  };
  if (Result<void> looked = cluster_.Look(); !looked) {
    return note(tl::unexpected(std::move(looked).error()));
  }
  const State& state = cluster_.real_state();
  Describe(state);
  if (Result<void> observed = evidence_.Observe(state, readings); !observed) {
    return note(tl::unexpected(std::move(observed).error()));
  }
  if (mode == Mode::kOff) {
    planning_ = false;
    return note(false);
  }
  const std::chrono::nanoseconds age = cluster_.Now() - state.at;
  if (age > options_.staleness) {
    return note(Fail(ErrorCode::kUnavailable,
                     "what is known of the cluster is {:.0f} s old, more than the limit of {:.0f} "
                     "s: nothing is decided on it",
                     std::chrono::duration<double>(age).count(),
                     std::chrono::duration<double>(options_.staleness).count()));
  }
  if (!obstacle.empty()) return note(Fail(ErrorCode::kUnavailable, "{}", obstacle));
  controller_.SetMode(mode);
  return note(Decide());
}

Result<bool> ApplicationRun::Decide() {
  if (controller_.in_flight()) {  // The journal could not be written: once more.
    TRY(controller_.Turn());
  }
  const bool rested = !planning_ && cluster_.Now() - plan_ended_at_ >= options_.rest;
  if (cluster_.TakeChange() || rested) {
    cluster_.Forget();
    controller_.ForgetMoves();
    controller_.BeginPlan();
    planning_ = true;
  }
  if (!planning_) return false;
  TRY_ASSIGN(const TurnResult result, controller_.Turn());
  if (result != TurnResult::kExhausted) ++status_.decisions;
  if (result == TurnResult::kMoved) {
    ++status_.moves;
    return true;
  }
  planning_ = false;
  plan_ended_at_ = cluster_.Now();
  ++status_.plans;
  status_.planned = controller_.terms();
  return false;
}

void ApplicationRun::Describe(const State& state) {
  if (status_.nodes != 0 && state.version == described_version_) return;
  described_version_ = state.version;
  status_.nodes = state.nodes.size();
  status_.pods = state.pods.size();
  status_.pending =
      static_cast<int>(std::count(state.pods.node.begin(), state.pods.node.end(), kNone));
  model_.Reset(state);
  status_.seen = model_.Now();
}

}  // namespace rudderfish
