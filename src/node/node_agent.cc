// SPDX-License-Identifier: Apache-2.0
#include "node/node_agent.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "node/probe_plan.h"

namespace rudderfish {
namespace {

constexpr Duration kLookUpAgain = std::chrono::seconds(2);  // While a name is not known yet.
constexpr Duration kAliveWithin = std::chrono::seconds(30);
constexpr size_t kManyPeers = 500;  // Their addresses are asked for less often.
constexpr int kManyPeersFactor = 5;
constexpr size_t kUsageSamples = 2;
constexpr size_t kUserTrips = 50;

// The address from which this machine reaches another; nothing is sent.
std::optional<SocketAddress> SourceTowards(const SocketAddress& target) {
  const int file = ::socket(target.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0) return std::nullopt;
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  const bool known = ::connect(file, target.get(), target.size()) == 0 &&
                     ::getsockname(file, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  ::close(file);
  if (!known) return std::nullopt;
  return SocketAddress(reinterpret_cast<const sockaddr*>(&own), size);
}

}  // namespace

struct NodeAgent::Lookups {
  std::vector<HostAndPort> peers, users;
  uint16_t own_port = 0;
  size_t peers_max = 0;
  Duration between{};
  int wake = -1;  // A descriptor of its own.

  std::mutex mutex;
  std::condition_variable changed;
  bool is_ending = false;
  bool has_news = false;
  std::vector<ProbeTarget> targets;
  size_t peers_known = 0, peers_probed = 0;

  ~Lookups() { ::close(wake); }

  // What DNS says now; false: it does not know all of it.
  bool AskAll() {
    bool all = true;
    std::vector<SocketAddress> found;
    for (const HostAndPort& peer : peers) {
      const auto addresses = Resolve(peer);
      all &= addresses.has_value();
      if (addresses) found.insert(found.end(), addresses->begin(), addresses->end());
    }
    std::vector<ProbePeer> pairs;
    std::vector<SocketAddress> others;
    for (const SocketAddress& peer : found) {
      const auto own = SourceTowards(peer);
      if (!own || (own->Ip() == peer.Ip() && peer.port() == own_port)) continue;  // That is us.
      const auto as_seen = SocketAddress::Of(own->Ip(), own_port);
      if (!as_seen) continue;
      pairs.push_back({as_seen->Text(), peer.Text()});
      others.push_back(peer);
    }
    std::vector<ProbeTarget> next;
    const std::vector<size_t> chosen = ChoosePeers(pairs, peers_max);
    for (const size_t at : chosen) {
      next.push_back({pairs[at].peer, ProbeProtocol::kUdp, others[at]});
      next.push_back({pairs[at].peer, ProbeProtocol::kTcp, others[at]});
    }
    for (const HostAndPort& user : users) {
      const auto addresses = Resolve(user);
      all &= addresses.has_value();
      if (!addresses || addresses->empty()) continue;
      next.push_back({NameOf(user), user.has_port ? ProbeProtocol::kTcp : ProbeProtocol::kIcmp,
                      addresses->front()});
    }
    const std::lock_guard lock(mutex);
    targets = std::move(next);
    peers_known = others.size();
    peers_probed = chosen.size();
    has_news = true;
    return all;
  }

