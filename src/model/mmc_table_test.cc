// SPDX-License-Identifier: Apache-2.0
#include "model/mmc_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/queueing.h"

namespace rudderfish {
namespace {

struct GoldenQueue {
  int servers;
  double per_s, waits, wait_s;
};

// M/M/c with mean service 1, to six digits, by the sums of the textbooks.
constexpr GoldenQueue kGoldenQueues[] = {
    {1, .5, .500000, 1.000000},   {1, .8, .800000, 4.000000},   {1, .95, .950000, 19.000000},
    {2, 1.6, .711111, 1.777778},  {4, 3.2, .596432, .745541},   {8, 6.4, .457645, .286028},
    {16, 14.4, .591343, .369590}, {32, 28.8, .458197, .143186}, {100, 90, .216940, .021694}};

TEST(MmcTable, IsWithinAThousandthOfGoldenValues) {
  const MmcTable table(1, 100);
  for (const GoldenQueue& golden : kGoldenQueues) {
    const double waits = table.ErlangC(golden.servers, golden.per_s / golden.servers);
    EXPECT_NEAR(waits / golden.waits, 1, 1e-3) << golden.servers;
    EXPECT_NEAR(waits / (golden.servers - golden.per_s) / golden.wait_s, 1, 1e-3);
  }
}

TEST(MmcTable, IsWithinAThousandthOfTheFormulaBetweenItsPoints) {
  const MmcTable table(4, 64);
  for (const int nodes : {1, 3, 10, 40, 64}) {
    for (double use = 0.3; use < 1; use += 0.0371) {
      const double exact = ErlangC(4 * nodes, 4 * nodes * use);
      if (exact < 1e-12) continue;
      EXPECT_NEAR(table.ErlangC(nodes, use) / exact, 1, 1e-3) << nodes << use;
    }
    EXPECT_EQ(table.ErlangC(nodes, 0), 0);
    EXPECT_EQ(table.ErlangC(nodes, 1.2), 1);
  }
}

TEST(MmcTable, TailIsThatOfTheFormula) {
  for (const double per_s : {1.0, 30.0, 76.0, 60.0}) {
    const Station station{.arrivals_per_s = per_s, .services_per_s = 20, .servers = 4};
    const double waits = ErlangC(4, station.offered_load());
    for (const double t_s : {-0.1, 0.05, 0.4}) {
      EXPECT_NEAR(MmcTail(waits, 80 - per_s, 20, t_s, std::exp(-20 * t_s)),
                  MmcResponseTail(station, t_s), 1e-6);
    }
  }
}

}  // namespace
}  // namespace rudderfish
