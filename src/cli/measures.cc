// SPDX-License-Identifier: Apache-2.0
#include "cli/measures.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/files.h"
#include "base/rng.h"
#include "cli/files.h"
#include "evaluation/statistics.h"
#include "learn/env.h"
#include "learn/learner.h"
#include "nn/kernel.h"
#include "sim/held_out.h"
#include "sim/problem.h"
#include "sim/world.h"

namespace rudderfish {
namespace {

constexpr double kWarmUpShare = 0.1;
constexpr int kStarts = 64;             // Episodes drawn for decisions; played again and again.
constexpr int64_t kStartPods = 20'000;  // Of all of them: large worlds get few.
constexpr int kQuestions = 512;         // A minibatch.
constexpr int kPassesMin = 20;          // Over the questions; each some milliseconds.
constexpr int kPassesPerPeak = 10;
constexpr const char* kShippedPolicy = "policies/continuum.safetensors";

class Stopwatch {
 public:
  Stopwatch() : start_(clock_.Now()) {}
  double seconds() const { return Seconds(clock_.Now() - start_); }

 private:
  SystemClock clock_;
  Instant start_;
};

// Plays plan after plan and times every decision.
class DecisionPlayer {
 public:
  DecisionPlayer(const Problem& problem, const Policy& policy, std::vector<StartState> starts)
      : problem_(problem),
        policy_(policy),
        starts_(std::move(starts)),
        model_(problem.law),
        memory_(policy.NewMemory(1)),
        answers_(1) {
    Begin();
  }

  double DecideUs() {
    const Stopwatch watch;
    problem_.task->Space(&model_, question_, &space_);
    Ask ask{.model = &model_,
            .task = problem_.task.get(),
            .question = question_,
            .space = &space_,
            .memory = memory_.get()};
    policy_.Decide({&ask, 1}, answers_);
    const double us = watch.seconds() * 1e6;
    Advance(answers_[0].choice);
    return us;
  }

  int candidates() const { return space_.count(); }

 private:
  void Begin() {
    model_.Reset(starts_[next_].state);
    next_ = (next_ + 1) % starts_.size();
    question_ = {};
    memory_->Restart();
  }

  void Advance(int choice) {
    if (choice == kStop || ++question_.step >= problem_.task->max_steps()) return Begin();
    model_.CommitForGood(space_.candidates[choice].move);
  }

