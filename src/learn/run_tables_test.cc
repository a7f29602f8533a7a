// SPDX-License-Identifier: Apache-2.0
#include "learn/run_tables.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/toy_training.h"

namespace rudderfish {
namespace {

using testing::TestFolder;

TEST(MetricsTable, RowsReadBackAndEmptyCellsStayEmpty) {
  const TestFolder folder;
  const auto path = folder / "metrics.csv";
  Result<MetricsTable> table = MetricsTable::Open(path, 0);
  ASSERT_TRUE(table.has_value());
  ASSERT_TRUE(
      table->Append({.iteration = 1, .env_steps = 128, .return_mean = 0.25, .grad_norm = 1e-9})
          .has_value());
  ASSERT_TRUE(
      table->Append({.iteration = 2, .env_steps = 256, .eval_final_ms = 222.5, .eval_moves = 3})
          .has_value());
  ASSERT_TRUE(table->Flush().has_value());
  EXPECT_EQ(ReadFile(path)->substr(0, 76),
            "iteration,env_steps,episodes,return_mean,final_ms_mean,moves_mean,policy_los");
  const Result<std::vector<MetricsRow>> rows = ReadMetrics(path);
  ASSERT_TRUE(rows.has_value()) << rows.error().message;
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].return_mean, 0.25);
  EXPECT_EQ((*rows)[0].grad_norm, 1e-9);
  EXPECT_TRUE(std::isnan((*rows)[0].eval_final_ms));
  EXPECT_EQ((*rows)[1].env_steps, 256);
  EXPECT_EQ((*rows)[1].eval_final_ms, 222.5);
  EXPECT_EQ((*rows)[1].eval_moves, 3);
}

TEST(MetricsTable, ReopenedAtALengthForgetsWhatCameAfter) {
  const TestFolder folder;
  const auto path = folder / "metrics.csv";
  int64_t length = 0;
  {
    Result<MetricsTable> table = MetricsTable::Open(path, 0);
    ASSERT_TRUE(table->Append({.iteration = 1}).has_value());
    length = table->size();
    ASSERT_TRUE(table->Append({.iteration = 2}).has_value());
  }
  Result<MetricsTable> table = MetricsTable::Open(path, length);
  ASSERT_TRUE(table->Append({.iteration = 3}).has_value());
  ASSERT_TRUE(table->Flush().has_value());
  const Result<std::vector<MetricsRow>> rows = ReadMetrics(path);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[1].iteration, 3);
}

TEST(TimingTable, TornLastLineIsPassedOverAndOthersAreRefused) {
  const TestFolder folder;
  const auto path = folder / "timing.csv";
  {
    Result<TimingTable> table = TimingTable::Open(path, 0);
    ASSERT_TRUE(table->Append({.iteration = 1, .seconds = 0.5}).has_value());
    ASSERT_TRUE(table->Append({.iteration = 2, .seconds = 1.5}).has_value());
  }
  const std::string whole = *ReadFile(path);
  ASSERT_TRUE(WriteFileAtomically(path, whole + "3,99,0.").has_value());
  const Result<std::vector<TimingRow>> rows = ReadTiming(path);
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->size(), 2u);
  EXPECT_EQ(*TimingBytesUpTo(path, 2), static_cast<int64_t>(whole.size()));
  EXPECT_EQ(*TimingBytesUpTo(path, 1), static_cast<int64_t>(whole.find("\n2,")) + 1);
  EXPECT_EQ(*TimingBytesUpTo(folder / "none.csv", 1), 0);

  ASSERT_TRUE(WriteFileAtomically(path, whole + "3,x,0.1,1,1,1,1\n").has_value());
  const Result<std::vector<TimingRow>> damaged = ReadTiming(path);
  ASSERT_FALSE(damaged.has_value());
  EXPECT_NE(damaged.error().message.find("timing.csv:4"), std::string::npos)
      << damaged.error().message;
}

TEST(TimingTable, LineOfNamesThatWasNeverFinishedIsNoTableYet) {
  const TestFolder folder;
  const auto path = folder / "timing.csv";
  for (const char* begun : {"", "iteration,env_st"}) {
    ASSERT_TRUE(WriteFileAtomically(path, begun).has_value());
    EXPECT_EQ(ReadTiming(path).value().size(), 0u) << begun;
    EXPECT_EQ(*TimingBytesUpTo(path, 5), 0) << begun;
  }
  ASSERT_TRUE(WriteFileAtomically(path, "step,loss\n").has_value());
  EXPECT_FALSE(ReadTiming(path).has_value());
}

TEST(LearningCurve, JoinsEvaluationsWithTheirTimes) {
  const TestFolder folder;
  const RunPaths paths{folder / ""};
  {
    Result<MetricsTable> metrics = MetricsTable::Open(paths.metrics(), 0);
    Result<TimingTable> timing = TimingTable::Open(paths.timing(), 0);
    ASSERT_TRUE(metrics->Append({.iteration = 1, .env_steps = 10}).has_value());
    ASSERT_TRUE(metrics
                    ->Append({.iteration = 2,
                              .env_steps = 20,
                              .eval_final_ms = 300,
                              .eval_return = 1,
                              .eval_moves = 4})
                    .has_value());
    ASSERT_TRUE(
        metrics->Append({.iteration = 3, .env_steps = 30, .eval_final_ms = 200}).has_value());
    ASSERT_TRUE(timing->Append({.iteration = 2, .seconds = 0.75}).has_value());
  }
  const Result<std::vector<std::vector<CurvePoint>>> curves = ReadLearningCurves(paths.folder);
  ASSERT_TRUE(curves.has_value()) << curves.error().message;
  ASSERT_EQ(curves->size(), 1u);
  const std::vector<CurvePoint>& curve = (*curves)[0];
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve[0].env_steps, 20);
  EXPECT_EQ(curve[0].seconds, 0.75);
  EXPECT_EQ(curve[0].final_ms, 300);
  EXPECT_EQ(curve[0].moves, 4);
  EXPECT_TRUE(std::isnan(curve[1].seconds));
}

}  // namespace
}  // namespace rudderfish
