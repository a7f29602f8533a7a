// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

// A client that sends exactly the bytes it is told to, so that a test can also send wrong ones.

namespace rudderfish::testing {

class RawConnection {
 public:
  // "127.0.0.1:PORT" or "unix:PATH".
  explicit RawConnection(const std::string& address) {
    if (address.starts_with("unix:")) {
      sockaddr_un at{};
      at.sun_family = AF_UNIX;
      std::strncpy(at.sun_path, address.c_str() + 5, sizeof at.sun_path - 1);
      socket_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
      connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
    } else {
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_port = htons(std::atoi(address.c_str() + address.rfind(':') + 1));
      ::inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
      socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
      connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
    }
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~RawConnection() { ::close(socket_); }
  RawConnection(const RawConnection&) = delete;

  bool connected() const { return connected_; }

  void Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(sent);
    }
  }

  // One response as it came, by its Content-Length; what there was if the connection ended first.
  std::string Receive(bool has_body = true) {
    for (;;) {
      const size_t end = pending_.find("\r\n\r\n");
      if (end != std::string::npos) {
        const size_t length = pending_.find("Content-Length: ");
        size_t total = end + 4;
        if (has_body && length < end) total += std::strtoul(&pending_[length + 16], nullptr, 10);
        if (pending_.size() >= total) {
          std::string response = pending_.substr(0, total);
          pending_.erase(0, total);
          return response;
        }
      }
      if (!ReceiveSome()) return std::exchange(pending_, {});
    }
  }

  // Whether the other side has closed, after what is still to be read.
  bool AtEnd() {
    while (ReceiveSome()) {
    }
    return ended_;
  }

 private:
  bool ReceiveSome() {
    char buffer[4096];
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
    ended_ = count == 0 || (count < 0 && errno == ECONNRESET);
    if (count > 0) pending_.append(buffer, count);
    return count > 0;
  }

  int socket_ = -1;
  bool connected_ = false;
  bool ended_ = false;
  std::string pending_;
};

inline std::string Fetch(const std::string& address, std::string_view path) {
  RawConnection connection(address);
  connection.Send("GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n");
  return connection.Receive();
}

}  // namespace rudderfish::testing
