// SPDX-License-Identifier: Apache-2.0
#include "compat/reach.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace rudderfish {

// The task, where the first move of a plan must also be one that the request allows. Later moves
// are only imagined: what they would find is not in the request.
class ReachAdviser::MaskedTask final : public Task {
 public:
  MaskedTask(const Task* task, const ReachMask* mask) : task_(task), mask_(mask) {}

  std::string_view name() const override { return task_->name(); }
  int max_steps() const override { return task_->max_steps(); }
  const FeatureTable& features() const override { return task_->features(); }
  GraphWidths widths() const override { return task_->widths(); }

  void Space(Evaluator* model, const Question& question, ActionSpace* space) const override {
    task_->Space(model, question, space);
    if (question.step > 0) return;
    const State& state = model->state();
    std::erase_if(space->candidates, [&](const Candidate& candidate) {
      return mask_->PodFor(state, candidate.move) == kNone;
    });
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
  Outcome Judge(const Terms& before, const Terms& after, const Question& question,
                const Decision& decision) const override {
    return task_->Judge(before, after, question, decision);
  }
  double StepCost(const Question& question) const override { return task_->StepCost(question); }
  double Discount() const override { return task_->Discount(); }

 private:
  const Task* task_;
  const ReachMask* mask_;
};

ReachAdviser::ReachAdviser(const ReachWorld* world, const LatencyLaw& law, const Task* task,
                           const Policy* policy)
    : world_(world),
      policy_(policy),
      task_(std::make_unique<MaskedTask>(task, &mask_)),
      memory_(policy->NewMemory(0)),
      model_(law) {}

ReachAdviser::~ReachAdviser() = default;

Result<ReachAnswer> ReachAdviser::Decide(std::string_view body) {
  TRY_ASSIGN(const ReachRequest request, ParseReachRequest(body));
  TRY(BuildReachState(*world_, request, &state_, &mask_));
  model_.Reset(state_);
  memory_->Restart();
  const Question question;
  task_->Space(&model_, question, &space_);
  Ask ask{.model = &model_,
          .task = task_.get(),
          .question = question,
          .space = &space_,
          .memory = memory_.get()};
  policy_->Decide({&ask, 1}, {&answer_, 1});
  task_->Decode(state_, space_, answer_.choice, &decision_);
  if (decision_.empty()) return ReachAnswer{};
  const auto& migrate = std::get<Migrate>(decision_.front());
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
    advisers_.push_back(std::make_unique<ReachAdviser>(world, law, task, policy));
}

HttpResponse ReachServer::GetAction(const HttpRequest& request) {
  std::string type(request.content_type.substr(0, request.content_type.find(';')));
  std::transform(type.begin(), type.end(), type.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  while (!type.empty() && type.back() == ' ') type.pop_back();
  if (type != "application/json") {
    return HttpError(415, "expected a body of type application/json; say so in Content-Type");
  }
  const Result<ReachAnswer> answer = advisers_[request.worker]->Decide(request.body);
  if (!answer) {
    const bool malformed = answer.error().code == ErrorCode::kInvalidArgument;
    return HttpError(malformed ? 400 : 422, answer.error().message);
  }
  return {.status = 200,
          .content_type = "application/json",
          .body = ReachAnswerJson(*answer),
          .note = answer->is_stop() ? "stop"
                                    : fmt::format("{} -> {}", answer->pod, answer->target_node)};
}

}  // namespace rudderfish
