// SPDX-License-Identifier: Apache-2.0
#include "control/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/small_world.h"

namespace rudderfish {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class Sink final : public EvidenceSink {
 public:
  Result<void> AppendEvidence(const EvidenceRow& row) override {
    if (fails) return Fail(ErrorCode::kUnavailable, "the disk is full");
    rows.push_back(row);
    return {};
  }
  std::vector<EvidenceRow> rows;
  bool fails = false;
};

class EvidenceTest : public ::testing::Test {
 protected:
  EvidenceTest() {
    Rng rng(1);
    state_ = testing::ContinuumWorld({}, &rng);
  }

  // The mean over all endpoints, by the law.
  double Predicted() {
    Evaluator model(LatencyLaw::Physical());
    model.Reset(state_);
    return model.Now().latency_ms;
  }
  Reading Mean(double value_ms) {
    return {.value_ms = value_ms, .at = state_.at, .window = seconds(10), .source = "test"};
  }
  void Observe(std::vector<Reading> readings = {}) {
    ASSERT_TRUE(watch_.Observe(state_, readings));
  }
  void After(std::chrono::nanoseconds time) { state_.at += time; }
  // Moves a pod to another node, as somebody would by hand.
  void MoveOne(PodId pod = 3) {
    const NodeId from = state_.pods.node[pod];
    for (NodeId to = 0; to < state_.nodes.size(); ++to) {
      if (to == from || !state_.nodes.free[to].Fits(state_.workload_of(pod).requests)) continue;
      MovePod(pod, to, &state_);
      return;
    }
    FAIL();
  }

