// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// An IP address with a port, as the system calls take it, and what people write for it. Values.

namespace rudderfish {

// "host:9100", "[::1]:9100", "10.0.0.7", where the port may be left out.
struct HostAndPort {
  std::string host;
  uint16_t port = 0;
  bool has_port = false;

  bool operator==(const HostAndPort&) const = default;
};
Result<HostAndPort> ParseHostAndPort(std::string_view text);

class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t size);

  // Of a literal; kInvalidArgument if it is none.
  static Result<SocketAddress> Of(const std::string& ip, uint16_t port);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }
  uint16_t port() const;

  std::string Ip() const;    // "10.0.0.7", "fd00::7"
  std::string Text() const;  // "10.0.0.7:9100", "[fd00::7]:9100"

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

// All addresses of a name, in order and each once. It asks DNS and may take seconds. kUnavailable
// with the resolver's words.
Result<std::vector<SocketAddress>> Resolve(const HostAndPort& name);

}  // namespace rudderfish
