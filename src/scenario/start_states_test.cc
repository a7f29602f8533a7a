// SPDX-License-Identifier: Apache-2.0
#include "scenario/start_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "model/evaluator.h"
#include "scenario/reach_files.h"
#include "tests/support/source_path.h"
#include "tests/support/tiny_scenario.h"

namespace rudderfish {
namespace {

const std::filesystem::path kOurs = SourcePath("tests/data/reach-like");

Scenario Import(const std::filesystem::path& folder, const std::string& config,
                const std::vector<std::string>& patterns) {
  Result<Scenario> scenario = ImportReach(folder, config, patterns);
  CHECK(scenario.has_value());
  return *std::move(scenario);
}

// REACH's mask, cell by cell, and stop.
int AllowedActions(const State& state) {
  int allowed = 1;
  for (PodId pod = 0; pod < state.pods.size(); ++pod) {
    const Workload& workload = state.workload_of(pod);
    for (NodeId node = 0; node < state.nodes.size(); ++node) {
      allowed += workload.movable && node != state.pods.node[pod] &&
                 state.catalog->layers[state.kind_of(node).layer].accepts_moves &&
                 state.nodes.free[node].Fits(workload.requests);
    }
  }
  return allowed;
}

// Every state of a folder has the latency and the actions that the file says, which are not from
// this program.
int ExpectWhatTheFileSays(const std::filesystem::path& folder, const std::string& config,
                          const std::vector<std::string>& patterns) {
  const Scenario scenario = Import(folder, config, patterns);
  const std::string text = *ReadFile(folder / "start_states.jsonl");
  const auto states = ParseStartStates(text, "start_states.jsonl", scenario, {.config = config});
  EXPECT_TRUE(states.has_value()) << states.error().message;
  if (!states) return 0;
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(*ParseJson(line, "line"));
  for (const StartState& start : *states) {
    SCOPED_TRACE(start.line);
    CheckConsistent(start.state);
    const Json& line = lines[start.line];
    EXPECT_EQ(line["config"], config);
    EXPECT_EQ(line["pattern"], start.state.calls->name);
    Evaluator evaluator(LatencyLaw::Reach());
    evaluator.Reset(start.state);
    EXPECT_NEAR(evaluator.Now().latency_ms, line["latency_ms"].get<double>(), 1e-9);
    EXPECT_EQ(AllowedActions(start.state), line["allowed_actions"].get<int>());
  }
  return static_cast<int>(states->size());
}

TEST(StartStates, HaveTheLatencyAndTheActionsOfReachsRules) {
  EXPECT_EQ(ExpectWhatTheFileSays(kOurs, "6-17", {"line", "fan"}), 20);
}

TEST(StartStates, OfReachHaveTheLatencyAndTheActionsItComputed) {
  const char* folder = std::getenv("RUDDERFISH_REACH_DATA");
  if (folder == nullptr)
    GTEST_SKIP() << "RUDDERFISH_REACH_DATA does not name a folder with REACH's configuration";
  const std::vector<std::string> patterns = {"chain", "aggregator_sequential",
                                             "aggregator_parallel"};
  int states = ExpectWhatTheFileSays(folder, "7-21", patterns);
  states += ExpectWhatTheFileSays(folder, "22-41", patterns);
  EXPECT_GE(states, 100);
}

// A state of the tiny scenario, whose pods stand in no order.
constexpr std::string_view kLine =
    R"({"config":"tiny","pattern":"browse","latency_between_layer":{)"
    R"("cloud":{"cloud":0.5,"edge":20.25,"outside":30},)"
    R"("edge":{"cloud":79,"edge":1,"outside":2},)"
    R"("outside":{"cloud":40,"edge":2,"outside":0.1}},"nodes":[)"
    R"({"name":"small-2","layer":"edge","cpu_free":0.25,"mem_free":0.5},)"
    R"({"name":"big-1","layer":"cloud","cpu_free":2.4999,"mem_free":5.5},)"
    R"({"name":"big-2","layer":"cloud","cpu_free":8,"mem_free":7},)"
    R"({"name":"small-1","layer":"edge","cpu_free":0.3,"mem_free":0},)"
    R"({"name":"small-3","layer":"edge","cpu_free":1.1,"mem_free":1.3},)"
    R"({"name":"booth-1","layer":"outside","cpu_free":0.9,"mem_free":0.9}],"pods":[)"
    R"({"name":"cart-x7","service":"cart","node":"small-2"},)"
    R"({"name":"me","service":"browser","node":"booth-1"},)"
    R"({"name":"shop-1","service":"shop","node":"small-1"},)"
    R"({"name":"store-1","service":"store","node":"big-1"}],"extra":1})";

Result<std::vector<StartState>> Read(std::string_view text, const StartStateFilter& filter = {}) {
  static const auto tiny = testing::TinyScenario();
  return ParseStartStates(text, "s.jsonl", *tiny, filter);
}

std::string ErrorOf(std::string_view text, const StartStateFilter& filter = {}) {
  const auto states = Read(text, filter);
  return states ? "no error" : states.error().message;
}

std::string LineWith(std::string_view what, std::string_view by) {
  std::string line(kLine);
  const size_t at = line.find(what);
  CHECK(at != std::string::npos);
  return line.replace(at, what.size(), by);
}

TEST(StartStates, NodesStandInTheOrderOfTheScenarioAndPodsInThatOfTheLine) {
  const auto states = Read(kLine);
  ASSERT_TRUE(states.has_value()) << states.error().message;
  const State& state = states->front().state;
  EXPECT_EQ(NodeName(state, 0), "big-1");
  EXPECT_EQ(state.nodes.free[1].cpu_millis, 8000);
  EXPECT_EQ(PodName(state, 0), "cart-x7");
  EXPECT_EQ(NodeName(state, state.pods.node[0]), "small-2");
  EXPECT_EQ(state.workload_of(1).name, "browser");
  EXPECT_EQ(state.network.LatencyMs(0, 1), 20.25);
  EXPECT_EQ(state.network.LatencyMs(1, 0), 79);
  EXPECT_EQ(state.calls->name, "browse");
}

TEST(StartStates, FreeResourcesAreFlooredToMilliCoresAndBytes) {
  for (const auto& [cores, millis] :
       {std::pair("2.4999", 2499), std::pair("2.9999999999", 3000), std::pair("2.999999", 2999),
        std::pair("0.30000000000000004", 300), std::pair("-1e-16", 0)}) {
    const auto states =
        Read(LineWith("\"cpu_free\":2.4999", fmt::format("\"cpu_free\":{}", cores)));
    ASSERT_TRUE(states.has_value()) << states.error().message;
    EXPECT_EQ(states->front().state.nodes.free[0].cpu_millis, millis) << cores;
  }
  const auto states = Read(LineWith("\"mem_free\":5.5", "\"mem_free\":5.5000000005"));
  EXPECT_EQ(states->front().state.nodes.free[0].memory_bytes, (int64_t{11} << 29));
}

TEST(StartStates, AllocatableIsWhatIsFreeAndWhatIsRequested) {
  const auto states = Read(kLine);
  const State& state = states->front().state;
  CheckConsistent(state);
  EXPECT_EQ(state.nodes.allocatable[0].cpu_millis, 2499 + 1000);
  EXPECT_EQ(state.nodes.allocatable[1].cpu_millis, 8000);
}

TEST(StartStates, AreNumberedByTheirLines) {
  const std::string other = LineWith("\"pattern\":\"browse\"", "\"pattern\":\"idle\"");
  const std::string text = other + "\n" + std::string(kLine) + "\r\n" + other + "\n";
  const auto all = Read(text);
  ASSERT_TRUE(all.has_value()) << all.error().message;
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[2].line, 2);
  const auto some = Read(text, {.pattern = "browse"});
  ASSERT_EQ(some->size(), 1u);
  EXPECT_EQ(some->front().line, 1);
}

TEST(StartStates, OfAnotherConfigurationAreRefusedUnlessTheFilterLeavesThemOut) {
  const std::string text =
      std::string(kLine) + "\n" + LineWith("\"config\":\"tiny\"", "\"config\":\"7-21\"") + "\n";
  EXPECT_EQ(ErrorOf(text),
            "s.jsonl:2: config: the line is of \"7-21\", the scenario tiny is of \"tiny\"; "
            "`--select config=tiny` takes lines that fit");
  EXPECT_EQ(Read(text, {.config = "tiny"})->size(), 1u);
  EXPECT_EQ(ErrorOf(text, {.config = "7-21"}),
            "s.jsonl:2: config: the line is of \"7-21\", the scenario tiny is of \"tiny\"; "
            "`--select config=tiny` takes lines that fit");
  EXPECT_EQ(ErrorOf(text, {.config = "8-21", .pattern = "browse"}),
            "s.jsonl: none of its 2 lines has config 8-21 and pattern browse");
}

TEST(StartStates, OfAnotherPatternAreRefusedUnlessTheFilterLeavesThemOut) {
  const std::string text =
      LineWith("\"pattern\":\"browse\"", "\"pattern\":\"brows\"") + "\n" + std::string(kLine);
  EXPECT_EQ(ErrorOf(text),
            "s.jsonl:1: pattern: the line is of \"brows\", which is no pattern of the scenario "
            "tiny; `--select config=tiny,pattern=browse` takes lines that fit");
  EXPECT_EQ(Read(text, {.pattern = "browse"})->size(), 1u);
}

struct BadLine {
  std::string_view what;  // In the line above,
  std::string_view by;    // replaced by this,
  std::string_view message;
};

const BadLine kBadLines[] = {
    {"\"config\":\"tiny\",", "", "s.jsonl:2: missing key \"config\""},
    {"\"config\":\"tiny\"", "\"config\":7", "s.jsonl:2: config: expected a string, found 7"},
    {"\"nodes\":[", "\"nodes\":5,\"n\":[", "s.jsonl:2: nodes: expected an array, found 5"},
    {",\"extra\":1}", "",
     "s.jsonl:2:807: syntax error while parsing object - unexpected end of input; expected '}'"},
    {"\"edge\":20.25", "\"edge\":\"20ms\"",
     "s.jsonl:2: latency_between_layer.cloud.edge: expected a number from 0 to 1000000000, found "
     "\"20ms\""},
    {"\"edge\":20.25", "\"edge\":-20",
     "s.jsonl:2: latency_between_layer.cloud.edge: expected a number from 0 to 1000000000, found "
     "-20"},
    {"\"edge\":20.25,", "", "s.jsonl:2: latency_between_layer.cloud: missing key \"edge\""},
    {"\"name\":\"small-2\",\"layer\"", "\"name\":\"smal-2\",\"layer\"",
     "s.jsonl:2: nodes[0].name: no node is called \"smal-2\"; did you mean `small-2`?"},
    {"\"name\":\"small-2\",\"layer\"", "\"name\":\"small-1\",\"layer\"",
     "s.jsonl:2: nodes[3].name: the node small-1 is given twice"},
    {"{\"name\":\"small-2\",\"layer\":\"edge\",\"cpu_free\":0.25,\"mem_free\":0.5},", "",
     "s.jsonl:2: nodes: the node small-2 is missing"},
    {"\"layer\":\"cloud\"", "\"layer\":\"edge\"",
     "s.jsonl:2: nodes[1].layer: expected cloud, where the scenario has big-1, found \"edge\""},
    {"\"cpu_free\":0.25", "\"cpu_free\":-0.25",
     "s.jsonl:2: nodes[0].cpu_free: below 0: the pods there request more than the node has"},
    {"\"mem_free\":0.5", "\"mem_free\":null",
     "s.jsonl:2: nodes[0].mem_free: expected a number from 0 to 1048576, found null"},
    {"\"mem_free\":0.5", "\"mem_free\":-1",
     "s.jsonl:2: nodes[0].mem_free: below 0: the pods there request more than the node has"},
    {"\"name\":\"me\"", "\"name\":\"cart-x7\"",
     "s.jsonl:2: pods[1].name: the pod cart-x7 is given twice"},
    {"\"name\":\"me\"", "\"name\":\"\"",
     "s.jsonl:2: pods[1].name: expected a name (1 to 200 printable characters), found \"\""},
    {"\"service\":\"shop\"", "\"service\":\"chop\"",
     "s.jsonl:2: pods[2].service: no service is called \"chop\"; did you mean `shop`?"},
    {"\"service\":\"shop\"", "\"service\":\"browser\"",
     "s.jsonl:2: pods[2].service: browser has more pods than replicas (1)"},
    {"\"node\":\"small-1\"", "\"node\":\"small-9\"",
     "s.jsonl:2: pods[2].node: no node is called \"small-9\"; did you mean `small-1`?"},
    {"\"node\":\"small-1\"", "\"node\":null",
     "s.jsonl:2: pods[2].node: expected a string, found null"},
};

TEST(StartStates, BadLineIsNamedWithWhatIsWrong) {
  for (const BadLine& bad : kBadLines) {
    EXPECT_EQ(ErrorOf(std::string(kLine) + "\n" + LineWith(bad.what, bad.by)), bad.message)
        << bad.by;
  }
}

TEST(StartStates, EmptyFileAndBlankAndHugeLinesAreRefused) {
  EXPECT_EQ(ErrorOf(""), "s.jsonl: is empty; expected one start state a line");
  EXPECT_EQ(ErrorOf("\n\n"), "s.jsonl: is empty; expected one start state a line");
  EXPECT_EQ(ErrorOf(std::string(kLine) + "\n\n" + std::string(kLine)),
            "s.jsonl:2: the line is blank; every line holds one start state");
  EXPECT_EQ(
      ErrorOf(std::string(kLine) + "\n" + std::string(2'000'000, '[')),
      "s.jsonl:2: the line has 2000000 bytes; more than 1063936 are none for 6 nodes and 9 pods");
}

// Wherever a line is cut off, it is refused with its place.
TEST(StartStates, CutOffLineIsRefusedWithItsPlace) {
  const std::string first = std::string(kLine) + "\n";
  for (size_t length = 1; length < kLine.size(); ++length) {
    const std::string error = ErrorOf(first + std::string(kLine.substr(0, length)));
    EXPECT_TRUE(error.starts_with("s.jsonl:2:")) << length << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(StartStates, WrittenAndReadAgainAreTheSameToTheBit) {
  const auto tiny = testing::TinyScenario();
  State state = Read(LineWith("\"mem_free\":5.5",
                              "\"mem_free\":5.123456789,\"background_mbytes_per_s\":12.3"))
                    ->front()
                    .state;
  state.network.latency_ms[1] = 0.1 + 0.2;
  const std::string line = StartStateLine(*tiny, state);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto again = Read(line);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  const State& read = again->front().state;
  EXPECT_EQ(read.nodes.free, state.nodes.free);
  EXPECT_EQ(read.nodes.allocatable, state.nodes.allocatable);
  EXPECT_EQ(read.nodes.background_mbytes_per_s, state.nodes.background_mbytes_per_s);
  EXPECT_EQ(read.network.latency_ms, state.network.latency_ms);
  EXPECT_EQ(read.pods.workload, state.pods.workload);
  EXPECT_EQ(read.pods.node, state.pods.node);
  EXPECT_EQ(read.names->pods, state.names->pods);
  EXPECT_EQ(read.calls, state.calls);
  EXPECT_EQ(StartStateLine(*tiny, read), line);
}

TEST(StartStateFilter, TakesConfigAndPatternInAnyOrder) {
  const auto both = ParseStartStateFilter("pattern=chain,config=7-21");
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->config, "7-21");
  EXPECT_EQ(both->pattern, "chain");
  EXPECT_EQ(ParseStartStateFilter("config=a=b")->config, "a=b");
  EXPECT_EQ(ParseStartStateFilter("pattern=fan")->config, "");
}

TEST(StartStateFilter, RefusesWhatItDoesNotKnow) {
  for (const auto& [text, message] :
       {std::pair("", "--select: expected config=... or pattern=..., found nothing"),
        std::pair("confg=7-21",
                  "--select: expected config=... or pattern=..., found \"confg=7-21\"; did you "
                  "mean `config`?"),
        std::pair("config", "--select: `config` lacks a value, as in config=7-21,pattern=chain"),
        std::pair("config=", "--select: `config` lacks a value, as in config=7-21,pattern=chain"),
        std::pair("config=a,config=b", "--select: `config` is given twice")}) {
    const auto filter = ParseStartStateFilter(text);
    ASSERT_FALSE(filter.has_value()) << text;
    EXPECT_EQ(filter.error().message, message) << text;
  }
}

}  // namespace
}  // namespace rudderfish
