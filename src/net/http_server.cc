// SPDX-License-Identifier: Apache-2.0
#include "net/http_server.h"

#include <sys/stat.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "net/http_session.h"
#include "net/listen_address.h"

namespace rudderfish {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Unix = asio::local::stream_protocol;
using internal::HttpSession;
using internal::HttpShared;
using internal::HttpSocket;
using internal::HttpWorker;
using Executor = internal::HttpExecutor;

constexpr Duration kAcceptPause = std::chrono::milliseconds(50);

std::string TextOf(const Tcp::endpoint& endpoint) {
  const std::string ip = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", ip, endpoint.port())
                                    : fmt::format("{}:{}", ip, endpoint.port());
}

std::string PeerOf(const asio::basic_stream_socket<Tcp, Executor>& socket) {
  error_code error;
  const Tcp::endpoint peer = socket.remote_endpoint(error);
  return error ? "" : TextOf(peer);
}
std::string PeerOf(const asio::basic_stream_socket<Unix, Executor>&) { return ""; }

size_t PerWorker(const HttpServerOptions& options) {
  return static_cast<size_t>(std::max(options.connections_max / options.threads, 1));
}

class BeastServer final : public HttpServer {
 public:
  BeastServer(const HttpServerOptions& options, HttpHandler handler, std::unique_ptr<ServerTls> tls)
      : tls_(std::move(tls)) {
    shared_.options = options;
    shared_.handler = std::move(handler);
    for (int i = 0; i < options.threads; ++i) {
      workers_.push_back(std::make_unique<HttpWorker>());
      workers_.back()->connections_max = PerWorker(options);
      workers_.back()->index = i;
    }
  }
  ~BeastServer() override { Stop(Duration(0)); }

  Result<void> Listen(const ListenAddress& address) {
    if (!address.is_unix()) {
      return Listen<Tcp>(address, Tcp::endpoint(asio::ip::make_address(address.ip), address.port),
                         &tcp_);
    }
    TRY(RemoveStaleSocket(address.path));
    TRY(Listen<Unix>(address, Unix::endpoint(address.path), &unix_));
    sockets_.push_back(address.path);
    return {};
  }

  void Run() {
    for (auto& acceptor : tcp_) Accept<Tcp>(acceptor.get());
    for (auto& acceptor : unix_) Accept<Unix>(acceptor.get());
    running_ = static_cast<int>(workers_.size());
    for (auto& worker : workers_) {
      worker->thread = std::thread([this, worker = worker.get()] {
        RunUntilDone(&worker->context);
        const std::lock_guard lock(mutex_);
        --running_;
        ended_.notify_all();
      });
    }
  }

  const std::vector<std::string>& addresses() const override { return addresses_; }

  bool Stop(Duration deadline) override {
    if (shared_.stopping.exchange(true)) return true;
    asio::post(workers_[0]->context, [this] {
      error_code ignored;
      for (auto& acceptor : tcp_) acceptor->close(ignored);
      for (auto& acceptor : unix_) acceptor->close(ignored);
    });
    for (auto& worker : workers_) {
      asio::post(worker->context, [worker = worker.get()] {
        for (HttpSession* session : worker->sessions.silent) session->StopIfIdle();
        worker->work.reset();
      });
    }
    bool clean = false;
    {
      std::unique_lock lock(mutex_);
      clean = ended_.wait_for(lock, deadline, [this] { return running_ == 0; });
    }
    for (auto& worker : workers_) {
      if (!clean) worker->context.stop();
      if (worker->thread.joinable()) worker->thread.join();
      for (auto* list : {&worker->sessions.silent, &worker->sessions.engaged}) {
        while (!list->empty()) list->front()->Cut();
      }
    }
    for (const std::string& path : sockets_) ::unlink(path.c_str());
    return clean;
  }

 private:
  template <class Protocol>
  using Acceptor = asio::basic_socket_acceptor<Protocol, Executor>;

