// SPDX-License-Identifier: Apache-2.0
#include "net/stream_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "net/listen_address.h"
#include "net/socket_address.h"

namespace rudderfish {
namespace {

constexpr int kEventsMax = 64;
constexpr int kReadsMax = 4;  // Of one connection, before others have their turn.
constexpr size_t kReadBytes = 16 << 10;
// A client that is answered before it has sent its last byte would lose the answer if its
// connection were closed at once.
constexpr Duration kLeave = std::chrono::seconds(1);
constexpr Duration kPause = std::chrono::milliseconds(50);  // Out of descriptors, say.

std::string StreamReason() { return std::generic_category().message(errno); }

// How a connection ended.
enum class End { kServed, kSlow, kLarge, kFull };
constexpr std::string_view kEndNames[] = {"served", "slow", "large", "full"};

class EpollServer final : public StreamServer {
 public:
  EpollServer(const StreamServerOptions& options, MetricRegistry* metrics, StreamHandler handler)
      : options_(options),
        handler_(std::move(handler)),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    CHECK_GE(epoll_, 0);
    CHECK_GE(wake_, 0);
    Watch(wake_, EPOLLIN, EPOLL_CTL_ADD);
    for (size_t i = 0; i < std::size(kEndNames); ++i) {
      ends_[i] =
          &metrics->AddCounter("rudderfish_stream_connections_total",
                               "Connections of protocols other than HTTP, by how they ended.",
                               {{"wire", options.wire}, {"end", std::string(kEndNames[i])}});
    }
  }

  ~EpollServer() override {
    if (thread_.joinable()) {
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
      thread_.join();
    }
    for (const auto& [file, client] : clients_) ::close(file);
    for (const int listener : listeners_) ::close(listener);
    ::close(wake_);
    ::close(epoll_);
  }

  Result<void> Listen(const std::string& text) {
    TRY_ASSIGN(const ListenAddress parsed, ParseListenAddress(text));
    if (parsed.is_unix()) return Invalid("`{}`: expected a network address", text);
    TRY_ASSIGN(const SocketAddress address, SocketAddress::Of(parsed.ip, parsed.port));
    const int file = ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    if (file < 0 || ::setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        ::bind(file, address.get(), address.size()) != 0 || ::listen(file, SOMAXCONN) != 0) {
      const std::string reason = StreamReason();
      if (file >= 0) ::close(file);
      return Fail(ErrorCode::kUnavailable, "cannot listen on {}: {}", text, reason);
    }
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    ::getsockname(file, reinterpret_cast<sockaddr*>(&bound), &size);
    addresses_.push_back(SocketAddress(reinterpret_cast<sockaddr*>(&bound), size).Text());
    listeners_.push_back(file);
    Watch(file, EPOLLIN, EPOLL_CTL_ADD);
    return {};
  }

  void Run() {
    thread_ = std::thread([this] { Loop(); });
  }

  const std::vector<std::string>& addresses() const override { return addresses_; }

 private:
  struct Client {
    std::string received, answer;
    size_t sent = 0;
    bool closes = false;      // Once the answer is taken.
    bool is_leaving = false;  // The answer is taken; what still comes is not read.
    bool has_ended = false;   // It sends nothing more.
    bool was_asked_quiet = false;
    Instant since;  // The first byte of the request, of the answer, or the last answer.
    Instant heard;

    bool is_idle() const { return received.empty() && answer.empty(); }
  };
  using Clients = std::map<int, Client>;

  void Watch(int file, uint32_t events, int operation) const {
    epoll_event event{};
    event.events = events;
    event.data.fd = file;
    ::epoll_ctl(epoll_, operation, file, &event);
  }

  void Loop() {
    epoll_event events[kEventsMax];
    while (true) {
      const int count = ::epoll_wait(epoll_, events, kEventsMax, UntilDueMs());
      now_ = clock_.Now();
      for (int i = 0; i < count; ++i) {
        const int file = events[i].data.fd;
        if (file == wake_) return;
        if (std::ranges::find(listeners_, file) != listeners_.end()) {
          Accept(file);
        } else if (const auto found = clients_.find(file); found != clients_.end()) {
          Serve(found);
        }
      }
      EndLate();
    }
  }

  int UntilDueMs() const {
    std::optional<Instant> due;
    for (const auto& [file, client] : clients_) {
      if (const auto at = DueOf(client); at && (!due || *at < *due)) due = at;
    }
    if (!due) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due - clock_.Now());
    return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
  }

  std::optional<Instant> DueOf(const Client& client) const {
    if (client.is_leaving) return client.since + kLeave;
    if (client.is_idle()) {
      if (options_.idle_limit.count() == 0) return std::nullopt;
      return client.since + options_.idle_limit;
    }
    const Instant late = client.since + options_.request_limit;
    if (!client.answer.empty() || client.was_asked_quiet) return late;
    return std::min(late, client.heard + options_.quiet);
  }

