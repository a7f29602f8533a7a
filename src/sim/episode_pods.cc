// SPDX-License-Identifier: Apache-2.0
#include "sim/episode_pods.h"

#include "base/check.h"
#include "sim/event_queue.h"

namespace rudderfish {

std::vector<PodSource> PodSourcesOf(const Arrivals& arrivals) {
  std::vector<PodSource> sources;
  for (const ArrivalStream& stream : arrivals.streams) sources.emplace_back(&stream);
  if (arrivals.has_trace()) {
    CHECK(arrivals.trace_pods != nullptr);  // LoadScenario has read it.
    sources.emplace_back(arrivals.trace_pods.get(), arrivals.trace.drawn);
  }
  return sources;
}

SimTime DrawStartDelay(const Arrivals& arrivals, uint64_t seed, uint32_t attempt, int64_t number) {
  Rng rng(seed, kStartChance + (uint64_t{attempt} << 8), static_cast<uint64_t>(number));
  return arrivals.start_delay.Draw(&rng);
}

std::vector<EpisodePod> PodsOfEpisode(const Scenario& scenario, uint64_t seed) {
  CHECK(scenario.arrivals != nullptr);
  const Arrivals& arrivals = *scenario.arrivals;
  std::vector<PodSource> sources = PodSourcesOf(arrivals);
  std::vector<ArrivingPod> next(sources.size());
  EventQueue arriving;
  const auto expect = [&](int source) {
    if (!sources[source].Next(&next[source]) || next[source].at > arrivals.until) return;
    arriving.Add({.at = next[source].at, .kind = Event::Kind::kArrive, .subject = source});
  };
  for (int i = 0; i < static_cast<int>(sources.size()); ++i) {
    sources[i].Start(Rng(seed, kSourceChance, i));
    expect(i);
  }
  std::vector<EpisodePod> pods;
  while (!arriving.empty()) {
    const int source = arriving.Take().subject;
    const ArrivingPod pod = next[source];
    expect(source);
    const auto number = static_cast<int64_t>(pods.size());
    pods.push_back({pod, DrawStartDelay(arrivals, seed, 1, number)});
  }
  return pods;
}

}  // namespace rudderfish
