// SPDX-License-Identifier: Apache-2.0
#include "cloud/weighted_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rudderfish {
namespace {

using ::testing::HasSubstr;

TEST(WeightedObject, NamesAreReadAndPointersEscaped) {
  const auto choice = ParseObjectChoice("shop/web");
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->name_space, "shop");
  EXPECT_EQ(choice->name, "web");
  for (const char* wrong : {"shop", "/web", "shop/", "shop/a/b", "Shop/web", "shop/we b"})
    EXPECT_FALSE(ParseObjectChoice(wrong)) << wrong;
  EXPECT_EQ(PointerPart("us-east/zone~1/*"), "us-east~1zone~01~1*");
}

TEST(WeightedObject, WhatOthersWriteIsRefused) {
  const auto why_not = [](const std::string& metadata) -> std::string {
    const Json json = ParseJson("{\"metadata\": " + metadata + "}", "x").value();
    const auto version =
        CheckWritable(JsonReader(json, "x"), "virtualservice a/b",
                      {.name_space = "a", .name = "b", .may_change = {"argo"}}, {"spec", "http"});
    return version ? *version : version.error().message;
  };
  const auto by = [](const std::string& manager, const std::string& field) {
    return R"({"resourceVersion": "7", "managedFields": [{"manager": ")" + manager +
           R"(", "fieldsV1": {"f:spec": {"f:)" + field + R"(": {}}}}]})";
  };
  EXPECT_EQ(why_not(R"({"resourceVersion": "7"})"), "7");
  EXPECT_EQ(why_not(by("kubectl-edit", "http")), "7");
  EXPECT_EQ(why_not(by("rudderfish", "http")), "7");
  EXPECT_EQ(why_not(by("argo", "http")), "7");
  EXPECT_EQ(why_not(by("flagger", "hosts")), "7");
  EXPECT_THAT(why_not(by("flagger", "http")),
              HasSubstr("virtualservice a/b: its http belong to the field manager `flagger`"));
  EXPECT_THAT(why_not(R"({"resourceVersion": "7", "ownerReferences":
                         [{"kind": "Canary", "name": "web", "controller": true}]})"),
              HasSubstr("it belongs to Canary/web"));
  EXPECT_THAT(why_not("{}"), HasSubstr("resourceVersion"));
}

}  // namespace
}  // namespace rudderfish
