// SPDX-License-Identifier: Apache-2.0
// The emulated network of a testbed: carries IPv4 packets between TUN devices in network namespaces
// and gives every ordered pair of sites its own delay, jitter, loss, rate, or a cut. In user space,
// since not every kernel has netem.
//
//   wan TABLE      SIGHUP reads the links of TABLE again; its sites stay as they were
//
//   device NAME                                          of the sites that follow; wan0 if absent
//   while PID                                            ends as soon as that process has ended
//   site NAME NAMESPACE PREFIX...                        NAMESPACE: a path to a network namespace
//   link FROM TO DELAY_NS JITTER_NS LOSS_PPM RATE_BPS    RATE_BPS 0: unlimited
//   cut FROM TO
//
// The program that makes the namespaces makes the devices, which outlive this one. Packets of
// one pair never overtake each other, whatever the jitter, as on a path through one queue.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <queue>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
// A queue before a slow link holds what the link carries in this time, and drops the rest.
constexpr uint64_t kQueueNs = kSecondNs / 10;
constexpr size_t kInFlightBytesMax = size_t{256} << 20;
constexpr int kPacketsPerTurn = 64;  // From one site before the others get their turn.
constexpr size_t kPacketBytesMax = 65536 + 64;
constexpr int kVnetHeaderBytes = 10;  // virtio_net_hdr, before each packet.
constexpr int kIpv4HeaderBytes = 20;

struct Link {
  bool cut = false;
  uint64_t delay_ns = 0;
  uint64_t jitter_ns = 0;
  uint64_t loss_ppm = 0;
  uint64_t rate_bps = 0;
  uint64_t line_free_ns = 0;  // When the last bit of what was sent has left.
  uint64_t last_due_ns = 0;
};

struct Site {
  std::string name;
  int tun = -1;
};

struct Prefix {
  uint32_t network, mask;
  int site;
};

struct Packet {
  uint64_t due_ns, order;
  int to;
  std::vector<uint8_t> bytes;
  bool operator<(const Packet& other) const {  // The earliest on top of the queue.
    return due_ns != other.due_ns ? due_ns > other.due_ns : order > other.order;
  }
};

[[noreturn]] void Fail(const std::string& what) {
  fprintf(stderr, "wan: %s\n", what.c_str());
  exit(1);
}

uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

int OpenTun(const std::string& namespace_path, const std::string& device, int home) {
  const int space = open(namespace_path.c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0)
    Fail("cannot enter " + namespace_path + ": " + strerror(errno));
  close(space);
  const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  strncpy(request.ifr_name, device.c_str(), IFNAMSIZ - 1);
  if (tun < 0 || ioctl(tun, TUNSETIFF, &request) != 0)
    Fail("cannot attach to " + device + " in " + namespace_path + ": " + strerror(errno));
  if (setns(home, CLONE_NEWNET) != 0) Fail("cannot return to the first namespace");
  return tun;
}

Prefix ParsePrefix(const std::string& text, int site) {
  const size_t slash = text.find('/');
  const int bits = slash == std::string::npos ? 32 : atoi(text.c_str() + slash + 1);
  in_addr address{};
  if (inet_pton(AF_INET, text.substr(0, slash).c_str(), &address) != 1 || bits < 1 || bits > 32)
    Fail("not a prefix: " + text);
  const uint32_t mask = ~uint32_t{0} << (32 - bits);
  return {ntohl(address.s_addr) & mask, mask, site};
}

class Network {
 public:
  explicit Network(std::string table) : table_(std::move(table)) {
    const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    std::string device = "wan0";
    ForEachLine([&](const std::string& word, std::istringstream& line) {
      if (word == "device") line >> device;
      if (word == "while") Guard(line);
      if (word != "site") return;
      std::string name, namespace_path;
      line >> name >> namespace_path;
      const int site = static_cast<int>(sites_.size());
      sites_.push_back({name, OpenTun(namespace_path, device, home)});
      for (std::string prefix; line >> prefix;) prefixes_.push_back(ParsePrefix(prefix, site));
    });
    close(home);
    ReadLinks();
  }

  void ReadLinks() {
    std::map<std::string, size_t> index;
    for (size_t i = 0; i < sites_.size(); ++i) index[sites_[i].name] = i;
    std::vector<Link> links(sites_.size() * sites_.size());
    bool segments_matter = false;
    ForEachLine([&](const std::string& word, std::istringstream& line) {
      if (word != "link" && word != "cut") return;
      std::string from, to;
      line >> from >> to;
      if (!index.count(from) || !index.count(to)) Fail("no site " + from + " or " + to);
      Link& link = links[index[from] * sites_.size() + index[to]];
      link = Link{.cut = word == "cut"};
      if (link.cut) return;
      if (!(line >> link.delay_ns >> link.jitter_ns >> link.loss_ppm >> link.rate_bps))
        Fail("not a link: " + from + " " + to);
      segments_matter |= link.loss_ppm != 0 || link.rate_bps != 0;
    });
    for (size_t i = 0; i < links.size() && i < links_.size(); ++i) {
      links[i].last_due_ns = links_[i].last_due_ns;  // What is under way stays in order.
    }
    links_ = std::move(links);
    // The kernel may hand over many segments as one packet, which is several times faster; but loss
    // and rate are said of packets as a wire has them.
    const unsigned offload = segments_matter ? 0 : TUN_F_CSUM | TUN_F_TSO4;
    for (const Site& site : sites_) {
      if (ioctl(site.tun, TUNSETOFFLOAD, offload) != 0) Fail("cannot set offloads");
    }
  }

