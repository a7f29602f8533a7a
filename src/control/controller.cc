// SPDX-License-Identifier: Apache-2.0
#include "control/controller.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "control/refusals.h"

namespace rudderfish {
namespace {

JournalMove NameMove(const State& state, const Action& action) {
  const auto& migrate = std::get<Migrate>(action);
  return {PodName(state, migrate.pod), NodeName(state, migrate.from), NodeName(state, migrate.to)};
}

std::vector<JournalMove> NameMoves(const State& state, const Decision& decision) {
  std::vector<JournalMove> moves;
  for (const Action& action : decision) moves.push_back(NameMove(state, action));
  return moves;
}

// Most policies have answered by then, so that their answer is about the newest state.
constexpr std::chrono::milliseconds kBriefly(2);

Terms Predict(const Decision& decision, Evaluator* model) {
  for (const Action& action : decision) model->Commit(action);
  const Terms terms = model->Now();
  for (size_t i = 0; i < decision.size(); ++i) model->Undo();
  return terms;
}

}  // namespace

Controller::Controller(Cluster* cluster, const Task* task, const LatencyLaw& law,
                       const Policy* policy, const GuardOptions& guard, Journal* journal,
                       ControllerOptions options)
    : cluster_(cluster),
      task_(task),
      policy_(policy),
      guard_(guard, options.application, options.ledger),
      journal_(journal),
      options_(std::move(options)),
      memory_(policy->NewMemory(options_.seed)),
      model_(law) {
  if (options_.max_steps == 0) options_.max_steps = task_->max_steps();
  if (options_.policy.empty()) options_.policy = policy_->name();
  if (options_.baseline == nullptr) return;
  baseline_memory_ = options_.baseline->NewMemory(options_.seed);
  baseline_plan_ = std::make_unique<BaselinePlan>(options_.baseline, task_, law, options_.seed);
}

Controller::~Controller() { EndThought(); }

void Controller::SetLaw(const LatencyLaw& law) {
  CHECK(!in_flight_);
  EndThought();
  if (plan_open_) EndPlan(TurnResult::kStopped);
  model_ = Evaluator(law);
  observed_ = false;
  if (baseline_plan_ != nullptr) baseline_plan_->SetLaw(law);
}

void Controller::BeginPlan() {
  CHECK(!in_flight_);
  EndThought();
  if (plan_open_) ++plan_;
  plan_open_ = true;
  question_ = {};
  attempts_ = 0;
  memory_->Restart();
  if (baseline_memory_ != nullptr) baseline_memory_->Restart();
  guard_.BeginPlan();
}

Result<TurnResult> Controller::Turn() {
  if (!is_thinking()) {
    if (!plan_open_) BeginPlan();
    TRY(Observe());
    if (in_flight_) return Conclude();
    if (attempts_ >= options_.max_steps) return EndPlan(TurnResult::kExhausted);
    Think();
  }
  if (is_thinking() && !DropThought()) return TurnResult::kThinking;
  if (guard_.has_leaving()) TRY(LeaveAnyway());
  Decision decision;
  task_->Decode(state_, space_, answer_.choice, &decision);
  JournalRow row = Describe(decision);

  // Deciding may have taken long: the guard looks at the newest state.
  const std::shared_ptr<const Names> names = state_.names;
  TRY(Observe());
  row.verdict = {.allowed = false, .reason = Rename(names.get(), &decision)};
  if (row.verdict.reason.empty()) {
    row.verdict = guard_.Review(state_, &model_, *task_, question_, decision,
                                [this](const Question& question) { return Foresee(question); });
  }
  DescribePlan(&row);
  if (decision.empty() || !row.verdict.allowed) {
    row.fate = decision.empty() ? Fate::kStayed : Fate::kRefused;
    TRY(journal_->Append(std::move(row)));
    return EndPlan(decision.empty() ? TurnResult::kStopped : TurnResult::kRefused);
  }
  TRY(Submit(decision, std::move(row)));
  if (completions_.size() < flight_.intents) return TurnResult::kWaiting;
  TRY(Observe());
  return Conclude();
}

// Pods and nodes that came or went meanwhile have changed the ids of the others: gives the decision
// the ids that its pods and nodes have now. Which of them is gone; empty: all are there.
std::string Controller::Rename(const Names* before, Decision* decision) const {
  const Names* now = state_.names.get();
  if (before == now || before == nullptr || now == nullptr || *before == *now) return "";
  const auto find = [](const std::vector<std::string>& names, const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() ? kNone : static_cast<int32_t>(found - names.begin());
  };
  for (Action& action : *decision) {
    auto& migrate = std::get<Migrate>(action);
    if (!before->pods.empty()) {  // Else they have no names, and their numbers stay.
      const std::string& pod = before->pods[migrate.pod];
      migrate.pod = find(now->pods, pod);
      if (migrate.pod == kNone) return fmt::format("pod {} is gone", pod);
    }
    for (NodeId* node : {&migrate.from, &migrate.to}) {
      const std::string& name = before->nodes[*node];
      *node = find(now->nodes, name);
      if (*node == kNone) return fmt::format("node {} is gone", name);
    }
  }
  return "";
}

Result<TurnResult> Controller::RunPlan() {
  while (true) {
    TRY_ASSIGN(const TurnResult result, Turn());
    if (result == TurnResult::kThinking) {
      thought_.wait();
    } else if (result == TurnResult::kWaiting) {
      if (!options_.wait) return result;
      options_.wait();
    } else if (result != TurnResult::kMoved) {
      return result;
    }
  }
}

TurnResult Controller::EndPlan(TurnResult why) {
  plan_open_ = false;
  ++plan_;
  return why;
}

Result<void> Controller::Observe() {
  TRY(cluster_->Refresh(&state_));
  const bool others_held = guard_.Hold(&state_);
  if (!observed_ || others_held || state_.version != observed_version_) {
    model_.Reset(state_);
    model_.Leave(guard_.left_cells());
  }
  observed_ = true;
  observed_version_ = state_.version;
  return {};
}

// The Model and the spaces are the policies' until they have answered; nothing else is touched.
void Controller::Think() {
  if (options_.thinker == nullptr) {
    AskPolicies();
  } else {
    thought_ = options_.thinker->Do([this] { AskPolicies(); });
    thought_.wait_for(kBriefly);
  }
}

void Controller::AskPolicies() {
  Consult(*policy_, memory_.get(), &space_, &answer_);
  if (options_.baseline == nullptr) return;
  Consult(*options_.baseline, baseline_memory_.get(), &baseline_space_, &baseline_answer_);
}

bool Controller::DropThought() {
  if (thought_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  thought_ = {};
  return true;
}

void Controller::EndThought() {
  if (thought_.valid()) thought_.wait();
  thought_ = {};
}

void Controller::Consult(const Policy& policy, Memory* memory, ActionSpace* space, Answer* answer) {
  task_->Space(&model_, question_, space);
  Ask ask{.model = &model_, .task = task_, .question = question_, .space = space, .memory = memory};
  policy.Decide({&ask, 1}, {answer, 1});
}

// With the policy's own memory: one that follows a plan is asked by step, so that asking ahead
// changes nothing.
std::optional<Move> Controller::Foresee(const Question& question) {
  task_->Space(&model_, question, &ahead_space_);
  Ask ask{.model = &model_,
          .task = task_,
          .question = question,
          .space = &ahead_space_,
          .memory = memory_.get()};
  policy_->Decide({&ask, 1}, {&ahead_answer_, 1});
  if (ahead_answer_.choice == kStop) return std::nullopt;
  return ahead_space_.candidates[ahead_answer_.choice].move;
}

// A pod whose node is being emptied ends there in any case: where the policy would let it, it goes
// where the Model says that it does best.
Result<void> Controller::LeaveAnyway() {
  if (answer_.choice != kStop) return {};
  if (space_.count() == 0) {
    guard_.GiveUpLeaving();
    TRY(Observe());
    AskPolicies();
    return {};
  }
  const auto& candidates = space_.candidates;
  const auto best = std::max_element(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.gain_ms < b.gain_ms; });
  answer_.choice = static_cast<int>(best - candidates.begin());
  return {};
}

JournalRow Controller::Describe(const Decision& decision) {
  JournalRow row{.at = cluster_->Now(),
                 .application = options_.application,
                 .kind = std::string(task_->name()),
                 .mode = std::string(ModeName(options_.mode)),
                 .plan = plan_,
                 .step = question_.step,
                 .policy = options_.policy,
                 .objective = options_.objective,
                 .state_version = state_.version,
                 .seen = model_.Now(),
                 .allowed_cells = space_.allowed_cells,
                 .chosen = NameMoves(state_, decision),
                 .predicted = Predict(decision, &model_)};
  row.predicted_gain_ms = row.seen.latency_ms - row.predicted.latency_ms;
  row.step_cost_ms = task_->StepCost(question_);
  DescribeAlternatives(&row);
  ListRefusals(state_, model_.placement(), guard_, options_.refusals_kept, &row);
  if (options_.baseline != nullptr) {
    row.baseline = options_.baseline->name();
    Decision choice;
    task_->Decode(state_, baseline_space_, baseline_answer_.choice, &choice);
    row.baseline_choice = NameMoves(state_, choice);
  }
  return row;
}

// By the policy's own scores if it has any, else by predicted gain, where stopping gains nothing.
// Of those that are equal but for the last digit of a float the one that was chosen comes first.
void Controller::DescribeAlternatives(JournalRow* row) {
  const int stop = space_.count();
  const bool scored = static_cast<int>(answer_.scores.size()) == stop + 1;
  const auto score = [&](int i) {
    if (scored) return answer_.scores[i];
    return i == stop ? 0.0f : space_.candidates[i].gain_ms;
  };
  std::vector<int> order(stop + 1);
  std::iota(order.begin(), order.end(), 0);
  const int keep = std::min(options_.alternatives_kept, stop + 1);
  float best_score = score(stop);
  for (int i = 0; i < stop; ++i) best_score = std::max(best_score, score(i));
  const int chosen = answer_.choice == kStop ? stop : answer_.choice;
  const bool chosen_is_best = score(chosen) >= std::nextafter(best_score, -HUGE_VALF);
  std::partial_sort(order.begin(), order.begin() + keep, order.end(), [&](int a, int b) {
    if (chosen_is_best && (a == chosen || b == chosen)) return a == chosen && b != chosen;
    return score(a) != score(b) ? score(a) > score(b) : a < b;
  });
  for (int rank = 0; rank < keep; ++rank) KeepAlternative(order[rank], row);
  if (!options_.alternative_of_each_workload) return;
  std::vector<int> best(state_.catalog->workload_count(), kStop);
  for (int i = 0; i < stop; ++i) {
    int& so_far = best[space_.candidates[i].move.workload];
    if (so_far == kStop || score(i) > score(so_far)) so_far = i;
  }
  for (const int i : best) {
    const bool kept = std::find(order.begin(), order.begin() + keep, i) != order.begin() + keep;
    if (i != kStop && !kept) KeepAlternative(i, row);
  }
}

void Controller::KeepAlternative(int candidate, JournalRow* row) {
  const int stop = space_.count();
  Decision decision;
  task_->Decode(state_, space_, candidate == stop ? kStop : candidate, &decision);
  const bool scored = static_cast<int>(answer_.scores.size()) == stop + 1;
  Alternative alternative{
      .move = std::nullopt, .predicted = Predict(decision, &model_), .score = std::nullopt};
  if (scored) alternative.score = answer_.scores[candidate];
  if (!decision.empty()) {
    alternative.move = NameMove(state_, decision.front());
    alternative.workload = state_.workload_of(std::get<Migrate>(decision.front()).pod).name;
  }
  row->considered.push_back(std::move(alternative));
}

// With the plan's last row: what its moves gain, and the baseline's in as many. The result is the
// same when it is asked again after an error of the journal.
void Controller::DescribePlan(JournalRow* row) {
  if (question_.step == 0) {
    plan_start_ms_ = row->seen.latency_ms;
    if (baseline_plan_ != nullptr) baseline_plan_->Begin(state_);
  }
  const bool moves = !row->chosen.empty() && row->verdict.allowed;
  const int made = question_.step + (moves ? 1 : 0);
  if (baseline_plan_ != nullptr) baseline_plan_->MoveUpTo(made);
  if (moves && attempts_ + 1 < options_.max_steps) return;
  double gain_ms = plan_start_ms_ - (moves ? row->predicted : row->seen).latency_ms;
  for (int step = 0; step < made; ++step) gain_ms -= task_->StepCost({step});
  row->plan_gain_ms = gain_ms;
  if (baseline_plan_ != nullptr) row->baseline_plan_gain_ms = baseline_plan_->gain_ms();
}

Result<void> Controller::Submit(const Decision& decision, JournalRow row) {
  std::vector<Intent> intents;
  for (const Action& action : decision) {
    const auto& migrate = std::get<Migrate>(action);
    intents.push_back({action, {.state_version = state_.version, .pod_was_on = migrate.from}});
  }
  // Written before it is done: after a crash, the journal shows what may have happened.
  TRY_ASSIGN(const int64_t number, journal_->Append(std::move(row)));
  guard_.Note(state_, decision);
  ++attempts_;
  flight_ = {.row = number, .intents = intents.size()};
  in_flight_ = true;
  completions_.clear();
  cluster_->Submit(intents, &completions_);
  return {};
}

Result<TurnResult> Controller::Conclude() {
  if (completions_.size() < flight_.intents) return TurnResult::kWaiting;
  failure_.clear();
  std::string move;
  for (const Completion& completion : completions_) {
    if (!completion.outcome && failure_.empty()) failure_ = completion.outcome.error().message;
    if (move.empty()) move = completion.move;
  }
  const Fate done = options_.mode < Mode::kCanary ? Fate::kRecorded : Fate::kDone;
  TRY(journal_->Conclude(flight_.row, {failure_.empty() ? done : Fate::kFailed, failure_,
                                       model_.Now(), std::move(move)}));
  in_flight_ = false;
  if (failure_.empty()) ++question_.step;
  return TurnResult::kMoved;
}

std::optional<int64_t> Controller::HandOver() {
  if (!std::exchange(in_flight_, false)) return std::nullopt;
  return flight_.row;
}

Result<void> Controller::Abandon(std::string_view why) {
  if (!in_flight_) return {};
  if (completions_.size() >= flight_.intents) {  // Its outcome is known, and not written yet.
    TRY(Conclude());
    return {};
  }
  in_flight_ = false;
  return journal_->Conclude(flight_.row, {Fate::kUnknown, std::string(why), model_.Now()});
}

}  // namespace rudderfish
