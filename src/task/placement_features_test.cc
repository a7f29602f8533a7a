// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "task/placement.h"
#include "tests/support/small_world.h"

// Every feature of a placement question against a cluster small enough to count it out here, from
// plain columns and the definitions in model/cluster_totals.h and model/objective.h.

namespace rudderfish {
namespace {

using testing::CallTree;
using testing::kMib;
using testing::WorldBuilder;

constexpr Objective kCountedObjective{.weight = {1, 0.5, 0.2, 1, 0.7, 0.6, 0.8}};
constexpr double kRoundTripMs[] = {10, 40};              // Users to the kinds of node.
constexpr double kBetweenMs[2][2] = {{2, 16}, {16, 6}};  // Kind to kind, there and back.

// Bound pods of a workload by kind of node.
using CountedPods = std::array<double, 2>;

// Of the pair of a pod of one and a pod of the other, in the mean.
double MeanBetweenMs(const CountedPods& one, const CountedPods& other) {
  double ms = 0;
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 2; ++b) ms += one[a] * other[b] * kBetweenMs[a][b];
  }
  return ms / ((one[0] + one[1]) * (other[0] + other[1]));
}

// A learner calls a web, that calls an old twice; the worst round trip is that to far users.
double CallDistanceOf(const std::array<CountedPods, 3>& pods) {
  return (MeanBetweenMs(pods[1], pods[0]) + 2 * MeanBetweenMs(pods[0], pods[2])) / 3 / 40;
}

// One node, counted by hand.
struct CountedNode {
  int kind = 0;
  double cpu = 0, memory_mib = 0;  // All of it.
  double cpu_used = 0, memory_used = 0;
  std::vector<int> devices = {};  // Free thousandths of each.
  int pods = 0;
  bool ready = true;

  double FreeOfDevices() const {
    double sum = 0;
    for (const int free : devices) sum += free;
    return sum;
  }
  double Devices() const { return 1000.0 * static_cast<double>(devices.size()); }
  std::array<double, 3> Used() const {
    return {cpu_used / cpu, memory_used / memory_mib,
            devices.empty() ? 0 : 1 - FreeOfDevices() / Devices()};
  }
};

struct CountedPod {
  double cpu = 0, memory_mib = 0;
  int device_millis = 0;  // Of one device; 0: asks for none.
};
constexpr CountedPod kWeb{500, 1024, 0}, kLearner{1000, 512, 300};
constexpr NodeCosts kCountedCosts[] = {{50, 100, 1, 5}, {80, 300, 3, 8}};

CountedNode With(CountedNode node, const CountedPod& pod) {
  node.cpu_used += pod.cpu;
  node.memory_used += pod.memory_mib;
  ++node.pods;
  int* best = nullptr;
  for (int& free : node.devices) {
    if (pod.device_millis > 0 && free >= pod.device_millis && (best == nullptr || free < *best))
      best = &free;
  }
  if (best != nullptr) *best -= pod.device_millis;
  return node;
}

bool Runs(const CountedNode& node, const CountedPod& pod) {
  const bool has_device =
      pod.device_millis == 0 || std::any_of(node.devices.begin(), node.devices.end(),
                                            [&](int free) { return free >= pod.device_millis; });
  return node.ready && node.cpu - node.cpu_used >= pod.cpu &&
         node.memory_mib - node.memory_used >= pod.memory_mib && has_device;
}

// What is free of its devices and no pod of the mix can use, on average: two of three are kWeb.
double StrandedOn(const CountedNode& node) {
  double learner = 0;
  for (const int free : node.devices)
    learner += Runs(node, kLearner) && free >= kLearner.device_millis ? 0 : free;
  return (2 * node.FreeOfDevices() + learner) / 3;
}

// Terms of the objective, in its order; and what else there is of the whole cluster.
struct CountedTerms {
  std::array<double, kObjectiveTerms> term{};
  std::array<double, 3> used{}, mean{}, deviation{};
  double nodes = 0, active = 0, pods = 0, watts_share = 0, price_share = 0, stranded = 0,
         penalty = 0, calls = 0;

