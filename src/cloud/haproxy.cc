// SPDX-License-Identifier: Apache-2.0
#include "cloud/haproxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/one_line.h"

namespace rudderfish {
namespace {

constexpr std::chrono::seconds kAnswerPatience(5);
constexpr size_t kAnswerMax = size_t{4} << 20;
constexpr std::string_view kVersion = "1";  // Of the format of `show servers state`.
constexpr int64_t kRunning = 2;             // SRV_ST_RUNNING.

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) return words;
    words.push_back(line.substr(0, line.find(' ')));
    line.remove_prefix(words.back().size());
  }
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string StateText(int64_t operating, int64_t admin) {
  if ((admin & 0x67) != 0) return "in maintenance";  // SRV_ADMF_MAINT.
  if ((admin & 0x18) != 0) return "draining";        // SRV_ADMF_DRAIN.
  switch (operating) {
    case 0:
      return "stopped";
    case 1:
      return "starting";
    case kRunning:
      return "running";
    default:
      return "stopping";
  }
}

// The columns that we read, by their place in a line.
struct StateColumns {
  size_t backend = 0, name = 0, operating = 0, admin = 0, weight = 0, count = 0;
};

Result<StateColumns> ColumnsOf(std::string_view heading) {
  std::vector<std::string_view> words = Words(heading);
  if (words.empty() || words[0] != "#")
    return Invalid("HAProxy's server states have no heading: `{}`", OneLine(heading, 100));
  words.erase(words.begin());
  StateColumns columns{.count = words.size()};
  const std::pair<std::string_view, size_t*> known[] = {{"be_name", &columns.backend},
                                                        {"srv_name", &columns.name},
                                                        {"srv_op_state", &columns.operating},
                                                        {"srv_admin_state", &columns.admin},
                                                        {"srv_uweight", &columns.weight}};
  for (const auto& [name, place] : known) {
    const auto found = std::find(words.begin(), words.end(), name);
    if (found == words.end()) return Invalid("HAProxy's server states have no column `{}`", name);
    *place = static_cast<size_t>(found - words.begin());
  }
  return columns;
}

Result<int64_t> NumberOf(std::string_view word, std::string_view what, int64_t high) {
  int64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc() || stop != end || number < 0 || number > high) {
    return Invalid("HAProxy's server states: {}: expected a number from 0 to {}, found `{}`", what,
                   high, OneLine(word, 100));
  }
  return number;
}

}  // namespace

Result<std::vector<HaproxyServer>> ParseServersState(std::string_view answer,
                                                     std::string_view backend) {
  const std::vector<std::string_view> lines = Lines(answer);
  if (lines.empty() || lines[0] != kVersion) {
    return Fail(ErrorCode::kNotFound, "HAProxy, asked for the servers of backend `{}`: {}",
                OneLine(backend, 100), lines.empty() ? "no answer" : OneLine(lines[0]));
  }
  if (lines.size() < 2) return Invalid("HAProxy's server states have no heading");
  TRY_ASSIGN(const StateColumns columns, ColumnsOf(lines[1]));
  std::vector<HaproxyServer> servers;
  for (size_t i = 2; i < lines.size(); ++i) {
    const std::vector<std::string_view> words = Words(lines[i]);
    if (words.size() != columns.count) {
      return Invalid("HAProxy's server states: line {}: {} columns instead of {}", i + 1,
                     words.size(), columns.count);
    }
    if (words[columns.backend] != backend) continue;
    HaproxyServer server{.name = std::string(words[columns.name]), .state = ""};
    TRY(CheckHaproxyName(server.name));
    TRY_ASSIGN(server.weight,
               NumberOf(words[columns.weight], "srv_uweight", HaproxyEnactor::kWeightMax));
    TRY_ASSIGN(const int64_t operating, NumberOf(words[columns.operating], "srv_op_state", 3));
    TRY_ASSIGN(const int64_t admin, NumberOf(words[columns.admin], "srv_admin_state", 255));
    server.state = StateText(operating, admin);
    server.is_running = server.state == "running";
    servers.push_back(std::move(server));
  }
  return servers;
}

Result<void> CheckHaproxyName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
  if (!name.empty() && name.find_first_not_of(kAllowed) == std::string_view::npos) return {};
  return Invalid("`{}`: expected a name of HAProxy: letters, digits, `-`, `_`, `.` and `:`",
                 OneLine(name, 100));
}

HaproxyEnactor::HaproxyEnactor(HaproxyChoice choice) : choice_(std::move(choice)) {
  CHECK(CheckHaproxyName(choice_.backend));
}

Result<std::vector<HaproxyServer>> HaproxyEnactor::ReadServers() const {
  TRY_ASSIGN(const std::string answer,
             AskStream(choice_.socket, fmt::format("show servers state {}\n", choice_.backend),
                       kAnswerPatience, kAnswerMax));
  return ParseServersState(answer, choice_.backend);
}

Result<StandingWeights> HaproxyEnactor::Read() {
  TRY_ASSIGN(read_, ReadServers());
  StandingWeights standing{
      .target = fmt::format("haproxy backend {}", choice_.backend), .backends = {}, .notes = {}};
  if (read_.empty()) return Invalid("{} has no servers to split between", standing.target);
  for (const HaproxyServer& server : read_)
    standing.backends.push_back({server.name, server.weight, server.is_running, server.state});
  return standing;
}

std::string HaproxyEnactor::Commands(const std::vector<int64_t>& weights) const {
  CHECK_EQ(weights.size(), read_.size());
  std::string commands;
  for (size_t i = 0; i < weights.size(); ++i) {
    commands += fmt::format("{}set server {}/{} weight {}", i == 0 ? "" : "; ", choice_.backend,
                            read_[i].name, weights[i]);
  }
  return commands + "\n";
}

std::string HaproxyEnactor::Request(const std::vector<int64_t>& weights) const {
  return fmt::format("{}\n\n{}", choice_.socket.Text(), Commands(weights));
}

Result<void> HaproxyEnactor::Send(const std::vector<int64_t>& weights) {
  TRY_ASSIGN(const std::string answer,
             AskStream(choice_.socket, Commands(weights), kAnswerPatience, kAnswerMax));
  // A command that was carried out answers an empty line.
  const std::vector<std::string_view> said = Lines(answer);
  if (said.empty()) return {};
  std::vector<int64_t> old;
  for (const HaproxyServer& server : read_) old.push_back(server.weight);
  TRY(AskStream(choice_.socket, Commands(old), kAnswerPatience, kAnswerMax));
  TRY_ASSIGN(const std::vector<HaproxyServer> now, ReadServers());
  const bool stands = std::equal(
      now.begin(), now.end(), read_.begin(), read_.end(),
      [](const auto& a, const auto& b) { return a.name == b.name && a.weight == b.weight; });
  return Fail(ErrorCode::kFailedPrecondition, "haproxy backend {}: {}{}", choice_.backend,
              OneLine(said[0]),
              stands ? "" : "; the weights that stood before could not all be set again");
}

}  // namespace rudderfish
