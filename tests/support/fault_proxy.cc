// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fault_proxy.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/check.h"

namespace rudderfish::testing {
namespace {

constexpr int kStepMs = 5;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// -1 if no server listens.
int ConnectTo(int port) {
  const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK_GE(peer, 0);
  const sockaddr_in address = Loopback(port);
  if (connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return peer;
  close(peer);
  return -1;
}

void MakeQuick(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

void Close(int socket, bool by_reset) {
  if (socket < 0) return;
  const linger at_once{1, 0};
  if (by_reset) setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(socket);
}

std::string Status(int code, const char* reason) {
  return R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":")" +
         std::string(reason) + R"(","message":"injected","code":)" + std::to_string(code) + "}";
}

}  // namespace

FaultProxy::FaultProxy(int server_port)
    : server_port_(server_port),
      stand_in_([this](const SeenRequest& request,
                       Connection* connection) { StandIn(request, connection); },
                Transport::kTls) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  CHECK_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
  CHECK_EQ(listen(listener_, 128), 0);
  CHECK_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);
  MakeQuick(listener_);
  thread_ = std::thread([this] { Serve(); });
}

FaultProxy::~FaultProxy() {
  is_over_ = true;
  thread_.join();
  for (Link& link : links_) End(&link, true);
  close(listener_);
}

std::string FaultProxy::url() const { return "https://127.0.0.1:" + std::to_string(port_); }

void FaultProxy::Begin(Fault fault) {
  fault_ = fault;
  const int64_t order = ++orders_;
  while (orders_obeyed_ < order) poll(nullptr, 0, 1);
}

void FaultProxy::Cut() {
  must_cut_ = true;
  Begin(fault_);
}

void FaultProxy::StandIn(const SeenRequest& request, Connection* connection) {
  ++answers_;
  if (fault_ == Fault::kGarbled) {
    if (request.target.find("watch=1") == std::string::npos)
      return connection->Answer(200, R"({"kind":"List","metadata":{"resourceVer)");
    connection->BeginStream();
    connection->Chunk(R"({"type":"MODIFIED","object":{"metadata":{"name":"half an ev)"
                      "\n");
  } else if (fault_ == Fault::kTooMany) {
    connection->Answer(429, Status(429, "TooManyRequests"), "Retry-After: 1\r\n");
  } else {
    connection->Answer(500, Status(500, "InternalError"));
  }
}

void FaultProxy::Obey() {
  const int64_t order = orders_;
  if (order == orders_obeyed_) return;
  const Fault fault = fault_;
  // What the stand-in has on the line must not outlive its fault, nor what has lost a part; what
  // waited behind a partition goes on.
  const bool leaves_open = fault == Fault::kPartition || fault == Fault::kUnheard;
  const bool differs = fault != obeyed_ && (!leaves_open || obeyed_ == Fault::kUnheard);
  if (must_cut_.exchange(false) || (differs && obeyed_ != Fault::kPartition)) {
    for (Link& link : links_) End(&link, true);
  }
  obeyed_ = fault;
  orders_obeyed_ = order;
}

void FaultProxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  Link link;
  link.up.from = link.down.to = client;
  link.is_doomed = obeyed_ == Fault::kTlsReset;
  if (!link.is_doomed) {
    const bool in_its_place =
        obeyed_ == Fault::kTooMany || obeyed_ == Fault::kServerError || obeyed_ == Fault::kGarbled;
    const std::string place = stand_in_.url();
    const int port = in_its_place ? std::stoi(place.substr(place.rfind(':') + 1)) : server_port_;
    link.is_real = !in_its_place;
    link.up.to = link.down.from = ConnectTo(port);
    if (link.up.to < 0) {
      End(&link, true);
      return;
    }
    MakeQuick(link.up.to);
  }
  MakeQuick(client);
  links_.push_back(std::move(link));
}

void FaultProxy::End(Link* link, bool by_reset) {
  if (link->is_over) return;
  link->is_over = true;
  if (by_reset) ++resets_;
  Close(link->up.from, by_reset);
  Close(link->up.to, by_reset);
}

void FaultProxy::NotePassed(const Link& link) {
  static const SystemClock clock;
  if (link.is_real && !link.is_over) last_passed_ = clock.Now();
}

// False: one of the two is gone.
bool FaultProxy::Move(short readable, short writable, Flow* flow) {
  if (flow->bytes.empty() && readable != 0) {
    char buffer[65536];
    const ssize_t count = recv(flow->from, buffer, sizeof(buffer), 0);
    if (count == 0 || (count < 0 && errno != EAGAIN)) return false;
    if (count > 0) flow->bytes.assign(buffer, count);
  }
  if (flow->bytes.empty() || (writable == 0 && readable == 0)) return true;
  const ssize_t count = send(flow->to, flow->bytes.data(), flow->bytes.size(), MSG_NOSIGNAL);
  if (count < 0) return errno == EAGAIN;
  flow->bytes.erase(0, count);
  return true;
}

// False: one of the two is gone.
bool FaultProxy::Lose(short readable, Flow* flow) {
  flow->bytes.clear();
  if (readable == 0) return true;
  char buffer[65536];
  const ssize_t count = recv(flow->from, buffer, sizeof(buffer), 0);
  return count > 0 || (count < 0 && errno == EAGAIN);
}

void FaultProxy::Serve() {
  std::vector<pollfd> waited;
  while (!is_over_) {
    Obey();
    if (obeyed_ == Fault::kPartition) {  // The kernel accepts connections; they get no answer.
      poll(nullptr, 0, kStepMs);
      continue;
    }
    links_.remove_if([](const Link& link) { return link.is_over; });
    waited.assign(1, {listener_, POLLIN, 0});
    const auto events = [](const Flow& in, const Flow& out) {
      return static_cast<short>((in.bytes.empty() ? POLLIN : 0) |
                                (out.bytes.empty() ? 0 : POLLOUT));
    };
    for (const Link& link : links_) {
      waited.push_back({link.up.from, events(link.up, link.down), 0});
      waited.push_back({link.up.to, events(link.down, link.up), 0});
    }
    if (poll(waited.data(), waited.size(), kStepMs) <= 0) continue;
    constexpr short kIn = POLLIN | POLLHUP | POLLERR;
    size_t at = 1;
    for (Link& link : links_) {
      const short client = waited[at].revents, server = waited[at + 1].revents;
      at += 2;
      const bool is_lost = obeyed_ == Fault::kUnheard;
      if ((server & POLLIN) != 0 && !is_lost) NotePassed(link);
      if (link.is_doomed) {
        if (client != 0) End(&link, true);
      } else if (!Move(client & kIn, server & POLLOUT, &link.up) ||
                 !(is_lost ? Lose(server & kIn, &link.down)
                           : Move(server & kIn, client & POLLOUT, &link.down))) {
        End(&link, false);
      }
    }
    if (waited[0].revents != 0) Accept();
  }
}

}  // namespace rudderfish::testing