  double Cost() const {
    double cost = 0;
    for (int i = 0; i < kObjectiveTerms; ++i) cost += kCountedObjective.weight[i] * term[i];
    return cost;
  }
};

// `penalties`: the sum of those of all pods; `pods`: of each workload.
CountedTerms TermsOf(const std::vector<CountedNode>& nodes, double penalties,
                     const std::array<CountedPods, 3>& pods) {
  CountedTerms terms;
  std::array<double, 3> all{}, used{}, active_all{}, active_used{}, squares{};
  double watts = 0, busy_watts = 0, price = 0, full_price = 0, devices = 0;
  for (const CountedNode& node : nodes) {
    if (!node.ready) continue;
    const NodeCosts& costs = kCountedCosts[node.kind];
    const double sizes[] = {node.cpu, node.memory_mib, node.Devices()};
    for (int r = 0; r < 3; ++r) {
      const double share = node.Used()[r];
      all[r] += sizes[r], used[r] += share * sizes[r];
      if (node.pods > 0) active_all[r] += sizes[r], active_used[r] += share * sizes[r];
      terms.mean[r] += share, squares[r] += share * share;
    }
    watts += node.pods == 0
                 ? costs.asleep_watts
                 : costs.idle_watts + node.Used()[0] * (costs.busy_watts - costs.idle_watts);
    busy_watts += costs.busy_watts;
    price += node.pods == 0 ? 0 : costs.price_per_hour;
    full_price += costs.price_per_hour;
    devices += node.Devices();
    terms.stranded += StrandedOn(node);
    terms.nodes += 1, terms.active += node.pods > 0 ? 1 : 0, terms.pods += node.pods;
  }
  double balance = 0, busy = 0;
  for (int r = 0; r < 3; ++r) {
    terms.mean[r] /= terms.nodes;
    terms.deviation[r] = std::sqrt(squares[r] / terms.nodes - terms.mean[r] * terms.mean[r]);
    terms.used[r] = used[r] / all[r];
    balance += 2 * terms.deviation[r] / 3;
    busy += active_used[r] / active_all[r] / 3;
  }
  terms.watts_share = watts / busy_watts;
  terms.price_share = price / full_price;
  terms.stranded /= devices;
  terms.penalty = penalties / terms.pods;
  terms.calls = CallDistanceOf(pods);
  terms.term = {balance,           terms.watts_share, 1 - busy,   terms.stranded,
                terms.price_share, terms.penalty,     terms.calls};
  return terms;
}

// The cluster both as a State and counted.
struct CountedCluster {
  CountedCluster() {
    WorldBuilder world;
    const LayerId near = world.Layer("near"), far = world.Layer("far");
    laws.users = world.Layer("users");
    world.LatencyBothWays(laws.users, near, kRoundTripMs[0] / 2);
    world.LatencyBothWays(laws.users, far, kRoundTripMs[1] / 2);
    world.LatencyBothWays(near, near, kBetweenMs[0][0] / 2);
    world.LatencyBothWays(near, far, kBetweenMs[0][1] / 2);
    world.LatencyBothWays(far, far, kBetweenMs[1][1] / 2);
    const KindId kinds[] = {world.Kind("plain", near), world.Kind("gpu", far)};
    const WorkloadId web = world.Workload("web", 500, 1024);
    const WorkloadId learner = world.Workload("learner", 1000, 512);
    const WorkloadId old = world.Workload("old", 250, 256);
    const CallTree last{old, 1};
    world.Endpoint({.workload = learner, .groups = {{{web, 1, 0.1, {{last, last}}}}}});
    for (const CountedNode& one : nodes)
      world.Node(kinds[one.kind], static_cast<int64_t>(one.cpu),
                 static_cast<int64_t>(one.memory_mib));
    world.Pod(2, 0), world.Pod(2, 0), world.Pod(1, 3), world.Pod(0, 5);
    state = world.Build();
    auto catalog = std::make_shared<Catalog>(*state.catalog);
    catalog->workloads[0].latency_limits = {.soft_ms = 20, .hard_ms = 50};
    catalog->workloads[1].devices = {.count = 1, .millis = 300};
    state.catalog = catalog;
    for (const CountedNode& one : nodes) {
      Devices devices = Devices::Of(static_cast<int>(one.devices.size()));
      for (size_t i = 0; i < one.devices.size(); ++i)
        devices.free_millis[i] = static_cast<int16_t>(one.devices[i]);
      state.nodes.devices.push_back(devices);
    }
    state.pods.devices.assign(state.pods.size(), 0);
    state.nodes.lost = {0, 0, 0, 0, 1, 0, 0};
    laws.costs = {kCountedCosts[0], kCountedCosts[1]};
    laws.shapes.Add(catalog->workloads[0], 2);
    laws.shapes.Add(catalog->workloads[1], 1);
    totals.Reset(state, laws);
  }

