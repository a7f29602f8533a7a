// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "net/http_server.h"

// One connection of an HttpServer, and what connections of one thread share. For net/http_server.cc
// alone. A session belongs to its worker's thread once it has begun; it ends by itself, and keeps
// itself alive until then.
//
// Each worker limits its connections. At the limit it accepts a new connection and closes the one
// that has been silent longest, so a client that only holds connections keeps no other client out.
// Connections in the middle of a request, or of an answer, are closed last.

namespace rudderfish::internal {

using HttpExecutor = boost::asio::io_context::executor_type;
// Sessions do not differ by the kind of socket: what serves them is compiled once for both.
using HttpSocket =
    boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, HttpExecutor>;

class HttpSession {
 public:
  virtual ~HttpSession() = default;
  virtual void Begin() = 0;
  virtual void StopIfIdle() = 0;
  virtual void Cut() = 0;
};

// Of a worker: those that have the peer's next word to come first, those within a request or an
// answer second; each the longest without a change first.
struct HttpSessions {
  std::list<HttpSession*> silent, engaged;

  size_t size() const { return silent.size() + engaged.size(); }
};

// One thread with what it serves.
struct HttpWorker {
  int index = 0;
  size_t connections_max = 1;
  std::atomic<size_t> connections{0};  // Those that have not begun yet, too.
  HttpSessions sessions;               // Outlive the context, which may end some of them.
  boost::asio::io_context context{1};
  std::optional<boost::asio::executor_work_guard<HttpExecutor>> work{context.get_executor()};
  std::thread thread;
};

// A share of the memory that all connections have, held by one of them.
class HttpHolding {
 public:
  HttpHolding(std::atomic<size_t>* held, size_t most) : held_(held), most_(most) {}
  ~HttpHolding() { Release(); }
  HttpHolding(const HttpHolding&) = delete;
  HttpHolding& operator=(const HttpHolding&) = delete;

  // So many bytes in all; false: there is no room for them, and nothing changes.
  bool Take(size_t bytes);
  void Release() { held_->fetch_sub(std::exchange(bytes_, 0)); }

 private:
  std::atomic<size_t>* held_;
  size_t most_;
  size_t bytes_ = 0;
};

// What all connections look at.
struct HttpShared {
  HttpServerOptions options;
  HttpHandler handler;
  std::atomic<bool> stopping{false};
  std::atomic<size_t> held_bytes{0};       // Of `options.memory_limit_bytes`.
  std::mutex mutex;                        // Of what follows.
  std::optional<Instant> told_of_crowd{};  // That connections are closed for others.
};

// `tls`: for this connection; nullptr: plain HTTP.
std::shared_ptr<HttpSession> NewHttpSession(HttpSocket socket, std::string peer,
                                            const std::shared_ptr<ssl_ctx_st>& tls,
                                            HttpShared* shared, HttpWorker* worker);

}  // namespace rudderfish::internal
