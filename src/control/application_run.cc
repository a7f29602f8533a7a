// SPDX-License-Identifier: Apache-2.0
#include "control/application_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rudderfish {
namespace {

constexpr int kAlternativesKept = 5;
constexpr int kRefusalsKept = 200;
constexpr int kFailuresOfAPlan = 3;
constexpr std::chrono::minutes kLeastRestOfMovedPods(1);

ControllerOptions ControllerOptionsOf(const ApplicationOptions& options, Mode mode) {
  return {.seed = options.seed,
          .alternatives_kept = kAlternativesKept,
          .alternative_of_each_workload = true,
          .refusals_kept = kRefusalsKept,
          .baseline = options.baseline.get(),
          .application = options.name,
          .policy = options.policy_name,
          .objective = options.objective,
          .mode = mode,
          // What is only imagined counts in no budget but its own.
          .ledger = mode >= Mode::kCanary ? options.ledger : nullptr,
          .thinker = options.thinker};
}

// A pod that could not be moved is not tried again at once, whatever the budgets say.
GuardOptions GuardOfMoves(const ApplicationOptions& options) {
  GuardOptions guard = options.guard;
  guard.pod_cooldown = RestOfMovedPods(guard.pod_cooldown, options.rest);
  return guard;
}

}  // namespace

std::chrono::nanoseconds RestOfMovedPods(std::chrono::nanoseconds cooldown,
                                         std::chrono::nanoseconds rest) {
  return std::max<std::chrono::nanoseconds>({cooldown, rest, kLeastRestOfMovedPods});
}

ApplicationRun::ApplicationRun(const ApplicationOptions& options, Cluster* cluster,
                               Cluster* acted_on, Journal* journal, EvidenceSink* evidence)
    : options_(options),
      cluster_(cluster),
      acted_on_(acted_on),
      evidence_(options.name, options.law, options.evidence, evidence),
      model_(options.law),
      controller_(&cluster_, options_.task.get(), options_.law, options_.policy.get(),
                  options_.guard, journal, ControllerOptionsOf(options_, Mode::kShadow)),
      acting_(&acted_on_, options_.task.get(), options_.law, options_.policy.get(),
              GuardOfMoves(options_), journal, ControllerOptionsOf(options_, Mode::kEnforce)) {}

