// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/signals.h"
#include "net/http_client.h"
#include "telemetry/carbon_config.h"

// How much carbon dioxide a kilowatt hour stands for where regions are, from services that know it:
//
//   electricity-maps  GET /carbon-intensity/latest?zone=..., API v3, with the header auth-token:
//                     average, over the life cycle
//   carbon-aware-sdk  GET /emissions/bylocation?location=..., the Green Software Foundation's Web
//                     API: what its own source says
//
// Nothing here waits: Turn asks where that is due, Poll takes what has arrived. A reply for another
// zone than was asked for is refused: such services guess one from the caller's address. A value
// ages from the time that its service says it is of. Not thread safe.

namespace rudderfish {

struct CarbonIntensity {
  double g_per_kwh = 0;
  double unix_seconds = 0;  // The beginning of the time that it is of.
};

// What a service answered about a zone. The error is one line, without what only a service knows.
Result<CarbonIntensity> ReadCarbonAnswer(CarbonService service, std::string_view body,
                                         const CarbonZone& zone);

class CarbonClient {
 public:
  CarbonClient(CarbonConfig config, const Clock* clock);

  // Asks for all zones where the period is over. Never waits.
  void Turn();
  // Sends and takes what can be sent and taken; true if something has changed.
  bool Poll();

  // In grams by region; the newest that is known.
  const SignalColumn& column() const { return column_; }

 private:
  void Ask(const CarbonZone& zone, const std::vector<std::string>& headers);
  void Take(const CarbonZone& zone, const Result<HttpReply>& reply);

  CarbonConfig config_;
  const Clock* clock_;
  SignalColumn column_;
  std::string trouble_;  // Of the round that is under way.
  std::optional<Instant> asked_;
  bool has_changed_ = false;
  HttpClient http_;  // Last: what is in flight refers to the others.
};

}  // namespace rudderfish
