// SPDX-License-Identifier: Apache-2.0
#include "net/listen_address.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

namespace rudderfish {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr size_t kPathMax = sizeof(sockaddr_un{}.sun_path) - 1;

bool IsIp(const std::string& text) {
  in6_addr room = {};
  return ::inet_pton(AF_INET, text.c_str(), &room) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &room) == 1;
}

}  // namespace

Result<ListenAddress> ParseListenAddress(const std::string& text) {
  if (text.starts_with(kUnixPrefix)) {
    std::string path = text.substr(kUnixPrefix.size());
    if (path.empty() || path.size() > kPathMax)
      return Invalid("`{}`: expected unix: and a path of at most {} bytes", text, kPathMax);
    return ListenAddress{.text = text, .ip = {}, .path = std::move(path)};
  }
  const size_t colon = text.rfind(':');
  unsigned port = 0;
  bool good = colon != std::string::npos && colon + 1 < text.size();
  if (good) {
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data() + colon + 1, end, port);
    good = error == std::errc{} && stopped == end && port <= 65535;
  }
  std::string host = good ? text.substr(0, colon) : "";
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    good = false;
  }
  if (host == "localhost") host = "127.0.0.1";
  if (!good || !IsIp(host)) {
    return Invalid(
        "`{}`: expected an address to listen on, such as 127.0.0.1:5000, [::1]:5000 or "
        "unix:/run/rudderfish.sock",
        text);
  }
  return ListenAddress{
      .text = text, .ip = std::move(host), .port = static_cast<uint16_t>(port), .path = {}};
}

Result<void> RemoveStaleSocket(const std::string& path) {
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode)) return Invalid("{}: is there and is no socket", path);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), kPathMax);
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return Fail(ErrorCode::kUnavailable, "{}: {}", path, std::strerror(errno));
  const bool answered =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  if (answered) return Fail(ErrorCode::kUnavailable, "{}: another process listens", path);
  ::unlink(path.c_str());
  return {};
}

}  // namespace rudderfish
