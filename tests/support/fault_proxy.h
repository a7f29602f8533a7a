// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <thread>

#include "base/clock.h"
#include "tests/support/faulty_server.h"

// Stands between a client and a real server, on loopback, and is the network's and the server's bad
// days: cuts what is open, resets handshakes, stands still like a partition, loses answers, or
// answers in the server's place. Otherwise it passes bytes on as they are, so that client and
// server speak TLS and HTTP/2 with each other. One thread of its own; all members may be called by
// one other.

namespace rudderfish::testing {

enum class Fault {
  kNone,
  kTlsReset,     // What is open is cut; new connections are reset during the handshake.
  kTooMany,      // What is open is cut; requests get 429 with Retry-After: 1.
  kServerError,  // What is open is cut; requests get 500.
  kGarbled,      // What is open is cut; lists and watches get text that breaks off.
  kPartition,    // No byte passes and neither side is told; then all that waited passes.
  kUnheard,      // What the server says is lost, and what it is asked arrives; then all is cut.
};

class FaultProxy {
 public:
  explicit FaultProxy(int server_port);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::string url() const;
  // To be trusted beside the server's authority, for the answers in its place.
  const std::string& certificate() const { return stand_in_.certificate(); }

  // Returns when it is in force.
  void Begin(Fault fault);
  void Cut();  // All connections that are open, once.

  int64_t resets() const { return resets_; }            // Connections cut or reset.
  int64_t answers() const { return answers_; }          // In the server's place.
  Instant last_passed() const { return last_passed_; }  // When the server was heard through this.

 private:
  struct Flow {
    int from = -1, to = -1;
    std::string bytes;  // Read and not yet written.
  };
  struct Link {
    Flow up, down;
    bool is_doomed = false;  // Reset with the first byte.
    bool is_real = false;    // Leads to the server, not to who stands in for it.
    bool is_over = false;
  };

  void Serve();
  void Obey();
  void Accept();
  bool Move(short readable, short writable, Flow* flow);
  static bool Lose(short readable, Flow* flow);
  void End(Link* link, bool by_reset);
  void NotePassed(const Link& link);
  void StandIn(const SeenRequest& request, Connection* connection);

  int server_port_;
  FaultyServer stand_in_;
  int listener_ = -1, port_ = 0;
  std::list<Link> links_;        // The thread's.
  Fault obeyed_ = Fault::kNone;  // The thread's.
  std::atomic<Fault> fault_ = Fault::kNone;
  std::atomic<int64_t> orders_ = 0, orders_obeyed_ = 0;  // Begin and Cut.
  std::atomic<bool> must_cut_ = false;
  std::atomic<bool> is_over_ = false;
  std::atomic<int64_t> resets_ = 0, answers_ = 0;
  std::atomic<Instant> last_passed_ = Instant();
  std::thread thread_;
};

}  // namespace rudderfish::testing
