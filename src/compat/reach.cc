// SPDX-License-Identifier: Apache-2.0
#include "compat/reach.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "base/log.h"
#include "policy/plan.h"

namespace rudderfish {

// The task, where the move that is asked for must also be one that the request allows. Later moves
// are only imagined: what they would find is not in the request.
class ReachAdviser::MaskedTask final : public Task {
 public:
  MaskedTask(const Task* task, const ReachMask* mask) : task_(task), mask_(mask) {}

  // Of the step that is asked for.
  void set_step(int step) { step_ = step; }

  std::string_view name() const override { return task_->name(); }
  int max_steps() const override { return task_->max_steps(); }
  const FeatureTable& features() const override { return task_->features(); }
  GraphWidths widths() const override { return task_->widths(); }

  void Space(Evaluator* model, const Question& question, ActionSpace* space) const override {
    task_->Space(model, question, space);
    if (question.step != step_) return;
    const State& state = model->state();
    std::erase_if(space->candidates, [&](const Candidate& candidate) {
      return mask_->PodFor(state, candidate.move) == kNone;
    });
    space->exhaustive = true;  // What is not listed may not be asked for.
    space->allowed_cells = 1;
    for (const Candidate& candidate : space->candidates) space->allowed_cells += candidate.pods;
  }
  void Encode(Evaluator* model, const Question& question, ActionSpace* space,
              GraphBatch* batch) const override {
    task_->Encode(model, question, space, batch);
  }
  void Decode(const State& state, const ActionSpace& space, int choice,
              Decision* decision) const override {
    decision->clear();
    if (choice == kStop) return;
    const Move& move = space.candidates[choice].move;
    const PodId pod = mask_->PodFor(state, move);
    CHECK_NE(pod, kNone);
    decision->push_back(Migrate{pod, move.from, move.to});
  }
  double StepCost(const Question& question) const override { return task_->StepCost(question); }

 private:
  const Task* task_;
  const ReachMask* mask_;
  int step_ = 0;
};

ReachAdviser::ReachAdviser(const ReachWorld* world, const LatencyLaw& law, const Task* task,
                           const Policy* policy, ReachPlans* plans)
    : world_(world),
      policy_(policy),
      plans_(plans),
      task_(std::make_unique<MaskedTask>(task, &mask_)),
      memory_(policy->NewMemory(0)),
      model_(law) {}

ReachAdviser::~ReachAdviser() = default;

Result<ReachAnswer> ReachAdviser::Decide(std::string_view body) {
  TRY_ASSIGN(const ReachRequest request, ParseReachRequest(body));
  TRY_ASSIGN(left_out_, BuildReachState(*world_, request, &state_, &mask_));
  ReachPlan plan = plans_->At(state_);
  if (plan.step >= task_->max_steps()) return ReachAnswer{};
  model_.Reset(state_);
  model_.Leave(plan.LeftIn(state_));
  memory_->Restart();
  const Question question{plan.step};
  task_->set_step(plan.step);
  task_->Space(&model_, question, &space_);
  Ask ask{.model = &model_,
          .task = task_.get(),
          .question = question,
          .space = &space_,
          .memory = memory_.get()};
  auto* planning = dynamic_cast<PlanMemory*>(memory_.get());  // Of policies that plan.
  if (planning != nullptr) planning->Resume(plan.RestIn(state_), ask);
  policy_->Decide({&ask, 1}, {&answer_, 1});
  task_->Decode(state_, space_, answer_.choice, &decision_);
  if (decision_.empty()) return ReachAnswer{};
  const auto& migrate = std::get<Migrate>(decision_.front());
  if (planning != nullptr) plan.SetRest(state_, planning->RestAfter(question));
  plans_->Lead(state_, migrate, std::move(plan));
  return ReachAnswer{.pod = PodName(state_, migrate.pod),
                     .target_node = NodeName(state_, migrate.to)};
}

std::string ReachAnswerJson(const ReachAnswer& answer) {
  const Json json{
      {"is_stop", answer.is_stop()}, {"pod_name", answer.pod}, {"target_node", answer.target_node}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

ReachServer::ReachServer(const ReachWorld* world, const LatencyLaw& law, const Task* task,
                         const Policy* policy, int workers) {
  for (int i = 0; i < workers; ++i)
    advisers_.push_back(std::make_unique<ReachAdviser>(world, law, task, policy, &plans_));
}

void ReachServer::WarnOnce(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (warned_.size() >= kWarningsMax || !warned_.insert(what).second) return;
  LogWarning("POST /get_action: {}", what);
  if (warned_.size() == kWarningsMax) LogWarning("POST /get_action: further warnings are left out");
}

HttpResponse ReachServer::GetAction(const HttpRequest& request) {
  std::string type(request.content_type.substr(0, request.content_type.find(';')));
  std::transform(type.begin(), type.end(), type.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  while (!type.empty() && type.back() == ' ') type.pop_back();
  if (type != "application/json") {
    return HttpError(415, "expected a body of type application/json; say so in Content-Type");
  }
  ReachAdviser& adviser = *advisers_[request.worker];
  const Result<ReachAnswer> answer = adviser.Decide(request.body);
  if (!answer) {
    WarnOnce(fmt::format("refused: {}", answer.error().message));
    const bool malformed = answer.error().code == ErrorCode::kInvalidArgument;
    return HttpError(malformed ? 400 : 422, answer.error().message);
  }
  for (const std::string& what : adviser.left_out()) WarnOnce(what);
  return {.status = 200,
          .content_type = "application/json",
          .body = ReachAnswerJson(*answer),
          .note = answer->is_stop() ? "stop"
                                    : fmt::format("{} -> {}", answer->pod, answer->target_node)};
}

}  // namespace rudderfish