  // Nodes 1 and 2 are equal and empty; node 4 is lost; node 6 has no room for a learner's memory.
  std::vector<CountedNode> nodes = {
      {.cpu = 4000, .memory_mib = 8192, .cpu_used = 500, .memory_used = 512, .pods = 2},
      {.cpu = 4000, .memory_mib = 8192},
      {.cpu = 4000, .memory_mib = 8192},
      {.kind = 1,
       .cpu = 8000,
       .memory_mib = 4096,
       .cpu_used = 1000,
       .memory_used = 512,
       .devices = {700, 1000},
       .pods = 1},
      {.cpu = 16000, .memory_mib = 65536, .ready = false},
      {.kind = 1,
       .cpu = 6000,
       .memory_mib = 16384,
       .cpu_used = 500,
       .memory_used = 1024,
       .devices = {1000, 250, 0, 600},
       .pods = 1},
      {.kind = 1, .cpu = 3000, .memory_mib = 256, .devices = {1000}}};
  // Limits: half a penalty far away. Without: what it is of the worst. One learner far away, an
  // old one twice near and a web far away.
  double penalties = 1 + 2 * 0.25 + 0.5;
  std::array<CountedPods, 3> pods = {{{0, 1}, {0, 1}, {2, 0}}};  // The same, by workload and kind.
  State state;
  PlacementLaws laws;
  ClusterTotals totals;
};

using FeatureValues = std::map<std::string_view, double>;

FeatureValues ValuesIn(const float* row, const std::vector<FeatureDescription>& features) {
  FeatureValues seen;
  for (size_t i = 0; i < features.size(); ++i)
    seen[features[i].name] = static_cast<double>(row[i]) * features[i].scale;
  return seen;
}

void ExpectValues(const FeatureValues& seen, const FeatureValues& counted) {
  EXPECT_EQ(seen.size(), counted.size());
  for (const auto& [name, value] : counted) {
    ASSERT_TRUE(seen.contains(name)) << name;
    EXPECT_NEAR(seen.at(name), value, 3e-5 * (1 + std::abs(value))) << name;
  }
}

struct Answer {
  CountedNode node;
  CountedTerms terms;
  std::vector<double> raw;  // [score] Smaller is better.
};

// The pod there, and what ranks that.
Answer Place(const CountedCluster& cluster, const CountedPod& pod, int at) {
  std::vector<CountedNode> nodes = cluster.nodes;
  nodes[at] = With(nodes[at], pod);
  const CountedNode& node = nodes[at];
  const double penalty =
      pod.device_millis > 0 ? kRoundTripMs[node.kind] / 40 : (node.kind == 0 ? 0 : 0.5);
  std::array<CountedPods, 3> pods = cluster.pods;
  pods[pod.device_millis > 0 ? 1 : 0][node.kind] += 1;
  Answer answer{node, TermsOf(nodes, cluster.penalties + penalty, pods), {}};
  const double cpu = node.Used()[0], memory = node.Used()[1];
  const auto hundredth = [](double share) { return std::floor(share * 100 + 1e-9); };
  const auto balance = [&](const CountedNode& one) {
    return hundredth(1 - std::abs(one.Used()[0] - one.Used()[1]) / 2);
  };
  const double least = std::floor((hundredth(1 - cpu) + hundredth(1 - memory)) / 2);
  const double balanced = 50 + std::floor((50 + balance(node) - balance(cluster.nodes[at])) / 2);
  const double free = 1 - (cpu + memory) / 2;
  const double with_devices =
      node.devices.empty() ? free : (2 * free + node.FreeOfDevices() / node.Devices()) / 3;
  answer.raw = {answer.terms.Cost(), -least - balanced, -free, free, with_devices};
  answer.raw.insert(answer.raw.end(), answer.terms.term.begin(), answer.terms.term.end());
  return answer;
}

