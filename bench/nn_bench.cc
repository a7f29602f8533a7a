// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <vector>

#include "nn/candidate_net.h"
#include "tests/support/random_batch.h"

// The network at the shapes of a small cluster: training, rollouts, one live decision. GFLOP/s
// count dense products only; `peak` is what this core can do at most, measured in the same run.

namespace rudderfish::nn {
namespace {

constexpr int kSamples = 512;
constexpr int kCandidates = 20;

CandidateNet NewNet(const GraphBatch& batch, int64_t hidden) {
  CandidateNet net({.widths = batch.widths, .hidden = static_cast<int>(hidden)});
  Rng rng(1);
  net.Initialize(&rng);
  return net;
}

void Report(benchmark::State& state, double flops) {
  static const double peak = MeasureFmaPeakGflops();
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsRate);
  state.counters["peak"] = peak;
}

void Train(benchmark::State& state) {
  const GraphBatch batch = SmallClusterBatch(kSamples, kCandidates, 1);
  const CandidateNet net = NewNet(batch, state.range(0));
  Workspace workspace;
  workspace.profile.state = DenseProfile::State::kOn;
  std::vector<float> gradient(net.parameters().size());
  for (auto _ : state) {
    net.AccumulateGradient(
        batch, 0, kSamples, &workspace,
        [](const CandidateNet::Heads& heads) {
          std::copy(heads.logits.begin(), heads.logits.end(), heads.dlogits.begin());
          std::copy(heads.stop.begin(), heads.stop.end(), heads.dstop.begin());
          std::copy(heads.value.begin(), heads.value.end(), heads.dvalue.begin());
        },
        gradient);
  }
  Report(state, workspace.profile.flops);
  state.counters["dense GFLOP/s"] = workspace.profile.flops / workspace.profile.seconds * 1e-9;
  state.SetItemsProcessed(state.iterations() * kSamples);
}
BENCHMARK(Train)->Arg(32)->Arg(64);

void Forward(benchmark::State& state) {
  const int samples = static_cast<int>(state.range(0));
  const GraphBatch batch = SmallClusterBatch(samples, kCandidates, 1);
  const CandidateNet net = NewNet(batch, 32);
  Workspace workspace(Workspace::Keep::kNothing);
  std::vector<float> logits(batch.ends.size()), stop(static_cast<size_t>(samples)),
      value(stop.size());
  for (auto _ : state) {
    net.Forward(batch, 0, samples, &workspace, logits, stop, value);
    benchmark::DoNotOptimize(value.data());
  }
  Report(state, net.ForwardFlops(batch) * static_cast<double>(state.iterations()));
  state.SetItemsProcessed(state.iterations() * samples);
}
BENCHMARK(Forward)->Arg(1)->Arg(kSamples);

}  // namespace
}  // namespace rudderfish::nn
