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
  if (place != kNone && place < state.pods.size() && IsCalled(state, place, name)) return place;
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
  if (left_.empty() && !options_.moves_per_hour.node) return cells_ != cells_before_;
  const auto& names = state.names->nodes;
  for (const Left& left : left_) {
    const auto found = std::find(names.begin(), names.end(), left.node);
    if (found == names.end()) continue;  // A node that is gone is not returned to either.
    cells_.push_back({left.workload, static_cast<NodeId>(found - names.begin())});
  }
  for (size_t node = 0; node < names.size() && options_.moves_per_hour.node; ++node) {
    if (WhyNodeRests(names[node]).empty()) continue;
    for (WorkloadId workload = 0; workload < state.catalog->workload_count(); ++workload)
      cells_.push_back({workload, static_cast<NodeId>(node)});
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
  ledger().Trim(state->at);
  std::swap(held_, held_before_);
  held_.clear();
  if (!WhyNothingMoves().empty()) {
    held_.assign(state->pods.size(), 1);
  } else if (!resting_.empty() || options_.moves_per_hour.node ||
             options_.moves_per_hour.workload || options_.moves_per_hour.name_space) {
    held_.assign(state->pods.size(), 0);
    for (Rest& rest : resting_) {
      const PodId pod = FindPod(*state, rest.pod, rest.place);
      if (pod == kNone) continue;
      rest.place = pod;
      held_[pod] = 1;
    }
    HoldByHour(*state);
  }
  HoldOthers(*state);
  state->pods.held = held_;
  return held_ != held_before_;
}

bool Guard::Leaves(const State& state, NodeId node) const {
  if (!options_.leaves || node == kNone) return false;
  const bool is_named = state.names != nullptr && !state.names->nodes.empty();
  return options_.leaves(is_named ? std::string_view(state.names->nodes[node])
                                  : std::string_view(NodeName(state, node)));
}

// While pods of nodes that leave may be moved, all others are held.
void Guard::HoldOthers(const State& state) {
  has_leaving_ = false;
  if (!options_.leaves || !leaves_first_) return;
  std::vector<uint8_t> leaves;  // [node] Empty: none does, which is the rule.
  for (NodeId node = 0; node < state.nodes.size(); ++node) {
    if (!Leaves(state, node)) continue;
    leaves.resize(static_cast<size_t>(state.nodes.size()));
    leaves[node] = 1;
  }
  if (leaves.empty()) return;
  const auto goes_first = [&](PodId pod) {
    const NodeId node = state.pods.node[pod];
    return node != kNone && leaves[node] != 0 && state.workload_of(pod).movable &&
           (held_.empty() || held_[pod] == 0);
  };
  std::vector<uint8_t> others(static_cast<size_t>(state.pods.size()), 1);
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (!goes_first(pod)) continue;
    others[pod] = 0;
    has_leaving_ = true;
  }
  if (has_leaving_) held_ = std::move(others);
}

// Pods of workloads, and on nodes, of which as many were moved as may be.
void Guard::HoldByHour(const State& state) {
  const auto workloads = static_cast<size_t>(state.catalog->workload_count());
  std::vector<uint8_t> rests(workloads + state.nodes.size(), 0);
  for (size_t workload = 0; workload < workloads; ++workload)
    rests[workload] = !WhyWorkloadRests(state, static_cast<WorkloadId>(workload)).empty();
  for (NodeId node = 0; node < state.nodes.size(); ++node)
    rests[workloads + node] = !WhyNodeRests(NodeName(state, node)).empty();
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    const NodeId node = state.pods.node[pod];
    held_[pod] |= rests[state.pods.workload[pod]] | (node == kNone ? 0 : rests[workloads + node]);
  }
}

std::string Guard::UsedUp(int made, const std::optional<int>& limit) {
  if (!limit || made < *limit) return "";
  return fmt::format("{} {} within the last hour, as many as may be", made,
                     made == 1 ? "move" : "moves");
}