int MoreOf(const CountedNode& node, const CountedPod& pod) {
  int more = 0;
  for (CountedNode left = node; Runs(left, pod); left = With(left, pod)) ++more;
  return more;
}

// Which of the answers ranks how by each score; `alike`: nodes that each stands for.
FeatureValues ScoresOf(const std::vector<Answer>& answers, const std::vector<double>& alike,
                       int which) {
  FeatureValues counted;
  const auto& features = PlacementTask::Features().candidate;
  for (int s = 0; s < kPlacementScores; ++s) {
    double best = 1e9, distance = 0, count = 0;
    for (const Answer& other : answers) best = std::min(best, other.raw[s]);
    for (size_t k = 0; k < answers.size(); ++k)
      distance += alike[k] * (answers[k].raw[s] - best), count += alike[k];
    std::string name = "score_" + std::string(kPlacementScoreNames[s]);
    std::replace(name.begin(), name.end(), '-', '_');
    const auto known = std::find_if(features.begin(), features.end(),
                                    [&](const auto& f) { return f.name == name; });
    if (known == features.end()) ADD_FAILURE() << name;
    counted[known->name] =
        distance > 1e-9 ? (best - answers[which].raw[s]) / (distance / count) : 0;
  }
  return counted;
}

// Room, size, cost and distance of a node, with the pod there.
void CountNode(const CountedNode& before, const CountedNode& after, const CountedPod& pod,
               const CountedTerms& now, FeatureValues* counted) {
  const auto used = after.Used();
  const double free[] = {1 - used[0], 1 - used[1], after.devices.empty() ? 0 : 1 - used[2]};
  const int known = after.devices.empty() ? 2 : 3;
  double whole = 0, begun = 0, largest = 0;
  for (const int left : after.devices) {
    whole += left == 1000, begun += left > 0 && left < 1000;
    largest = std::max(largest, left / 1000.);
  }
  const int more = MoreOf(after, pod);
  counted->merge(FeatureValues{
      {"free_cpu", free[0]},
      {"free_memory", free[1]},
      {"free_devices", free[2]},
      {"cpu_above_mean", used[0] - now.mean[0]},
      {"memory_above_mean", used[1] - now.mean[1]},
      {"devices_above_mean", known == 2 ? 0 : used[2] - now.mean[2]},
      {"asleep", before.pods == 0},
      {"pods", std::log(1.0 + before.pods)},
      {"idle_watts", before.kind == 0 ? 50 / 300. : 80 / 300.},
      {"busy_watts", before.kind == 0 ? 100 / 300. : 1},
      {"price", before.kind == 0 ? 1 / 3. : 1},
      {"size_cpu", before.cpu / ((4000 + 4000 + 4000 + 8000 + 6000 + 3000) / 6.)},
      {"size_memory", before.memory_mib / ((8192 + 8192 + 8192 + 4096 + 16384 + 256) / 6.)},
      {"devices", static_cast<double>(before.devices.size())},
      {"whole_devices", whole},
      {"begun_devices", begun},
      {"largest_device", largest},
      {"more_alike", std::log(1.0 + more)},
      {"fits_no_more", more == 0},
      {"least_free", *std::min_element(free, free + known)},
      {"most_free", *std::max_element(free, free + known)},
      {"lopsided", free[0] - free[1]},
      {"user_latency", kRoundTripMs[before.kind]}});
}

