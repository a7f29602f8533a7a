// SPDX-License-Identifier: Apache-2.0
#include "run/control_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "net/stream_request.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr size_t kClientsMax = 16;
constexpr size_t kRequestMax = 4096;
constexpr size_t kAnswerMax = size_t{16} << 20;
constexpr std::chrono::seconds kClientPatience(5);

std::string Reason() { return std::generic_category().message(errno); }

Result<sockaddr_un> AddressOf(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path) {
    return Invalid("{}: is too long for a socket; {} letters are possible", path.string(),
                   sizeof address.sun_path - 1);
  }
  std::memcpy(address.sun_path, path.c_str(), path.native().size() + 1);
  return address;
}

StreamPeer PeerAt(const fs::path& path) { return {.path = path, .address = {}}; }

}  // namespace

struct ControlSocket::Client {
  explicit Client(int socket) : file(socket), since(SystemClock().Now()) {}
  ~Client() { ::close(file); }
  Client(const Client&) = delete;

  // Reads, answers or writes as far as that goes now; false when it is done with.
  bool Serve(const Answer& answer) {
    if (reply.empty()) {
      char bytes[1024];
      const ssize_t count = ::recv(file, bytes, sizeof bytes, 0);
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (count > 0) request.append(bytes, static_cast<size_t>(count));
      const size_t end = request.find('\n');
      if (std::min(end, request.size()) > kRequestMax) return false;
      if (end == std::string::npos) return true;
      reply = answer(std::string_view(request).substr(0, end)) + "\n";
    }
    const ssize_t count = ::send(file, reply.data() + sent, reply.size() - sent, MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    sent += static_cast<size_t>(count);
    return sent < reply.size();
  }

  int file;
  Instant since;
  std::string request, reply;
  size_t sent = 0;
};

Result<std::unique_ptr<ControlSocket>> ControlSocket::Listen(const fs::path& path) {
  TRY_ASSIGN(const sockaddr_un address, AddressOf(path));
  if (const Result<int> taken = ConnectStream(PeerAt(path), kClientPatience)) {
    ::close(*taken);
    return Fail(ErrorCode::kConflict, "{}: another rudderfish listens there", path.string());
  }
  struct stat what {};
  if (::lstat(path.c_str(), &what) == 0) {
    if (!S_ISSOCK(what.st_mode)) return Invalid("{}: is no socket", path.string());
    ::unlink(path.c_str());
  }
  const int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return Fail(ErrorCode::kUnavailable, "{}: {}", path.string(), Reason());
  // No client can connect before listen, so that the narrower rights are there in time.
  if (::bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(file, kClientsMax) != 0) {
    const std::string reason = Reason();
    ::close(file);
    return Invalid("{}: {}", path.string(), reason);
  }
  return std::unique_ptr<ControlSocket>(new ControlSocket(path, file));
}

ControlSocket::ControlSocket(fs::path path, int listener)
    : path_(std::move(path)), listener_(listener) {}

ControlSocket::~ControlSocket() {
  ::close(listener_);
  ::unlink(path_.c_str());
}

void ControlSocket::Accept() {
  while (clients_.size() < kClientsMax) {
    const int file = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (file < 0) return;
    clients_.push_back(std::make_unique<Client>(file));
  }
}

void ControlSocket::Poll(std::chrono::milliseconds timeout, int wake, const Answer& answer) {
  std::vector<pollfd> files{{wake, POLLIN, 0}};
  // With all places taken, newcomers wait in the system's queue.
  files.push_back({clients_.size() < kClientsMax ? listener_ : -1, POLLIN, 0});
  for (const auto& client : clients_) {
    files.push_back(
        {client->file, static_cast<short>(client->reply.empty() ? POLLIN : POLLOUT), 0});
  }
  ::poll(files.data(), files.size(), static_cast<int>(timeout.count()));
  const Instant now = SystemClock().Now();
  for (size_t i = 0; i < clients_.size(); ++i) {
    const bool ready = files[i + 2].revents != 0;
    const bool goes_on = ready ? clients_[i]->Serve(answer) : true;
    if (!goes_on || now - clients_[i]->since > kClientPatience) clients_[i] = nullptr;
  }
  std::erase(clients_, nullptr);
  if (files[1].revents != 0) Accept();
}

Result<std::string> AskController(const fs::path& socket, std::string_view request,
                                  std::chrono::milliseconds timeout) {
  Result<std::string> reply =
      AskStream(PeerAt(socket), std::string(request) + "\n", timeout, kAnswerMax);
  if (!reply && reply.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "{}: no controller is running there", socket.string());
  }
  if (!reply && reply.error().code == ErrorCode::kDeadlineExceeded) {
    return Fail(ErrorCode::kDeadlineExceeded, "{}: the controller did not answer within {} ms",
                socket.string(), timeout.count());
  }
  if (!reply) return reply;
  if (!reply->ends_with('\n')) {
    return Fail(ErrorCode::kUnavailable, "{}: the controller ended before it answered",
                socket.string());
  }
  reply->pop_back();
  return reply;
}

}  // namespace rudderfish
