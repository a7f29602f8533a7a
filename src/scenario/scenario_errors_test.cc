// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "scenario/scenario.h"
#include "tests/support/tiny_scenario.h"

// Everything that can be wrong with a scenario file gives one line that says what, where and how to
// mend it.

namespace rudderfish {
namespace {

struct BadFile {
  std::string_view what;  // In the tiny scenario,
  std::string_view by;    // replaced by this,
  std::string_view message;
};

const BadFile kBadFiles[] = {
    {"rudderfish: scenario/v1", "rudderfish: scenario/v9",
     "f.yaml:1:13: `rudderfish`: expected scenario/v1, the format of this version, found "
     "\"scenario/v9\""},
    {"rudderfish: scenario/v1\n", "", "f.yaml:1:1: missing key `rudderfish`"},
    {"seed: 7", "sead: 7", "f.yaml:3:1: unknown key `sead`; did you mean `seed`?"},
    {"seed: 7", "seed: -1", "f.yaml:3:7: `seed`: expected an integer of at least 0, found \"-1\""},
    {"model: reach", "model: raech",
     "f.yaml:4:8: `model`: no latency model is called \"raech\"; there are reach and physical"},
    {"name: tiny", "name: [tiny]", "f.yaml:2:7: `name`: expected a string, found a list"},
    {"name: tiny", "name: tiny\nsource: {system: reech, config: 7-21}",
     "f.yaml:3:18: `source.system`: expected reach, the one source there is, found \"reech\""},
    {"{accepts_moves: false}", "{accept_moves: false}",
     "f.yaml:8:13: `layers.outside`: unknown key `accept_moves`; did you mean `accepts_moves`?"},
    {"{accepts_moves: false}", "{accepts_moves: 0}",
     "f.yaml:8:28: `layers.outside.accepts_moves`: expected true or false, found \"0\""},
    {"  edge: {cloud: 20ms to 80ms, edge: 1ms, outside: 2ms}\n", "",
     "f.yaml:10:3: `latency`: missing key `edge`"},
    {"edge: 1ms, outside: 2ms}", "edge: 1ms}",
     "f.yaml:11:9: `latency.edge`: missing key `outside`: the latency from edge to outside"},
    {"edge: 1ms, outside: 2ms}", "egde: 1ms, outside: 2ms}",
     "f.yaml:11:37: `latency.edge.egde`: no layer is called \"egde\"; did you mean `edge`?"},
    {"edge: 1ms, outside: 2ms}", "edge: 1mm, outside: 2ms}",
     "f.yaml:11:37: `latency.edge.edge`: unknown unit \"mm\" in \"1mm\": a duration is given in ns "
     "us µs ms s m min h"},
    {"edge: 1ms, outside: 2ms}", "edge: 1, outside: 2ms}",
     "f.yaml:11:37: `latency.edge.edge`: \"1\" lacks a unit: a duration is given in ns us µs ms s "
     "m min h"},
    {"edge: 1ms, outside: 2ms}", "edge: -1ms, outside: 2ms}",
     "f.yaml:11:37: `latency.edge.edge`: expected a duration (a number of at most 19 digits and "
     "one of the units ns us µs ms s m min h), found \"-1ms\""},
    {"edge: 1ms, outside: 2ms}", "edge: 5ms to 2ms, outside: 2ms}",
     "f.yaml:11:37: `latency.edge.edge`: the range \"5ms to 2ms\" ends below its start"},
    {"edge: 1ms, outside: 2ms}", "edge: [], outside: 2ms}",
     "f.yaml:11:37: `latency.edge.edge`: expected at least one value to choose from, found an "
     "empty list"},
    {"edge: 1ms, outside: 2ms}", "edge: {uniform: 1ms}, outside: 2ms}",
     "f.yaml:11:37: `latency.edge.edge`: expected a value, a range such as 1 to 5, or a list to "
     "choose from, found a map"},
    {"edge: 1ms, outside: 2ms}", "edge: 1ms, edge: 2ms}", "f.yaml:11:42: `edge` is given twice"},
    {"layer: edge, cpu_type: slow", "layer: fog, cpu_type: slow",
     "f.yaml:15:18: `node_types.small.layer`: no layer is called \"fog\"; there are cloud, edge, "
     "outside"},
    {"bandwidth: 100Mbit", "bandwidth: 100",
     "f.yaml:15:51: `node_types.small.bandwidth`: \"100\" lacks a unit: a bandwidth is given in "
     "bit kbit Mbit Gbit Tbit B kB MB GB TB KiB MiB GiB TiB bps kbps Mbps Gbps Tbps"},
    {"bandwidth: 100Mbit", "bandwidth: 0Mbit",
     "f.yaml:15:51: `node_types.small.bandwidth`: expected a bandwidth above 0 and up to "
     "1000000000MB/s, found \"0Mbit\""},
    {"bandwidth: 100Mbit}", "bandwidth: 100Mbit, bandwith: 1}",
     "f.yaml:15:60: `node_types.small`: unknown key `bandwith`; did you mean `bandwidth`?"},
    {"type: small, count: 3", "type: smal, count: 3",
     "f.yaml:19:12: `nodes[1].type`: no node type is called \"smal\"; did you mean `small`?"},
    {"type: small, count: 3", "type: small, names: []",
     "f.yaml:19:26: `nodes[1].names`: expected at least one name, found none"},
    {"type: small, count: 3", "type: small, names: [a, b, a]",
     "f.yaml:19:5: `nodes[1]`: two nodes are called a"},
    {"type: small, count: 3", "type: small, count: 3, names: [a]",
     "f.yaml:19:26: `nodes[1].count`: give either `count` or `names`, not both"},
    {"type: small, count: 3", "type: small, count: -1",
     "f.yaml:19:26: `nodes[1].count`: expected an integer from 0 to 100000, found \"-1\""},
    {"type: small, count: 3", "type: small, count: 100000",
     "f.yaml:19:5: `nodes[1]`: more than 100000 nodes in all"},
    {"type: small, count: 3", "type: small, count: 1000000",
     "f.yaml:19:26: `nodes[1].count`: expected an integer from 0 to 100000, found \"1000000\""},
    {"cpu: 1 to 2.5", "cpu: 1 to 2.5c",
     "f.yaml:19:34: `nodes[1].cpu`: unknown unit \"c\" in \"2.5c\": an amount of CPU is given in n "
     "u m (none) k M"},
    {"memory: 1.3Gi", "memory: 1.3GiB",
     "f.yaml:19:52: `nodes[1].memory`: unknown unit \"GiB\" in \"1.3GiB\": an amount of memory is "
     "given in n u m (none) k M G T P E Ki Mi Gi Ti Pi Ei"},
    {"memory: 1.3Gi", "memory: 9999Pi",
     "f.yaml:19:52: `nodes[1].memory`: \"9999Pi\" is too large for an amount of memory"},
    {"background: 0 to 0.5", "background: 0 to 1.5",
     "f.yaml:19:71: `nodes[1].background`: expected a fraction from 0 to 1, found \"1.5\""},
    {"requests: {cpu: 500m, memory: 300Mi}", "requests: {cpu: 500m}",
     "f.yaml:24:15: `workloads.shop.requests`: missing key `memory`"},
    {"requests: {cpu: 500m, memory: 300Mi}", "requests: {cpu: 9, memory: 300Mi}",
     "f.yaml:24:5: `workloads.shop`: a pod of shop requests 9 cores and 300 MiB, which no node of "
     "its layers (cloud, edge) can hold; the most there is on one is 8 cores and 12 GiB"},
    {"requests: {cpu: 500m, memory: 300Mi}",
     "requests: {cpu: 5, memory: 300Mi}\n    layers: [edge]",
     "f.yaml:24:5: `workloads.shop`: a pod of shop requests 5 cores and 300 MiB, which no node of "
     "its layers (edge) can hold; the most there is on one is 2.5 cores and 1.30 GiB"},
    {"replicas: 1 to 4", "replicas: 0 to 4",
     "f.yaml:25:15: `workloads.shop.replicas`: expected an integer from 1 to 65535, found \"0\""},
    {"replicas: 1 to 4", "replicas: 1.5",
     "f.yaml:25:15: `workloads.shop.replicas`: expected an integer from 1 to 65535, found \"1.5\""},
    {"replicas: 1 to 4", "replicas: 70000",
     "f.yaml:25:15: `workloads.shop.replicas`: expected an integer from 1 to 65535, found "
     "\"70000\""},
    {"replicas: 1 to 4", "replicas: 60",
     "f.yaml:22:3: `workloads`: the fewest replicas together request 31.35 cores and 18.86 GiB, "
     "all nodes offer at most 24.5 cores and 28.9 GiB"},
    {"replicas: 1 to 4", "replica: 1 to 4",
     "f.yaml:25:5: `workloads.shop`: missing key `replicas`; is `replica` meant to be that?"},
    {"layers: [edge, cloud]", "layers: [edge, clod]",
     "f.yaml:30:20: `workloads.cart.layers[1]`: no layer is called \"clod\"; did you mean "
     "`cloud`?"},
    {"layers: [edge, cloud]", "layers: [edge, edge]",
     "f.yaml:30:13: `workloads.cart.layers`: expected at least one layer, and each once"},
    {"layers: [edge, cloud]", "layers: []",
     "f.yaml:30:13: `workloads.cart.layers`: expected at least one layer, and each once"},
    {"{fast: 4ms, slow: 9ms}", "{fast: 4ms}",
     "f.yaml:26:16: `workloads.shop.execution`: missing key `slow`: the cpu_type of small, where "
     "shop can run"},
    {"{fast: 4ms, slow: 9ms}", "{fast: 4ms, slwo: 9ms}",
     "f.yaml:26:34: `workloads.shop.execution.slwo`: no cpu_type is called \"slwo\"; did you mean "
     "`slow`?"},
    {"{fast: 4ms, slow: 9ms}", "{fast: 0ms, slow: 9ms}",
     "f.yaml:26:23: `workloads.shop.execution.fast`: expected a time above 0, found \"0ms\""},
    {"{fast: 4ms, slow: 9ms}", "[4ms, 9ms]",
     "f.yaml:26:16: `workloads.shop.execution`: expected a time, or a map of times by cpu_type, "
     "found a list"},
    {"  store:\n    requests", "  calls:\n    requests",
     "f.yaml:33:5: `workloads.calls`: a workload cannot have this name: it is a keyword where "
     "calls are listed"},
    {"  store:\n    requests", "  shop:\n    requests", "f.yaml:32:3: `shop` is given twice"},
    {"- cart\n", "- carts\n",
     "f.yaml:47:17: `patterns.browse.view.calls[0].shop.parallel[0]`: no workload is called "
     "\"carts\"; did you mean `cart`?"},
    {"- cart\n", "- shop\n",
     "f.yaml:47:17: `patterns.browse.view.calls[0].shop.parallel[0]`: the calls go round in a "
     "circle: shop -> shop"},
    {"- cart\n", "- store\n",
     "f.yaml:47:17: `patterns.browse.view.calls[0].shop.parallel[0]`: missing key `execution`: "
     "give it here or at `workloads.store`"},
    {"- cart\n", "- {cart: {}, store: {}}\n",
     "f.yaml:47:17: `patterns.browse.view.calls[0].shop.parallel[0]`: expected one call, "
     "`workload: {...}`, found a map with 2 keys; each call is an item of its own"},
    {"- cart\n", "- [cart]\n",
     "f.yaml:47:17: `patterns.browse.view.calls[0].shop.parallel[0]`: expected a call: the name of "
     "a workload, found a list"},
    {"- cart\n", "- cart: {calls: [{store: {execution: 1ms, calls: [shop]}}]}\n",
     "f.yaml:47:65: `patterns.browse.view.calls[0].shop.parallel[0].cart.calls[0].store.calls[0]`: "
     "the calls go round in a circle: shop -> cart -> store -> shop"},
    {"data: 20kB", "data: 20k",
     "f.yaml:45:19: `patterns.browse.view.calls[0].shop.data`: unknown unit \"k\" in \"20k\": an "
     "amount of data is given in B kB MB GB TB KiB MiB GiB TiB"},
    {"data: 20kB", "dat: 20kB",
     "f.yaml:45:13: `patterns.browse.view.calls[0].shop`: unknown key `dat`; did you mean `data`?"},
    {"data: 20kB", "calls: [cart]",
     "f.yaml:47:15: `patterns.browse.view.calls[0].shop.parallel`: expected either `calls` (one "
     "after another) or `parallel` (at once), found both"},
    {"calls: [shop, cart]", "calls: shop",
     "f.yaml:55:14: `patterns.browse.pay.calls`: expected a list, found \"shop\""},
    {"calls: [shop, cart]", "calls: []",
     "f.yaml:55:14: `patterns.browse.pay.calls`: expected at least one call, found an empty list"},
    {"rate: 12.5", "rate: fast",
     "f.yaml:41:13: `patterns.browse.view.rate`: expected a number from 0 to 1000000000, found "
     "\"fast\""},
    {"rate: 12.5\n", "rate: 12.5\n      rps: 5\n",
     "f.yaml:42:7: `patterns.browse.view`: unknown key `rps`; known here: client, rate, qos, "
     "calls, parallel"},
    {"      qos: 80ms\n", "", "f.yaml:40:7: `patterns.browse.view`: missing key `qos`"},
    {"idle:\n    view: {client: browser, rate: 0, qos: 1s}", "idle: {}",
     "f.yaml:56:9: `patterns.idle`: expected at least one endpoint"},
    {"idle:\n    view: {client: browser", "idle:\n    view: {client: brwoser",
     "f.yaml:57:20: `patterns.idle.view.client`: no workload is called \"brwoser\"; did you mean "
     "`browser`?"},
    {"pattern_weights: {browse: 3}", "pattern_weights: {brows: 3}",
     "f.yaml:58:26: `pattern_weights.brows`: no pattern is called \"brows\"; did you mean "
     "`browse`?"},
    {"pattern_weights: {browse: 3}", "pattern_weights: {browse: 0}",
     "f.yaml:58:27: `pattern_weights.browse`: expected a number from 1e-06 to 1000000, found "
     "\"0\""},
    {"retries: 50", "retries: 0",
     "f.yaml:59:10: `retries`: expected an integer from 1 to 1000000, found \"0\""},
    {"retries: 50", "retrys: 50", "f.yaml:59:1: unknown key `retrys`; did you mean `retries`?"},
    {"task: {kind", "tasks: {kind", "f.yaml:60:1: unknown key `tasks`; did you mean `task`?"},
};

TEST(ScenarioError, NamesThePlaceAndWhatWasExpected) {
  for (const BadFile& bad : kBadFiles) {
    const Result<Scenario> scenario =
        ParseScenario(testing::TinyScenarioWith(bad.what, bad.by), "f.yaml");
    ASSERT_FALSE(scenario.has_value()) << bad.by;
    EXPECT_EQ(scenario.error().message, bad.message) << bad.by;
    EXPECT_EQ(scenario.error().code, ErrorCode::kInvalidArgument);
  }
}

std::string ErrorOf(std::string_view text) {
  const Result<Scenario> scenario = ParseScenario(text, "f.yaml");
  return scenario ? "no error" : scenario.error().message;
}

TEST(ScenarioError, EmptyFileIsCalledEmpty) {
  EXPECT_EQ(ErrorOf(""), "f.yaml: is empty; expected YAML");
  EXPECT_EQ(ErrorOf("# A comment.\n"), "f.yaml: is empty; expected YAML");
  EXPECT_EQ(ErrorOf("~\n"), "f.yaml:1:1: expected a scenario, found an empty file");
  EXPECT_EQ(ErrorOf("- a list\n"), "f.yaml:1:1: expected a map, found a list");
}

// Wherever a file is cut off before the first endpoint is complete, it is refused with its name.
TEST(ScenarioError, CutOffFileIsRefused) {
  const std::string_view text = testing::kTinyScenario;
  for (size_t length = 0; length <= text.find("qos: 80ms"); ++length) {
    const std::string error = ErrorOf(text.substr(0, length));
    EXPECT_TRUE(error.starts_with("f.yaml:")) << length << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(ScenarioError, MorePodsThanAMachineCanHoldAreRefused) {
  std::string text(testing::kTinyScenario.substr(0, testing::kTinyScenario.find("patterns:")));
  for (int i = 0; i < 20; ++i) {
    text += fmt::format("  more-{}: {{requests: {{cpu: 1m, memory: 1}}, replicas: 60000}}\n", i);
  }
  EXPECT_EQ(ErrorOf(text), "f.yaml:53:12: `workloads.more-16`: more than 1000000 pods in all");
}

TEST(ScenarioError, NoNodesAtAllAreRefused) {
  std::string text(testing::kTinyScenario);
  const size_t begin = text.find("nodes:\n"), end = text.find("workloads:");
  text.replace(begin, end - begin, "nodes: []\n");
  EXPECT_EQ(ErrorOf(text), "f.yaml:17:8: `nodes`: expected at least one node, found none");
  text.replace(text.find("nodes: []"), 9, "nodes: [{type: big, count: 0, cpu: 1, memory: 1Gi}]");
  EXPECT_EQ(ErrorOf(text), "f.yaml:17:8: `nodes`: expected at least one node, found none");
}

}  // namespace
}  // namespace rudderfish
