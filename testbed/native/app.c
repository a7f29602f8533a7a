// SPDX-License-Identifier: Apache-2.0
// A service to try things on: answers every HTTP request with the name of its host. C and static,
// since it is all that its image contains.
//
//   app [--port N] [--start MS] [--term SECONDS] [--calls FILE [--service NAME] [--burn 1]]
//
// --start: for so long after its start `/ready` is answered with 503. --term: what it does on
// SIGTERM: 0, it ends at once; more, it serves so long, closes each connection after its next
// answer or once it is idle for a second, and then ends. A connection that is left open until the
// process ends may stay open for its client: what tells it so can be lost with the pod's network.
//
// --calls: it is also a service of a call graph (app_calls.c has the format of FILE): `/call/ID`
// executes that call and makes the calls that it makes, `/metrics` says how long they took.
// NODE_NAME names the node it runs on. --service: it plays the calls of this one alone. --burn:
// executing takes a processor, instead of time only. app_trace.c has the variables by which it reports
// spans.
#define _GNU_SOURCE
#include "app.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kClients = 1000, kHeadBytes = 4096, kStackBytes = 128 << 10, kMetricBytes = 256 << 10 };
static const double kIdleSeconds = 1, kConnectSeconds = 3;

static volatile sig_atomic_t terminating = 0;
static int ending[2];  // A pipe whose end of writing closes at SIGTERM: all that wait see it.
static atomic_int clients;
static double ready_at;

static void terminate(int signal_number) {
  (void)signal_number;
  if (!terminating) close(ending[1]);
  terminating = 1;
}

double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

int start_thread(void* (*run)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  return pthread_create(&thread, &attributes, run, argument) == 0 ? 0 : -1;
}

void send_at_once(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  // The first that the kernel has; if none, its own choice stays.
  for (const char** name = (const char*[]){"cubic", "reno", NULL}; *name != NULL; ++name) {
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, *name, (socklen_t)strlen(*name)) == 0) return;
  }
}

int write_all(int fd, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t done = write(fd, bytes, count);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return -1;
    bytes += done;
    count -= (size_t)done;
  }
  return 0;
}

int write_padding(int fd, size_t count) {
  static const char padding[64 << 10];
  while (count > 0) {
    const size_t part = count < sizeof padding ? count : sizeof padding;
    if (write_all(fd, padding, part) != 0) return -1;
    count -= part;
  }
  return 0;
}

