// SPDX-License-Identifier: Apache-2.0
#include "net/socket_exchange.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "net/socket_address.h"

namespace rudderfish {
namespace {

class OwnedSocket {
 public:
  explicit OwnedSocket(int file) : file_(file) {}
  ~OwnedSocket() {
    if (file_ >= 0) ::close(file_);
  }
  OwnedSocket(const OwnedSocket&) = delete;
  int get() const { return file_; }

 private:
  int file_;
};

// Waits until the socket is ready; an error once the time is over.
Result<void> WaitUntil(int file, short events, Instant deadline, const std::string& address) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SystemClock().Now());
    if (left.count() <= 0)
      return Fail(ErrorCode::kDeadlineExceeded, "{}: did not answer in time", address);
    pollfd ready{file, events, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(left.count()));
    if (count > 0) return {};
    if (count < 0 && errno != EINTR)
      return Fail(ErrorCode::kUnavailable, "{}: {}", address,
                  std::generic_category().message(errno));
  }
}

Result<void> Connect(int file, const sockaddr* to, socklen_t size, Instant deadline,
                     const std::string& address) {
  int error = ::connect(file, to, size) == 0 ? 0 : errno;
  if (error == EINPROGRESS || error == EAGAIN) {
    TRY(WaitUntil(file, POLLOUT, deadline, address));
    socklen_t length = sizeof error;
    ::getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error == 0) return {};
  const bool nobody = error == ENOENT || error == ECONNREFUSED;
  return Fail(nobody ? ErrorCode::kNotFound : ErrorCode::kUnavailable, "{}: {}", address,
              nobody ? "nothing listens there" : std::generic_category().message(error));
}

Result<std::string> Converse(int file, std::string_view question, Instant deadline,
                             size_t answer_max, const std::string& address) {
  while (!question.empty()) {
    TRY(WaitUntil(file, POLLOUT, deadline, address));
    const ssize_t sent = ::send(file, question.data(), question.size(), MSG_NOSIGNAL);
    if (sent > 0) question.remove_prefix(static_cast<size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
      return Fail(ErrorCode::kUnavailable, "{}: {}", address,
                  std::generic_category().message(errno));
  }
  std::string answer;
  for (;;) {
    TRY(WaitUntil(file, POLLIN, deadline, address));
    char bytes[4096];
    const ssize_t count = ::recv(file, bytes, sizeof bytes, 0);
    if (count == 0) return answer;
    if (count > 0) answer.append(bytes, static_cast<size_t>(count));
    if (count < 0 && errno != EAGAIN && errno != EINTR)
      return Fail(ErrorCode::kUnavailable, "{}: {}", address,
                  std::generic_category().message(errno));
    if (answer.size() > answer_max)
      return Fail(ErrorCode::kUnavailable, "{}: answered more than {} bytes", address, answer_max);
  }
}

Result<std::string> AskFile(const std::string& path, std::string_view question, Instant deadline,
                            size_t answer_max) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (path.size() >= sizeof to.sun_path) {
    return Invalid("{}: is too long for a socket; {} letters are possible", path,
                   sizeof to.sun_path - 1);
  }
  std::memcpy(to.sun_path, path.c_str(), path.size() + 1);
  const OwnedSocket file(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  TRY(Connect(file.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to, deadline, path));
  return Converse(file.get(), question, deadline, answer_max, path);
}

}  // namespace

Result<std::string> SocketExchange(const std::string& address, std::string_view question,
                                   Duration limit, size_t answer_max) {
  const Instant deadline = SystemClock().Now() + limit;
  if (address.find('/') != std::string::npos)
    return AskFile(address, question, deadline, answer_max);
  TRY_ASSIGN(const HostAndPort name, ParseHostAndPort(address));
  if (!name.has_port)
    return Invalid("{}: expected HOST:PORT, or the path of a socket with a slash in it", address);
  TRY_ASSIGN(const std::vector<SocketAddress> found, Resolve(name));
  Result<void> failed = Fail(ErrorCode::kNotFound, "{}: has no address", address);
  for (const SocketAddress& to : found) {
    const OwnedSocket file(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    failed = Connect(file.get(), to.get(), to.size(), deadline, address);
    if (failed) return Converse(file.get(), question, deadline, answer_max, address);
  }
  return tl::unexpected(failed.error());
}

}  // namespace rudderfish
