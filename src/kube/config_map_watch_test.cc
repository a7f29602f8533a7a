// SPDX-License-Identifier: Apache-2.0
#include "kube/config_map_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace rudderfish::kube {
namespace {

using ::testing::ElementsAre;
using Data = ConfigMapWatch::Data;

// What is told by calls of the sink; no server is asked.
class ConfigMapWatchTest : public ::testing::Test {
 protected:
  simdjson::dom::element Parsed(const std::string& text) { return parser_.parse(text).value(); }

  SystemClock clock_;
  std::unique_ptr<ApiClient> client_ =
      ApiClient::Open({.server = "http://127.0.0.1:1"}, &clock_).value();
  std::vector<Data> told_;
  std::vector<std::string> problems_;
  simdjson::dom::parser parser_;
  ConfigMapWatch watch_{client_.get(), "shop", "control", [this](const ConfigMapWatch::Said& said) {
                          if (said) told_.push_back(*said);
                          if (!said) problems_.push_back(said.error().message);
                        }};
};

TEST_F(ConfigMapWatchTest, TellsWhatChangedOnce) {
  watch_.BeginList();
  ASSERT_TRUE(watch_.Listed(Parsed(R"({"data":{"pause":"true"}})")));
  EXPECT_TRUE(told_.empty()) << "a list counts at its end";
  watch_.EndList();
  ASSERT_TRUE(watch_.Changed(Parsed(R"({"data":{"pause":"true"}})")));
  ASSERT_TRUE(watch_.Changed(Parsed(R"({"data":{"mode":"off"}})")));
  ASSERT_TRUE(watch_.Deleted(Parsed(R"({"data":{"mode":"off"}})")));
  EXPECT_THAT(told_, ElementsAre(Data{{"pause", "true"}}, Data{{"mode", "off"}}, Data{}));
}

TEST_F(ConfigMapWatchTest, OneThatIsNotThereSaysNothing) {
  watch_.BeginList();
  watch_.EndList();
  ASSERT_TRUE(watch_.Changed(Parsed(R"({"metadata":{}})")));
  ASSERT_TRUE(watch_.Changed(Parsed(R"({"data":null})")));
  EXPECT_THAT(told_, ElementsAre(Data{}));
}

TEST_F(ConfigMapWatchTest, ListWithoutItTakesBackWhatItSaid) {
  ASSERT_TRUE(watch_.Changed(Parsed(R"({"data":{"pause":"true"}})")));
  watch_.BeginList();
  watch_.EndList();
  EXPECT_THAT(told_, ElementsAre(Data{{"pause", "true"}}, Data{}));
}

// It may be meant to stop us: to leave it out would be as if it were not there.
TEST_F(ConfigMapWatchTest, OneThatCannotBeUnderstoodIsToldAsThat) {
  ASSERT_TRUE(watch_.Changed(Parsed(R"({"data":{"pause":"true"}})")));
  EXPECT_FALSE(watch_.Changed(Parsed(R"({"data":[1]})")));
  EXPECT_FALSE(watch_.Changed(Parsed(R"({"data":{"pause":1}})")));
  watch_.BeginList();
  EXPECT_FALSE(watch_.Listed(Parsed(R"({"data":{"pause":1}})")));
  watch_.EndList();
  EXPECT_THAT(told_, ElementsAre(Data{{"pause", "true"}}));
  EXPECT_THAT(problems_, ElementsAre("`data` of a ConfigMap is no object",
                                     "`data.pause` of a ConfigMap is no text"));
  ASSERT_TRUE(watch_.Changed(Parsed(R"({"data":{}})")));
  EXPECT_THAT(told_, ElementsAre(Data{{"pause", "true"}}, Data{}));
}

TEST_F(ConfigMapWatchTest, BeforeItIsReadItSaysSo) {
  EXPECT_EQ(watch_.WhyUnread(std::chrono::seconds(30)),
            "the ConfigMap of `control` has not been read");
}

}  // namespace
}  // namespace rudderfish::kube
