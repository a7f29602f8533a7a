// SPDX-License-Identifier: Apache-2.0
#include "task/migration.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "task/features.h"

namespace rudderfish {
namespace {

uint64_t Mix(uint64_t key, uint64_t value) {
  key = (key ^ value) * 0x9E3779B97F4A7C15ull;
  return key ^ (key >> 29);
}

// Nodes sorted by what they are and hold, so that neither the order of rows nor sums over them
// depend on labels: relabelled nodes give the same bits. Nodes with equal keys are equal in all
// that anyone sees.
void SortNodes(const Placement& placement, ActionSpace* space) {
  const int nodes = placement.node_count();
  space->keys.resize(nodes);
  space->order.resize(nodes);
  for (NodeId node = 0; node < nodes; ++node) {
    uint64_t key = Mix(0x52756464, placement.kind(node));
    key = Mix(key, placement.free(node).cpu_millis);
    space->keys[node] = Mix(key, placement.free(node).memory_bytes);
  }
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    for (NodeId node = 0; node < nodes; ++node) {
      const int here = placement.on_node(w, node);
      if (here > 0)
        space->keys[node] = Mix(space->keys[node], static_cast<uint64_t>(w) << 32 | here);
    }
  }
  std::iota(space->order.begin(), space->order.end(), 0);
  std::sort(space->order.begin(), space->order.end(), [&](NodeId a, NodeId b) {
    return space->keys[a] != space->keys[b] ? space->keys[a] < space->keys[b] : a < b;
  });
}

bool AcceptsMoves(const State& state, NodeId node) {
  return state.catalog->layers[state.kind_of(node).layer].accepts_moves;
}

// Distinct moves and allowed cells, without listing them.
struct Counts {
  int64_t moves = 0;
  int64_t cells = 1;  // Stop.
};

Counts CountMoves(const State& state, const Placement& placement) {
  Counts counts;
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    if (!state.catalog->workloads[w].movable || placement.replicas(w) == 0) continue;
    int64_t targets = 0, hosts = 0, pods = 0, own = 0, own_pods = 0;
    for (NodeId node = 0; node < placement.node_count(); ++node) {
      const bool fits = placement.Fits(w, node) && AcceptsMoves(state, node);
      const int here = placement.on_node(w, node);
      targets += fits;
      hosts += here > 0;
      pods += here;
      own += fits && here > 0;
      own_pods += fits ? here : 0;
    }
    counts.moves += hosts * targets - own;
    counts.cells += pods * targets - own_pods;
  }
  return counts;
}

}  // namespace

MigrationTask::MigrationTask(const MigrationOptions& options) : options_(options) {}

const FeatureTable& MigrationTask::features() const {
  return options_.features == FeaturePreset::kModel ? MigrationFeatures::Model()
                                                    : MigrationFeatures::ReachAgent();
}

GraphWidths MigrationTask::widths() const { return kMigrationWidths; }

void MigrationTask::Space(Evaluator* model, const Question&, ActionSpace* space) const {
  const Placement& placement = model->placement();
  const MoveGains& gains = model->Gains();
  SortNodes(placement, space);
  space->candidates.clear();
  const Counts counts = CountMoves(model->state(), placement);
  space->allowed_cells = counts.cells;
  space->exhaustive = counts.moves <= options_.max_candidates;
  if (space->exhaustive) {
    ListAll(*model, gains, space);
  } else {
    ListRepresentatives(*model, gains, space);
  }
}

void MigrationTask::ListAll(const Evaluator& model, const MoveGains& gains,
                            ActionSpace* space) const {
  const State& state = model.state();
  const Placement& placement = model.placement();
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    if (!state.catalog->workloads[w].movable || placement.replicas(w) == 0) continue;
    for (NodeId to : space->order) {
      if (!AcceptsMoves(state, to) || !placement.Fits(w, to)) continue;
      for (NodeId from : space->order) {
        const int pods = placement.on_node(w, from);
        if (pods == 0 || from == to) continue;
        space->candidates.push_back(
            {{w, from, to}, pods, gains.Gain(w, placement.kind(from), placement.kind(to))});
      }
    }
  }
}

