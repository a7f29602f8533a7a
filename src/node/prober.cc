// SPDX-License-Identifier: Apache-2.0
#include "node/prober.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "node/probe_plan.h"
#include "node/probe_wire.h"

namespace rudderfish {
namespace {

constexpr int kPacketsMax = 64;  // Of one socket, before others have their turn.

std::string ProbeReason(int error) { return std::generic_category().message(error); }

// Only a host that sees a probe can answer it.
uint64_t NewNumber() {
  uint64_t number = 0;
  [[maybe_unused]] const ssize_t count = ::getrandom(&number, sizeof number, 0);
  return number;
}

// Without a trace: no port is held for minutes after it.
void CloseAtOnce(int file) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(file, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(file);
}

// From SYN to SYN-ACK, without the time until this process ran again; 0: the kernel does not say.
double HandshakeSeconds(int file) {
  tcp_info told{};
  socklen_t size = sizeof told;
  if (::getsockopt(file, IPPROTO_TCP, TCP_INFO, &told, &size) != 0) return 0;
  return static_cast<double>(told.tcpi_rtt) / 1e6;  // Microseconds.
}

}  // namespace

Prober::Prober(ProberOptions options, const Clock* clock)
    : options_(std::move(options)), clock_(clock), due_(clock->Now()) {}

Prober::~Prober() {
  for (const Flight& flight : flights_) {
    if (flight.file >= 0) ::close(flight.file);
  }
  for (const auto& [kind, file] : sockets_) {
    if (file >= 0) ::close(file);
  }
  for (const int file : answering_) ::close(file);
}

Result<void> Prober::Answer(const SocketAddress& address) {
  const int file = ::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0 || ::bind(file, address.get(), address.size()) != 0) {
    const std::string reason = ProbeReason(errno);
    if (file >= 0) ::close(file);
    return rudderfish::Fail(ErrorCode::kUnavailable, "cannot listen on UDP {}: {}", address.Text(),
                            reason);
  }
  answering_.push_back(file);
  return {};
}

void Prober::SetTargets(const std::vector<ProbeTarget>& targets) {
  std::vector<std::shared_ptr<Target>> kept;
  for (const ProbeTarget& target : targets) {
    const auto found = std::ranges::find(
        targets_, target, [](const auto& known) -> const ProbeTarget& { return known->target; });
    if (found != targets_.end()) {
      kept.push_back(*found);
      continue;
    }
    kept.push_back(std::make_shared<Target>());
    kept.back()->target = target;
    if (const auto node = nodes_.find(target.address.Text()); node != nodes_.end())
      kept.back()->node = node->second;
  }
  targets_ = std::move(kept);
  std::erase_if(nodes_, [&](const auto& known) {
    return std::ranges::none_of(
        targets_, [&](const auto& target) { return target->target.address.Text() == known.first; });
  });
}

int Prober::SocketOf(ProbeProtocol protocol, int family) {
  const auto [at, is_new] = sockets_.try_emplace({protocol, family}, -1);
  if (at->second >= 0) return at->second;
  const int ping =
      family == AF_INET6 ? static_cast<int>(IPPROTO_ICMPV6) : static_cast<int>(IPPROTO_ICMP);
  at->second = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                        protocol == ProbeProtocol::kIcmp ? ping : 0);
  return at->second;
}

void Prober::Wait(Duration timeout, int wake) const {
  std::vector<pollfd> files{{wake, POLLIN, 0}};
  for (const int file : answering_) files.push_back({file, POLLIN, 0});
  for (const auto& [kind, file] : sockets_) files.push_back({file, POLLIN, 0});
  const Instant now = clock_->Now();
  if (!targets_.empty()) timeout = std::min(timeout, due_ - now);
  for (const Flight& flight : flights_) {
    if (flight.file >= 0) files.push_back({flight.file, POLLOUT, 0});
  }
  if (!flights_.empty())
    timeout = std::min(timeout, flights_.front().sent + options_.timeout - now);
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::max(timeout, Duration(0)));
  ::poll(files.data(), files.size(), static_cast<int>(wait.count()));
}

void Prober::Turn() {
  LookAtConnections();  // First: what is measured here ends now.
  for (const auto& [kind, file] : sockets_) {
    if (file >= 0) ReadAnswers(kind.first, kind.second, file);
  }
  for (const int file : answering_) ReadRequests(file);
  EndLate();
  const Instant now = clock_->Now();
  if (targets_.empty() || now < due_) return;
  const Duration between =
      BetweenProbes(targets_.size(), options_.interval, options_.probes_per_second);
  due_ = std::max(due_ + between, now);  // After a pause nothing is made up for.
  if (due_ == now) due_ = now + between;
  next_ %= targets_.size();
  Send(targets_[next_++]);
}

void Prober::Send(const std::shared_ptr<Target>& target) {
  if (target->target.protocol == ProbeProtocol::kTcp) {
    Connect(target);
  } else {
    SendPacket(target);
  }
}

