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
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "net/listen_address.h"

namespace rudderfish {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Unix = asio::local::stream_protocol;
using Executor = asio::io_context::executor_type;

constexpr size_t kChunkBytes = 8 << 10;
constexpr Duration kDrainTime = std::chrono::milliseconds(500);
constexpr Duration kAcceptPause = std::chrono::milliseconds(50);

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

std::string TextOf(const Tcp::endpoint& endpoint) {
  const std::string ip = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", ip, endpoint.port())
                                    : fmt::format("{}:{}", ip, endpoint.port());
}

// What an error of the parser is answered with; nothing if nobody is there to read it.
std::optional<HttpResponse> AnswerTo(const error_code& error, const HttpServerOptions& options) {
  if (error == http::error::body_limit) {
    return HttpError(413,
                     fmt::format("the body is larger than {} bytes", options.body_limit_bytes));
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return HttpError(431,
                     fmt::format("the header is larger than {} bytes", options.header_limit_bytes));
  }
  if (error == http::error::end_of_stream || error == http::error::partial_message ||
      error.category() != http::make_error_code(http::error::bad_method).category()) {
    return std::nullopt;
  }
  return HttpError(400, fmt::format("this is no HTTP/1.1: {}", error.message()));
}

class Connection {
 public:
  virtual ~Connection() = default;
  virtual void StopIfIdle() = 0;
  virtual void Cut() = 0;
};

// One thread with what it serves.
struct Worker {
  int index = 0;
  std::set<Connection*> connections;  // Outlives the context, which may end some of them.
  asio::io_context context{1};
  std::optional<asio::executor_work_guard<Executor>> work{context.get_executor()};
  std::thread thread;
};

// What all connections look at.
struct Shared {
  HttpServerOptions options;
  HttpHandler handler;
  std::atomic<int> connections{0};
  std::atomic<bool> stopping{false};
};

// Sessions do not differ by the kind of socket: what serves them is compiled once for both.
using AnySocket = asio::basic_stream_socket<asio::generic::stream_protocol, Executor>;
using Plain = beast::basic_stream<asio::generic::stream_protocol, Executor>;
using Secure = beast::ssl_stream<Plain>;

// A probe that only connects says nothing of certificates.
bool HasLeft(const error_code& error) {
  return error == asio::ssl::error::stream_truncated || error == asio::error::eof ||
         error == asio::error::connection_reset || error == asio::error::operation_aborted ||
         error == beast::error::timeout;
}

// Of one connection: OpenSSL counts who uses it.
asio::ssl::context ContextOf(const std::shared_ptr<SSL_CTX>& shared) {
  SSL_CTX_up_ref(shared.get());
  return asio::ssl::context(shared.get());
}

// Steps call each other from first to last: Begin, Greet, Await, ReadHeader, ReadBody, Reply,
// Write, and from there Await. Whatever is under way keeps the session; where nothing is, it ends.
template <class Stream>
class Session final : public Connection, public std::enable_shared_from_this<Session<Stream>> {
 public:
  Session(Stream stream, std::string peer, Shared* shared, Worker* worker)
      : stream_(std::move(stream)), peer_(std::move(peer)), shared_(shared), worker_(worker) {
    ++shared_->connections;
  }
  ~Session() override {
    worker_->connections.erase(this);
    --shared_->connections;
  }