TEST(PlacementFeatures, OfCandidatesAreWhatCanBeCounted) {
  const CountedCluster cluster;
  const PlacementTask task(kCountedObjective);
  const CountedTerms now = TermsOf(cluster.nodes, cluster.penalties, cluster.pods);
  const CountedPod pods[] = {kWeb, kLearner};
  const std::vector<std::vector<int>> where = {{0, 1, 3, 5}, {3, 5}};
  for (WorkloadId workload = 0; workload < 2; ++workload) {
    PlacementSpace space;
    GraphBatch batch{.widths = PlacementTask::kWidths};
    const PlacementQuestion question{cluster.state, cluster.totals, workload};
    task.Space(question, {}, &space);
    task.Encode(question, space, &batch);
    ASSERT_EQ(space.count(), static_cast<int>(where[workload].size()));
    std::vector<Answer> answers;
    std::vector<double> alike;
    for (const int at : where[workload]) {
      answers.push_back(Place(cluster, pods[workload], at));
      alike.push_back(at == 1 ? 2 : 1);
    }
    for (int i = 0; i < space.count(); ++i) {
      SCOPED_TRACE(where[workload][i]);
      const CountedNode& before = cluster.nodes[where[workload][i]];
      FeatureValues counted = ScoresOf(answers, alike, i);
      CountNode(before, answers[i].node, pods[workload], now, &counted);
      constexpr std::string_view kChanges[] = {
          "balance_change", "energy_change",  "utilisation_change", "fragmentation_change",
          "cost_change",    "latency_change", "calls_change"};
      for (int t = 0; t < kObjectiveTerms; ++t)
        counted[kChanges[t]] = (answers[i].terms.term[t] - now.term[t]) * 6;
      counted["alike"] = std::log(alike[i]);
      counted["stands_empty"] = before.pods == 0 ? alike[i] / 6 : 0;
      counted["user_penalty"] = workload == 1 ? 1 : before.kind == 0 ? 0 : 0.5;
      CountedPods here{};
      here[before.kind] = 1;
      const auto& bound = cluster.pods;
      counted["partner_latency"] =
          workload == 1 ? MeanBetweenMs(here, bound[0])
                        : (MeanBetweenMs(here, bound[1]) + 2 * MeanBetweenMs(here, bound[2])) / 3;
      ExpectValues(
          ValuesIn(batch.candidates.data() + ptrdiff_t{i} * PlacementTask::kWidths.candidate,
                   PlacementTask::Features().candidate),
          counted);
    }
  }
}

TEST(PlacementFeatures, OfTheClusterAreWhatCanBeCounted) {
  const CountedCluster cluster;
  const PlacementTask task(kCountedObjective);
  const CountedTerms now = TermsOf(cluster.nodes, cluster.penalties, cluster.pods);
  const CountedPod pods[] = {kWeb, kLearner};
  const std::vector<std::vector<int>> where = {{0, 1, 2, 3, 5}, {3, 5}};
  for (WorkloadId workload = 0; workload < 2; ++workload) {
    PlacementSpace space;
    GraphBatch batch{.widths = PlacementTask::kWidths};
    const PlacementQuestion question{cluster.state, cluster.totals, workload};
    task.Space(question, {}, &space);
    task.Encode(question, space, &batch);
    FeatureValues counted;
    constexpr std::string_view kUsed[] = {"cpu_used", "memory_used", "devices_used"};
    constexpr std::string_view kDeviations[] = {"cpu_deviation", "memory_deviation",
                                                "devices_deviation"};
    for (int r = 0; r < 3; ++r) {
      counted[kUsed[r]] = now.used[r];
      counted[kDeviations[r]] = now.deviation[r];
    }
    counted["active"] = 3 / 6.;
    counted["watts"] = now.watts_share;
    counted["price"] = now.price_share;
    counted["fragmentation"] = now.stranded;
    counted["latency_penalty"] = cluster.penalties / 4;
    constexpr std::string_view kWants[] = {
        "wants_balance", "wants_energy",  "wants_utilisation", "wants_fragmentation",
        "wants_cost",    "wants_latency", "wants_calls"};
    for (int t = 0; t < kObjectiveTerms; ++t)
      counted[kWants[t]] = kCountedObjective.weight[t] / 4.8;
    counted["call_distance"] = now.calls;
    counted["takes_calls"] = counted["takes_calls_now"] = workload == 0 ? 1 : 1 / 3.;
    counted["asks_cpu"] = pods[workload].cpu / (29000 / 6.);
    counted["asks_memory"] = pods[workload].memory_mib / (45312 / 6.);
    counted["asks_devices"] = workload;
    counted["asks_of_each"] = workload == 0 ? 0 : 0.3;
    counted["allowed"] = static_cast<double>(where[workload].size()) / 6;
    counted["choices"] = std::log(workload == 0 ? 5.0 : 3.0);
    counted["pods_a_node"] = 4 / 6.;
    double best = 1e9, sum = 0;
    for (const int at : where[workload]) {
      const double cost = Place(cluster, pods[workload], at).terms.Cost();
      best = std::min(best, cost), sum += cost;
    }
    counted["distance"] = 6 * (sum / static_cast<double>(where[workload].size()) - best);
    counted["has_devices"] = 1;
    counted["has_limits"] = workload == 0;
    ExpectValues(ValuesIn(batch.context.data(), PlacementTask::Features().context), counted);
  }
}

