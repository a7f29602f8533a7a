// SPDX-License-Identifier: Apache-2.0
#include "evaluation/experiment.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "learn/train_options.h"

namespace rudderfish {
namespace {

// The parser of experiments does not link learn.
TEST(Experiment, TakesAlgorithmsByTheNamesThatTrainKnows) {
  for (const std::string_view name : ScalingExperiment::kAlgorithms) {
    const Result<Algorithm> algorithm = AlgorithmNamed(name);
    ASSERT_TRUE(algorithm.has_value()) << algorithm.error().message;
    EXPECT_EQ(AlgorithmName(*algorithm), name);
  }
  for (const std::string_view name : PlacementExperiment::kAlgorithms)
    EXPECT_TRUE(AlgorithmNamed(name).has_value()) << name;
  EXPECT_TRUE(std::equal(std::begin(nn::kEncoderNames), std::end(nn::kEncoderNames),
                         ScalingExperiment::kEncoders.begin(), ScalingExperiment::kEncoders.end()));
}

}  // namespace
}  // namespace rudderfish
