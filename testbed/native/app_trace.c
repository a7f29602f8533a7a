// SPDX-License-Identifier: Apache-2.0
// Spans of the calls that are played, as OTLP/JSON over HTTP, by OpenTelemetry's variables:
//
//   OTEL_EXPORTER_OTLP_ENDPOINT  http://HOST:PORT, an address or a Service of the namespace; without
//                                it nothing is traced
//   OTEL_TRACES_SAMPLER_ARG      share of the requests that is traced (default 1); a request that
//                                comes with `traceparent` is traced as its caller says
//   OTEL_SERVICE_NAME            default: --service
//   POD_NAME, POD_NAMESPACE, NODE_NAME
//
// A request waits for no receiver: spans go to a ring that one thread empties. If it is full, or no
// receiver listens, they are dropped and counted.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "app.h"

enum { kRing = 8192, kBatch = 200, kNameBytes = 254, kSpanBytes = 512, kBodyBytes = 128 << 10 };
static const struct timespec kPause = {.tv_nsec = 200000000};
static const struct timeval kLimit = {.tv_sec = 1};

static int is_open;
static double ratio = 1;
static struct sockaddr_in receiver;
static char resource[2048];
static atomic_ulong chance;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;
static struct span ring[kRing];
static unsigned long first, last;  // Spans [first, last) wait, each at its number modulo kRing.
static atomic_long dropped;

static uint64_t draw(void) {  // SplitMix64, shared by all threads.
  uint64_t x = atomic_fetch_add(&chance, 0x9E3779B97F4A7C15ul) + 0x9E3779B97F4A7C15ul;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ul;
  x = (x ^ x >> 27) * 0x94D049BB133111EBul;
  x ^= x >> 31;
  return x == 0 ? 1 : x;
}

long trace_dropped(void) { return dropped; }

// ---- What a request brings and hands on ----

struct trace trace_of(const char* head) {
  struct trace trace = {0};
  if (!is_open) return trace;
  const char* field = strcasestr(head, "\r\ntraceparent:");
  unsigned version = 0, flags = 0;
  if (field != NULL &&
      sscanf(field + 14, " %2x-%16lx%16lx-%16lx-%2x", &version, &trace.high, &trace.low,
             &trace.span, &flags) == 5 &&
      version != 0xff && (trace.high | trace.low) != 0 && trace.span != 0) {
    trace.is_sampled = (int)(flags & 1);
    return trace;
  }
  trace = (struct trace){.high = draw(), .low = draw()};
  trace.is_sampled = (double)(trace.low >> 11) < ratio * (double)(1ul << 53);
  return trace;
}

void trace_header(const struct trace* trace, char* text, size_t size) {
  text[0] = 0;
  if (trace == NULL || (trace->high | trace->low) == 0 || trace->span == 0) return;
  snprintf(text, size, "traceparent: 00-%016lx%016lx-%016lx-%02x\r\n", trace->high, trace->low,
           trace->span, (unsigned)trace->is_sampled);
}

struct span span_begin(const struct trace* caller, enum span_kind kind, int call, size_t bytes) {
  struct span span = {.trace = *caller, .parent = caller->span, .kind = kind, .call = call};
  if (!is_open) return span;
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  span.trace.span = draw();
  span.bytes = bytes;
  span.start_ns = (uint64_t)at.tv_sec * 1000000000ul + (uint64_t)at.tv_nsec;
  span.began = now();
  return span;
}

void span_end(struct span* span, int failed) {
  if (!is_open || !span->trace.is_sampled) return;
  span->end_ns = span->start_ns + (uint64_t)((now() - span->began) * 1e9);
  span->failed = failed;
  pthread_mutex_lock(&lock);
  if (last - first < kRing) {
    ring[last++ % kRing] = *span;
  } else {
    ++dropped;
  }
  pthread_mutex_unlock(&lock);
}

// ---- Sending ----

static size_t write_span(char* text, size_t size, const struct span* span) {
  char parent[64] = "";
  if (span->parent != 0)
    snprintf(parent, sizeof parent, "\"parentSpanId\":\"%016lx\",", span->parent);
  return (size_t)snprintf(
      text, size,
      "{\"traceId\":\"%016lx%016lx\",\"spanId\":\"%016lx\",%s\"name\":\"/call/%d\",\"kind\":%d,"
      "\"startTimeUnixNano\":\"%lu\",\"endTimeUnixNano\":\"%lu\",\"attributes\":["
      "{\"key\":\"http.request.body.size\",\"value\":{\"intValue\":\"%zu\"}}]%s}",
      span->trace.high, span->trace.low, span->trace.span, parent, span->call, (int)span->kind,
      span->start_ns, span->end_ns, span->bytes, span->failed ? ",\"status\":{\"code\":2}" : "");
}