  static std::string NameOf(const HostAndPort& user) {
    return user.has_port ? fmt::format("{}:{}", user.host, user.port) : user.host;
  }
};

NodeAgent::NodeAgent(NodeAgentOptions options, const Clock* clock)
    : options_(std::move(options)),
      clock_(clock),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      reader_(options_.sources),
      read_due_(clock->Now()),
      prober_({.node = options_.node,
               .interval = options_.interval,
               .probes_per_second = options_.probes_per_second,
               .timeout = options_.timeout},
              clock),
      turned_(clock->Now()),
      lookups_(std::make_shared<Lookups>()) {
  CHECK_GE(wake_, 0);
  lookups_->peers = options_.peers;
  lookups_->users = options_.users;
  lookups_->own_port = options_.port;
  lookups_->peers_max = options_.peers_max;
  lookups_->between = options_.between_lookups;
  lookups_->wake = ::dup(wake_);
}

Result<std::unique_ptr<NodeAgent>> NodeAgent::Start(NodeAgentOptions options, const Clock* clock) {
  std::unique_ptr<NodeAgent> agent(new NodeAgent(std::move(options), clock));
  if (const auto read = agent->reader_.Read(); !read)
    return Invalid("the node cannot be read: {}", read.error().message);
  TRY_ASSIGN(const SocketAddress address,
             SocketAddress::Of(agent->options_.listen_ip, agent->options_.port));
  TRY(agent->prober_.Answer(address));
  agent->measuring_ = std::thread([self = agent.get()] { self->Measure(); });
  if (!agent->options_.peers.empty() || !agent->options_.users.empty())
    std::thread([lookups = agent->lookups_] { LookUp(lookups); }).detach();
  return agent;
}

NodeAgent::~NodeAgent() {
  {
    const std::lock_guard lock(lookups_->mutex);
    lookups_->is_ending = true;
    lookups_->changed.notify_all();
  }
  if (measuring_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
    measuring_.join();
  }
  ::close(wake_);
}

void NodeAgent::LookUp(const std::shared_ptr<Lookups>& lookups) {
  while (true) {
    const bool all = lookups->AskAll();
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(lookups->wake, &one, sizeof one);
    std::unique_lock lock(lookups->mutex);
    const Duration between =
        lookups->peers_known > kManyPeers ? lookups->between * kManyPeersFactor : lookups->between;
    lookups->changed.wait_for(lock, all ? between : std::min(between, kLookUpAgain),
                              [&] { return lookups->is_ending; });
    if (lookups->is_ending) return;
  }
}

void NodeAgent::TakeLookups() {
  const std::lock_guard lock(lookups_->mutex);
  if (!lookups_->has_news) return;
  lookups_->has_news = false;
  prober_.SetTargets(lookups_->targets);
  peers_known_ = lookups_->peers_known;
  peers_probed_ = lookups_->peers_probed;
}

void NodeAgent::Measure() {
  while (true) {
    prober_.Wait(read_due_ - clock_->Now(), wake_);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t read = ::read(wake_, &count, sizeof count);
    const Instant now = clock_->Now();
    const std::lock_guard lock(mutex_);
    if (is_ending_) return;
    TakeLookups();
    prober_.Turn();
    if (now >= read_due_) ReadNode(now);
    turned_ = now;
  }
}

void NodeAgent::ReadNode(Instant now) {
  read_due_ = std::max(read_due_ + options_.period, now);
  if (read_due_ == now) read_due_ = now + options_.period;
  const auto counters = reader_.Read();
  if (counters) {
    usage_.Add(clock_->Now(), *counters);
  } else if (read_trouble_.empty()) {
    LogWarning("the node cannot be read: {}", counters.error().message);
  }
  read_trouble_ = counters ? "" : counters.error().message;
}

std::optional<NodeUsage> NodeAgent::Usage() const {
  const std::lock_guard lock(mutex_);
  if (usage_.size() < kUsageSamples || !read_trouble_.empty()) return std::nullopt;
  return usage_.Mean(kUsageSamples);
}

Result<RoundTrips::Summary> NodeAgent::UserTrips(size_t user) const {
  CHECK_LT(user, options_.users.size());
  const std::string name = Lookups::NameOf(options_.users[user]);
  const std::lock_guard lock(mutex_);
  for (const auto& target : prober_.targets()) {
    if (target->target.name != name || !target->node.empty()) continue;
    if (const auto recent = target->trips.Recent(clock_->Now(), kUserTrips)) return *recent;
    return Fail(ErrorCode::kUnavailable, "no round trip to {}: {}", name,
                target->trouble.empty() ? "not measured yet" : target->trouble);
  }
  return Fail(ErrorCode::kUnavailable, "no round trip to {}: its address is not known", name);
}

std::string NodeAgent::Metrics() const {
  NodeReport report{.node = options_.node,
                    .ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK))};
  const std::lock_guard lock(mutex_);
  report.counters = usage_.newest();
  report.peers = peers_known_;
  report.peers_probed = peers_probed_;
  const size_t peers = std::min(2 * peers_probed_, prober_.targets().size());
  const auto middle = prober_.targets().begin() + static_cast<std::ptrdiff_t>(peers);
  report.peer_targets.assign(prober_.targets().begin(), middle);
  report.user_targets.assign(middle, prober_.targets().end());
  return NodeReportText(report, clock_->Now());
}

std::string NodeAgent::WhyNotAlive() const {
  const std::lock_guard lock(mutex_);
  const Duration silent = clock_->Now() - turned_;
  return silent < kAliveWithin ? ""
                               : fmt::format("nothing was measured for {:.0f} s", Seconds(silent));
}

std::string NodeAgent::WhyNotReady() const {
  const std::lock_guard lock(mutex_);
  if (!read_trouble_.empty()) return read_trouble_;
  return usage_.newest() ? "" : "the node has not been read yet";
}

}  // namespace rudderfish
