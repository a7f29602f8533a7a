// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the parts of `app` share.
#include <stddef.h>
#include <stdint.h>

// Which span a request or a call is below, as `traceparent` of W3C has it. All zero: none.
struct trace {
  uint64_t high, low, span;
  int is_sampled;
};

enum span_kind { kServer = 2, kClient = 3 };  // OTLP's numbers.

struct span {
  struct trace trace;  // Its own: what it hands on.
  uint64_t parent, start_ns, end_ns;
  double began;
  enum span_kind kind;
  int call, failed;
  size_t bytes;
};

struct pool;  // Connections to one other service; thread-safe.

double now(void);  // Seconds, monotonic.

// A detached thread with a small stack that takes no signals. 0, or -1 if there is none to be had.
int start_thread(void* (*run)(void*), void* argument);

// Sends at once what there is: without waiting to have more, and without the pacing of BBR, which
// spreads a payload over a part of a round trip. How a machine is set up is not to be measured.
void send_at_once(int fd);

// Reads from a socket until its HTTP message is complete; headers end up in `head`, the body is
// counted and thrown away. Bytes of the head, 0 if the connection ended before, -1 if it broke.
int read_message(int fd, char* head, size_t size);
int write_all(int fd, const char* bytes, size_t count);
int write_padding(int fd, size_t count);  // So many bytes of a payload; its content has no meaning.

// The pool of a service, found by the variables NAME_SERVICE_HOST and _PORT. NULL without them.
struct pool* pool_open(const char* service, size_t warm_bytes);
// Calls `/call/ID` with so many bytes. 0, or -1: no answer, or not a good one.
int pool_call(struct pool* pool, int id, size_t bytes, const struct trace* trace);
int pool_is_full(struct pool* pool);  // All its connections are open and exercised.
long pool_repeated(void);  // Calls of all pools that were sent again since a connection broke.

// Reads the file that says what is called; -1 and a line on stderr if it cannot be followed here.
// `only` is the one service whose calls are played; NULL: any.
int calls_load(const char* path, const char* node, const char* only, int burns);
// Executes a call and makes the calls that it makes. 0, or the name of a service that failed.
const char* calls_play(int id, const struct trace* trace);
int calls_known(int id);
int calls_are_connected(void);  // Every pool is full; also where no calls are played.
size_t calls_bytes(int id);
// Latencies by call in Prometheus' text format; bytes written.
size_t calls_metrics(char* text, size_t size);

// Spans are sent where the environment says so; they never hold up a request (app_trace.c).
void trace_open(const char* service);
void trace_close(void);                   // Sends what waits, for at most a second or two.
struct trace trace_of(const char* head);  // Of a request; a new one without `traceparent`.
void trace_header(const struct trace* trace, char* text, size_t size);  // A line, or nothing.
long trace_dropped(void);
struct span span_begin(const struct trace* caller, enum span_kind kind, int call, size_t bytes);
void span_end(struct span* span, int failed);