void Prober::SendPacket(const std::shared_ptr<Target>& target) {
  const auto& [name, protocol, address] = target->target;
  const int file = SocketOf(protocol, address.family());
  if (file < 0) {
    const bool is_refused = errno == EACCES || errno == EPERM;
    return Fail(target.get(), is_refused ? "ping sockets are not allowed; "
                                           "net.ipv4.ping_group_range allows them"
                                         : ProbeReason(errno));
  }
  const uint64_t number = NewNumber();
  const std::string bytes = protocol == ProbeProtocol::kIcmp ? PingRequest(number, address.family())
                                                             : ProbeRequest(number);
  const Instant sent = clock_->Now();
  if (::sendto(file, bytes.data(), bytes.size(), 0, address.get(), address.size()) < 0)
    return Fail(target.get(), ProbeReason(errno));
  flights_.push_back({.target = target, .number = number, .sent = sent});
}

void Prober::Connect(const std::shared_ptr<Target>& target) {
  const SocketAddress& address = target->target.address;
  const int file = ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const Instant sent = clock_->Now();
  if (file < 0 || (::connect(file, address.get(), address.size()) != 0 && errno != EINPROGRESS)) {
    const int error = errno;
    if (file >= 0) ::close(file);
    return Fail(target.get(), ProbeReason(error));
  }
  flights_.push_back({.target = target, .file = file, .sent = sent});
}

void Prober::Fail(Target* target, std::string why) {
  target->trips.NoteFailure();
  if (target->trouble.empty() && !why.empty()) {
    LogWarning("no round trip to {} over {}: {}", target->target.name,
               kProbeProtocolNames[static_cast<size_t>(target->target.protocol)], why);
  }
  target->trouble = std::move(why);
}

void Prober::ReadRequests(int file) {
  char bytes[kProbeBytes + 1];
  sockaddr_storage from{};
  for (int i = 0; i < kPacketsMax; ++i) {
    socklen_t size = sizeof from;
    const ssize_t count =
        ::recvfrom(file, bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (count < 0) return;
    const auto number = ReadProbeRequest({bytes, static_cast<size_t>(count)});
    if (!number) continue;
    const std::string answer = ProbeAnswer(*number, options_.node);
    ::sendto(file, answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
  }
}

void Prober::ReadAnswers(ProbeProtocol protocol, int family, int file) {
  char bytes[kProbeBytes + 1];
  for (int i = 0; i < kPacketsMax; ++i) {
    const ssize_t count = ::recv(file, bytes, sizeof bytes, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0) continue;  // An ICMP error about an earlier packet.
    const std::string_view packet(bytes, static_cast<size_t>(count));
    if (protocol == ProbeProtocol::kIcmp) {
      if (const auto number = ReadPingAnswer(packet, family)) Arrived(*number, "");
    } else if (const auto answered = ReadProbeAnswer(packet)) {
      Arrived(answered->number, answered->name);
    }
  }
}

void Prober::Arrived(uint64_t number, const std::string& node) {
  const Instant now = clock_->Now();
  const auto flight = std::ranges::find_if(
      flights_, [&](const Flight& one) { return one.file < 0 && one.number == number; });
  if (flight == flights_.end()) return;
  Target& target = *flight->target;
  target.trips.Add(now, Seconds(now - flight->sent));
  target.trouble.clear();
  flights_.erase(flight);
  if (node.empty() || target.node == node) return;
  const std::string address = target.target.address.Text();
  nodes_[address] = node;
  for (const auto& other : targets_) {
    if (other->target.address.Text() == address) other->node = node;
  }
}

void Prober::LookAtConnections() {
  std::vector<pollfd> files;
  for (const Flight& flight : flights_) {
    if (flight.file >= 0) files.push_back({flight.file, POLLOUT, 0});
  }
  if (files.empty() || ::poll(files.data(), files.size(), 0) <= 0) return;
  const Instant now = clock_->Now();
  for (const pollfd& ready : files) {
    if (ready.revents == 0) continue;
    const auto flight = std::ranges::find(flights_, ready.fd, &Flight::file);
    Target& target = *flight->target;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(ready.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      Fail(&target, ProbeReason(error));
    } else {
      const double told = HandshakeSeconds(ready.fd);
      target.trips.Add(now, told > 0 ? told : Seconds(now - flight->sent));
      target.trouble.clear();
    }
    CloseAtOnce(ready.fd);
    flights_.erase(flight);
  }
}

void Prober::EndLate() {
  const Instant now = clock_->Now();
  while (!flights_.empty() && now - flights_.front().sent >= options_.timeout) {
    const Flight& flight = flights_.front();
    Fail(flight.target.get(), "no answer in time");
    if (flight.file >= 0) ::close(flight.file);
    flights_.pop_front();
  }
}

}  // namespace rudderfish