  [[noreturn]] void Run() {
    sigset_t reload;
    sigemptyset(&reload);
    sigaddset(&reload, SIGHUP);
    sigprocmask(SIG_BLOCK, &reload, nullptr);
    const int signals = signalfd(-1, &reload, SFD_NONBLOCK | SFD_CLOEXEC);
    const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    std::vector<pollfd> waited;
    for (const Site& site : sites_) waited.push_back({site.tun, POLLIN, 0});
    waited.push_back({timer, POLLIN, 0});
    waited.push_back({signals, POLLIN, 0});
    for (const int guard : guards_) waited.push_back({guard, POLLIN, 0});
    printf("wan: ready, %zu sites\n", sites_.size());
    fflush(stdout);
    for (;;) {
      Deliver();
      itimerspec next{};  // All zero: no alarm.
      if (!in_flight_.empty()) {
        next.it_value.tv_sec = static_cast<time_t>(in_flight_.top().due_ns / kSecondNs);
        next.it_value.tv_nsec = static_cast<long>(in_flight_.top().due_ns % kSecondNs);
      }
      timerfd_settime(timer, TFD_TIMER_ABSTIME, &next, nullptr);
      if (poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR) Fail(strerror(errno));
      uint64_t expirations;
      if (read(timer, &expirations, sizeof expirations) < 0 && errno != EAGAIN) Fail("timer");
      signalfd_siginfo received;
      if (read(signals, &received, sizeof received) > 0) ReadLinks();
      for (size_t i = sites_.size() + 2; i < waited.size(); ++i) {
        if (waited[i].revents != 0) exit(0);
      }
      for (size_t i = 0; i < sites_.size(); ++i) {
        if (waited[i].revents & POLLIN) Receive(static_cast<int>(i));
      }
    }
  }

 private:
  // A process that holds a namespace open keeps it alive; who does not want that is named here.
  void Guard(std::istringstream& line) {
    int pid = 0;
    line >> pid;
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (descriptor < 0) Fail("no process " + std::to_string(pid));
    guards_.push_back(descriptor);
  }

  template <typename F>
  void ForEachLine(F&& use) {
    std::ifstream in(table_);
    if (!in) Fail("cannot read " + table_);
    for (std::string text; std::getline(in, text);) {
      std::istringstream line(text);
      std::string word;
      if (line >> word) use(word, line);
    }
  }

  // The site of the longest prefix, or -1.
  int SiteOf(uint32_t address) const {
    int site = -1;
    uint32_t longest = 0;
    for (const Prefix& prefix : prefixes_) {
      if ((address & prefix.mask) == prefix.network && prefix.mask >= longest) {
        longest = prefix.mask;
        site = prefix.site;
      }
    }
    return site;
  }

  void Receive(int from) {
    uint8_t buffer[kPacketBytesMax];
    for (int i = 0; i < kPacketsPerTurn; ++i) {
      const ssize_t size = read(sites_[from].tun, buffer, sizeof buffer);
      if (size < kVnetHeaderBytes + kIpv4HeaderBytes) return;
      const uint8_t* packet = buffer + kVnetHeaderBytes;
      if (packet[0] >> 4 != 4) continue;
      uint32_t destination;
      memcpy(&destination, packet + 16, sizeof destination);
      if (const int to = SiteOf(ntohl(destination)); to >= 0) Send(from, to, buffer, size);
    }
  }

  void Send(int from, int to, const uint8_t* bytes, size_t size) {
    Link& link = links_[from * sites_.size() + to];
    if (link.cut) return;
    if (link.loss_ppm != 0 && random_() % 1'000'000 < link.loss_ppm) return;
    const uint64_t now = NowNs();
    uint64_t due = now;
    if (link.rate_bps != 0) {
      const uint64_t begins = std::max(now, link.line_free_ns);
      if (begins - now > kQueueNs) return;
      const uint64_t bits = (size - kVnetHeaderBytes) * 8;
      due = link.line_free_ns = begins + bits * kSecondNs / link.rate_bps;
    }
    due += link.delay_ns;
    if (link.jitter_ns != 0) due += random_() % (link.jitter_ns + 1);
    due = std::max(due, link.last_due_ns);
    if (due <= now) {
      Write(to, bytes, size);
    } else if (in_flight_bytes_ + size <= kInFlightBytesMax) {
      link.last_due_ns = due;
      in_flight_bytes_ += size;
      in_flight_.push({due, order_++, to, {bytes, bytes + size}});
    }
  }

  void Deliver() {
    const uint64_t now = NowNs();
    while (!in_flight_.empty() && in_flight_.top().due_ns <= now) {
      const Packet& packet = in_flight_.top();
      Write(packet.to, packet.bytes.data(), packet.bytes.size());
      in_flight_bytes_ -= packet.bytes.size();
      in_flight_.pop();
    }
  }

  // A device that does not take a packet (down, full) loses it, as networks do.
  void Write(int to, const uint8_t* bytes, size_t size) {
    [[maybe_unused]] const ssize_t written = write(sites_[to].tun, bytes, size);
  }

  std::string table_;
  std::vector<Site> sites_;
  std::vector<int> guards_;
  std::vector<Prefix> prefixes_;
  std::vector<Link> links_;  // From-major.
  std::priority_queue<Packet> in_flight_;
  size_t in_flight_bytes_ = 0;
  uint64_t order_ = 0;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) Fail("usage: wan TABLE");
  // Whatever else runs, delays should be those asked for; without the right to it we do without.
  setpriority(PRIO_PROCESS, 0, -10);
  Network(argv[1]).Run();
}
