// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_check.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/clock.h"

namespace rudderfish {
namespace {

// Errors of a connection that are ours, not the other side's.
bool IsOurs(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
         error == EADDRNOTAVAIL || error == EAGAIN;
}

// Of a socket whose connection was begun.
bool IsConnected(int socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

class Checks {
 public:
  explicit Checks(std::span<const SocketAddress> addresses)
      : addresses_(addresses),
        accepted_(addresses.size(), 0),
        sockets_(addresses.size(), pollfd{.fd = -1, .events = POLLOUT, .revents = 0}) {}
  ~Checks() {
    for (size_t i = 0; i < sockets_.size(); ++i) Close(i);
  }
  Checks(const Checks&) = delete;

  Result<void> Begin() {
    for (size_t i = 0; i < sockets_.size(); ++i) {
      const SocketAddress& to = addresses_[i];
      sockets_[i].fd = ::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      if (sockets_[i].fd < 0) return Failed(errno);
      ++open_;
      if (::connect(sockets_[i].fd, to.get(), to.size()) == 0) {
        accepted_[i] = 1;
      } else if (errno == EINPROGRESS) {
        continue;
      } else if (IsOurs(errno)) {
        return Failed(errno);
      }
      Close(i);
    }
    return {};
  }

  void Await(std::chrono::milliseconds patience) {
    const Instant end = SystemClock().Now() + patience;
    while (open_ > 0) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SystemClock().Now());
      if (left.count() <= 0) return;
      const int ready = ::poll(sockets_.data(), sockets_.size(), static_cast<int>(left.count()));
      if (ready < 0 && errno != EINTR) return;
      for (size_t i = 0; ready > 0 && i < sockets_.size(); ++i) {
        if (sockets_[i].fd < 0 || sockets_[i].revents == 0) continue;
        accepted_[i] = IsConnected(sockets_[i].fd) ? 1 : 0;
        Close(i);
      }
    }
  }

  const std::vector<char>& accepted() const { return accepted_; }

 private:
  static tl::unexpected<Error> Failed(int error) {
    return Fail(ErrorCode::kUnavailable, "endpoints cannot be checked: {}",
                std::generic_category().message(error));
  }
  void Close(size_t i) {
    if (sockets_[i].fd < 0) return;
    ::close(sockets_[i].fd);
    sockets_[i].fd = -1;
    --open_;
  }

  std::span<const SocketAddress> addresses_;
  std::vector<char> accepted_;
  std::vector<pollfd> sockets_;
  size_t open_ = 0;
};

}  // namespace

Result<std::vector<char>> AcceptConnections(std::span<const SocketAddress> addresses,
                                            std::chrono::milliseconds patience) {
  std::vector<char> accepted;
  while (accepted.size() < addresses.size()) {
    const auto rest = addresses.subspan(accepted.size());
    Checks checks(rest.first(std::min(kChecksAtOnce, rest.size())));
    TRY(checks.Begin());
    checks.Await(patience);
    accepted.insert(accepted.end(), checks.accepted().begin(), checks.accepted().end());
  }
  return accepted;
}

}  // namespace rudderfish