  void Accept(int listener) {
    while (true) {
      const int file = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (file < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
          LogWarning("cannot accept a connection: {}", StreamReason());
          std::this_thread::sleep_for(kPause);
        }
        return;
      }
      if (!MakeRoom()) {
        ::close(file);
        Count(End::kFull);
        continue;
      }
      const int on = 1;
      ::setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ::setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
      Client& client = clients_[file];
      client.since = client.heard = now_;
      Watch(file, EPOLLIN | EPOLLRDHUP, EPOLL_CTL_ADD);
    }
  }

  bool MakeRoom() {
    if (clients_.size() < static_cast<size_t>(options_.connections_max)) return true;
    auto oldest = clients_.end();
    for (auto at = clients_.begin(); at != clients_.end(); ++at) {
      if (at->second.is_idle() &&
          (oldest == clients_.end() || at->second.since < oldest->second.since))
        oldest = at;
    }
    if (oldest == clients_.end()) return false;
    Close(oldest, oldest->second.is_leaving ? End::kServed : End::kFull);
    return true;
  }

  void Count(End end) { ends_[static_cast<size_t>(end)]->Add(); }

  void Close(Clients::iterator client, End end) {
    ::close(client->first);
    clients_.erase(client);
    Count(end);
  }

  void Serve(Clients::iterator at) {
    Client& client = at->second;
    if (client.is_leaving) return Leave(at);
    if (!client.answer.empty()) return Write(at);
    char bytes[kReadBytes];
    bool has_more = false;
    for (int i = 0; i < kReadsMax && !client.has_ended; ++i) {
      const ssize_t count = ::recv(at->first, bytes, sizeof bytes, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) break;
      if (count < 0) return Close(at, End::kServed);
      if (count == 0) client.has_ended = true;
      if (count > 0 && client.received.empty()) client.since = now_;
      client.received.append(bytes, static_cast<size_t>(count));
      client.heard = now_;
      client.was_asked_quiet = false;
      has_more |= count > 0;
      if (client.received.size() > options_.request_limit_bytes) return Close(at, End::kLarge);
    }
    if (client.has_ended && client.received.empty()) return Close(at, End::kServed);
    if (has_more || client.has_ended)
      Ask(at, client.has_ended ? StreamEvent::kClosed : StreamEvent::kBytes);
  }

  void Ask(Clients::iterator at, StreamEvent event) {
    Client& client = at->second;
    std::optional<StreamAnswer> answer = handler_(client.received, event);
    if (!answer) {
      if (client.has_ended) Close(at, End::kServed);
      return;
    }
    client.received.clear();
    client.answer = std::move(answer->bytes);
    client.sent = 0;
    client.closes = answer->after == StreamAnswer::After::kClose || client.has_ended;
    client.since = now_;
    Write(at);
  }

  void Write(Clients::iterator at) {
    Client& client = at->second;
    while (client.sent < client.answer.size()) {
      const ssize_t count = ::send(at->first, client.answer.data() + client.sent,
                                   client.answer.size() - client.sent, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return Watch(at->first, EPOLLOUT, EPOLL_CTL_MOD);
      if (count < 0) return Close(at, End::kServed);
      client.sent += static_cast<size_t>(count);
    }
    client.answer.clear();
    client.since = now_;
    if (client.closes) {
      if (client.has_ended || ::shutdown(at->first, SHUT_WR) != 0) return Close(at, End::kServed);
      client.is_leaving = true;
    }
    Watch(at->first, EPOLLIN | EPOLLRDHUP, EPOLL_CTL_MOD);
  }

  void Leave(Clients::iterator at) {
    char unread[kReadBytes];
    for (int i = 0; i < kReadsMax; ++i) {
      const ssize_t count = ::recv(at->first, unread, sizeof unread, 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count <= 0) return Close(at, End::kServed);
    }
  }

  void EndLate() {
    for (auto at = clients_.begin(); at != clients_.end();) {
      const auto next = std::next(at);
      const Client& client = at->second;
      const auto due = DueOf(client);
      if (due && *due <= now_) {
        if (client.is_leaving) {
          Close(at, End::kServed);
          at = next;
          continue;
        }
        const bool is_late = client.is_idle() || now_ - client.since >= options_.request_limit;
        if (is_late) {
          Close(at, End::kSlow);
        } else {
          at->second.was_asked_quiet = true;
          Ask(at, StreamEvent::kQuiet);
        }
      }
      at = next;
    }
  }

  const StreamServerOptions options_;
  const StreamHandler handler_;
  const SystemClock clock_;
  Instant now_;
  int epoll_, wake_;
  std::vector<int> listeners_;
  std::vector<std::string> addresses_;
  Clients clients_;
  Counter* ends_[std::size(kEndNames)];
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<StreamServer>> StreamServer::Start(const StreamServerOptions& options,
                                                          MetricRegistry* metrics,
                                                          StreamHandler handler) {
  CHECK_GT(options.connections_max, 0);
  if (options.listen.empty()) return Invalid("no address to listen on");
  auto server = std::make_unique<EpollServer>(options, metrics, std::move(handler));
  for (const std::string& text : options.listen) TRY(server->Listen(text));
  server->Run();
  return std::unique_ptr<StreamServer>(std::move(server));
}

}  // namespace rudderfish
