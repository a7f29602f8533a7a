// SPDX-License-Identifier: Apache-2.0
// The door to a testbed: connections made to a loopback port of the machine go on to the same port
// inside the testbed's own network namespace, where the API server listens. The listening socket is
// inherited, since a socket stays in the namespace it was made in.
//
//   gate LISTENING_DESCRIPTOR PORT
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBufferBytes = 256 * 1024;

struct Connection {
  int client, server;
  Connection(int client, int server) : client(client), server(server) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    close(client);
    close(server);
  }
};

// Until one side ends what it says; the other may go on speaking. The last to end closes.
void Carry([[maybe_unused]] const std::shared_ptr<Connection> connection, int from, int to) {
  std::vector<char> buffer(kBufferBytes);
  for (;;) {
    const ssize_t size = read(from, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    for (ssize_t sent = 0; sent < size;) {
      const ssize_t part = write(to, buffer.data() + sent, size - sent);
      if (part < 0 && errno == EINTR) continue;
      if (part <= 0) {
        shutdown(from, SHUT_RD);
        return;
      }
      sent += part;
    }
  }
  shutdown(to, SHUT_WR);
}

void Open(int client, int port) {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto connection = std::make_shared<Connection>(client, server);
  // Refused while the API server is away: the client sees its connection closed, and tries again.
  if (server < 0 || connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return;
  const int on = 1;
  for (const int end : {client, server}) setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::thread(Carry, connection, client, server).detach();
  std::thread(Carry, connection, server, client).detach();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: gate LISTENING_DESCRIPTOR PORT\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  const int listener = atoi(argv[1]);
  for (;;) {
    const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) {
      Open(client, atoi(argv[2]));
    } else if (errno == EMFILE || errno == ENFILE) {
      usleep(10'000);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      fprintf(stderr, "gate: %s\n", strerror(errno));
      return 1;
    }
  }
}
