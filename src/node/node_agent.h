// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/socket_address.h"
#include "node/node_counters.h"
#include "node/node_report.h"
#include "node/node_usage.h"
#include "node/prober.h"

// An agent on one node: reads what the node uses, measures round trips to the other agents and to
// users, and answers the probes of the other agents. Two threads of its own: one measures, one asks
// DNS for the addresses of peers and users. It only reads, needs no root, and keeps nothing. Any
// thread may ask for what it has measured.

namespace rudderfish {

struct NodeAgentOptions {
  std::string node;
  NodeSources sources;
  Duration period = std::chrono::milliseconds(500);  // Between two readings of the node.
  // Other agents, where a name may stand for many, and this agent may be among them.
  std::vector<HostAndPort> peers;
  std::vector<HostAndPort> users;  // With a port: over TCP; without one: over ICMP.
  size_t peers_max = 32;           // Of those that it probes.
  std::string listen_ip = "0.0.0.0";
  uint16_t port = 9100;  // Where it answers probes over UDP, and others reach it over TCP.
  Duration between_lookups = std::chrono::seconds(60);
  Duration interval = std::chrono::seconds(1);
  double probes_per_second = 5;
  Duration timeout = std::chrono::seconds(1);
};

class NodeAgent {
 public:
  // Listens before it returns. kInvalidArgument if the node cannot be read.
  static Result<std::unique_ptr<NodeAgent>> Start(NodeAgentOptions options, const Clock* clock);
  ~NodeAgent();
  NodeAgent(const NodeAgent&) = delete;
  NodeAgent& operator=(const NodeAgent&) = delete;

  // The mean of the newest two readings, once there are two.
  std::optional<NodeUsage> Usage() const;

  // To one of `users`, of the newest 50 round trips; an error says why there is none.
  Result<RoundTrips::Summary> UserTrips(size_t user) const;

  std::string Metrics() const;

  // Why not; empty: it is. For health checks.
  std::string WhyNotAlive() const;
  std::string WhyNotReady() const;

 private:
  // What the thread that asks DNS shares: it may outlive the agent, as DNS may take long.
  struct Lookups;

  NodeAgent(NodeAgentOptions options, const Clock* clock);
  void Measure();
  void ReadNode(Instant now);
  void TakeLookups();
  static void LookUp(const std::shared_ptr<Lookups>& lookups);

  const NodeAgentOptions options_;
  const Clock* clock_;
  int wake_;
  NodeReader reader_;  // Of the measuring thread, as Wait of the prober is.
  Instant read_due_;
  mutable std::mutex mutex_;  // Guards what follows.
  UsageWindow usage_;
  std::string read_trouble_;
  Prober prober_;
  size_t peers_known_ = 0, peers_probed_ = 0;
  Instant turned_;
  bool is_ending_ = false;
  std::shared_ptr<Lookups> lookups_;
  std::thread measuring_;
};

}  // namespace rudderfish