// Whether the receiver took it.
static int post(const char* body, size_t length) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return 0;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kLimit, sizeof kLimit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kLimit, sizeof kLimit);
  char head[4096];
  const int head_length = snprintf(head, sizeof head,
                                   "POST /v1/traces HTTP/1.1\r\nHost: otlp\r\n"
                                   "Content-Type: application/json\r\nContent-Length: %zu\r\n"
                                   "Connection: close\r\n\r\n",
                                   length);
  int status = 0;
  if (connect(fd, (const struct sockaddr*)&receiver, sizeof receiver) == 0 &&
      write_all(fd, head, (size_t)head_length) == 0 && write_all(fd, body, length) == 0 &&
      read_message(fd, head, sizeof head) > 0)
    sscanf(head, "%*15s %d", &status);
  close(fd);
  return status / 100 == 2;
}

// Sends up to kBatch spans; how many there were.
static int send_batch(void) {
  static struct span batch[kBatch];
  static char body[kBodyBytes];
  int count = 0;
  pthread_mutex_lock(&sending);
  pthread_mutex_lock(&lock);
  while (first < last && count < kBatch) batch[count++] = ring[first++ % kRing];
  pthread_mutex_unlock(&lock);
  if (count > 0) {
    size_t length = (size_t)snprintf(body, sizeof body,
                                     "{\"resourceSpans\":[{\"resource\":{\"attributes\":[%s]},"
                                     "\"scopeSpans\":[{\"scope\":{\"name\":\"app\"},\"spans\":[",
                                     resource);
    for (int i = 0; i < count; ++i) {
      if (i > 0) body[length++] = ',';
      length += write_span(body + length, sizeof body - length, &batch[i]);
    }
    length += (size_t)snprintf(body + length, sizeof body - length, "]}]}]}");
    if (!post(body, length)) dropped += count;
  }
  pthread_mutex_unlock(&sending);
  return count;
}

static void* send_all(void* argument) {
  (void)argument;
  for (;;) {
    if (send_batch() < kBatch) nanosleep(&kPause, NULL);
  }
  return NULL;
}

void trace_close(void) {
  for (int tries = 0; is_open && tries < 2 + kRing / kBatch; ++tries) {
    const long before = dropped;
    if (send_batch() == 0 || dropped > before) return;
  }
}

// ---- Opening ----

static void add_attribute(const char* key, const char* value) {
  char plain[kNameBytes];
  size_t length = 0;
  for (; value != NULL && *value != 0 && length < sizeof plain - 1; ++value)
    if (isalnum((unsigned char)*value) || strchr("-._/:", *value) != NULL) plain[length++] = *value;
  plain[length] = 0;
  if (length == 0) return;
  const size_t used = strlen(resource);
  snprintf(resource + used, sizeof resource - used,
           "%s{\"key\":\"%s\",\"value\":{\"stringValue\":\"%s\"}}", used > 0 ? "," : "", key,
           plain);
}

static int find_receiver(const char* endpoint) {
  char host[kNameBytes], name[kNameBytes + 16];
  int port = 4318;
  if (sscanf(endpoint, "http://%253[^:/]:%d", host, &port) < 1) return -1;
  receiver.sin_family = AF_INET;
  receiver.sin_port = htons((uint16_t)port);
  if (inet_pton(AF_INET, host, &receiver.sin_addr) == 1) return 0;
  size_t length = 0;
  for (; host[length] != 0 && host[length] != '.'; ++length)
    name[length] = host[length] == '-' ? '_' : (char)toupper((unsigned char)host[length]);
  strcpy(name + length, "_SERVICE_HOST");
  const char* address = getenv(name);
  return address != NULL && inet_pton(AF_INET, address, &receiver.sin_addr) == 1 ? 0 : -1;
}

void trace_open(const char* service) {
  const char* endpoint = getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
  const char* argument = getenv("OTEL_TRACES_SAMPLER_ARG");
  const char* own_name = getenv("OTEL_SERVICE_NAME");
  const char* pod = getenv("POD_NAME");
  char host[256] = "";
  if (endpoint == NULL || *endpoint == 0) return;
  if (find_receiver(endpoint) != 0) {
    fprintf(stderr, "app: %s is no http://HOST:PORT that is known; nothing is traced\n", endpoint);
    return;
  }
  if (argument != NULL) ratio = atof(argument);
  gethostname(host, sizeof host - 1);
  add_attribute("service.name", own_name != NULL ? own_name : service != NULL ? service : "app");
  add_attribute("k8s.pod.name", pod != NULL ? pod : host);
  add_attribute("k8s.namespace.name", getenv("POD_NAMESPACE"));
  add_attribute("k8s.node.name", getenv("NODE_NAME"));
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
    seed = (uint64_t)time(NULL) ^ (uint64_t)getpid();
  chance = seed;
  is_open = start_thread(send_all, NULL) == 0;
}
