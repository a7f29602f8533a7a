// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the parts of `app` share.
#include <stddef.h>

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
int write_padding(int fd, size_t count);  // So many bytes of a payload that nobody reads.

// The pool of a service, found by the variables NAME_SERVICE_HOST and _PORT. NULL without them.
struct pool* pool_open(const char* service, size_t warm_bytes);
// Calls `/call/ID` with so many bytes. 0, or -1: no answer, or not a good one.
int pool_call(struct pool* pool, int id, size_t bytes);
int pool_is_full(struct pool* pool);  // All its connections are open and exercised.
long pool_repeated(void);  // Calls of all pools that were sent again since a connection broke.

// Reads the file that says what is called; -1 and a line on stderr if it cannot be followed here.
// `only` is the one service whose calls are played; NULL: any.
int calls_load(const char* path, const char* node, const char* only, int burns);
// Executes a call and makes the calls that it makes. 0, or the name of a service that failed.
const char* calls_play(int id);
int calls_known(int id);
int calls_are_connected(void);  // Every pool is full; also where no calls are played.
size_t calls_bytes(int id);
// Latencies by call in Prometheus' text format; bytes written.
size_t calls_metrics(char* text, size_t size);
