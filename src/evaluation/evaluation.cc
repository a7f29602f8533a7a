// SPDX-License-Identifier: Apache-2.0
#include "evaluation/evaluation.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "evaluation/statistics.h"
#include "sim/episode_cut.h"
#include "task/migration.h"

namespace rudderfish {
namespace {

// Chance of policies: Rng streams apart from those of worlds and of training.
constexpr uint64_t kPolicyStream = uint64_t{1} << 49;

// Episodes that share a policy's Memory, so that what it allocates at first is seen once a slice.
// Of fixed size: the episodes of a slice do not depend on the number of threads.
constexpr int kStartsPerSlice = 16;

struct Slice {
  int policy = 0;
  int training_seed = 0;
  int first_start = 0;
  int last_start = 0;
  std::vector<double> decide_us;
  std::vector<double> plan_us;  // [episode]
};

// Runs one policy from one start after another.
class EpisodeRunner {
 public:
  EpisodeRunner(const LatencyLaw& law, const Task& task, const Policy& policy, uint64_t seed)
      : model_(law), task_(task), policy_(policy), memory_(policy.NewMemory(seed)), answers_(1) {}

  // `decide_us`: one sample is appended for each decision.
  void Run(const State& start, EvaluatedEpisode* episode, std::vector<double>* decide_us) {
    state_ = start;
    model_.Reset(state_);
    memory_->Restart();
    episode->initial = model_.Now();
    double costs_ms = 0;
    for (Question question; question.step < task_.max_steps(); ++question.step) {
      const int choice = Ask(question, decide_us);
      if (question.step == 0) episode->allowed_actions = space_.allowed_cells;
      if (choice == kStop) {
        episode->stopped = true;
        break;
      }
      task_.Decode(state_, space_, choice, &decision_);
      for (const Action& action : decision_) Make(std::get<Migrate>(action), episode);
      costs_ms += task_.StepCost(question);
    }
    episode->final = model_.Now();
    episode->return_ms = episode->initial.latency_ms - episode->final.latency_ms - costs_ms;
  }

 private:
  int Ask(const Question& question, std::vector<double>* decide_us) {
    const Instant before = clock_.Now();
    task_.Space(&model_, question, &space_);
    rudderfish::Ask ask{.model = &model_,
                        .task = &task_,
                        .question = question,
                        .space = &space_,
                        .memory = memory_.get()};
    policy_.Decide({&ask, 1}, answers_);
    const Instant after = clock_.Now();
    decide_us->push_back(std::chrono::duration<double, std::micro>(after - before).count());
    const int choice = answers_[0].choice;
    CHECK(choice == kStop || (choice >= 0 && choice < space_.count()));
    return choice;
  }

  void Make(const Migrate& migrate, EvaluatedEpisode* episode) {
    CHECK(migrate.pod >= 0 && migrate.pod < state_.pods.size());
    CHECK_EQ(state_.pods.node[migrate.pod], migrate.from);
    const Move move{state_.pods.workload[migrate.pod], migrate.from, migrate.to};
    CHECK(MoveAllowed(state_, model_.placement(), move));
    const double before_ms = model_.Now().latency_ms;
    episode->decisions.push_back({.move = migrate,
                                  .pod = PodName(state_, migrate.pod),
                                  .from = NodeName(state_, migrate.from),
                                  .to = NodeName(state_, migrate.to),
                                  .predicted_ms = before_ms - model_.Try(move).latency_ms});
    model_.CommitForGood(move);
    MovePod(migrate.pod, migrate.to, &state_);
  }