  State state_;
  Sink sink_;
  EvidenceWatch watch_{"shop", LatencyLaw::Physical(), {}, &sink_};
};

TEST_F(EvidenceTest, PredictedChangeIsComparedWithTheMeasuredOne) {
  const double before_ms = Predicted();
  Observe({Mean(200)});
  After(seconds(20));
  MoveOne();
  Observe();
  EXPECT_TRUE(watch_.waiting());
  After(seconds(41));
  Observe({Mean(212)});
  ASSERT_EQ(sink_.rows.size(), 1u);
  const EvidenceRow& row = sink_.rows[0];
  EXPECT_EQ(row.application, "shop");
  EXPECT_EQ(row.term, "latency_ms");
  EXPECT_EQ(row.source, "test");
  EXPECT_DOUBLE_EQ(row.measured_change_ms, 12);
  EXPECT_DOUBLE_EQ(row.predicted_change_ms, Predicted() - before_ms);
  EXPECT_THAT(row.change, ::testing::HasSubstr(" from "));
  EXPECT_FALSE(watch_.waiting());
}

TEST_F(EvidenceTest, ReadingWhoseWindowBeganBeforeItSettledDoesNotCount) {
  Observe({Mean(200)});
  After(seconds(20));
  MoveOne();
  Observe();
  After(seconds(39));
  Observe({Mean(210)});
  EXPECT_TRUE(sink_.rows.empty());
  After(seconds(1));
  Observe({Mean(211)});
  ASSERT_EQ(sink_.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(sink_.rows[0].measured_change_ms, 11);
}

TEST_F(EvidenceTest, WithoutReadingsThereIsNoEvidence) {
  Observe();
  MoveOne();
  After(seconds(1));
  Observe();
  EXPECT_TRUE(sink_.rows.empty());
  EXPECT_EQ(watch_.changes_seen(), 1);
  EXPECT_EQ(watch_.changes_unmeasured(), 1);
  EXPECT_FALSE(watch_.waiting());
}

TEST_F(EvidenceTest, WithoutAReadingAfterwardsThereIsNoEvidence) {
  Observe({Mean(200)});
  After(seconds(20));
  MoveOne();
  Observe();
  EXPECT_TRUE(watch_.waiting());
  After(minutes(11));
  Observe();
  EXPECT_TRUE(sink_.rows.empty());
  EXPECT_EQ(watch_.changes_unmeasured(), 1);
  EXPECT_FALSE(watch_.waiting());
}

// As where moving begins before the first signal is there.
TEST_F(EvidenceTest, AChangeBeforeTheFirstReadingDoesNotHideTheNextOne) {
  Observe();
  MoveOne(3);
  After(seconds(1));
  Observe();
  After(seconds(20));
  Observe({Mean(150)});  // The change may be within its window.
  MoveOne(5);
  After(seconds(1));
  Observe();
  EXPECT_EQ(watch_.changes_unmeasured(), 2);
  After(seconds(45));
  Observe({Mean(140)});
  const double before_ms = Predicted();
  MoveOne(4);
  After(seconds(1));
  Observe();
  After(seconds(41));
  Observe({Mean(120)});
  ASSERT_EQ(sink_.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(sink_.rows[0].measured_change_ms, -20);
  EXPECT_DOUBLE_EQ(sink_.rows[0].predicted_change_ms, Predicted() - before_ms);
}

TEST_F(EvidenceTest, ChangesThatFollowEachOtherAreOne) {
  const double before_ms = Predicted();
  Observe({Mean(100)});
  After(seconds(20));
  MoveOne(3);
  Observe();
  After(seconds(20));
  MoveOne(4);
  Observe();
  After(seconds(41));
  Observe({Mean(90)});
  ASSERT_EQ(sink_.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(sink_.rows[0].measured_change_ms, -10);
  EXPECT_DOUBLE_EQ(sink_.rows[0].predicted_change_ms, Predicted() - before_ms);
  EXPECT_THAT(sink_.rows[0].change, ::testing::HasSubstr("; then "));
}

TEST_F(EvidenceTest, StateThatOnlyGrewOlderIsNoChange) {
  Observe({Mean(100)});
  After(seconds(20));
  ++state_.version;
  Observe();
  EXPECT_EQ(watch_.changes_seen(), 0);
  EXPECT_FALSE(watch_.waiting());
}

TEST_F(EvidenceTest, EndpointsAndTermsAreKeptApart) {
  Evaluator model(LatencyLaw::Physical());
  const std::string endpoint = state_.calls->endpoints[0].name;
  const auto readings = [&](double latency_ms, double network_ms) {
    Reading one = Mean(latency_ms), other = Mean(network_ms);
    one.endpoint = endpoint;
    other.term = "network_ms";
    return std::vector<Reading>{one, other};
  };
  model.Reset(state_);
  const double endpoint_ms = model.EndpointLatencyMs(0), network_ms = model.Now().network_ms;
  Observe(readings(100, 50));
  After(seconds(20));
  MoveOne();
  Observe();
  After(seconds(41));
  Observe(readings(101, 48));
  model.Reset(state_);
  ASSERT_EQ(sink_.rows.size(), 2u);
  EXPECT_EQ(sink_.rows[0].endpoint, endpoint);
  EXPECT_DOUBLE_EQ(sink_.rows[0].predicted_change_ms, model.EndpointLatencyMs(0) - endpoint_ms);
  EXPECT_DOUBLE_EQ(sink_.rows[0].measured_change_ms, 1);
  EXPECT_EQ(sink_.rows[1].term, "network_ms");
  EXPECT_DOUBLE_EQ(sink_.rows[1].predicted_change_ms, model.Now().network_ms - network_ms);
  EXPECT_DOUBLE_EQ(sink_.rows[1].measured_change_ms, -2);
}

TEST_F(EvidenceTest, NothingIsLostOrToldTwiceWhenTheSinkFails) {
  Observe({Mean(100)});
  After(seconds(20));
  MoveOne();
  Observe();
  After(seconds(41));
  sink_.fails = true;
  const std::vector<Reading> readings{Mean(90)};
  EXPECT_FALSE(watch_.Observe(state_, readings));
  sink_.fails = false;
  Observe();
  Observe();
  EXPECT_EQ(sink_.rows.size(), 1u);
}

TEST_F(EvidenceTest, NumbersThatAreNoneAndUnknownTermsAreLeftOut) {
  Reading odd = Mean(1);
  odd.term = "joy";
  Observe({Mean(std::nan("")), odd});
  After(seconds(20));
  MoveOne();
  Observe();
  After(seconds(41));
  Observe({Mean(90)});
  EXPECT_TRUE(sink_.rows.empty()) << "there was no reading before the change";
}

TEST(EvidenceSum, IntervalIsStudents) {
  EvidenceSum sum;
  sum.Add(1);
  EXPECT_FALSE(sum.interval_ms().has_value());
  sum.Add(2);
  sum.Add(3);
  EXPECT_DOUBLE_EQ(sum.mean_ms(), 2);
  // t(0.975, 2) * 1 / sqrt(3)
  EXPECT_NEAR(*sum.interval_ms(), 4.303 / std::sqrt(3.0), 1e-12);
  EvidenceSum large;
  for (int i = 0; i < 61; ++i) large.Add(i % 2 == 0 ? 1 : -1);
  const double deviation = std::sqrt((61.0 - 1.0 / 61) / 60);
  EXPECT_NEAR(*large.interval_ms(), 2.0003 * deviation / std::sqrt(61.0), 1e-3);
  EXPECT_NEAR(large.mean_absolute_ms(), 1, 1e-12);
}

TEST(DescribeChange, NamesPodsThatCameWentAndMoved) {
  Rng rng(1);
  const State before = testing::ContinuumWorld({}, &rng);
  State after = before;
  after.pods.node[0] = kNone;
  EXPECT_EQ(DescribeChange(before, after),
            PodName(before, 0) + " gone from " + NodeName(before, before.pods.node[0]));
  EXPECT_EQ(DescribeChange(after, before),
            PodName(before, 0) + " new on " + NodeName(before, before.pods.node[0]));
  EXPECT_EQ(DescribeChange(before, before), "");
  for (PodId pod = 0; pod < 5; ++pod) after.pods.node[pod] = kNone;
  EXPECT_THAT(DescribeChange(before, after), ::testing::HasSubstr(" and 2 more"));
}

}  // namespace
}  // namespace rudderfish
