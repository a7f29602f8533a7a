// SPDX-License-Identifier: Apache-2.0
#include "task/migration.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "task/features.h"
#include "task/walk.h"

namespace rudderfish {
namespace {

bool AcceptsMoves(const State& state, NodeId node) {
  return state.catalog->layers[state.kind_of(node).layer].accepts_moves;
}

// The keep-th largest gain is the bar; ties at the bar stay in order until the list is full.
void KeepLargest(size_t keep, ActionSpace* space) {
  auto& list = space->candidates;
  if (list.size() <= keep) return;
  auto& gains_of = space->scratch;
  gains_of.clear();
  for (const Candidate& candidate : list) gains_of.push_back(candidate.gain_ms);
  std::nth_element(gains_of.begin(), gains_of.begin() + (keep - 1), gains_of.end(),
                   std::greater<>());
  const float bar = gains_of[keep - 1];
  size_t ties = keep - std::count_if(list.begin(), list.end(),
                                     [&](const Candidate& c) { return c.gain_ms > bar; });
  std::erase_if(list, [&](const Candidate& c) {
    if (c.gain_ms > bar) return false;
    if (c.gain_ms < bar || ties == 0) return true;
    --ties;
    return false;
  });
}

}  // namespace

MigrationTask::MigrationTask(const MigrationOptions& options) : options_(options) {}

const FeatureTable& MigrationTask::features() const {
  return options_.features == FeaturePreset::kModel ? MigrationFeatures::Model()
                                                    : MigrationFeatures::ReachAgent();
}

GraphWidths MigrationTask::widths() const { return kMigrationWidths; }

void MigrationTask::Space(Evaluator* model, const Question& question, ActionSpace* space) const {
  const MoveGains& gains = model->Gains();
  space->ends.List(*model, gains);
  space->allowed_cells = space->ends.cells() + 1;  // Stop.
  space->exhaustive = space->ends.moves() <= options_.max_candidates;
  if (space->exhaustive) {
    ListAll(gains, space);
  } else {
    ListRepresentatives(*model, gains, space);
  }
  if (question.walk == nullptr || question.walk->steps() == 0) return;
  std::erase_if(space->candidates,
                [&](const Candidate& c) { return question.walk->Returns(c.move); });
}

void MigrationTask::ListAll(const MoveGains& gains, ActionSpace* space) const {
  const MoveEnds& ends = space->ends;
  const size_t count = static_cast<size_t>(ends.moves());
  space->candidates.resize(count + 1);  // A pod that stays where it is is written over.
  Candidate* next = space->candidates.data();
  const std::span<const MoveEnds::Node> rows = ends.nodes();
  const int stride = gains.target_stride();
  int32_t first_source = 0, target = 0;
  for (WorkloadId w = 0; w < ends.workload_count(); ++w) {
    const auto hosts = ends.hosts(w);
    for (const MoveEnds::End& to : ends.targets(w)) {
      const NodeId there = rows[to.row].id;
      const float* gain = gains.GainsTo(w, rows[to.row].target);
      int32_t source = first_source;
      for (const MoveEnds::End& from : hosts) {
        const MoveEnds::Node& here = rows[from.row];
        *next = {.move = {w, here.id, there},
                 .pods = from.movable,
                 .gain_ms = gain[here.kind * stride],
                 .source = source++,
                 .target = target};
        next += (from.row != to.row) & (from.movable > 0);
      }
      ++target;
    }
    first_source += static_cast<int32_t>(hosts.size());
  }
  space->candidates.resize(count);
}

void MigrationTask::ListRepresentatives(const Evaluator& model, const MoveGains& gains,
                                        ActionSpace* space) const {
  const MoveEnds& ends = space->ends;
  const int kinds = model.placement().kind_count();
  space->candidates.clear();
  struct Ends {
    const MoveEnds::End* a = nullptr;
    const MoveEnds::End* b = nullptr;
  };
  const auto free = [&](const MoveEnds::End* end) { return ends.node(end->row).free.cpu_millis; };
  constexpr int kKindsMax = 64;
  CHECK_LE(kinds, kKindsMax);
  for (WorkloadId w = 0; w < ends.workload_count(); ++w) {
    if (ends.targets(w).empty()) continue;
    Ends sources[kKindsMax],
        targets[kKindsMax];  // a: fullest, tightest; b: with most pods, roomiest.
    for (const MoveEnds::End& host : ends.hosts(w)) {
      if (host.movable == 0) continue;
      Ends& source = sources[ends.node(host.row).kind];
      if (source.a == nullptr || free(&host) < free(source.a)) source.a = &host;
      if (source.b == nullptr || host.movable > source.b->movable) source.b = &host;
    }
    for (const MoveEnds::End& end : ends.targets(w)) {
      Ends& target = targets[ends.node(end.row).kind];
      if (target.a == nullptr || free(&end) < free(target.a)) target.a = &end;
      if (target.b == nullptr || free(&end) > free(target.b)) target.b = &end;
    }
    const auto add = [&](const MoveEnds::End* from, const MoveEnds::End* to) {
      const MoveEnds::Node &here = ends.node(from->row), &there = ends.node(to->row);
      space->candidates.push_back({.move = {w, here.id, there.id},
                                   .pods = from->movable,
                                   .gain_ms = gains.Gain(w, here.kind, there.kind),
                                   .source = static_cast<int32_t>(from - ends.hosts().data()),
                                   .target = static_cast<int32_t>(to - ends.targets().data())});
    };
    // The one node that stands for all of its kind, on both sides: any other does for one side.
    const auto add_around = [&](const MoveEnds::End* from, const MoveEnds::End* to) {
      const auto is_other = [&](const MoveEnds::End& end) {
        return end.row != to->row && ends.node(end.row).kind == ends.node(to->row).kind;
      };
      const auto hosts = ends.hosts(w), others = ends.targets(w);
      const auto target = std::find_if(others.begin(), others.end(), is_other);
      if (target != others.end()) return add(from, &*target);
      const auto source = std::find_if(hosts.begin(), hosts.end(), [&](const MoveEnds::End& end) {
        return end.movable > 0 && is_other(end);
      });
      if (source != hosts.end()) add(&*source, to);
    };
    for (KindId i = 0; i < kinds; ++i) {
      for (KindId j = 0; j < kinds; ++j) {
        const bool one_source = sources[i].a == sources[i].b;
        const bool one_target = targets[j].a == targets[j].b;
        for (const auto* from : {sources[i].a, one_source ? nullptr : sources[i].b}) {
          if (from == nullptr) continue;
          for (const auto* to : {targets[j].a, one_target ? nullptr : targets[j].b}) {
            if (to == nullptr) continue;
            if (to->row != from->row) {
              add(from, to);
            } else if (one_source && one_target) {
              add_around(from, to);
            }
          }
        }
      }
    }
  }
  KeepLargest(static_cast<size_t>(options_.max_candidates), space);
}

void MigrationTask::Encode(Evaluator* model, const Question& question, ActionSpace* space,
                           GraphBatch* batch) const {
  if (options_.features == FeaturePreset::kModel) {
    const double next = StepCost(question);
    const StepCosts costs{
        .next_ms = static_cast<float>(next),
        .growth_ms = static_cast<float>(StepCost({question.step + 1}) - next),
        .last_ms = static_cast<float>(question.step > 0 ? StepCost({question.step - 1}) : 0)};
    MigrationFeatures::Write(model, costs, question, space, batch);
  } else {
    MigrationFeatures::WriteReachAgent(model, question.step, space, batch);
  }
}

void MigrationTask::Decode(const State& state, const ActionSpace& space, int choice,
                           Decision* decision) const {
  decision->clear();
  if (choice == kStop) return;
  const Move& move = space.candidates[choice].move;
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    if (state.pods.workload[pod] == move.workload && state.pods.node[pod] == move.from &&
        !state.pods.is_held(pod)) {
      decision->push_back(Migrate{pod, move.from, move.to});
      return;
    }
  }
  CHECK(false && "a candidate's pod is in the state");
}