int read_message(int fd, char* head, size_t size) {
  size_t length = 0, body = 0;
  char *end = NULL, drained[16 << 10];
  while (end == NULL) {
    if (length == size - 1) return -1;
    const ssize_t got = read(fd, head + length, size - 1 - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return length == 0 && got == 0 ? 0 : -1;
    length += (size_t)got;
    head[length] = 0;
    end = strstr(head, "\r\n\r\n");
  }
  end += 4;
  const char* field = strcasestr(head, "\r\nContent-Length:");
  if (field != NULL && field < end) body = strtoul(field + 17, NULL, 10);
  for (size_t read_already = (size_t)(head + length - end); read_already < body;) {
    const size_t left = body - read_already;
    const ssize_t got = read(fd, drained, left < sizeof drained ? left : sizeof drained);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return -1;
    read_already += (size_t)got;
  }
  *end = 0;
  return (int)(end - head);
}

static int answer(int fd, const char* status, const char* text, size_t padding, int closes) {
  char host[256] = "", head[512];
  gethostname(host, sizeof host - 1);
  const size_t size = strlen(text) + padding;
  const int length = snprintf(head, sizeof head,
                              "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: %s\r\n"
                              "Server: %s\r\n\r\n",
                              status, size, closes ? "close" : "keep-alive", host);
  if (write_all(fd, head, (size_t)length) != 0 || write_all(fd, text, strlen(text)) != 0) return -1;
  return write_padding(fd, padding);
}

static int answer_call(int fd, int id, const char* head, int closes) {
  if (!calls_known(id)) return answer(fd, "404 Not Found", "no such call\n", 0, closes);
  const struct trace caller = trace_of(head);
  struct span span = span_begin(&caller, kServer, id, calls_bytes(id));
  const char* failed = calls_play(id, &span.trace);
  span_end(&span, failed != NULL);
  if (failed == NULL) return answer(fd, "200 OK", "", calls_bytes(id), closes);
  char text[300];
  snprintf(text, sizeof text, "%s does not answer\n", failed);
  return answer(fd, "502 Bad Gateway", text, 0, closes);
}

static int answer_metrics(int fd, int closes) {
  char* text = malloc(kMetricBytes);
  if (text == NULL) return answer(fd, "503 Service Unavailable", "", 0, closes);
  size_t length = calls_metrics(text, kMetricBytes);
  length += (size_t)snprintf(text + length, kMetricBytes - length,
                             "# TYPE app_calls_repeated_total counter\n"
                             "app_calls_repeated_total %ld\n"
                             "# TYPE app_spans_dropped_total counter\n"
                             "app_spans_dropped_total %ld\n",
                             pool_repeated(), trace_dropped());
  const int result = answer(fd, "200 OK", text, 0, closes);
  free(text);
  return result;
}

// Once it has its connections, so that its first calls do not wait for them; in the end also
// without, as services that call each other would wait for each other.
static int is_ready(void) {
  const double at = now();
  return at >= ready_at && (calls_are_connected() || at >= ready_at + kConnectSeconds);
}

static int answer_request(int fd, const char* head, int closes) {
  char path[256] = "", host[258] = "";
  sscanf(head, "%*15s %255s", path);
  if (strncmp(path, "/call/", 6) == 0) return answer_call(fd, atoi(path + 6), head, closes);
  if (strncmp(path, "/warm/", 6) == 0)  // So that a connection has seen a payload of this size.
    return answer(fd, "200 OK", "", strtoul(path + 6, NULL, 10) % (64 << 20), closes);
  if (strcmp(path, "/metrics") == 0) return answer_metrics(fd, closes);
  gethostname(host, sizeof host - 2);
  strcat(host, "\n");
  const int refused = strncmp(path, "/ready", 6) == 0 && !is_ready();
  return answer(fd, refused ? "503 Service Unavailable" : "200 OK", host, 0, closes);
}

// Whether a request comes; not if the connection ends, or is to be ended as it is idle.
static int await_request(int fd, double used_at) {
  for (;;) {
    struct pollfd waited[] = {{.fd = fd, .events = POLLIN}, {.fd = ending[0], .events = POLLIN}};
    const double left = used_at + kIdleSeconds - now();
    const int limit = !terminating ? -1 : left > 0 ? (int)(1000 * left) + 1 : 0;
    if (poll(waited, terminating ? 1 : 2, limit) < 0 && errno != EINTR) return 0;
    if (waited[0].revents != 0) return 1;
    if (terminating && now() >= used_at + kIdleSeconds) return 0;
  }
}

static void* serve(void* argument) {
  const int fd = (int)(size_t)argument;
  char head[kHeadBytes];
  double used_at = now();
  while (await_request(fd, used_at) && read_message(fd, head, sizeof head) > 0) {
    const int asked_to_close = strcasestr(head, "\r\nConnection: close") != NULL;
    // A call that takes long may see SIGTERM meanwhile: what counts is the time of its answer.
    if (answer_request(fd, head, terminating || asked_to_close) != 0) break;
    used_at = now();
    if (terminating || asked_to_close) break;
  }
  close(fd);
  --clients;
  return NULL;
}

static void accept_one(int listener) {
  const int fd = accept(listener, NULL, NULL);
  if (fd < 0) return;
  if (++clients <= kClients && start_thread(serve, (void*)(size_t)fd) == 0) return;
  --clients;
  close(fd);
}

static int listen_on(int port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  send_at_once(listener);  // Connections inherit it. Who changes it later keeps BBR's pacing.
  const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  if (bind(listener, (const struct sockaddr*)&address, sizeof address) == 0 &&
      listen(listener, 1024) == 0)
    return listener;
  perror("app");
  return -1;
}

int main(int argc, char** argv) {
  int port = 8080, burns = 0;
  double start_s = 0, term_s = 0, end = -1;
  const char *calls = NULL, *service = NULL;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--port") == 0) port = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--start") == 0) start_s = atof(argv[i + 1]) / 1000;
    if (strcmp(argv[i], "--term") == 0) term_s = atof(argv[i + 1]);
    if (strcmp(argv[i], "--calls") == 0) calls = argv[i + 1];
    if (strcmp(argv[i], "--service") == 0) service = argv[i + 1];
    if (strcmp(argv[i], "--burn") == 0) burns = atoi(argv[i + 1]);
  }
  signal(SIGPIPE, SIG_IGN);
  sigset_t signals, none;
  sigemptyset(&none);
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, NULL);  // They come while this thread waits below, only.
  struct sigaction action = {.sa_handler = terminate};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  if (pipe(ending) != 0) return 1;
  if (calls != NULL && calls_load(calls, getenv("NODE_NAME"), service, burns) != 0) return 1;
  trace_open(service);
  ready_at = now() + start_s;
  const int listener = listen_on(port);
  if (listener < 0) return 1;
  for (;;) {
    if (terminating && end < 0) end = now() + term_s;
    const double left = end - now();
    if (end >= 0 && left <= 0) break;
    struct pollfd waited = {.fd = listener, .events = POLLIN};
    const struct timespec limit = {.tv_sec = (time_t)left,
                                   .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
    if (ppoll(&waited, 1, end < 0 ? NULL : &limit, &none) > 0) accept_one(listener);
  }
  trace_close();
  return 0;
}
