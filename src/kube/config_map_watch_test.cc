// SPDX-License-Identifier: Apache-2.0
#include "kube/config_map_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace rudderfish::kube {
namespace {

using ::testing::ElementsAre;
using Data = ConfigMapWatch::Data;

// What is told by calls of the sink; nobody is asked.
class ConfigMapWatchTest : public ::testing::Test {
 protected:
  simdjson::dom::element Parsed(const std::string& text) { return parser_.parse(text).value(); }

  SystemClock clock_;
  std::unique_ptr<ApiClient> client_ =
      ApiClient::Open({.server = "http://127.0.0.1:1"}, &clock_).value();
  std::vector<Data> told_;
  simdjson::dom::parser parser_;
  ConfigMapWatch watch_{client_.get(), "shop", "control",
                        [this](const Data& data) { told_.push_back(data); }};
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

TEST_F(ConfigMapWatchTest, MalformedOneIsRefusedAndTheLastWordStays) {
  ASSERT_TRUE(watch_.Changed(Parsed(R"({"data":{"pause":"true"}})")));
  EXPECT_FALSE(watch_.Changed(Parsed(R"({"data":[1]})")));
  EXPECT_FALSE(watch_.Changed(Parsed(R"({"data":{"pause":1}})")));
  EXPECT_EQ(told_.size(), 1u);
}

}  // namespace
}  // namespace rudderfish::kube
