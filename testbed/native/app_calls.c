// SPDX-License-Identifier: Apache-2.0
// The calls of a call graph, from a file of lines (`rudderfish manifests` writes it; # begins a
// comment):
//
//   node PREFIX KIND                    nodes by the beginning of their names; the longest counts
//   shared                              a pod has one processor for all that it executes at a time
//   call ID SERVICE BYTES KIND=MS ...   how long executing it takes by kind of node; its payload
//   group ID CALLEE ...                 call ID makes these calls one after another; the groups of
//                                       a call are made in parallel, after it has been executed
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app.h"

enum { kCallsMax = 4096, kGroupsMax = 32, kNameBytes = 254, kLineBytes = 8192 };

struct group {
  int count;
  int* callees;
};

struct call {
  char service[kNameBytes];
  size_t bytes;
  double run_s;
  int is_known;
  int group_count;
  struct group groups[kGroupsMax];
  struct pool*
      pool;  // By which the others call it from here; NULL if no call of this service does.
  pthread_mutex_t lock;
  double latency_s;  // The sum over those that were answered.
  long answered, failed;
};

static struct call* calls;  // [kCallsMax]
static int is_shared, burns;

// ---- Executing ----

// One processor, shared: `virtual_s` is what each of the `running` has had of it.
static pthread_mutex_t processor = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static int running;
static double virtual_s, advanced_at;

static void advance(void) {
  const double at = now();
  if (running > 0) virtual_s += (at - advanced_at) / running;
  advanced_at = at;
}

static struct timespec time_of(double at) {
  const double whole = floor(at);
  return (struct timespec){.tv_sec = (time_t)whole, .tv_nsec = (long)((at - whole) * 1e9)};
}

static void execute_shared(double seconds) {
  pthread_mutex_lock(&processor);
  advance();
  ++running;
  const double until = virtual_s + seconds;
  pthread_cond_broadcast(&changed);
  for (; virtual_s < until - 1e-6; advance()) {
    const struct timespec end = time_of(now() + (until - virtual_s) * running);
    pthread_cond_timedwait(&changed, &processor, &end);
  }
  --running;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&processor);
}

static void burn(double seconds) {
  struct timespec used;
  double end = -1;
  for (;;) {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    const double at = (double)used.tv_sec + (double)used.tv_nsec / 1e9;
    if (end < 0) end = at + seconds;
    if (at >= end) return;
    for (volatile int i = 0; i < 2000; ++i) continue;
  }
}

static void execute(double seconds) {
  if (seconds <= 0) return;
  if (burns) return burn(seconds);
  if (is_shared) return execute_shared(seconds);
  const struct timespec end = time_of(now() + seconds);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0) continue;
}

// ---- Calling ----

struct branch {
  const struct group* group;
  const struct trace* trace;
  const char* failed;
  pthread_t thread;
};

static void* call_group(void* argument) {
  struct branch* branch = argument;
  for (int i = 0; i < branch->group->count && branch->failed == NULL; ++i) {
    const int id = branch->group->callees[i];
    struct span span = span_begin(branch->trace, kClient, id, calls[id].bytes);
    if (pool_call(calls[id].pool, id, calls[id].bytes, &span.trace) != 0)
      branch->failed = calls[id].service;
    span_end(&span, branch->failed != NULL);
  }
  return NULL;
}

static const char* call_groups(const struct call* call, const struct trace* trace) {
  struct branch branches[kGroupsMax] = {0};
  const char* failed = NULL;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 << 10);
  for (int i = call->group_count - 1; i >= 0; --i) {
    branches[i].group = &call->groups[i];
    branches[i].trace = trace;
    if (i > 0 && pthread_create(&branches[i].thread, &attributes, call_group, &branches[i]) == 0)
      continue;
    call_group(&branches[i]);
    branches[i].thread = 0;
  }
  for (int i = 0; i < call->group_count; ++i) {
    if (branches[i].thread != 0) pthread_join(branches[i].thread, NULL);
    if (branches[i].failed != NULL) failed = branches[i].failed;
  }
  return failed;
}

int calls_known(int id) { return calls != NULL && id >= 0 && id < kCallsMax && calls[id].is_known; }

int calls_are_connected(void) {
  for (int id = 0; calls != NULL && id < kCallsMax; ++id) {
    if (calls[id].pool != NULL && !pool_is_full(calls[id].pool)) return 0;
  }
  return 1;
}

size_t calls_bytes(int id) { return calls[id].bytes; }

const char* calls_play(int id, const struct trace* trace) {
  struct call* call = &calls[id];
  const double began = now();
  execute(call->run_s);
  const char* failed = call_groups(call, trace);
  pthread_mutex_lock(&call->lock);
  if (failed == NULL) {
    call->latency_s += now() - began;
    ++call->answered;
  } else {
    ++call->failed;
  }
  pthread_mutex_unlock(&call->lock);
  return failed;
}

size_t calls_metrics(char* text, size_t size) {
  size_t length = (size_t)snprintf(text, size, "# TYPE app_request_seconds summary\n");
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1)
      length +=
          (size_t)snprintf(text + length, size - length, "# TYPE app_failures_total counter\n");
    for (int id = 0; calls != NULL && id < kCallsMax && length + 1024 < size; ++id) {
      struct call* call = &calls[id];
      if (!call->is_known) continue;
      char labels[300];
      snprintf(labels, sizeof labels, "{call=\"%d\",service=\"%s\"}", id, call->service);
      pthread_mutex_lock(&call->lock);
      length += (size_t)(pass == 0 ? snprintf(text + length, size - length,
                                              "app_request_seconds_sum%s %.9f\n"
                                              "app_request_seconds_count%s %ld\n",
                                              labels, call->latency_s, labels, call->answered)
                                   : snprintf(text + length, size - length,
                                              "app_failures_total%s %ld\n", labels, call->failed));
      pthread_mutex_unlock(&call->lock);
    }
  }
  return length;
}