  Evaluator model_;
  const Task& task_;
  const Policy& policy_;
  SystemClock clock_;
  std::unique_ptr<Memory> memory_;
  State state_;
  ActionSpace space_;
  Decision decision_;
  std::vector<Answer> answers_;
};

// The same starts of all policies follow each other.
std::vector<Slice> Divide(std::span<const PolicyGroup> policies, int starts) {
  std::vector<Slice> slices;
  for (int first = 0; first < starts; first += kStartsPerSlice) {
    for (size_t p = 0; p < policies.size(); ++p) {
      for (size_t s = 0; s < policies[p].training_seeds.size(); ++s) {
        slices.push_back({.policy = static_cast<int>(p),
                          .training_seed = static_cast<int>(s),
                          .first_start = first,
                          .last_start = std::min(first + kStartsPerSlice, starts)});
      }
    }
  }
  return slices;
}

// Leaves the first starts alone.
void KeepStarts(int kept, std::vector<Slice>* slices, Evaluation* evaluation) {
  const int count = evaluation->start_count();
  if (kept == count) return;
  std::erase_if(*slices, [kept](const Slice& slice) { return slice.first_start >= kept; });
  evaluation->starts.resize(static_cast<size_t>(kept));
  for (EvaluatedPolicy& policy : evaluation->policies) {
    std::vector<EvaluatedEpisode> episodes;
    for (EvaluatedEpisode& one : policy.episodes) {
      if (one.start < kept) episodes.push_back(std::move(one));
    }
    policy.episodes = std::move(episodes);
  }
}

// The same starts meet the same chance under every policy and training seed.
uint64_t PolicySeed(uint64_t seed, const Slice& slice) {
  return Rng(seed, kPolicyStream, slice.first_start).Next64();
}

void CheckArguments(std::span<const StartState> starts, std::span<const PolicyGroup> policies) {
  CHECK(!starts.empty());
  CHECK(!policies.empty());
  std::set<std::string_view> names;
  for (const PolicyGroup& group : policies) {
    CHECK(!group.training_seeds.empty());
    CHECK(names.insert(group.name).second);
  }
}

Evaluation Prepare(std::span<const StartState> starts, std::span<const PolicyGroup> policies,
                   const EvaluationOptions& options) {
  Evaluation evaluation{.scenario = options.scenario, .seed = options.seed};
  for (const StartState& start : starts) {
    evaluation.starts.push_back({.line = start.line, .pattern = start.state.calls->name});
  }
  for (const PolicyGroup& group : policies) {
    const int seeds = static_cast<int>(group.training_seeds.size());
    evaluation.policies.push_back(
        {.name = group.name, .training_seeds = seeds, .shares_network = group.shares_network});
    std::vector<EvaluatedEpisode>& episodes = evaluation.policies.back().episodes;
    episodes.resize(starts.size() * seeds);
    for (size_t i = 0; i < episodes.size(); ++i) {
      episodes[i].start = static_cast<int>(i % starts.size());
      episodes[i].training_seed = static_cast<int>(i / starts.size());
    }
  }
  return evaluation;
}

// Drops a slice's first decision and plan, which pay for what the memory allocates, if there are
// others.
void SummarizeTimes(const std::vector<Slice>& slices, Evaluation* evaluation) {
  evaluation->times.resize(evaluation->policies.size());
  for (size_t p = 0; p < evaluation->policies.size(); ++p) {
    std::vector<double> all, warm, plans, warm_plans;
    for (const Slice& slice : slices) {
      if (slice.policy != static_cast<int>(p)) continue;
      all.insert(all.end(), slice.decide_us.begin(), slice.decide_us.end());
      warm.insert(warm.end(), slice.decide_us.begin() + 1, slice.decide_us.end());
      plans.insert(plans.end(), slice.plan_us.begin(), slice.plan_us.end());
      warm_plans.insert(warm_plans.end(), slice.plan_us.begin() + 1, slice.plan_us.end());
    }
    if (warm.empty()) warm = all;
    if (warm_plans.empty()) warm_plans = plans;
    evaluation->times[p] = {.p50_us = Quantile(warm, 0.5),
                            .p99_us = Quantile(warm, 0.99),
                            .plan_mean_us = Mean(warm_plans),
                            .plan_p99_us = Quantile(warm_plans, 0.99)};
  }
}

}  // namespace

Evaluation Evaluate(const LatencyLaw& law, const Task& task, std::span<const StartState> starts,
                    std::span<const PolicyGroup> policies, const EvaluationOptions& options,
                    ThreadPool* pool) {
  CHECK_GT(task.max_steps(), 0);
  CheckArguments(starts, policies);
  Evaluation evaluation = Prepare(starts, policies, options);
  const int start_count = evaluation.start_count();
  std::vector<Slice> slices = Divide(policies, start_count);
  const int optima = options.optimum ? start_count : 0;
  int total = optima;
  for (const EvaluatedPolicy& policy : evaluation.policies) {
    total += static_cast<int>(policy.episodes.size());
  }
  std::atomic<int> done = 0;
  const auto report = [&](int worker) {
    const int count = ++done;
    if (worker != 0 || !options.progress) return;
    options.progress(static_cast<double>(count) / total,
                     fmt::format("{} of {} episodes", std::max(0, count - optima), total - optima));
  };

  // Proofs first: they may take long, and slices then fill the threads evenly.
  const auto is_stopped = [&] {
    return options.stop != nullptr && options.stop->load(std::memory_order_relaxed);
  };
  pool->ParallelFor(optima, [&](int start, int worker) {
    if (is_stopped()) return;
    evaluation.starts[start].optimum_ms = options.optimum(starts[start].state);
    report(worker);
  });
  EpisodeCut cut(options.stop);
  pool->ParallelFor(static_cast<int>(slices.size()), [&](int index, int worker) {
    Slice& slice = slices[index];
    if (!cut.Begins(slice.first_start / kStartsPerSlice)) return;
    EpisodeRunner runner(law, task, *policies[slice.policy].training_seeds[slice.training_seed],
                         PolicySeed(options.seed, slice));
    for (int start = slice.first_start; start < slice.last_start; ++start) {
      EvaluatedEpisode& episode =
          evaluation.policies[slice.policy].episodes[slice.training_seed * start_count + start];
      const size_t before = slice.decide_us.size();
      runner.Run(starts[start].state, &episode, &slice.decide_us);
      slice.plan_us.push_back(
          std::accumulate(slice.decide_us.begin() + before, slice.decide_us.end(), 0.0));
      report(worker);
    }
  });
  const int complete = cut.Complete((start_count + kStartsPerSlice - 1) / kStartsPerSlice);
  KeepStarts(std::min(complete * kStartsPerSlice, start_count), &slices, &evaluation);
  if (evaluation.start_count() > 0) SummarizeTimes(slices, &evaluation);
  return evaluation;
}

Optimum ExactOptimum(const LatencyLaw& law, const Task& task, const ExactLimits& limits) {
  return [law, &task, limits](const State& start) -> std::optional<double> {
    Evaluator model(law);
    model.Reset(start);
    const ExactResult result = PlanExactly(&model, task, Question{}, limits);
    if (!result.proven) return std::nullopt;
    return result.plan.cost_ms;
  };
}

}  // namespace rudderfish
