// SPDX-License-Identifier: Apache-2.0
#include "kube/extender_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/pod_writer.h"
#include "tests/support/kube_json.h"

namespace rudderfish::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ExtenderArgs> ArgsOf(const std::string& body) {
  static simdjson::dom::parser parser;  // Outlives the names that are read.
  return ReadExtenderArgs(body, {}, &parser);
}

TEST(ExtenderArgs, AreReadAsKubeSchedulerWritesThem) {
  const std::string pod = rudderfish::testing::PodJson{.name = "web"}.Text();
  const auto args = ArgsOf(R"({"Pod":)" + pod + R"(,"Nodes":null,"NodeNames":["n1","n2"]})");
  ASSERT_TRUE(args.has_value()) << args.error().message;
  EXPECT_EQ(args->pod.Key(), "default/web");
  EXPECT_EQ(args->shape.amounts.requests.cpu_millis, 100);
  EXPECT_THAT(args->nodes, ElementsAre("n1", "n2"));
}

TEST(ExtenderArgs, SayWhetherThePodWantsNoPolicyOfOurs) {
  const auto asks = [](const std::string& metadata) {
    const auto args = ArgsOf(R"({"Pod":{"metadata":{"name":"web","namespace":"default",)" +
                             metadata + R"(},"spec":{"containers":[]}},"NodeNames":["n1"]})");
    return args.has_value() && args->is_opted_out;
  };
  EXPECT_TRUE(asks(R"("annotations":{"rudderfish.io/do-not-place":"true"})"));
  EXPECT_TRUE(asks(R"("labels":{"rudderfish.io/do-not-place":"true"})"));
  for (const char* value : {"TRUE", "yes", "", "30m", "False"}) {
    EXPECT_TRUE(
        asks(R"("annotations":{"rudderfish.io/do-not-place":")" + std::string(value) + R"("})"))
        << value;
  }
  EXPECT_FALSE(asks(R"("annotations":{"rudderfish.io/do-not-place":"false"})"));
  EXPECT_FALSE(asks(R"("labels":{"app":"web"})"));
}

TEST(ExtenderArgs, WhatIsNoneIsRefusedByTheFieldThatIsWrong) {
  const std::string pod = rudderfish::testing::PodJson{.name = "web"}.Text();
  for (const auto& [body, said] : std::vector<std::pair<std::string, const char*>>{
           {"", "this is no JSON"},
           {"[1,2", "this is no JSON"},
           {"[]", "expected an ExtenderArgs object"},
           {R"({"NodeNames":[]})", "Pod: is missing"},
           {R"({"Pod":7,"NodeNames":[]})", "Pod: is missing"},
           {R"({"Pod":)" + pod + "}", "nodeCacheCapable: true"},
           {R"({"Pod":)" + pod + R"(,"NodeNames":"n1"})", "NodeNames: expected a list"},
           {R"({"Pod":)" + pod + R"(,"NodeNames":["n1",2]})", "NodeNames[1]: expected text"},
           {R"({"Pod":{"metadata":{"name":"x"},"spec":{"priority":"high"}},"NodeNames":[]})",
            "spec.priority"}}) {
    const auto args = ArgsOf(body);
    ASSERT_FALSE(args.has_value()) << body;
    EXPECT_THAT(args.error().message, HasSubstr(said)) << body;
  }
}

TEST(ExtenderArgs, AnswersAreWhatKubeSchedulerReads) {
  EXPECT_EQ(HostPriorityText({"a", "b-1.c", "d", "\"e"}, {0, 10, 3, 1}),
            R"([{"Host":"b-1.c","Score":10},{"Host":"d","Score":3},{"Host":"\"e","Score":1}])");
  EXPECT_EQ(HostPriorityText({"a"}, {0}), "[]");
  EXPECT_EQ(FilterResultText({"a", "b"}, {"", "full"}),
            R"({"Nodes":null,"NodeNames":["a"],"FailedNodes":{},)"
            R"("FailedAndUnresolvableNodes":{"b":"full"},"Error":""})");
}

TEST(PodWriter, ABindingNamesThePodByItsUid) {
  EXPECT_THAT(internal::BindingBody({"shop", "web", "u-1"}, "n1"),
              HasSubstr(R"("name":"web","namespace":"shop","uid":"u-1")"));
}

}  // namespace
}  // namespace rudderfish::kube
