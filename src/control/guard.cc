// SPDX-License-Identifier: Apache-2.0
#include "control/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "task/migration.h"

namespace rudderfish {
namespace {

template <class... Args>
Verdict Refuse(fmt::format_string<Args...> format, Args&&... args) {
  return {.allowed = false, .reason = fmt::format(format, std::forward<Args>(args)...)};
}

bool IsCalled(const State& state, PodId pod, const std::string& name) {
  if (state.names != nullptr && !state.names->pods.empty()) return state.names->pods[pod] == name;
  return PodName(state, pod) == name;
}

// `place` is tried first; kNone if there is no such pod.
PodId FindPod(const State& state, const std::string& name, PodId place) {
  if (place < state.pods.size() && IsCalled(state, place, name)) return place;
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (IsCalled(state, pod, name)) return pod;
  }
  return kNone;
}

}  // namespace

bool Guard::Hold(State* state) {
  const bool others_held = HoldPods(state);
  return FindLeft(*state) || others_held;
}

bool Guard::FindLeft(const State& state) {
  std::swap(cells_, cells_before_);
  cells_.clear();
  std::erase_if(left_, [&](const Left& left) { return IsOver(left, state.at); });
  for (const Left& left : left_) {
    const auto& names = state.names->nodes;
    const auto found = std::find(names.begin(), names.end(), left.node);
    if (found == names.end()) continue;  // A node that is gone is not returned to either.
    cells_.push_back({left.workload, static_cast<NodeId>(found - names.begin())});
  }
  return cells_ != cells_before_;
}

bool Guard::IsOver(const Left& left, std::chrono::nanoseconds now) const {
  return left.plan != plan_ && now - left.moved_at >= options_.return_cooldown;
}

bool Guard::HoldPods(State* state) {
  std::erase_if(resting_, [&](const Rest& rest) {
    return state->at - rest.moved_at >= options_.pod_cooldown;
  });
  while (!moved_at_.empty() && state->at - moved_at_.front() >= std::chrono::hours(1))
    moved_at_.pop_front();
  std::swap(held_, held_before_);
  held_.clear();
  if (moves_in_plan_ >= options_.moves_per_plan || IsHourUsedUp()) {
    held_.assign(state->pods.size(), 1);
  } else if (!resting_.empty()) {
    held_.assign(state->pods.size(), 0);
    for (Rest& rest : resting_) {
      const PodId pod = FindPod(*state, rest.pod, rest.place);
      if (pod == kNone) continue;
      rest.place = pod;
      held_[pod] = 1;
    }
  }
  state->pods.held = held_;
  return held_ != held_before_;
}

std::string Guard::WhyResting(const State& state, PodId pod) const {
  for (const Rest& rest : resting_) {
    if (!IsCalled(state, pod, rest.pod) || state.at - rest.moved_at >= options_.pod_cooldown)
      continue;
    const double ago = std::chrono::duration<double>(state.at - rest.moved_at).count();
    return fmt::format("was moved {} and rests for {:.0f} s",
                       ago < 1 ? "just before" : fmt::format("{:.0f} s ago", ago),
                       std::chrono::duration<double>(options_.pod_cooldown).count());
  }
  return "";
}

bool Guard::IsHourUsedUp() const {
  return options_.moves_per_hour && static_cast<int>(moved_at_.size()) >= *options_.moves_per_hour;
}

std::string Guard::WhyNothingMoves() const {
  if (IsHourUsedUp())
    return fmt::format("{} pods were moved within the last hour, as many as may be",
                       moved_at_.size());
  if (moves_in_plan_ < options_.moves_per_plan) return "";
  return fmt::format("the plan has made {} of its {} moves", moves_in_plan_,
                     options_.moves_per_plan);
}

Verdict Guard::Review(const State& newest, Evaluator* model, const Task& task,
                      const Question& question, const Decision& decision,
                      const NextMove& next) const {
  if (decision.empty()) return {.allowed = true, .reason = ""};
  const auto moves = static_cast<int>(decision.size());
  if (moves_in_plan_ + moves > options_.moves_per_plan) {
    return Refuse("the plan has made {} of its {} moves", moves_in_plan_, options_.moves_per_plan);
  }
  if (IsHourUsedUp()) return Refuse("{}", WhyNothingMoves());
  // One action after another, each in the state that the ones before it leave.
  const double now_ms = model->Now().latency_ms;
  int made = 0;
  Verdict verdict{.allowed = true, .reason = ""};
  for (const Action& action : decision) {
    verdict = ReviewMove(newest, *model, std::get<Migrate>(action));
    if (!verdict.allowed) break;
    model->Commit(action);
    ++made;
  }
  if (verdict.allowed && options_.benefit_factor) {
    verdict = ReviewGain(now_ms, model, task, question, next, &made);
  }
  for (; made > 0; --made) model->Undo();
  return verdict;
}