std::string Guard::WhyNodeRests(std::string_view node) const {
  if (!options_.moves_per_hour.node) return "";
  return UsedUp(ledger().OfNode(node), options_.moves_per_hour.node);
}

std::string Guard::WhyWorkloadRests(const State& state, WorkloadId workload) const {
  const HourlyMoves& limits = options_.moves_per_hour;
  if (limits.workload) {
    const std::string& name = state.catalog->workloads[workload].name;
    const std::string why = UsedUp(ledger().OfWorkload(application_, name), limits.workload);
    if (!why.empty()) return fmt::format("of {}, which had {}", name, why);
  }
  if (!limits.name_space) return "";
  const std::string name_space = NamespaceOf(workload);
  const std::string why = UsedUp(ledger().OfNamespace(name_space), limits.name_space);
  return why.empty() ? "" : fmt::format("in the namespace {}, which had {}", name_space, why);
}

std::string Guard::NamespaceOf(WorkloadId workload) const {
  const auto at = static_cast<size_t>(workload);
  return at < options_.namespaces.size() ? options_.namespaces[at] : "";
}

std::chrono::nanoseconds Guard::StartTime(WorkloadId workload) const {
  const bool counts = options_.horizon.count() > 0 && options_.start_time;
  return counts ? options_.start_time(workload) : std::chrono::nanoseconds(0);
}

std::string Guard::WhyHeld(const State& state, PodId pod) const {
  if (has_leaving_ && !Leaves(state, state.pods.node[pod]))
    return "waits until pods of nodes that are being emptied were moved";
  for (const Rest& rest : resting_) {
    if (!IsCalled(state, pod, rest.pod) || state.at - rest.moved_at >= options_.pod_cooldown)
      continue;
    const double ago = std::chrono::duration<double>(state.at - rest.moved_at).count();
    return fmt::format("was moved {} and rests for {:.0f} s",
                       ago < 1 ? "just before" : fmt::format("{:.0f} s ago", ago),
                       std::chrono::duration<double>(options_.pod_cooldown).count());
  }
  const WorkloadId workload = state.pods.workload[pod];
  if (const std::string why = WhyWorkloadRests(state, workload); !why.empty()) return "is " + why;
  const NodeId node = state.pods.node[pod];
  if (node == kNone) return "";
  if (const std::string why = WhyNodeRests(NodeName(state, node)); !why.empty())
    return fmt::format("is on {}, which had {}", NodeName(state, node), why);
  return "";
}

std::string Guard::WhyNothingMoves() const {
  const HourlyMoves& limits = options_.moves_per_hour;
  if (const std::string why = UsedUp(ledger().OfApplication(application_), limits.application);
      !why.empty())
    return fmt::format("{} had {}", application_.empty() ? "the application" : application_, why);
  if (const std::string why = UsedUp(ledger().OfCluster(), limits.cluster); !why.empty())
    return fmt::format("the cluster had {}", why);
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
  if (const std::string why = WhyNothingMoves(); !why.empty()) return Refuse("{}", why);
  // One action after another, each in the state that the ones before it leave.
  const double now_ms = model->Now().latency_ms;
  int made = 0;
  std::chrono::nanoseconds start_time{0};
  Verdict verdict{.allowed = true, .reason = ""};
  for (const Action& action : decision) {
    const auto& migrate = std::get<Migrate>(action);
    verdict = ReviewMove(newest, *model, migrate);
    if (!verdict.allowed) break;
    start_time += StartTime(newest.pods.workload[migrate.pod]);
    model->Commit(action);
    ++made;
  }
  if (verdict.allowed && options_.benefit_factor && !has_leaving_) {
    verdict = ReviewGain(now_ms, start_time, model, task, question, next, &made);
  }
  for (; made > 0; --made) model->Undo();
  return verdict;
}