// ---- The file ----

static char kind[kNameBytes];  // Of the node this runs on.
static size_t prefix_length;

static int take_node(const char* node, const char* rest) {
  char prefix[kNameBytes], name[kNameBytes];
  if (sscanf(rest, "%253s %253s", prefix, name) != 2) return -1;
  const size_t length = strlen(prefix);
  if (strncmp(node, prefix, length) == 0 && length >= prefix_length) {
    strcpy(kind, name);
    prefix_length = length;
  }
  return 0;
}

// A line of `call`; the lines of `node` stand before it.
static int take_call(char* rest) {
  char* next = NULL;
  const char* words[3];
  for (int i = 0; i < 3; ++i) {
    words[i] = strtok_r(i == 0 ? rest : NULL, " \t\n", &next);
    if (words[i] == NULL) return -1;
  }
  const int id = atoi(words[0]);
  if (id < 0 || id >= kCallsMax || strlen(words[1]) >= kNameBytes) return -1;
  struct call* call = &calls[id];
  strcpy(call->service, words[1]);
  call->bytes = strtoul(words[2], NULL, 10);
  pthread_mutex_init(&call->lock, NULL);
  call->is_known = 1;
  int is_timed = 0, count = 0;
  for (char* word; (word = strtok_r(NULL, " \t\n", &next)) != NULL; ++count) {
    char* value = strchr(word, '=');
    if (value == NULL) return -1;
    *value++ = 0;
    if (strcmp(word, kind) != 0) continue;
    call->run_s = atof(value) / 1000;
    is_timed = 1;
  }
  return count == 0 || is_timed || prefix_length == 0 ? 0 : -1;
}

static int take_group(char* rest) {
  char* next = NULL;
  const char* word = strtok_r(rest, " \t\n", &next);
  const int id = word == NULL ? -1 : atoi(word);
  if (!calls_known(id) || calls[id].group_count == kGroupsMax) return -1;
  struct group* group = &calls[id].groups[calls[id].group_count++];
  while ((word = strtok_r(NULL, " \t\n", &next)) != NULL) {
    if (!calls_known(atoi(word))) return -1;
    group->callees = realloc(group->callees, sizeof(int) * (size_t)(group->count + 1));
    if (group->callees == NULL) return -1;
    group->callees[group->count++] = atoi(word);
  }
  return 0;
}

static int read_lines(FILE* file, const char* path, const char* node) {
  char line[kLineBytes], keyword[16];
  for (int number = 1; fgets(line, sizeof line, file) != NULL; ++number) {
    int taken = 0;
    if (strchr(line, '#') != NULL) *strchr(line, '#') = 0;
    if (sscanf(line, "%15s%n", keyword, &taken) != 1) continue;
    int result = -1;
    if (strcmp(keyword, "node") == 0) result = take_node(node, line + taken);
    if (strcmp(keyword, "call") == 0) result = take_call(line + taken);
    if (strcmp(keyword, "group") == 0) result = take_group(line + taken);
    if (strcmp(keyword, "shared") == 0) result = 0, is_shared = 1;
    if (result == 0) continue;
    fprintf(stderr, "app: %s:%d: is not understood\n", path, number);
    return -1;
  }
  return 0;
}

// A pool for each service that calls of this one call, warmed with the largest of their payloads.
static int open_pools(const char* only) {
  for (int id = 0; id < kCallsMax; ++id) {
    if (!calls[id].is_known || (only != NULL && strcmp(calls[id].service, only) != 0)) continue;
    for (int g = 0; g < calls[id].group_count; ++g) {
      const struct group* group = &calls[id].groups[g];
      for (int i = 0; i < group->count; ++i) {
        struct call* callee = &calls[group->callees[i]];
        size_t warm_bytes = callee->bytes;
        for (int other = 0; other < kCallsMax && callee->pool == NULL; ++other) {
          if (!calls[other].is_known || strcmp(calls[other].service, callee->service) != 0)
            continue;
          if (calls[other].pool != NULL) callee->pool = calls[other].pool;
          if (calls[other].bytes > warm_bytes) warm_bytes = calls[other].bytes;
        }
        if (callee->pool == NULL) callee->pool = pool_open(callee->service, warm_bytes);
        if (callee->pool != NULL) continue;
        fprintf(stderr, "app: no variables say where Service %s is\n", callee->service);
        return -1;
      }
    }
  }
  return 0;
}

int calls_load(const char* path, const char* node, const char* only, int does_burn) {
  burns = does_burn;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &attributes);
  calls = calloc(kCallsMax, sizeof *calls);
  FILE* file = fopen(path, "r");
  if (calls == NULL || file == NULL) {
    perror(path);
    return -1;
  }
  const int result = read_lines(file, path, node == NULL ? "" : node);
  fclose(file);
  if (result != 0) return -1;
  if (prefix_length == 0) {
    fprintf(stderr, "app: %s: no line `node` fits NODE_NAME %s\n", path, node == NULL ? "" : node);
    return -1;
  }
  if (open_pools(only) != 0) return -1;
  for (int id = 0; id < kCallsMax; ++id) {  // Calls of others are not played here.
    if (only != NULL && strcmp(calls[id].service, only) != 0) calls[id].is_known = 0;
  }
  return 0;
}
