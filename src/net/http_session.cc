// SPDX-License-Identifier: Apache-2.0
#include "net/http_session.h"

#include <algorithm>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <exception>
#include <optional>
#include <utility>

#include "base/log.h"

namespace rudderfish::internal {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kChunkBytes = 8 << 10;
// Beyond a header: what is read of a body at a time. A line of a chunk that does not end in it is
// refused, however long its extension is.
constexpr size_t kBodyReadBytes = 64 << 10;
constexpr Duration kDrainTime = std::chrono::milliseconds(500);
constexpr Duration kHandshakeLimit = std::chrono::seconds(5);
constexpr Duration kBetweenCrowds = std::chrono::minutes(1);

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

size_t BodyLimitOf(const HttpServerOptions& options, std::string_view target) {
  const auto found = options.body_limits.find(target.substr(0, target.find('?')));
  return found == options.body_limits.end() ? 0 : found->second;
}

size_t LargestBody(const HttpServerOptions& options) {
  size_t largest = 0;
  for (const auto& [path, limit] : options.body_limits) largest = std::max(largest, limit);
  return largest;
}

// The answer to an error of the parser; none if no client is left to read it.
std::optional<HttpResponse> AnswerTo(const error_code& error, const HttpServerOptions& options,
                                     std::string_view target, bool is_in_body) {
  if (error == http::error::body_limit) {
    const size_t limit = BodyLimitOf(options, target);
    return HttpError(413, limit == 0 ? "this path takes no body"
                                     : fmt::format("the body is larger than {} bytes", limit));
  }
  if (error == http::error::buffer_overflow && is_in_body)
    return HttpError(413, "a chunk has too long an extension, or the body too long a trailer");
  if (error == asio::error::no_memory)
    return HttpError(503, "all that may be held of requests is held; try again");
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

using Plain = beast::basic_stream<asio::generic::stream_protocol, HttpExecutor>;
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

// Not for each connection: a client that holds many may open many more.
void TellOfCrowd(HttpShared* shared) {
  const Instant now = SystemClock().Now();
  const std::lock_guard lock(shared->mutex);
  if (shared->told_of_crowd && now - *shared->told_of_crowd < kBetweenCrowds) return;
  shared->told_of_crowd = now;
  LogWarning(
      "{}: {} connections are open, as many as may be: for each new one that which has been "
      "silent longest is closed",
      fmt::join(shared->options.listen, ", "), shared->options.connections_max);
}

// Steps call each other from first to last: Begin, Await, ReadHeader, ReadBody, Reply,
// Write, and from there Await. Whatever is under way keeps the session; where nothing is, it ends.
template <class Stream>
class Session final : public HttpSession, public std::enable_shared_from_this<Session<Stream>> {
 public:
  Session(Stream stream, std::string peer, HttpShared* shared, HttpWorker* worker)
      : stream_(std::move(stream)),
        buffer_(shared->options.header_limit_bytes + kBodyReadBytes),
        request_(&shared->held_bytes, shared->options.memory_limit_bytes),
        answer_(&shared->held_bytes, shared->options.memory_limit_bytes),
        peer_(std::move(peer)),
        shared_(shared),
        worker_(worker) {
    ++worker_->connections;
  }
  ~Session() override {
    GoTo(nullptr);
    --worker_->connections;
  }

  // On the worker's thread, as all that follows.
  void Begin() override {
    GoTo(&worker_->sessions.silent);
    if (worker_->sessions.size() > worker_->connections_max) MakeRoom();
    if constexpr (std::is_same_v<Stream, Secure>) {
      Lowest().expires_after(std::min(kHandshakeLimit, shared_->options.request_limit));
      stream_.async_handshake(
          asio::ssl::stream_base::server, [self = this->shared_from_this()](error_code error) {
            if (!error) return self->Await();
            if (HasLeft(error) || !self->shared_->options.refused) return;
            self->shared_->options.refused(fmt::format("{}: {}", self->peer_, error.message()));
          });
    } else {
      Await();
    }
  }

  void StopIfIdle() override {
    if (idle_) Lowest().close();
  }
  void Cut() override {
    GoTo(nullptr);
    Lowest().close();
  }

 private:
  enum class Then { kAwait, kClose, kDrain };

  struct Framing {
    bool keep_alive = false;
    bool head_only = false;
    unsigned version = 11;
  };

  auto& Lowest() { return beast::get_lowest_layer(stream_); }

  // To the end of a list of the worker's; nullptr: to none.
  void GoTo(std::list<HttpSession*>* list) {
    if (list_ != nullptr) list_->erase(place_);
    list_ = list;
    if (list_ != nullptr) place_ = list_->insert(list_->end(), this);
  }

  // There are others: at least one connection is allowed.
  void MakeRoom() {
    HttpSessions& sessions = worker_->sessions;
    TellOfCrowd(shared_);
    (sessions.silent.size() > 1 ? sessions.silent : sessions.engaged).front()->Cut();
  }

  void Await() {
    if (shared_->stopping) return;
    GoTo(&worker_->sessions.silent);
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
    GoTo(&worker_->sessions.engaged);
    Lowest().expires_after(options.request_limit);
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(options.header_limit_bytes));
    parser_->body_limit(LargestBody(options));  // That of the path comes once it is known.
    is_in_body_ = false;
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](error_code error, size_t) {
                              if (error) return self->Reject(error);
                              self->is_in_body_ = true;
                              if (self->IsBodyTooLarge())
                                return self->Reject(http::error::body_limit);
                              const auto expects = self->parser_->get()[http::field::expect];
                              if (beast::iequals(expects, "100-continue")) return self->LetGoOn();
                              self->ReadBody();
                            });
  }

  bool IsBodyTooLarge() {
    const size_t limit = BodyLimitOf(shared_->options, View(parser_->get().target()));
    return parser_->content_length().value_or(0) > limit || parser_->get().body().size() > limit;
  }

  void LetGoOn() {
    go_on_ = http::response<http::empty_body>(http::status::continue_, 11);
    http::async_write(stream_, go_on_, [self = this->shared_from_this()](error_code error, size_t) {
      if (!error) self->ReadBody();
    });
  }

  void ReadBody() {
    if (parser_->is_done()) return Reply();
    http::async_read_some(stream_, buffer_, *parser_,
                          [self = this->shared_from_this()](error_code error, size_t) {
                            if (error) return self->Reject(error);
                            if (self->IsBodyTooLarge())
                              return self->Reject(http::error::body_limit);
                            if (!self->request_.Take(self->parser_->get().body().size()))
                              return self->Reject(asio::error::no_memory);
                            self->ReadBody();
                          });
  }

  void Reject(const error_code& error) {
    std::optional<HttpResponse> answer =
        AnswerTo(error, shared_->options, View(parser_->get().target()), is_in_body_);
    if (!answer || !Lowest().socket().is_open()) return;
    if (shared_->options.rejected)
      shared_->options.rejected(View(parser_->get().target()), answer->status);
    parser_.reset();  // While the rest is drained nothing of it is kept.
    request_.Release();
    Write(std::move(*answer), {}, Then::kDrain);
  }

  void Reply() {
    HttpResponse answer = Ask(parser_->get());
    const Framing framing{.keep_alive = parser_->get().keep_alive() && !shared_->stopping,
                          .head_only = parser_->get().method() == http::verb::head,
                          .version = parser_->get().version()};
    parser_.reset();
    request_.Release();
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
    if (!answer_.Take(answer.body.size())) {
      answer = HttpError(503, "all that may be held of answers is held; try again");
      framing.keep_alive = false;
      then = Then::kClose;
    }
    GoTo(&worker_->sessions.engaged);
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
      self->Forget();
      if (!error && then == Then::kAwait) self->Await();
      if (!error && then == Then::kDrain) self->Drain();
    };
    if (framing.head_only) {
      http::async_write_header(stream_, *serializer_, std::move(written));
    } else {
      http::async_write(stream_, *serializer_, std::move(written));
    }
  }

  // Nothing of an answer outlives it.
  void Forget() {
    serializer_.reset();
    message_ = {};
    answer_.Release();
  }

  // Reads what the peer is still sending: closing at once would take away the answer.
  void Drain() {
    error_code ignored;
    GoTo(&worker_->sessions.silent);
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
  HttpHolding request_, answer_;
  bool is_in_body_ = false;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::empty_body> go_on_;
  http::response<http::string_body> message_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::string peer_;
  HttpShared* shared_;
  HttpWorker* worker_;
  std::list<HttpSession*>* list_ = nullptr;
  std::list<HttpSession*>::iterator place_;
  bool idle_ = false;
};

}  // namespace

bool HttpHolding::Take(size_t bytes) {
  if (bytes <= bytes_) return true;
  const size_t more = bytes - bytes_;
  if (held_->fetch_add(more) + more > most_) {
    held_->fetch_sub(more);
    return false;
  }
  bytes_ = bytes;
  return true;
}

std::shared_ptr<HttpSession> NewHttpSession(HttpSocket socket, std::string peer,
                                            const std::shared_ptr<ssl_ctx_st>& tls,
                                            HttpShared* shared, HttpWorker* worker) {
  if (tls == nullptr) {
    return std::make_shared<Session<Plain>>(Plain(std::move(socket)), std::move(peer), shared,
                                            worker);
  }
  asio::ssl::context context = ContextOf(tls);
  return std::make_shared<Session<Secure>>(Secure(std::move(socket), context), std::move(peer),
                                           shared, worker);
}

}  // namespace rudderfish::internal
