// SPDX-License-Identifier: Apache-2.0
// A service to try things on: answers every HTTP request with the name of its host. C and static,
// since it is all that its image contains.
//
//   app [--port N] [--start MS] [--term SECONDS]
//
// --start: for so long after its start `/ready` is answered with 503. --term: what it does on
// SIGTERM: 0, it ends at once; more, it serves so long, closes each connection after its next answer
// or once it is idle for a second, and then ends. A connection that is left open until the process
// ends may stay open for its client: what tells it so can be lost with the pod's network.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kClients = 1000, kRequestBytes = 4096, kIdleSeconds = 1 };

static volatile sig_atomic_t terminating = 0;

static void terminate(int signal_number) {
  (void)signal_number;
  terminating = 1;
}

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static struct pollfd polled[kClients + 1];
static char requests[kClients + 1][kRequestBytes];
static size_t lengths[kClients + 1];
static double used_at[kClients + 1];

static void answer(int slot, int is_ready, int closes) {
  char host[256] = "", text[600];
  gethostname(host, sizeof host - 1);
  const int refused = !is_ready && strncmp(requests[slot], "GET /ready", 10) == 0;
  const int length = snprintf(text, sizeof text,
                              "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: %s\r\n\r\n%s\n",
                              refused ? "503 Service Unavailable" : "200 OK", strlen(host) + 1,
                              closes ? "close" : "keep-alive", host);
  if (write(polled[slot].fd, text, (size_t)length) != length) closes = 1;
  lengths[slot] = 0;
  used_at[slot] = now();
  if (!closes) return;
  close(polled[slot].fd);
  polled[slot].fd = -1;
}

static void receive(int slot, int is_ready) {
  char* request = requests[slot];
  const ssize_t got =
      read(polled[slot].fd, request + lengths[slot], kRequestBytes - 1 - lengths[slot]);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    close(polled[slot].fd);
    polled[slot].fd = -1;
    return;
  }
  lengths[slot] += (size_t)got;
  request[lengths[slot]] = 0;
  if (strstr(request, "\r\n\r\n") != NULL)
    answer(slot, is_ready, terminating || strstr(request, "Connection: close") != NULL);
}

static void accept_one(void) {
  const int fd = accept(polled[0].fd, NULL, NULL);
  if (fd < 0) return;
  fcntl(fd, F_SETFL, O_NONBLOCK);
  for (int slot = 1; slot <= kClients; ++slot) {
    if (polled[slot].fd >= 0) continue;
    polled[slot] = (struct pollfd){.fd = fd, .events = POLLIN};
    lengths[slot] = 0;
    used_at[slot] = now();
    return;
  }
  close(fd);
}

static void close_idle(void) {
  for (int slot = 1; slot <= kClients; ++slot) {
    if (polled[slot].fd < 0 || now() - used_at[slot] < kIdleSeconds) continue;
    close(polled[slot].fd);
    polled[slot].fd = -1;
  }
}

int main(int argc, char** argv) {
  int port = 8080;
  double start_s = 0, term_s = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--port") == 0) port = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--start") == 0) start_s = atof(argv[i + 1]) / 1000;
    if (strcmp(argv[i], "--term") == 0) term_s = atof(argv[i + 1]);
  }
  signal(SIGPIPE, SIG_IGN);
  struct sigaction action = {.sa_handler = terminate};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  if (bind(listener, (const struct sockaddr*)&address, sizeof address) != 0 ||
      listen(listener, 1024) != 0) {
    perror("app");
    return 1;
  }
  for (int slot = 0; slot <= kClients; ++slot) polled[slot].fd = -1;
  polled[0] = (struct pollfd){.fd = listener, .events = POLLIN};
  const double ready_at = now() + start_s;
  double end = -1;
  for (;;) {
    if (terminating && end < 0) end = now() + term_s;
    if (end >= 0 && now() >= end) return 0;
    if (terminating) close_idle();
    if (poll(polled, kClients + 1, 50) <= 0) continue;
    if (polled[0].revents & POLLIN) accept_one();
    for (int slot = 1; slot <= kClients; ++slot) {
      if (polled[slot].fd >= 0 && (polled[slot].revents & (POLLIN | POLLHUP | POLLERR)))
        receive(slot, now() >= ready_at);
    }
  }
}