  template <class Protocol>
  Result<void> Listen(const ListenAddress& address, const typename Protocol::endpoint& endpoint,
                      std::vector<std::unique_ptr<Acceptor<Protocol>>>* acceptors) {
    auto acceptor = std::make_unique<Acceptor<Protocol>>(workers_[0]->context);
    error_code error;
    acceptor->open(endpoint.protocol(), error);
    if constexpr (std::is_same_v<Protocol, Tcp>) {
      if (!error) acceptor->set_option(asio::socket_base::reuse_address(true), error);
    }
    if (!error) acceptor->bind(endpoint, error);
    if constexpr (std::is_same_v<Protocol, Unix>) {
      // No client can connect before listen: the socket is the owner's alone from the start.
      if (!error && ::chmod(address.path.c_str(), S_IRUSR | S_IWUSR) != 0)
        error = error_code(errno, boost::system::generic_category());
    }
    if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return Fail(ErrorCode::kUnavailable, "cannot listen on {}: {}", address.text,
                  error.message());
    }
    if constexpr (std::is_same_v<Protocol, Tcp>) {
      addresses_.push_back(TextOf(acceptor->local_endpoint(error)));
    } else {
      addresses_.push_back(address.text);
    }
    acceptors->push_back(std::move(acceptor));
    return {};
  }

  // Out of memory ends what was under way and nothing else.
  static void RunUntilDone(asio::io_context* context) {
    while (!context->stopped()) {
      try {
        context->run();
      } catch (const std::exception& error) {
        LogError("HTTP server: {}", error.what());
      }
    }
  }

  // Connections go round the workers.
  template <class Protocol>
  void Accept(Acceptor<Protocol>* acceptor) {
    HttpWorker* worker = workers_[next_++ % workers_.size()].get();
    acceptor->async_accept(
        worker->context, [this, acceptor, worker](
                             error_code error, asio::basic_stream_socket<Protocol, Executor> peer) {
          if (error == asio::error::operation_aborted) return;
          if (error) return AcceptLater<Protocol>(acceptor, error);
          Welcome<Protocol>(std::move(peer), worker);
          Accept<Protocol>(acceptor);
        });
  }

  // Out of file descriptors, say: those in use will come back.
  template <class Protocol>
  void AcceptLater(Acceptor<Protocol>* acceptor, const error_code& error) {
    LogWarning("cannot accept a connection: {}", error.message());
    auto pause = std::make_shared<asio::steady_timer>(workers_[0]->context, kAcceptPause);
    pause->async_wait([this, acceptor, pause](error_code) {
      if (acceptor->is_open()) Accept<Protocol>(acceptor);
    });
  }

  template <class Protocol>
  void Welcome(asio::basic_stream_socket<Protocol, Executor> socket, HttpWorker* worker) {
    // Those that wait for a busy thread to look at them hold a descriptor, too.
    if (worker->connections >= 2 * worker->connections_max) return;
    std::shared_ptr<ssl_ctx_st> tls;
    if constexpr (std::is_same_v<Protocol, Tcp>) {
      error_code ignored;
      socket.set_option(Tcp::no_delay(true), ignored);
      if (tls_ != nullptr) tls = tls_->Current();
    }
    std::string peer = PeerOf(socket);
    auto session = internal::NewHttpSession(HttpSocket(std::move(socket)), std::move(peer), tls,
                                            &shared_, worker);
    // From here on the session belongs to the worker's thread.
    asio::post(worker->context, [session = std::move(session)] { session->Begin(); });
  }

  HttpShared shared_;
  std::unique_ptr<ServerTls> tls_;  // Null: plain HTTP.
  std::vector<std::unique_ptr<HttpWorker>> workers_;
  std::vector<std::unique_ptr<Acceptor<Tcp>>> tcp_;
  std::vector<std::unique_ptr<Acceptor<Unix>>> unix_;
  std::vector<std::string> addresses_, sockets_;
  size_t next_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  int running_ = 0;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                      HttpHandler handler) {
  CHECK_GT(options.threads, 0);
  if (options.listen.empty()) return Invalid("no address to listen on");
  std::unique_ptr<ServerTls> tls;
  if (options.tls) {
    TRY_ASSIGN(tls, ServerTls::Load(*options.tls));
  }
  try {
    auto server = std::make_unique<BeastServer>(options, std::move(handler), std::move(tls));
    for (const std::string& text : options.listen) {
      TRY_ASSIGN(const ListenAddress address, ParseListenAddress(text));
      TRY(server->Listen(address));
    }
    server->Run();
    return std::unique_ptr<HttpServer>(std::move(server));
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kUnavailable, "cannot start a server: {}", error.what());
  }
}

}  // namespace rudderfish
