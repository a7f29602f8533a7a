// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "base/wall_time.h"
#include "control/routing_decision.h"
#include "control/routing_evidence.h"

// What control/sqlite_journal.h keeps of decisions about routes: rows of the table `decisions`, of
// kind routing, with the route as their application, numbered with those of migration. And what
// promotions of routing rest on.

namespace rudderfish {

class SqliteDatabase;

class SqliteRoutings final : public RoutingJournal {
 public:
  explicit SqliteRoutings(SqliteDatabase* database) : database_(database) {}

  // What is in flight is concluded once; what is measured later may follow.
  Result<int64_t> AppendRouting(const RoutingDecision& decision) override;
  Result<void> ConcludeRouting(int64_t number, const RoutingEnd& end) override;

  // What the newest kRouteRows decisions about a route say, of that policy for that objective, from
  // decision `from` on.
  Result<RouteEvidence> RouteEvidenceOf(std::string_view route, std::string_view policy,
                                        std::string_view objective, int64_t from);

  // What splits that were set on a route have come to since a canary began, the newest kRouteRows.
  Result<RouteTrial> RouteTrialOf(std::string_view route, UnixMillis since);

 private:
  Result<void> Insert(const RoutingDecision& decision);

  SqliteDatabase* database_;
};

}  // namespace rudderfish
