// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cloud/xds_board.h"

// What one client of xDS is told on its stream, and what it reports: the state of the world
// protocol on an aggregated stream (ADS), and load reports (LRS)
// (https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol). Listeners and clusters are
// made of the services' names; assignments of endpoints change with their weights. Messages are
// protobuf; no transport. Not thread safe, but for the board.

namespace rudderfish {

class XdsSession {
 public:
  static constexpr size_t kNamesMax = 1000;  // That a client may ask for, of one kind.

  // The board outlives it.
  XdsSession(XdsBoard* board, XdsBoard::StreamId id) : board_(board), id_(id) {}
  ~XdsSession() { board_->Forget(id_); }
  XdsSession(const XdsSession&) = delete;

  // A DiscoveryRequest. kInvalidArgument: it is none; the stream is to be ended.
  Result<void> Take(std::string_view request);

  // The next DiscoveryResponse, if the client is to be told something that it has not been told.
  std::optional<std::string> Next();

 private:
  static constexpr int kTypes = 3;

  struct Subscription {
    bool is_asked = false;
    std::set<std::string> names;  // None: all, but of assignments.
    std::string told;             // Names and versions of what was told last.
    std::string nonce, version;   // Of it.
    std::set<std::string> of;     // The services in it.
    UnixMillis newest = 0;        // The version of the newest of them.
  };

  std::set<std::string> Wanted(int type) const;
  void TakeVerdict(const std::string& refusal);  // Of the assignments; empty: they are accepted.

  XdsBoard* board_;
  XdsBoard::StreamId id_;
  uint64_t responses_ = 0;
  std::array<Subscription, kTypes> subscriptions_;
};

// The answer to a client that begins to report its load: which services it is asked for, and how
// often.
std::string LoadReportsWanted(const XdsBoard& board);

// Adds a LoadStatsRequest to the board. kInvalidArgument: it is none.
Result<void> TakeLoadReport(std::string_view request, XdsBoard* board);

}  // namespace rudderfish
