// SPDX-License-Identifier: Apache-2.0
#include "net/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

namespace rudderfish {
namespace {

constexpr size_t kHostBytesMax = 255;

bool IsHostLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == ':' || c == '%';
}

}  // namespace

Result<HostAndPort> ParseHostAndPort(std::string_view text) {
  const auto refuse = [&] {
    return Invalid("`{}`: expected a host with or without a port, such as 10.0.0.7:9100", text);
  };
  HostAndPort parsed;
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return refuse();
    parsed.host = text.substr(1, end - 1);
    if (end + 1 < text.size() && text[end + 1] != ':') return refuse();
    parsed.has_port = end + 1 < text.size();
    if (parsed.has_port) port = text.substr(end + 2);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    const size_t colon = text.find(':');
    parsed.host = text.substr(0, colon);
    parsed.has_port = true;
    port = text.substr(colon + 1);
  } else {
    parsed.host = text;
  }
  if (parsed.host.empty() || parsed.host.size() > kHostBytesMax ||
      !std::ranges::all_of(parsed.host, IsHostLetter)) {
    return refuse();
  }
  if (parsed.has_port) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), parsed.port);
    if (error != std::errc{} || end != port.data() + port.size() || parsed.port == 0)
      return refuse();
  }
  return parsed;
}

SocketAddress::SocketAddress(const sockaddr* address, socklen_t size) : size_(size) {
  std::memcpy(&storage_, address, std::min<size_t>(size, sizeof storage_));
}

Result<SocketAddress> SocketAddress::Of(const std::string& ip, uint16_t port) {
  sockaddr_in four{};
  if (::inet_pton(AF_INET, ip.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    return SocketAddress(reinterpret_cast<const sockaddr*>(&four), sizeof four);
  }
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET6, ip.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    return SocketAddress(reinterpret_cast<const sockaddr*>(&six), sizeof six);
  }
  return Invalid("`{}` is no IP address", ip);
}

uint16_t SocketAddress::port() const {
  // The port of both families is at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

std::string SocketAddress::Ip() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr, text,
                sizeof text);
  } else if (family() == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr, text,
                sizeof text);
  }
  return text;
}

std::string SocketAddress::Text() const {
  return family() == AF_INET6 ? fmt::format("[{}]:{}", Ip(), port())
                              : fmt::format("{}:{}", Ip(), port());
}

Result<std::vector<SocketAddress>> Resolve(const HostAndPort& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string port = fmt::format("{}", name.port);
  const int error = ::getaddrinfo(name.host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) return Fail(ErrorCode::kUnavailable, "{}: {}", name.host, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> held(list, ::freeaddrinfo);
  std::vector<std::pair<std::string, SocketAddress>> found;
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    const SocketAddress address(at->ai_addr, at->ai_addrlen);
    found.emplace_back(address.Text(), address);
  }
  std::ranges::stable_sort(found, {}, &std::pair<std::string, SocketAddress>::first);
  std::vector<SocketAddress> addresses;
  for (size_t i = 0; i < found.size(); ++i) {
    if (i == 0 || found[i].first != found[i - 1].first) addresses.push_back(found[i].second);
  }
  return addresses;
}

}  // namespace rudderfish
