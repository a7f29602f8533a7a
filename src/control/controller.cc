// SPDX-License-Identifier: Apache-2.0
#include "control/controller.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

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
      guard_(guard),
      journal_(journal),
      options_(std::move(options)),
      memory_(policy->NewMemory(options_.seed)),
      model_(law) {
  if (options_.max_steps == 0) options_.max_steps = task_->max_steps();
  if (options_.baseline != nullptr) baseline_memory_ = options_.baseline->NewMemory(options_.seed);
}

void Controller::BeginPlan() {
  CHECK(!in_flight_);
  if (plan_open_) ++plan_;
  plan_open_ = true;
  question_ = {};
  attempts_ = 0;
  memory_->Restart();
  if (baseline_memory_ != nullptr) baseline_memory_->Restart();
  guard_.BeginPlan();
}

Result<TurnResult> Controller::Turn() {
  if (!plan_open_) BeginPlan();
  TRY(Observe());
  if (in_flight_) return Conclude() ? TurnResult::kMoved : TurnResult::kWaiting;
  if (attempts_ >= options_.max_steps) return EndPlan(TurnResult::kExhausted);

  Consult(*policy_, memory_.get(), &space_, &answer_);
  Decision decision;
  task_->Decode(state_, space_, answer_.choice, &decision);
  JournalRow row = Describe(decision);

  // Deciding may have taken long: the guard looks at the newest state.
  TRY(Observe());
  row.verdict = guard_.Review(state_, &model_, *task_, question_, decision);
  if (decision.empty() || !row.verdict.allowed) {
    row.fate = decision.empty() ? Fate::kStayed : Fate::kRefused;
    journal_->Append(std::move(row));
    return EndPlan(decision.empty() ? TurnResult::kStopped : TurnResult::kRefused);
  }
  Submit(decision, std::move(row));
  if (completions_.size() < flight_.intents) return TurnResult::kWaiting;
  TRY(Observe());
  Conclude();
  return TurnResult::kMoved;
}

Result<TurnResult> Controller::RunPlan() {
  while (true) {
    TRY_ASSIGN(const TurnResult result, Turn());
    if (result == TurnResult::kWaiting) {
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
  if (!observed_ || state_.version != observed_version_) model_.Reset(state_);
  observed_ = true;
  observed_version_ = state_.version;
  return {};
}

void Controller::Consult(const Policy& policy, Memory* memory, ActionSpace* space, Answer* answer) {
  task_->Space(&model_, question_, space);
  Ask ask{.model = &model_, .task = task_, .question = question_, .space = space, .memory = memory};
  policy.Decide({&ask, 1}, {answer, 1});
}

JournalRow Controller::Describe(const Decision& decision) {
  JournalRow row{.at = cluster_->Now(),
                 .plan = plan_,
                 .step = question_.step,
                 .policy = std::string(policy_->name()),
                 .state_version = state_.version,
                 .seen = model_.Now(),
                 .allowed_cells = space_.allowed_cells,
                 .chosen = NameMoves(state_, decision),
                 .predicted = Predict(decision, &model_)};
  row.predicted_gain_ms = row.seen.latency_ms - row.predicted.latency_ms;
  row.step_cost_ms = decision.empty() ? 0 : task_->StepCost(question_);
  DescribeAlternatives(&row);
  if (options_.baseline != nullptr) {
    row.baseline = options_.baseline->name();
    Consult(*options_.baseline, baseline_memory_.get(), &baseline_space_, &baseline_answer_);
    Decision choice;
    task_->Decode(state_, baseline_space_, baseline_answer_.choice, &choice);
    row.baseline_choice = NameMoves(state_, choice);
  }
  return row;
}

// By the policy's own scores if it has any, else by predicted gain, where stopping gains nothing.
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
  std::partial_sort(order.begin(), order.begin() + keep, order.end(), [&](int a, int b) {
    return score(a) != score(b) ? score(a) > score(b) : a < b;
  });
  Decision decision;
  for (int rank = 0; rank < keep; ++rank) {
    const int i = order[rank];
    task_->Decode(state_, space_, i == stop ? kStop : i, &decision);
    Alternative alternative{.move = std::nullopt,
                            .predicted = Predict(decision, &model_),
                            .score = scored ? answer_.scores[i] : 0.0};
    if (!decision.empty()) alternative.move = NameMove(state_, decision.front());
    row->considered.push_back(std::move(alternative));
  }
}

void Controller::Submit(const Decision& decision, JournalRow row) {
  std::vector<Intent> intents;
  for (const Action& action : decision) {
    const auto& migrate = std::get<Migrate>(action);
    intents.push_back({action, {.state_version = state_.version, .pod_was_on = migrate.from}});
  }
  guard_.Note(state_, decision);
  ++attempts_;
  // Written before it is done: whoever reads the journal after a crash sees what may have happened.
  flight_ = {.row = journal_->Append(std::move(row)), .intents = intents.size()};
  in_flight_ = true;
  completions_.clear();
  cluster_->Submit(intents, &completions_);
}

bool Controller::Conclude() {
  if (completions_.size() < flight_.intents) return false;
  std::string failure;
  for (const Completion& completion : completions_) {
    if (!completion.outcome && failure.empty()) failure = completion.outcome.error().message;
  }
  in_flight_ = false;
  if (failure.empty()) ++question_.step;
  journal_->Conclude(flight_.row, failure.empty() ? Fate::kDone : Fate::kFailed, failure,
                     model_.Now());
  return true;
}

}  // namespace rudderfish
