// SPDX-License-Identifier: Apache-2.0
#include "compat/drs_monitors.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "task/reward_presets.h"

namespace rudderfish {
namespace {

constexpr size_t kStateBytesMax = 2048;  // What DRS's client reads at most.

std::string MonitorReason(int error) { return std::generic_category().message(error); }

}  // namespace

DrsMonitors::DrsMonitors(std::vector<DrsMonitorAddress> monitors, const Clock* clock)
    : clock_(clock) {
  for (DrsMonitorAddress& where : monitors) {
    monitors_.emplace_back();
    monitors_.back().where = std::move(where);
  }
}

DrsMonitors::~DrsMonitors() {
  for (const Monitor& monitor : monitors_) {
    if (monitor.file >= 0) ::close(monitor.file);
  }
}

void DrsMonitors::Fail(Monitor* monitor, std::string why) {
  if (monitor->file >= 0) ::close(monitor->file);
  monitor->file = -1;
  monitor->is_done = true;
  monitor->state = rudderfish::Fail(ErrorCode::kUnavailable, "{} at {}: {}", monitor->where.node,
                                    monitor->where.address.Text(), why);
}

void DrsMonitors::Begin(Monitor* monitor) const {
  monitor->received.clear();
  monitor->is_sent = monitor->is_done = false;
  if (monitor->file >= 0) {
    // What it said before it was asked is no answer; nor is its end.
    char unasked[kStateBytesMax];
    const ssize_t count = ::recv(monitor->file, unasked, sizeof unasked, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    ::close(monitor->file);
  }
  const SocketAddress& address = monitor->where.address;
  monitor->file = ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (monitor->file < 0 ||
      (::connect(monitor->file, address.get(), address.size()) != 0 && errno != EINPROGRESS)) {
    Fail(monitor, MonitorReason(errno));
  }
}

void DrsMonitors::GoOn(Monitor* monitor) const {
  if (!monitor->is_sent) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(monitor->file, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Fail(monitor, MonitorReason(error));
    const ssize_t count =
        ::send(monitor->file, kDrsGetState.data(), kDrsGetState.size(), MSG_NOSIGNAL);
    if (count != static_cast<ssize_t>(kDrsGetState.size()))
      return Fail(monitor, count < 0 ? MonitorReason(errno) : "it takes no request");
    monitor->is_sent = true;
    return;
  }
  char bytes[kStateBytesMax];
  const ssize_t count = ::recv(monitor->file, bytes, sizeof bytes, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return Fail(monitor, count == 0 ? "it hung up" : MonitorReason(errno));
  monitor->received.append(bytes, static_cast<size_t>(count));
  if (monitor->received.size() > kStateBytesMax) return Fail(monitor, "its answer is too long");
  if (monitor->received.find(')') == std::string::npos) return;
  Result<DrsState> state = ParseDrsState(monitor->received);
  if (!state) return Fail(monitor, state.error().message);
  monitor->state = std::move(state);
  monitor->is_done = true;
}

Result<std::vector<DrsNodeState>> DrsMonitors::Ask(Duration limit) {
  const std::lock_guard lock(mutex_);
  const Instant end = clock_->Now() + limit;
  for (Monitor& monitor : monitors_) Begin(&monitor);
  while (true) {
    std::vector<pollfd> files;
    std::vector<Monitor*> waiting;
    for (Monitor& monitor : monitors_) {
      if (monitor.is_done) continue;
      files.push_back({monitor.file, static_cast<short>(monitor.is_sent ? POLLIN : POLLOUT), 0});
      waiting.push_back(&monitor);
    }
    if (files.empty()) break;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - clock_->Now());
    if (left.count() <= 0 ||
        ::poll(files.data(), files.size(), static_cast<int>(left.count())) == 0) {
      for (Monitor* monitor : waiting) Fail(monitor, "no answer in time");
      break;
    }
    for (size_t i = 0; i < files.size(); ++i) {
      if (files[i].revents != 0) GoOn(waiting[i]);
    }
  }
  std::vector<DrsNodeState> states;
  std::string troubles;
  for (const Monitor& monitor : monitors_) {
    if (monitor.state) {
      states.push_back({monitor.where.node, *monitor.state});
    } else {
      troubles += (troubles.empty() ? "" : "; ") + monitor.state.error().message;
    }
  }
  if (states.empty()) {
    return rudderfish::Fail(ErrorCode::kUnavailable, "no monitor answers: {}", troubles);
  }
  return states;
}

const std::string& DrsBestNode(std::string_view pod, std::span<const DrsNodeState> nodes) {
  CHECK(!nodes.empty());
  const presets::DrsRow profile = presets::DrsProfileOf(pod);
  std::vector<presets::DrsRow> rows;
  for (const DrsNodeState& node : nodes) {
    const auto& [cpu, memory, received, sent, read, written] = node.state;
    rows.push_back(presets::Normalised({cpu, memory, received, sent, read, written}));
  }
  size_t best = 0;
  double best_reward = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const presets::DrsRow before = rows[i];
    for (size_t k = 0; k < before.size(); ++k) rows[i][k] = std::min(before[k] + profile[k], 100.0);
    const double reward = presets::DrsCodeReward(rows);
    rows[i] = before;
    if (i > 0 && reward <= best_reward) continue;
    best = i;
    best_reward = reward;
  }
  return nodes[best].node;
}

}  // namespace rudderfish