  // On the worker's thread, as all that follows.
  void Begin(bool welcome) {
    worker_->connections.insert(this);
    if constexpr (std::is_same_v<Stream, Secure>) {
      Lowest().expires_after(shared_->options.request_limit);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this(), welcome](error_code error) {
                                if (!error) return self->Greet(welcome);
                                if (HasLeft(error)) return;
                                LogWarning("{}: no TLS with it: {}", self->peer_, error.message());
                                if (self->shared_->options.refused)
                                  self->shared_->options.refused(error.message());
                              });
    } else {
      Greet(welcome);
    }
  }

  void StopIfIdle() override {
    if (idle_) Lowest().close();
  }
  void Cut() override { Lowest().close(); }

 private:
  enum class Then { kAwait, kClose, kDrain };

  struct Framing {
    bool keep_alive = false;
    bool head_only = false;
    unsigned version = 11;
  };

  auto& Lowest() { return beast::get_lowest_layer(stream_); }

  void Greet(bool welcome) {
    if (welcome) return Await();
    HttpResponse busy = HttpError(503, "too many connections");
    busy.headers.emplace_back("Retry-After", "1");
    Write(std::move(busy), {}, Then::kDrain);
  }

  void Await() {
    if (shared_->stopping) return;
    if (buffer_.size() > 0) return ReadHeader();
    Lowest().expires_after(shared_->options.idle_limit);
    idle_ = true;
    stream_.async_read_some(buffer_.prepare(kChunkBytes),
                            [self = this->shared_from_this()](error_code error, size_t count) {
                              self->idle_ = false;
                              if (error) return;
                              self->buffer_.commit(count);
                              self->ReadHeader();
                            });
  }

  void ReadHeader() {
    const HttpServerOptions& options = shared_->options;
    Lowest().expires_after(options.request_limit);
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(options.header_limit_bytes));
    parser_->body_limit(options.body_limit_bytes);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](error_code error, size_t) {
                              if (error) return self->Reject(error);
                              const auto expects = self->parser_->get()[http::field::expect];
                              if (beast::iequals(expects, "100-continue")) return self->LetGoOn();
                              self->ReadBody();
                            });
  }

  void LetGoOn() {
    go_on_ = http::response<http::empty_body>(http::status::continue_, 11);
    http::async_write(stream_, go_on_, [self = this->shared_from_this()](error_code error, size_t) {
      if (!error) self->ReadBody();
    });
  }

  void ReadBody() {
    if (parser_->is_done()) return Reply();
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](error_code error, size_t) {
                       if (error) return self->Reject(error);
                       self->Reply();
                     });
  }

  void Reject(const error_code& error) {
    std::optional<HttpResponse> answer = AnswerTo(error, shared_->options);
    if (!answer || !Lowest().socket().is_open()) return;
    if (shared_->options.rejected)
      shared_->options.rejected(View(parser_->get().target()), answer->status);
    Write(std::move(*answer), {}, Then::kDrain);
  }

  void Reply() {
    HttpResponse answer = Ask(parser_->get());
    const Framing framing{.keep_alive = parser_->get().keep_alive() && !shared_->stopping,
                          .head_only = parser_->get().method() == http::verb::head,
                          .version = parser_->get().version()};
    Write(std::move(answer), framing, framing.keep_alive ? Then::kAwait : Then::kClose);
  }

  HttpResponse Ask(const http::request<http::string_body>& message) const {
    const std::string_view target = View(message.target());
    const size_t mark = std::min(target.find('?'), target.size());
    const HttpRequest request{.method = View(message.method_string()),
                              .path = target.substr(0, mark),
                              .query = target.substr(std::min(mark + 1, target.size())),
                              .content_type = View(message[http::field::content_type]),
                              .body = message.body(),
                              .peer = peer_,
                              .worker = worker_->index};
    try {
      return shared_->handler(request);
    } catch (const std::exception& error) {
      LogError("{} {}: {}", request.method, request.path, error.what());
      return HttpError(500, "out of memory or another fault of the server; see its log");
    }
  }

  void Write(HttpResponse answer, Framing framing, Then then) {
    Lowest().expires_after(shared_->options.request_limit);
    message_ = http::response<http::string_body>(static_cast<http::status>(answer.status),
                                                 framing.version);
    message_.set(http::field::content_type, answer.content_type);
    for (const auto& [name, value] : answer.headers) message_.set(name, value);
    message_.keep_alive(framing.keep_alive);
    message_.content_length(answer.body.size());
    message_.body() = std::move(answer.body);
    serializer_.emplace(message_);
    auto written = [self = this->shared_from_this(), then](error_code error, size_t) {
      if (!error && then == Then::kAwait) self->Await();
      if (!error && then == Then::kDrain) self->Drain();
    };
    if (framing.head_only) {
      http::async_write_header(stream_, *serializer_, std::move(written));
    } else {
      http::async_write(stream_, *serializer_, std::move(written));
    }
  }

  // Reads what the peer is still sending: closing at once would take away the answer.
  void Drain() {
    error_code ignored;
    Lowest().socket().shutdown(asio::socket_base::shutdown_send, ignored);
    Lowest().expires_after(kDrainTime);
    DrainSome();
  }
  void DrainSome() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kChunkBytes),
                            [self = this->shared_from_this()](error_code error, size_t) {
                              if (!error) self->DrainSome();
                            });
  }

  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::empty_body> go_on_;
  http::response<http::string_body> message_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::string peer_;
  Shared* shared_;
  Worker* worker_;
  bool idle_ = false;
};

std::string PeerOf(const asio::basic_stream_socket<Tcp, Executor>& socket) {
  error_code error;
  const Tcp::endpoint peer = socket.remote_endpoint(error);
  return error ? "" : TextOf(peer);
}
std::string PeerOf(const asio::basic_stream_socket<Unix, Executor>&) { return ""; }

class BeastServer final : public HttpServer {
 public:
  BeastServer(const HttpServerOptions& options, HttpHandler handler, std::unique_ptr<ServerTls> tls)
      : tls_(std::move(tls)) {
    shared_.options = options;
    shared_.handler = std::move(handler);
    for (int i = 0; i < options.threads; ++i) {
      workers_.push_back(std::make_unique<Worker>());
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
        for (Connection* connection : worker->connections) connection->StopIfIdle();
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
      for (Connection* connection : worker->connections) connection->Cut();
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
      // Nobody can connect before listen: it is the owner's alone from the start.
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
    Worker* worker = workers_[next_++ % workers_.size()].get();
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
  void Welcome(asio::basic_stream_socket<Protocol, Executor> socket, Worker* worker) {
    if constexpr (std::is_same_v<Protocol, Tcp>) {
      error_code ignored;
      socket.set_option(Tcp::no_delay(true), ignored);
    }
    std::string peer = PeerOf(socket);
    if constexpr (std::is_same_v<Protocol, Tcp>) {
      if (tls_ != nullptr) {
        asio::ssl::context context = ContextOf(tls_->Current());
        return Hand(Secure(AnySocket(std::move(socket)), context), std::move(peer), worker);
      }
    }
    Hand(Plain(AnySocket(std::move(socket))), std::move(peer), worker);
  }

  template <class Stream>
  void Hand(Stream stream, std::string peer, Worker* worker) {
    auto session =
        std::make_shared<Session<Stream>>(std::move(stream), std::move(peer), &shared_, worker);
    const bool welcome = shared_.connections <= shared_.options.connections_max;
    // From here on the session belongs to the worker's thread.
    asio::post(worker->context,
               [session = std::move(session), welcome] { session->Begin(welcome); });
  }

  Shared shared_;
  std::unique_ptr<ServerTls> tls_;  // Null: plain HTTP.
  std::vector<std::unique_ptr<Worker>> workers_;
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