double MigrationTask::StepCost(const Question& question) const {
  return options_.step_penalty == StepPenalty::kGrowing
             ? options_.step_penalty_ms * (question.step + 1)
             : options_.step_penalty_ms;
}

bool MoveAllowed(const State& state, const Placement& placement, const Move& move) {
  return state.catalog->workloads[move.workload].movable &&
         placement.movable_on_node(move.workload, move.from) > 0 && move.from != move.to &&
         AcceptsMoves(state, move.to) && placement.Fits(move.workload, move.to) &&
         !placement.has_left(move.workload, move.to);
}

int FindCandidate(const ActionSpace& space, const Move& move) {
  for (int i = 0; i < space.count(); ++i) {
    if (space.candidates[i].move == move) return i;
  }
  return kStop;
}

std::string ObjectiveText(const MigrationOptions& options) {
  return fmt::format(
      "latency and a cost of {:g} ms a step{}; {} steps at most", options.step_penalty_ms,
      options.step_penalty == StepPenalty::kGrowing ? ", growing" : "", options.max_steps);
}

Result<MigrationOptions> ParseMigrationOptions(const YamlNode& node) {
  MigrationOptions options;
  if (node.IsNull()) return options;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const std::string kind, map.OptionalString("kind", "migration"));
  if (kind != "migration")
    return (*map.Optional("kind")).Expected("migration, whose options stand here");
  TRY_ASSIGN(const std::string objective, map.OptionalString("objective", "latency"));
  if (objective != "latency")
    return (*map.Optional("objective")).Expected("latency, the one objective there is");
  TRY_ASSIGN(options.step_penalty_ms,
             map.OptionalDouble("step_penalty_ms", 0, 1e6, options.step_penalty_ms));
  TRY_ASSIGN(const std::string penalty, map.OptionalString("step_penalty", "growing"));
  if (penalty != "growing" && penalty != "constant") {
    return (*map.Optional("step_penalty")).Expected("growing or constant");
  }
  options.step_penalty = penalty == "growing" ? StepPenalty::kGrowing : StepPenalty::kConstant;
  TRY_ASSIGN(const int64_t steps, map.OptionalInt("max_steps", 1, 1'000'000, options.max_steps));
  options.max_steps = static_cast<int>(steps);
  TRY_ASSIGN(const std::string features, map.OptionalString("features", "model"));
  if (features != "model" && features != "reach-agent") {
    return (*map.Optional("features")).Expected("model or reach-agent");
  }
  options.features = features == "model" ? FeaturePreset::kModel : FeaturePreset::kReachAgent;
  TRY_ASSIGN(const int64_t candidates,
             map.OptionalInt("max_candidates", 1, 1'000'000, options.max_candidates));
  options.max_candidates = static_cast<int>(candidates);
  TRY(map.Finish());
  return options;
}

}  // namespace rudderfish
