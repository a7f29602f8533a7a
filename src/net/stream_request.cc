// SPDX-License-Identifier: Apache-2.0
#include "net/stream_request.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/one_line.h"

namespace rudderfish {
namespace {

using std::chrono::milliseconds;

class OwnedSocket {
 public:
  explicit OwnedSocket(int file) : file_(file) {}
  ~OwnedSocket() {
    if (file_ >= 0) ::close(file_);
  }
  OwnedSocket(const OwnedSocket&) = delete;
  OwnedSocket& operator=(const OwnedSocket&) = delete;

  int get() const { return file_; }
  int Release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

tl::unexpected<Error> FailedToConnect(const StreamPeer& peer, int error) {
  const std::string reason = std::generic_category().message(error);
  if (error == ENOENT || error == ECONNREFUSED)
    return Fail(ErrorCode::kNotFound, "{}: nothing listens there: {}", peer.Text(), reason);
  return Fail(error == EACCES ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable, "{}: {}",
              peer.Text(), reason);
}

// Whether `file` was ready for `events` by `deadline`.
bool WaitUntil(int file, short events, Instant deadline) {  // NOLINT(google-runtime-int)
  for (;;) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - SystemClock().Now()).count();
    if (left <= 0) return false;
    pollfd ready{file, events, 0};
    if (::poll(&ready, 1, static_cast<int>(left)) > 0) return true;
  }
}

Result<int> ConnectTo(const StreamPeer& peer, const sockaddr* address, socklen_t size,
                      Instant deadline) {
  OwnedSocket file(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (file.get() < 0) return FailedToConnect(peer, errno);
  if (::connect(file.get(), address, size) == 0) return file.Release();
  if (errno != EINPROGRESS) return FailedToConnect(peer, errno);
  int error = 0;
  socklen_t error_size = sizeof error;
  if (!WaitUntil(file.get(), POLLOUT, deadline))
    error = ETIMEDOUT;
  else if (::getsockopt(file.get(), SOL_SOCKET, SO_ERROR, &error, &error_size) != 0)
    error = errno;
  if (error != 0) return FailedToConnect(peer, error);
  return file.Release();
}

Result<int> ConnectBy(const StreamPeer& peer, Instant deadline) {
  if (peer.path.empty()) {
    TRY_ASSIGN(const std::vector<SocketAddress> addresses, Resolve(peer.address));
    Result<int> made = Fail(ErrorCode::kUnavailable, "{}: has no address", peer.Text());
    for (const SocketAddress& address : addresses) {
      made = ConnectTo(peer, address.get(), address.size(), deadline);
      if (made) return made;
    }
    return made;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (peer.path.native().size() >= sizeof address.sun_path) {
    return Invalid("{}: is too long for a socket; {} letters are possible", peer.Text(),
                   sizeof address.sun_path - 1);
  }
  std::memcpy(address.sun_path, peer.path.c_str(), peer.path.native().size() + 1);
  return ConnectTo(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address, deadline);
}

}  // namespace

std::string StreamPeer::Text() const {
  return path.empty() ? fmt::format("{}:{}", address.host, address.port) : OneLine(path.string());
}

Result<StreamPeer> ParseStreamPeer(std::string_view text) {
  if (text.find('/') != std::string_view::npos) return StreamPeer{.path = text, .address = {}};
  TRY_ASSIGN(HostAndPort address, ParseHostAndPort(text));
  if (!address.has_port)
    return Invalid("`{}`: expected the path of a socket, with a slash, or HOST:PORT",
                   OneLine(text));
  return StreamPeer{.path = {}, .address = std::move(address)};
}

Result<int> ConnectStream(const StreamPeer& peer, milliseconds timeout) {
  return ConnectBy(peer, SystemClock().Now() + timeout);
}

Result<std::string> AskStream(const StreamPeer& peer, std::string_view request,
                              milliseconds timeout, size_t answer_max) {
  const Instant deadline = SystemClock().Now() + timeout;
  TRY_ASSIGN(const int connected, ConnectBy(peer, deadline));
  const OwnedSocket file(connected);
  std::string reply;
  while (true) {
    const bool sends = !request.empty();
    if (!WaitUntil(file.get(), sends ? POLLOUT : POLLIN, deadline)) {
      return Fail(ErrorCode::kDeadlineExceeded, "{}: did not answer within {} ms", peer.Text(),
                  timeout.count());
    }
    if (sends) {
      const ssize_t count = ::send(file.get(), request.data(), request.size(), MSG_NOSIGNAL);
      if (count > 0) request.remove_prefix(static_cast<size_t>(count));
      if (count < 0 && errno != EAGAIN && errno != EINTR) return FailedToConnect(peer, errno);
      continue;
    }
    char bytes[4096];
    const ssize_t count = ::recv(file.get(), bytes, sizeof bytes, 0);
    if (count == 0) return reply;
    if (count < 0 && errno != EAGAIN && errno != EINTR) return FailedToConnect(peer, errno);
    if (count > 0) reply.append(bytes, static_cast<size_t>(count));
    if (reply.size() > answer_max) {
      return Fail(ErrorCode::kUnavailable, "{}: answers more than {} bytes", peer.Text(),
                  answer_max);
    }
  }
}

}  // namespace rudderfish
