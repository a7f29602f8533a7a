// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/socket_address.h"
#include "node/round_trips.h"

// Measures round trips to targets in turn, a probe at a time and at a bounded rate, and answers the
// probes of other agents. UDP: a packet there and back (node/probe_wire.h). TCP: until a connection
// is accepted, as the kernel measures it; nothing is sent over it. ICMP: an echo by a ping socket,
// which needs no rights where net.ipv4.ping_group_range allows it.
//
// One thread calls all of it, but for what is said of Wait.

namespace rudderfish {

enum class ProbeProtocol { kUdp, kTcp, kIcmp };
inline constexpr std::string_view kProbeProtocolNames[] = {"udp", "tcp", "icmp"};

struct ProbeTarget {
  std::string name;  // Of a peer its address, until it has said its node's name.
  ProbeProtocol protocol = ProbeProtocol::kUdp;
  SocketAddress address;  // Of ICMP without a port.

  bool operator==(const ProbeTarget& other) const {
    return name == other.name && protocol == other.protocol &&
           address.Text() == other.address.Text();
  }
};

struct ProberOptions {
  std::string node;                             // What answers say.
  Duration interval = std::chrono::seconds(1);  // Between probes of one target, at least.
  double probes_per_second = 5;                 // Of all targets, at most.
  Duration timeout = std::chrono::seconds(1);   // Of one probe.
};

class Prober {
 public:
  Prober(ProberOptions options, const Clock* clock);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // Answers probes over UDP there.
  Result<void> Answer(const SocketAddress& address);

  // From now on these; what is known of those that stay stays.
  void SetTargets(const std::vector<ProbeTarget>& targets);

  // Until something can be done, or `wake` can be read, or `timeout` has passed. Other threads may
  // read targets() meanwhile.
  void Wait(Duration timeout, int wake) const;
  // Does what can be done, without waiting.
  void Turn();

  struct Target {
    ProbeTarget target;
    std::string node;  // What the peer calls itself; empty: it has not said.
    RoundTrips trips;
    std::string trouble;  // Why the last probe failed; empty: it did not.
  };
  const std::vector<std::shared_ptr<Target>>& targets() const { return targets_; }

 private:
  struct Flight {
    std::shared_ptr<Target> target;
    uint64_t number = 0;
    int file = -1;  // Of TCP.
    Instant sent;
  };

  int SocketOf(ProbeProtocol protocol, int family);
  void Send(const std::shared_ptr<Target>& target);
  void SendPacket(const std::shared_ptr<Target>& target);
  void Connect(const std::shared_ptr<Target>& target);
  void Fail(Target* target, std::string why);
  void ReadRequests(int file);
  void ReadAnswers(ProbeProtocol protocol, int family, int file);
  void Arrived(uint64_t number, const std::string& node);
  void LookAtConnections();
  void EndLate();

  const ProberOptions options_;
  const Clock* clock_;
  std::vector<int> answering_;
  std::map<std::pair<ProbeProtocol, int>, int> sockets_;  // By family, of UDP and ICMP.
  std::vector<std::shared_ptr<Target>> targets_;
  std::map<std::string, std::string> nodes_;  // By address, of those that have said their names.
  size_t next_ = 0;
  Instant due_;
  std::deque<Flight> flights_;  // In the order in which they were sent.
};

}  // namespace rudderfish