  const Problem& problem_;
  const Policy& policy_;
  std::vector<StartState> starts_;
  size_t next_ = 0;
  Evaluator model_;
  std::unique_ptr<Memory> memory_;
  ActionSpace space_;
  Question question_;
  std::vector<Answer> answers_;
};

Result<std::vector<StartState>> DrawFor(const Problem& problem) {
  const int64_t fit = kStartPods / std::max(1, problem.scenario->pod_limit());
  return DrawStarts(World(problem.scenario), problem.scenario->seed,
                    static_cast<int>(std::clamp<int64_t>(fit, 1, kStarts)));
}

// Questions as random play meets them.
Result<GraphBatch> DrawQuestions(const Problem& problem) {
  TRY_ASSIGN(const std::vector<StartState> starts, DrawFor(problem));
  GraphBatch batch;
  batch.widths = problem.task->widths();
  Evaluator model(problem.law);
  ActionSpace space;
  Rng rng(problem.scenario->seed);
  for (size_t start = 0; batch.samples < kQuestions; start = (start + 1) % starts.size()) {
    model.Reset(starts[start].state);
    for (Question question; question.step < 8 && batch.samples < kQuestions; ++question.step) {
      problem.task->Space(&model, question, &space);
      problem.task->Encode(&model, question, &space, &batch);
      if (space.count() == 0) break;
      model.Commit(space.candidates[rng.Below(static_cast<uint32_t>(space.count()))].move);
    }
  }
  return batch;
}

}  // namespace

Result<BenchPolicy> BenchPolicy::Open(const std::optional<std::string>& path, const Task& task) {
  std::optional<std::filesystem::path> checkpoint;
  if (path) {
    checkpoint = *path;
  } else if (const auto shipped = ShippedFile(kShippedPolicy)) {
    checkpoint = *shipped;
  }
  if (!checkpoint) {
    auto net = std::make_shared<nn::CandidateNet>(MakeNet(TrainOptions{}, task.widths()));
    return BenchPolicy{.policy = std::make_shared<NeuralPolicy>("fresh", std::move(net)),
                       .origin = "a network with fresh weights"};
  }
  TRY_ASSIGN(std::unique_ptr<Policy> loaded, LoadNeuralPolicy(*checkpoint, task));
  return BenchPolicy{.policy = std::shared_ptr<const NeuralPolicy>(
                         static_cast<const NeuralPolicy*>(loaded.release())),
                     .origin = checkpoint->string()};
}

Result<DecideTimes> MeasureDecisions(const Problem& problem, const Policy& policy, double seconds,
                                     int decisions_min) {
  TRY_ASSIGN(std::vector<StartState> starts, DrawFor(problem));
  DecisionPlayer player(problem, policy, std::move(starts));
  for (const Stopwatch warm_up; warm_up.seconds() < seconds * kWarmUpShare;) player.DecideUs();
  std::vector<double> us;
  double candidates = 0;
  const Stopwatch watch;
  while (watch.seconds() < seconds || static_cast<int>(us.size()) < decisions_min) {
    us.push_back(player.DecideUs());
    candidates += player.candidates();
  }
  const auto count = static_cast<int64_t>(us.size());
  return DecideTimes{.p50_us = Quantile(us, 0.5),
                     .p99_us = Quantile(us, 0.99),
                     .decisions = count,
                     .mean_candidates = candidates / static_cast<double>(count)};
}

Result<KernelRates> MeasureKernels(const Problem& problem, const nn::CandidateNet& net,
                                   double seconds) {
  TRY_ASSIGN(const GraphBatch batch, DrawQuestions(problem));
  nn::Workspace workspace;
  std::vector<float> gradient(net.parameters().size());
  // Any derivatives will do: the products are the same.
  const auto loss = [](const nn::CandidateNet::Heads& heads) {
    std::fill(heads.dlogits.begin(), heads.dlogits.end(), 1e-3F);
    std::fill(heads.dstop.begin(), heads.dstop.end(), 1e-3F);
    std::fill(heads.dvalue.begin(), heads.dvalue.end(), 1e-3F);
  };
  const auto pass = [&] {
    net.AccumulateGradient(batch, 0, batch.samples, &workspace, loss, gradient);
  };
  pass();
  KernelRates rates;
  workspace.profile.state = nn::DenseProfile::State::kOn;
  const Stopwatch watch;
  for (int pass_number = 0; pass_number < kPassesMin || watch.seconds() < seconds; ++pass_number) {
    workspace.profile.seconds = workspace.profile.flops = 0;
    pass();
    rates.gflops =
        std::max(rates.gflops, workspace.profile.flops / workspace.profile.seconds * 1e-9);
    if (pass_number % kPassesPerPeak == 0) {
      rates.peak_gflops = std::max(rates.peak_gflops, nn::MeasureFmaPeakGflops(net.kernels(), 2));
    }
  }
  return rates;
}

Machine ThisMachine() {
  Machine machine{.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()))};
  machine.cpu = "unknown";
  if (const Result<std::string> text = ReadFile("/proc/cpuinfo")) {
    const size_t line = text->find("model name");
    const size_t colon = line == std::string::npos ? line : text->find(": ", line);
    if (colon != std::string::npos) {
      machine.cpu = text->substr(colon + 2, text->find('\n', colon) - colon - 2);
    }
  }
  if (::getloadavg(&machine.load, 1) != 1) machine.load = 0;
  return machine;
}

}  // namespace rudderfish