// Who asks for several whole devices has as often room as devices are left in whole.
TEST(PlacementFeatures, MoreAlikeCountsPodsThatAskForSeveralDevices) {
  CountedCluster cluster;
  auto catalog = std::make_shared<Catalog>(*cluster.state.catalog);
  catalog->workloads[1].devices = {.count = 2, .millis = 1000};
  catalog->workloads[1].requests = {0, 0};
  cluster.state.catalog = catalog;
  cluster.state.nodes.devices[3] = Devices::Of(8);
  cluster.state.nodes.devices[3].Take(1, 300);
  cluster.totals.Reset(cluster.state, cluster.laws);
  const PlacementTask task(kCountedObjective);
  PlacementSpace space;
  GraphBatch batch{.widths = PlacementTask::kWidths};
  const PlacementQuestion question{cluster.state, cluster.totals, 1};
  task.Space(question, {}, &space);
  task.Encode(question, space, &batch);
  ASSERT_EQ(space.count(), 1);
  const FeatureValues seen = ValuesIn(batch.candidates.data(), PlacementTask::Features().candidate);
  EXPECT_NEAR(seen.at("more_alike"), std::log(1 + (7 - 2) / 2), 1e-5);
  EXPECT_EQ(seen.at("whole_devices"), 5);
}

TEST(PlacementFeatures, WithoutCostsDevicesOrRequestsNothingIsDividedByNothing) {
  CountedCluster cluster;
  cluster.laws.costs.clear();
  auto catalog = std::make_shared<Catalog>(*cluster.state.catalog);
  catalog->workloads[2].requests = {0, 0};
  cluster.state.catalog = catalog;
  cluster.state.nodes.devices.clear();
  cluster.totals.Reset(cluster.state, cluster.laws);
  const PlacementTask task(Objective::Of(ObjectiveTerm::kBalance));
  PlacementSpace space;
  GraphBatch batch{.widths = PlacementTask::kWidths};
  const PlacementQuestion question{cluster.state, cluster.totals, 2};
  task.Space(question, {}, &space);
  task.Encode(question, space, &batch);
  const FeatureValues seen = ValuesIn(batch.candidates.data(), PlacementTask::Features().candidate);
  for (const auto name : {"idle_watts", "busy_watts", "price", "devices", "free_devices"})
    EXPECT_EQ(seen.at(name), 0) << name;
  EXPECT_NEAR(seen.at("more_alike"), std::log(1001), 1e-4);  // As many as anybody counts.
  EXPECT_EQ(ValuesIn(batch.context.data(), PlacementTask::Features().context).at("has_devices"), 0);
}

}  // namespace
}  // namespace rudderfish
