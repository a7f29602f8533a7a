// SPDX-License-Identifier: Apache-2.0
#include "cloud/haproxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/one_line.h"
#include "net/socket_exchange.h"

namespace rudderfish {
namespace {

constexpr size_t kAnswerMax = size_t{4} << 20;
// Columns of `show servers state`, version 1.
constexpr size_t kServerName = 3, kOperational = 5, kAdministrative = 6, kUserWeight = 7,
                 kFewestColumns = 8;
constexpr int kRunning = 2;  // srv_op_state: 0 stopped, 1 starting, 2 running, 3 stopping.
// srv_admin_state: in maintenance (1, 2, 4, 32) or drained (8, 16), by whomever.
constexpr int kOutFlags = 0x3f;

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

Result<int> Number(std::string_view word, int most) {
  int value = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 0 || value > most)
    return Invalid("haproxy: expected a number from 0 to {}, found `{}`", most, OneLine(word));
  return value;
}

Result<HaproxyServer> ServerOf(std::string_view line) {
  const std::vector<std::string_view> words = Words(line);
  if (words.size() < kFewestColumns)
    return Invalid("haproxy: expected the state of a server, found `{}`", OneLine(line));
  HaproxyServer server{.name = std::string(words[kServerName])};
  TRY_ASSIGN(const int operational, Number(words[kOperational], 3));
  TRY_ASSIGN(const int administrative, Number(words[kAdministrative], 0xff));
  TRY_ASSIGN(server.weight, Number(words[kUserWeight], 256));
  server.state = operational == kRunning && (administrative & kOutFlags) == 0
                     ? RegionState::kHealthy
                     : RegionState::kUnhealthy;
  return server;
}

}  // namespace

Result<std::vector<HaproxyServer>> ReadHaproxyServers(std::string_view answer,
                                                      const std::string& backend) {
  std::vector<HaproxyServer> servers;
  bool has_version = false;
  while (!answer.empty()) {
    const size_t end = std::min(answer.find('\n'), answer.size());
    const std::string_view line = answer.substr(0, end);
    answer.remove_prefix(std::min(end + 1, answer.size()));
    if (line.empty() || line[0] == '#') continue;
    if (!has_version) {
      if (line.find("find backend") != std::string_view::npos)
        return Fail(ErrorCode::kNotFound, "haproxy: no backend is called {}", backend);
      if (line != "1") {
        return Invalid("haproxy: expected version 1 of the servers' state, found `{}`",
                       OneLine(line));
      }
      has_version = true;
      continue;
    }
    TRY_ASSIGN(HaproxyServer server, ServerOf(line));
    servers.push_back(std::move(server));
  }
  if (servers.empty())
    return Fail(ErrorCode::kFailedPrecondition, "haproxy: the backend {} has no servers", backend);
  return servers;
}

Result<std::string> HaproxyPath::Ask(const std::string& command) const {
  return SocketExchange(options_.socket, command + "\n", options_.limit, kAnswerMax);
}

Result<std::vector<WeightedBackend>> HaproxyPath::Read() {
  TRY_ASSIGN(const std::string answer, Ask("show servers state " + options_.backend));
  TRY_ASSIGN(read_, ReadHaproxyServers(answer, options_.backend));
  std::vector<WeightedBackend> backends;
  for (const HaproxyServer& one : read_) {
    const auto region = options_.regions.find(one.name);
    backends.push_back({.region = region == options_.regions.end() ? one.name : region->second,
                        .name = one.name,
                        .weight = one.weight,
                        .state = one.state});
  }
  return backends;
}

Result<std::string> HaproxyPath::RequestOf(const std::vector<int>& weights) const {
  std::string line;
  for (size_t i = 0; i < read_.size(); ++i) {
    if (read_[i].weight == weights[i]) continue;
    line += fmt::format("{}set server {}/{} weight {}", line.empty() ? "" : "; ", options_.backend,
                        read_[i].name, weights[i]);
  }
  return line;
}

Result<void> HaproxyPath::Write(const std::vector<int>& weights) {
  TRY_ASSIGN(const std::string line, RequestOf(weights));
  TRY_ASSIGN(std::string answer, Ask(line));
  // What was done has no answer but line feeds.
  std::replace(answer.begin(), answer.end(), '\n', ' ');
  const size_t said = answer.find_first_not_of(' ');
  if (said == std::string::npos) return {};
  return Fail(ErrorCode::kFailedPrecondition, "haproxy: {}", OneLine(answer.substr(said)));
}

}  // namespace rudderfish