void MigrationTask::ListRepresentatives(const Evaluator& model, const MoveGains& gains,
                                        ActionSpace* space) const {
  const State& state = model.state();
  const Placement& placement = model.placement();
  const int kinds = placement.kind_count();
  struct Ends {
    NodeId a = kNone;
    NodeId b = kNone;
  };
  constexpr int kKindsMax = 64;
  CHECK_LE(kinds, kKindsMax);
  for (WorkloadId w = 0; w < placement.workload_count(); ++w) {
    if (!state.catalog->workloads[w].movable || placement.replicas(w) == 0) continue;
    Ends sources[kKindsMax],
        targets[kKindsMax];  // a: fullest, tightest; b: with most pods, roomiest.
    for (NodeId node : space->order) {
      const KindId kind = placement.kind(node);
      const int64_t free = placement.free(node).cpu_millis;
      if (const int pods = placement.on_node(w, node); pods > 0) {
        Ends& source = sources[kind];
        if (source.a == kNone || free < placement.free(source.a).cpu_millis) source.a = node;
        if (source.b == kNone || pods > placement.on_node(w, source.b)) source.b = node;
      }
      if (AcceptsMoves(state, node) && placement.Fits(w, node)) {
        Ends& target = targets[kind];
        if (target.a == kNone || free < placement.free(target.a).cpu_millis) target.a = node;
        if (target.b == kNone || free > placement.free(target.b).cpu_millis) target.b = node;
      }
    }
    for (KindId i = 0; i < kinds; ++i) {
      for (KindId j = 0; j < kinds; ++j) {
        const bool one_source = sources[i].a == sources[i].b;
        const bool one_target = targets[j].a == targets[j].b;
        for (NodeId from : {sources[i].a, one_source ? kNone : sources[i].b}) {
          if (from == kNone) continue;
          for (NodeId to : {targets[j].a, one_target ? kNone : targets[j].b}) {
            if (to == kNone || to == from) continue;
            space->candidates.push_back(
                {{w, from, to}, placement.on_node(w, from), gains.Gain(w, i, j)});
          }
        }
      }
    }
  }
  auto& list = space->candidates;
  const size_t keep = static_cast<size_t>(options_.max_candidates);
  if (list.size() <= keep) return;
  // The keep-th largest gain is the bar; ties at the bar stay in order until the list is full.
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

void MigrationTask::Encode(Evaluator* model, const Question& question, ActionSpace* space,
                           GraphBatch* batch) const {
  if (options_.features == FeaturePreset::kModel) {
    const double next = StepCost(question);
    const StepCosts costs{.next_ms = static_cast<float>(next),
                          .growth_ms = static_cast<float>(StepCost({question.step + 1}) - next)};
    MigrationFeatures::Write(model, costs, question.step, space, batch);
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
    if (state.pods.workload[pod] == move.workload && state.pods.node[pod] == move.from) {
      decision->push_back(Migrate{pod, move.from, move.to});
      return;
    }
  }
  CHECK(false && "a candidate's pod is in the state");
}

Outcome MigrationTask::Judge(const Terms& before, const Terms& after, const Question& question,
                             const Decision& decision) const {
  if (decision.empty()) return {.reward = 0, .terminated = true};
  const double fall_ms = before.latency_ms - after.latency_ms;
  return {.reward = (fall_ms - StepCost(question)) / MigrationOptions::kRewardUnitMs,
          .terminated = false};
}

double MigrationTask::StepCost(const Question& question) const {
  return options_.step_penalty == StepPenalty::kGrowing
             ? options_.step_penalty_ms * (question.step + 1)
             : options_.step_penalty_ms;
}

double MigrationTask::Discount() const {
  // Three horizons of a discount fit the plan: what lies beyond its end weighs e^-3.
  return options_.step_penalty == StepPenalty::kGrowing ? 1
                                                        : 1 - 3.0 / std::max(6, options_.max_steps);
}

bool MoveAllowed(const State& state, const Placement& placement, const Move& move) {
  return state.catalog->workloads[move.workload].movable &&
         placement.on_node(move.workload, move.from) > 0 && move.from != move.to &&
         AcceptsMoves(state, move.to) && placement.Fits(move.workload, move.to);
}

int FindCandidate(const ActionSpace& space, const Move& move) {
  for (int i = 0; i < space.count(); ++i) {
    if (space.candidates[i].move == move) return i;
  }
  return kStop;
}

Result<MigrationOptions> ParseMigrationOptions(const YamlNode& node) {
  MigrationOptions options;
  if (node.IsNull()) return options;
  TRY_ASSIGN(YamlMap map, node.AsMap());
  TRY_ASSIGN(const std::string kind, map.OptionalString("kind", "migration"));
  if (kind != "migration")
    return (*map.Optional("kind")).Expected("migration, the one task there is");
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
