// SPDX-License-Identifier: Apache-2.0
#include "compat/reach_csv.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kServices{"aggregator", "detection", "ml", "db"};

TEST(ReachCsv, ColumnsAreThoseOfReach) {
  EXPECT_EQ(CsvLine(ReachTimeColumns()),
            "timestamp,human_readable_timestamp,latency,current_node,target_node,target_pod,"
            "failed_node,event\n");
  EXPECT_EQ(CsvLine(ReachLearnedColumns(kServices)),
            "start_total_latency,end_total_latency,start_aggregator_latency,"
            "end_aggregator_latency,start_detection_latency,end_detection_latency,"
            "start_ml_latency,end_ml_latency,start_db_latency,end_db_latency,step\n");
  EXPECT_EQ(CsvLine(ReachBestEffortColumns(kServices)),
            "total_latency,aggregator_latency,detection_latency,ml_latency,db_latency\n");
  const std::vector<std::string> nodes{"cloud_8_1", "edge_2_2"};
  EXPECT_EQ(CsvLine(ReachDistributionColumns({kServices.data(), 2}, nodes)),
            "aggregator_cloud_8_1,aggregator_edge_2_2,detection_cloud_8_1,detection_edge_2_2\n");
}

TEST(ReachCsv, NamesBecomeThoseOfItsColumns) {
  EXPECT_EQ(ReachNodeName("tb-cloud-vm-8-1"), "cloud_8_1");
  EXPECT_EQ(ReachNodeName("edge-1.example"), "edge_1_example");
  const std::vector<std::string> workloads{"db", "cart", "machine-learning", "aggregator",
                                           "detection"};
  EXPECT_THAT(ReachServiceOrder(workloads), ElementsAre(3, 4, 2, 0, 1));
}

TEST(ReachCsv, NumbersHaveTwoDecimalsAndWhatIsNotKnownIsEmpty) {
  EXPECT_EQ(CsvLine(LearnedCells({.total_ms = 292.666, .services_ms = {10.0, std::nullopt}},
                                 {.total_ms = std::nullopt, .services_ms = {1.0, 2.0}}, 5)),
            "292.67,,10.00,1.00,,2.00,5\n");
  EXPECT_EQ(CsvLine({"a,b", "c\"d", "e"}), "\"a,b\",\"c\"\"d\",e\n");
}

TEST(ReachCsv, ARowOfTimeIsLocal) {
  ::setenv("TZ", "UTC", 1);
  EXPECT_EQ(CsvLine(CellsOf({.at = 1'700'000'000'999,
                             .latency_ms = 191.5,
                             .current_node = "",
                             .target_node = "",
                             .target_pod = "",
                             .failed_node = "",
                             .event = "latency"})),
            "1700000000,2023-11-14 22:13:20,191.50,,,,,latency\n");
}

TEST(ReachCsv, AFileGoesOnAndKeepsItsHead) {
  const testing::TestFolder folder;
  const auto path = folder.path() / "x.csv";
  for (const char* value : {"1", "2"}) {
    auto csv = ReachCsv::Open(path, {"a", "b"});
    ASSERT_TRUE(csv.has_value()) << csv.error().message;
    ASSERT_TRUE(csv->Add({value, "x"}).has_value());
  }
  EXPECT_EQ(*ReadFile(path), "a,b\n1,x\n2,x\n");
  const auto other = ReachCsv::Open(path, {"a", "c"});
  ASSERT_FALSE(other.has_value());
  EXPECT_THAT(other.error().message, HasSubstr("x.csv:1: its columns are `a,b`, not `a,c`"));
  EXPECT_EQ(*ReadFile(path), "a,b\n1,x\n2,x\n");
}

TEST(ReachCsv, ALastLineWithoutEndIsEnded) {
  const testing::TestFolder folder;
  const auto path = folder.path() / "x.csv";
  ASSERT_TRUE(WriteFileAtomically(path, "a,b\r\n1,x").has_value());
  auto csv = ReachCsv::Open(path, {"a", "b"});
  ASSERT_TRUE(csv.has_value()) << csv.error().message;
  ASSERT_TRUE(csv->Add({"2", "y"}).has_value());
  EXPECT_EQ(*ReadFile(path), "a,b\r\n1,x\n2,y\n");
}

TEST(ReachCsv, TheEntryServiceMayTellTheLatency) {
  EXPECT_EQ(ReachEntryLatencyMs(R"({"service_calling_latency": 210.5, "timestamp": 1})"), 210.5);
  EXPECT_EQ(ReachEntryLatencyMs("hello"), std::nullopt);
  EXPECT_EQ(ReachEntryLatencyMs(R"({"service_calling_latency": -1})"), std::nullopt);
  EXPECT_EQ(ReachEntryLatencyMs(R"({"service_calling_latency": "1"})"), std::nullopt);
  EXPECT_EQ(ReachEntryLatencyMs("[1]"), std::nullopt);
}

}  // namespace
}  // namespace rudderfish