Result<bool> ApplicationRun::Turn(Mode mode, std::span<const Reading> readings,
                                  const std::function<std::string()>& obstacle) {
  const auto note = [&](Result<bool> result) {
    if (!result) {
      status_.problem = result.error().message;
    } else if (!is_thinking()) {  // A policy is still being asked.
      status_.problem.clear();
    }
    return result;
  };
  if (Result<void> looked = cluster_.Look(); !looked) {
    return note(tl::unexpected(std::move(looked).error()));
  }
  const State& state = cluster_.real_state();
  ApplyFactors();
  Describe(state);
  ApplyRecalled();
  if (Result<void> observed = evidence_.Observe(state, readings); !observed) {
    return note(tl::unexpected(std::move(observed).error()));
  }
  if (acting_.in_flight()) {  // In every mode: it has begun.
    if (mode < Mode::kCanary) planning_ = false;
    return note(HearOfMove());
  }
  if (mode == Mode::kOff) {
    planning_ = false;
    mode_ = mode;  // What is resumed plans at once.
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
  if (const std::string why = obstacle ? obstacle() : ""; !why.empty())
    return note(Fail(ErrorCode::kUnavailable, "{}", why));
  const bool acts = mode >= Mode::kCanary;
  if (acts != acts_) planning_ = false;
  acts_ = acts;
  // More may be moved than before: that is planned at once.
  const Mode before = std::exchange(mode_, mode);
  is_plan_due_ |= acts && mode > before;
  if (!acts) {
    controller_.SetMode(mode);
    return note(Decide());
  }
  acting_.SetMode(mode);
  acted_on_.SetShare(mode == Mode::kCanary ? options_.canary : 1);
  return note(Act());
}

// Between plans, so that no plan is judged by two Models.
void ApplicationRun::ApplyFactors() {
  if (next_factors_ == factors_ || planning_ || is_thinking() || acting_.in_flight() ||
      controller_.in_flight())
    return;
  factors_ = next_factors_;
  const LatencyLaw law = Corrected(options_.law, factors_);
  model_ = Evaluator(law);
  evidence_.SetLaw(law);
  controller_.SetLaw(law);
  acting_.SetLaw(law);
  is_plan_due_ = true;
  status_.nodes = 0;  // Described again.
}

void ApplicationRun::ApplyRecalled() {
  const std::vector<Workload>& workloads = cluster_.real_state().catalog->workloads;
  for (EarlierMove& move : recalled_) {
    if (!move.pod.empty()) acting_.RecallPod(std::move(move.pod), cluster_.Now() - move.ago);
    if (move.is_failed) continue;
    const auto at = std::find_if(workloads.begin(), workloads.end(),
                                 [&](const Workload& one) { return one.name == move.workload; });
    if (at == workloads.end()) continue;
    acting_.Recall(static_cast<WorkloadId>(at - workloads.begin()),
                   {.application = options_.name,
                    .workload = std::move(move.workload),
                    .from = std::move(move.from),
                    .to = std::move(move.to),
                    .at = cluster_.Now() - move.ago});
  }
  recalled_.clear();
}

// Whether a plan is due: the cluster has changed, or has rested.
bool ApplicationRun::IsPlanDue() {
  const bool rested = !planning_ && cluster_.Now() - plan_ended_at_ >= options_.rest;
  const bool is_due = std::exchange(is_plan_due_, false);
  return cluster_.TakeChange() || rested || is_due;
}

// For a plan that was given up meanwhile: its answer is waited for, and not heard.
bool ApplicationRun::IsAsking(Controller* controller) const {
  return controller->is_thinking() && !planning_ && !controller->DropThought();
}

Result<bool> ApplicationRun::Decide() {
  if (IsAsking(&controller_)) return false;
  if (controller_.in_flight()) {  // The journal could not be written: once more.
    TRY(controller_.Turn());
  }
  if (!controller_.is_thinking() && IsPlanDue()) {
    cluster_.Forget();
    controller_.ForgetMoves();
    controller_.BeginPlan();
    planning_ = true;
  }
  if (!planning_) return false;
  TRY_ASSIGN(const TurnResult result, controller_.Turn());
  if (result == TurnResult::kThinking) return false;
  if (result != TurnResult::kExhausted) ++status_.decisions;
  if (result == TurnResult::kMoved) {
    ++status_.moves;
    return true;
  }
  EndPlan(controller_);
  return false;
}

// A plan goes on while its own moves change the cluster: each is decided on what is there.
Result<bool> ApplicationRun::Act() {
  if (IsAsking(&acting_)) return false;
  if (!planning_ && IsPlanDue()) {
    acting_.BeginPlan();
    planning_ = true;
    failures_ = 0;
  }
  if (!planning_) return false;
  TRY_ASSIGN(const TurnResult result, acting_.Turn());
  if (result == TurnResult::kThinking) return false;
  if (result != TurnResult::kExhausted) ++status_.decisions;
  if (result == TurnResult::kWaiting) return false;
  if (result == TurnResult::kMoved) return NoteMove();
  EndPlan(acting_);
  return false;
}

Result<bool> ApplicationRun::HearOfMove() {
  TRY_ASSIGN(const TurnResult result, acting_.Turn());
  return result == TurnResult::kMoved ? NoteMove() : false;
}

// A plan whose moves fail is not what this cluster needs: another one is made after the rest.
bool ApplicationRun::NoteMove() {
  const bool is_done = acting_.failure().empty();
  ++(is_done ? status_.moved : status_.not_moved);
  failures_ += is_done ? 0 : 1;
  if (failures_ >= kFailuresOfAPlan) EndPlan(acting_);
  return planning_ && acts_;
}

void ApplicationRun::EndPlan(const Controller& controller) {
  if (acts_) cluster_.TakeChange();  // By the plan itself.
  planning_ = false;
  plan_ended_at_ = cluster_.Now();
  ++status_.plans;
  status_.planned = controller.terms();
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
