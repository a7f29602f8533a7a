// SPDX-License-Identifier: Apache-2.0
#include "nn/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <vector>

namespace rudderfish::nn {
namespace {

using testing::HasSubstr;

constexpr NetShape kShape{.widths = {.candidate = 16, .node = 16, .workload = 32, .context = 16},
                          .hidden = 16};

CandidateNet RandomNet(const NetShape& shape = kShape) {
  CandidateNet net(shape);
  Rng rng(5);
  net.Initialize(&rng);
  return net;
}

SafetensorsFile FileOf(const CandidateNet& net) {
  SafetensorsFile file;
  AddNet(net, &file);
  return file;
}

// The same file but for one tensor, left out where `values` is empty.
SafetensorsFile Replace(const SafetensorsFile& original, const std::string& name,
                        const TensorShape& shape, const std::vector<float>& values) {
  SafetensorsFile file;
  for (const auto& [key, value] : original.metadata()) file.SetMetadata(key, value);
  for (const auto& [key, tensor] : original.tensors()) {
    if (key != name) file.Add<float>(key, tensor.shape, *original.Values<float>(key));
  }
  if (!values.empty()) file.Add<float>(name, shape, values);
  return file;
}

std::string LoadMessage(const SafetensorsFile& file, const NetShape& shape = kShape) {
  CandidateNet net(shape);
  const auto loaded = LoadNet(file, &net);
  if (loaded) return "loaded";
  for (const float parameter : net.parameters())
    EXPECT_EQ(parameter, 0) << "changed by a load that failed";
  return loaded.error().message;
}

TEST(Checkpoint, NetComesBackToTheBit) {
  const NetShape shapes[] = {
      kShape,
      {.widths = kShape.widths, .hidden = 32, .rounds = 2},
      {.widths = kShape.widths, .hidden = 32, .rounds = 2, .encoder = Encoder::kGatv2},
      {.widths = kShape.widths, .hidden = 16, .encoder = Encoder::kDeepSets}};
  for (const NetShape& shape : shapes) {
    const auto path =
        std::filesystem::temp_directory_path() / "rudderfish_checkpoint_test.safetensors";
    const CandidateNet net = RandomNet(shape);
    ASSERT_TRUE(SaveNet(net, path).has_value());
    const auto opened = OpenNet(path);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    EXPECT_EQ(opened->shape(), shape);
    EXPECT_TRUE(
        std::equal(net.parameters().begin(), net.parameters().end(), opened->parameters().begin()));
    std::filesystem::remove(path);
  }
}

TEST(Checkpoint, TwoNetsAndOtherTensorsShareAFile) {
  SafetensorsFile file;
  const CandidateNet first = RandomNet(), second(kShape);
  AddNet(first, &file, "net.");
  AddNet(second, &file, "target.");
  file.Add<float>("adam.first", {1}, std::vector<float>{1});
  CandidateNet loaded(kShape);
  ASSERT_TRUE(LoadNet(file, &loaded, "net.").has_value());
  EXPECT_EQ(loaded.parameters()[3], first.parameters()[3]);
  ASSERT_TRUE(LoadNet(file, &loaded, "target.").has_value());
  EXPECT_EQ(loaded.parameters()[3], 0);
}

TEST(Checkpoint, MissingTensorIsNamed) {
  const auto file = Replace(FileOf(RandomNet()), "net.score.weight", {}, {});
  EXPECT_THAT(LoadMessage(file), HasSubstr("tensor \"net.score.weight\" is missing"));
}

TEST(Checkpoint, WrongShapeIsNamedWithBothShapes) {
  const auto file =
      Replace(FileOf(RandomNet()), "net.stop.weight", {16, 1}, std::vector<float>(16));
  EXPECT_THAT(LoadMessage(file),
              HasSubstr("tensor \"net.stop.weight\": expected shape [1, 16], found [16, 1]"));
  const NetShape wider{.widths = {.candidate = 16, .node = 32, .workload = 32, .context = 16},
                       .hidden = 16};
  EXPECT_THAT(LoadMessage(FileOf(RandomNet()), wider),
              HasSubstr("tensor \"net.node.weight\": expected shape [32, 16], found [16, 16]"));
}

TEST(Checkpoint, TensorOfAnotherNetworkIsNamed) {
  const auto file = FileOf(RandomNet({.widths = kShape.widths, .hidden = 16, .rounds = 2}));
  EXPECT_THAT(LoadMessage(file),
              HasSubstr("tensor \"net.round1.node.bias\" is not one of this network's"));
}

// Tensors of gcn have the shapes of those of relational: the name alone tells them apart.
TEST(Checkpoint, AnotherEncoderIsRefusedByName) {
  const auto file =
      FileOf(RandomNet({.widths = kShape.widths, .hidden = 16, .encoder = Encoder::kGcn}));
  EXPECT_THAT(LoadMessage(file), HasSubstr("has the encoder gcn, not relational"));
}

TEST(Checkpoint, NumberThatIsNotFiniteIsRefused) {
  std::vector<float> bias(16);
  bias[7] = std::numeric_limits<float>::infinity();
  const auto file = Replace(FileOf(RandomNet()), "net.score.bias", {1, 16}, bias);
  EXPECT_THAT(LoadMessage(file), HasSubstr("\"net.score.bias\" holds a number that is not finite"));
}

TEST(Checkpoint, StoredShapeIsCheckedFieldByField) {
  const auto message = [](const std::string& json) {
    SafetensorsFile file;
    if (!json.empty()) file.SetMetadata("net.shape", json);
    const auto shape = StoredNetShape(file);
    return shape ? std::string("accepted") : shape.error().message;
  };
  const auto with = [](const std::string& hidden, const std::string& rounds) {
    return R"({"candidate":48,"node":32,"workload":32,"context":96,"hidden":)" + hidden +
           R"(,"rounds":)" + rounds + "}";
  };
  EXPECT_EQ(message(with("32", "1")), "accepted");
  EXPECT_EQ(message(with("32", R"(1,"encoder":"gatv2")")), "accepted");
  EXPECT_THAT(message(with("32", R"(1,"encoder":"gatv")")), HasSubstr("did you mean `gatv2`"));
  EXPECT_THAT(message(with("32", R"(1,"encoder":2)")), HasSubstr("encoder"));
  EXPECT_THAT(message(""), HasSubstr("net.shape"));
  EXPECT_THAT(message("{"), HasSubstr("net.shape"));
  EXPECT_THAT(message("{}"), HasSubstr("candidate"));
  EXPECT_THAT(message(with("33", "1")), HasSubstr("a multiple of 16"));
  EXPECT_THAT(message(with("0", "1")), HasSubstr("hidden"));
  EXPECT_THAT(message(with("1000000", "1")), HasSubstr("hidden"));
  EXPECT_THAT(message(with("\"32\"", "1")), HasSubstr("hidden"));
  EXPECT_THAT(message(with("32", "0")), HasSubstr("rounds"));
  EXPECT_THAT(message(with("32", "99")), HasSubstr("rounds"));
  EXPECT_THAT(message(R"({"candidates":48})"), HasSubstr("candidates"));
}

}  // namespace
}  // namespace rudderfish::nn