// The decision has been made on the model. Goes on as the policy would until the plan has paid for
// its steps: most plans have at once.
Verdict Guard::ReviewGain(double start_ms, std::chrono::nanoseconds start_time, Evaluator* model,
                          const Task& task, const Question& question, const NextMove& next,
                          int* made) const {
  double needed_ms = 0;
  int steps = 0;
  // Of the horizon, what is left once all pods have started, one after another.
  const auto share = [&] {
    if (start_time.count() == 0) return 1.0;
    return std::max(0.0, 1 - std::chrono::duration<double>(start_time) / options_.horizon);
  };
  for (Question here = question;; ++here.step) {
    needed_ms += task.StepCost(here) * *options_.benefit_factor;
    ++steps;
    if (share() * (start_ms - model->Now().latency_ms) >= needed_ms && share() > 0)
      return {.allowed = true, .reason = ""};
    const bool ends =
        here.step + 1 >= task.max_steps() || moves_in_plan_ + *made >= options_.moves_per_plan;
    const std::optional<Move> move = ends ? std::nullopt : next({here.step + 1});
    if (!move) break;
    start_time += StartTime(move->workload);
    model->Commit(*move);
    ++*made;
  }
  const double gain_ms = share() * (start_ms - model->Now().latency_ms);
  const std::string counted =
      start_time.count() == 0
          ? ""
          : fmt::format(", counted for {:.0f} of {:.0f} s as {} for {:.0f} s",
                        share() * std::chrono::duration<double>(options_.horizon).count(),
                        std::chrono::duration<double>(options_.horizon).count(),
                        steps == 1 ? "its pod starts" : "their pods start",
                        std::chrono::duration<double>(start_time).count());
  if (steps == 1) {
    return Refuse("a predicted gain of {:.3f} ms{} is less than the {:.3f} ms it must reach",
                  gain_ms, counted, needed_ms);
  }
  return Refuse(
      "the plan's {} moves are predicted to gain {:.3f} ms{}, less than the {:.3f} ms they "
      "must reach",
      steps, gain_ms, counted, needed_ms);
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
  if (const std::string why = WhyHeld(newest, migrate.pod); !why.empty()) {
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
  if (const std::string why = WhyNodeRests(node); !why.empty())
    return fmt::format("{} had {}", node, why);
  const bool is_of_this_plan = std::any_of(left_.begin(), left_.end(), [&](const Left& left) {
    return left.plan == plan_ && left.workload == move.workload && left.node == node;
  });
  if (is_of_this_plan)
    return fmt::format("pods of {} left {} earlier in this plan and do not return", workload, node);
  return fmt::format("a pod of {} was moved away from {} less than {:.0f} s ago", workload, node,
                     std::chrono::duration<double>(options_.return_cooldown).count());
}

void Guard::Recall(WorkloadId workload, MoveLedger::Entry move) {
  left_.push_back({workload, move.from, move.at, plan_ - 1});
  move.name_space = NamespaceOf(workload);
  ledger().Note(std::move(move));
}

void Guard::RecallPod(std::string pod, std::chrono::nanoseconds at) {
  if (options_.pod_cooldown.count() == 0) return;
  std::erase_if(resting_, [&](const Rest& rest) { return rest.pod == pod; });
  resting_.push_back({std::move(pod), at});
}

void Guard::Note(const State& state, const Decision& decision) {
  for (const Action& action : decision) {
    ++moves_in_plan_;
    const auto& migrate = std::get<Migrate>(action);
    const WorkloadId workload = state.pods.workload[migrate.pod];
    left_.push_back({workload, NodeName(state, migrate.from), state.at, plan_});
    ledger().Note({.application = application_,
                   .workload = state.catalog->workloads[workload].name,
                   .from = NodeName(state, migrate.from),
                   .to = NodeName(state, migrate.to),
                   .name_space = NamespaceOf(workload),
                   .at = state.at});
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
