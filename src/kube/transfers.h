// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kube/credentials.h"

// HTTP/1.1 exchanges with one server, many at a time over connections that are kept: the only file
// that knows libcurl. Callbacks come from within Poll and may begin and cancel exchanges. A peer
// whose machine is gone is noticed within kPeerTimeout even on an idle connection.
// Owned by one thread.

namespace rudderfish::kube {

struct HttpRequest {
  std::string method;
  std::string path;  // Below the server's address, with the query.
  std::vector<std::string> headers;
  std::string body;
  std::shared_ptr<const Identity> identity;
  Duration connect_timeout{};
  Duration timeout{};  // Of the whole exchange.
  // Asked when there is a connection, right before the first byte; false: kHeldBack. None: it may.
  std::function<bool()> may_go;
};

enum class HttpFailure {
  kNone,       // There is an answer.
  kUnsent,     // No connection: the request was not sent.
  kHeldBack,   // By `may_go`: nor was this one.
  kUntrusted,  // TLS: the server is not who it should be, or does not want us.
  kTimeout,
  kCut,      // Anything may have happened to the request.
  kTooLong,  // An answer, or a line of it, beyond the limit.
};

struct HttpResult {
  HttpFailure failure = HttpFailure::kNone;
  std::string why;  // Of a failure; one line.
  int status = 0;   // 0: no answer.
  std::optional<Duration> retry_after;
  std::string body;  // Of a stream only that of an answer that is not 200.
};

class Transfers {
 public:
  static constexpr size_t kBodyBytesMax = size_t{1} << 30;
  static constexpr size_t kLineBytesMax = size_t{16} << 20;
  static constexpr Duration kPeerTimeout = std::chrono::seconds(10);

  using Id = uint64_t;
  using OnDone = std::function<void(HttpResult)>;

  // A stream is told line by line, without line ends; OnOpen comes before, once its answer is 200.
  struct Stream {
    std::function<void()> on_open;
    std::function<void(std::string_view)> on_line;
  };

  // What else Poll waits for: wakes it when the descriptor can be read.
  struct Waited {
    int descriptor = -1;
    bool is_readable = false;
  };

  explicit Transfers(const ClusterAccess& access, int idle_connections_max);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  Id Begin(HttpRequest request, OnDone on_done, std::optional<Stream> stream = std::nullopt);
  void Cancel(Id id);  // No callback comes any more.

  // Further exchanges use connections that are made from now on, or ones on which one is under way.
  void CloseIdle();

  // Goes on with all exchanges; waits at most `timeout` for something to happen.
  void Poll(Duration timeout, std::vector<Waited>* waited);

  int64_t bytes_received() const { return bytes_received_; }

 private:
  struct Exchange;
  struct Curl;

  void SetOptions(Exchange* exchange);
  void SetTls(Exchange* exchange);
  bool Deliver();
  bool DeliverLines(Id id);
  void End(Id id, HttpResult result);
  static size_t Receive(char* bytes, size_t size, size_t count, void* exchange);
  static size_t ReceiveHeader(char* bytes, size_t size, size_t count, void* exchange);
  static int BeforeItGoes(void* exchange, char*, char*, int, int local_port);
  static int ConfigureSocket(void* transfers, int socket, int purpose);
  static int CloseSocket(void* transfers, int socket);

  std::string server_, host_header_, connect_to_, proxy_;
  ServerCertificate certificate_check_;
  std::unique_ptr<Curl> curl_;
  std::map<Id, std::unique_ptr<Exchange>> exchanges_;
  std::set<int> sockets_;  // All that are open.
  std::set<int> ports_;    // Our ends of those over which something went.
  Id next_id_ = 1;
  bool has_begun_ = false;  // An exchange, since the last turn.
  int64_t bytes_received_ = 0;
};

}  // namespace rudderfish::kube