// The decision has been made on the model. Goes on as the policy would until the plan has paid for
// its steps: most plans have at once.
Verdict Guard::ReviewGain(double start_ms, Evaluator* model, const Task& task,
                          const Question& question, const NextMove& next, int* made) const {
  double needed_ms = 0;
  int steps = 0;
  for (Question here = question;; ++here.step) {
    needed_ms += task.StepCost(here) * *options_.benefit_factor;
    ++steps;
    if (start_ms - model->Now().latency_ms >= needed_ms) return {.allowed = true, .reason = ""};
    const bool ends =
        here.step + 1 >= task.max_steps() || moves_in_plan_ + *made >= options_.moves_per_plan;
    const std::optional<Move> move = ends ? std::nullopt : next({here.step + 1});
    if (!move) break;
    model->Commit(*move);
    ++*made;
  }
  const double gain_ms = start_ms - model->Now().latency_ms;
  if (steps == 1) {
    return Refuse("a predicted gain of {:.3f} ms is less than the {:.3f} ms it must reach", gain_ms,
                  needed_ms);
  }
  return Refuse(
      "the plan's {} moves are predicted to gain {:.3f} ms, less than the {:.3f} ms they "
      "must reach",
      steps, gain_ms, needed_ms);
}

Verdict Guard::ReviewMove(const State& newest, const Evaluator& model,
                          const Migrate& migrate) const {
  if (migrate.pod < 0 || migrate.pod >= newest.pods.size()) {
    return Refuse("there is no pod {} any more", migrate.pod);
  }
  if (migrate.to < 0 || migrate.to >= newest.nodes.size()) {
    return Refuse("there is no node {} any more", migrate.to);
  }
  const std::string pod = PodName(newest, migrate.pod);
  const NodeId now_on = newest.pods.node[migrate.pod];
  if (now_on == kNone || now_on != migrate.from) {
    return Refuse("{} is on {} by now", pod,
                  now_on == kNone ? "no node" : NodeName(newest, now_on));
  }
  if (const std::string why = WhyResting(newest, migrate.pod); !why.empty()) {
    return Refuse("{} {}", pod, why);
  }
  const Placement& placement = model.placement();
  const Move move{newest.pods.workload[migrate.pod], migrate.from, migrate.to};
  if (!MoveAllowed(newest, placement, move)) {
    if (!newest.workload_of(migrate.pod).movable) return Refuse("{} may not be moved", pod);
    if (move.from == move.to) return Refuse("{} is on {} already", pod, NodeName(newest, move.to));
    if (!placement.Fits(move.workload, move.to)) {
      const Resources& free = placement.free(move.to);
      const Resources& requests = placement.requests(move.workload);
      return Refuse("{} asks for {}m CPU and {} bytes, {} has {}m and {} free", pod,
                    requests.cpu_millis, requests.memory_bytes, NodeName(newest, move.to),
                    free.cpu_millis, free.memory_bytes);
    }
    if (placement.has_left(move.workload, move.to)) {
      return Refuse("{}", WhyNotBack(newest, move));
    }
    return Refuse("{} does not accept pods that are moved", NodeName(newest, move.to));
  }
  return {.allowed = true, .reason = ""};
}

std::string Guard::WhyNotBack(const State& state, const Move& move) const {
  const std::string& workload = state.catalog->workloads[move.workload].name;
  const std::string node = NodeName(state, move.to);
  const bool is_of_this_plan = std::any_of(left_.begin(), left_.end(), [&](const Left& left) {
    return left.plan == plan_ && left.workload == move.workload && left.node == node;
  });
  if (is_of_this_plan)
    return fmt::format("pods of {} left {} earlier in this plan and do not return", workload, node);
  return fmt::format("a pod of {} was moved away from {} less than {:.0f} s ago", workload, node,
                     std::chrono::duration<double>(options_.return_cooldown).count());
}

void Guard::Recall(WorkloadId workload, std::string left_node, std::chrono::nanoseconds moved_at) {
  left_.push_back({workload, std::move(left_node), moved_at, plan_ - 1});
  if (options_.moves_per_hour) moved_at_.push_back(moved_at);
}

void Guard::Note(const State& state, const Decision& decision) {
  for (const Action& action : decision) {
    ++moves_in_plan_;
    if (options_.moves_per_hour) moved_at_.push_back(state.at);
    const auto& migrate = std::get<Migrate>(action);
    left_.push_back(
        {state.pods.workload[migrate.pod], NodeName(state, migrate.from), state.at, plan_});
    if (options_.pod_cooldown.count() == 0) continue;
    const PodId pod = migrate.pod;
    std::string name = PodName(state, pod);
    std::erase_if(resting_, [&](const Rest& rest) { return rest.pod == name; });
    resting_.push_back({std::move(name), state.at, pod});
  }
}

std::string DescribeDecision(const State& state, const Decision& decision) {
  if (decision.empty()) return "stay";
  std::string text;
  for (const Action& action : decision) {
    const auto& migrate = std::get<Migrate>(action);
    text += fmt::format("{}{} from {} to {}", text.empty() ? "" : ", ", PodName(state, migrate.pod),
                        NodeName(state, migrate.from), NodeName(state, migrate.to));
  }
  return text;
}

}  // namespace rudderfish
