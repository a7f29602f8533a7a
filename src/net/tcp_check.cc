// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_check.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"

namespace rudderfish {
namespace {

// Of a socket whose connection was begun.
bool IsConnected(int socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace

std::vector<char> AcceptConnections(std::span<const SocketAddress> addresses,
                                    std::chrono::milliseconds patience) {
  std::vector<char> accepted(addresses.size(), 0);
  std::vector<pollfd> sockets(addresses.size(), pollfd{.fd = -1, .events = POLLOUT, .revents = 0});
  size_t open = 0;
  const auto close = [&](size_t i) {
    ::close(sockets[i].fd);
    sockets[i].fd = -1;
    --open;
  };
  for (size_t i = 0; i < addresses.size(); ++i) {
    const SocketAddress& to = addresses[i];
    sockets[i].fd = ::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sockets[i].fd < 0) continue;
    ++open;
    if (::connect(sockets[i].fd, to.get(), to.size()) == 0) accepted[i] = 1;
    if (accepted[i] != 0 || errno != EINPROGRESS) close(i);
  }
  const Instant end = SystemClock().Now() + patience;
  while (open > 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SystemClock().Now());
    if (left.count() <= 0) break;
    const int ready = ::poll(sockets.data(), sockets.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) break;
    for (size_t i = 0; ready > 0 && i < sockets.size(); ++i) {
      if (sockets[i].fd < 0 || sockets[i].revents == 0) continue;
      accepted[i] = IsConnected(sockets[i].fd) ? 1 : 0;
      close(i);
    }
  }
  for (const pollfd& one : sockets) {
    if (one.fd >= 0) ::close(one.fd);
  }
  return accepted;
}

}  // namespace rudderfish
