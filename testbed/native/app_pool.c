// SPDX-License-Identifier: Apache-2.0
// Connections to another service that are kept. A Service of Kubernetes spreads connections, not
// requests: so a pool has several, notes which host answers on each, and draws first a host and
// then one of its connections, that each replica gets an equal share. Connections are opened,
// exercised with a payload (a new one sends few bytes a round trip) and renewed beside the calls,
// so that a call does not wait for it and replicas that are new get their share. A call whose
// connection breaks is sent once more, on a new one.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "app.h"

enum {
  kLinks = 12,
  kKeepers = 4,
  kHostBytes = 64,
  kLimitSeconds = 5,
  kConnectMs = 2000,
  kWarmings = 5
};
static const double kLinkSeconds = 20;  // To twice that.
static const struct timespec kTurn = {.tv_nsec = 100000000};

struct link {
  int fd;  // -1: none.
  int is_busy;
  char host[kHostBytes];
  double renew_at;
};

struct pool {
  struct sockaddr_in address;
  size_t warm_bytes;
  pthread_mutex_t lock;
  unsigned chance;
  struct link links[kLinks];
};

static atomic_long repeated;

long pool_repeated(void) { return repeated; }

static int connect_to(const struct pool* pool) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return -1;
  send_at_once(fd);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  int error = 0;
  socklen_t size = sizeof error;
  if (connect(fd, (const struct sockaddr*)&pool->address, sizeof pool->address) != 0) {
    struct pollfd waited = {.fd = fd, .events = POLLOUT};
    if (errno != EINPROGRESS || poll(&waited, 1, kConnectMs) <= 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
      close(fd);
      return -1;
    }
  }
  fcntl(fd, F_SETFL, 0);
  const struct timeval limit = {.tv_sec = kLimitSeconds};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  return fd;
}

// The status of the answer, or -1: the connection broke. `host`: who answered. `closes`: it will.
static int exchange(int fd, const char* path, size_t bytes, const struct trace* trace, char* host,
                    int* closes) {
  char head[4096], parent[128];
  trace_header(trace, parent, sizeof parent);
  const int length =
      snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: app\r\n%sContent-Length: %zu\r\n\r\n",
               path, parent, bytes);
  if (write_all(fd, head, (size_t)length) != 0 || write_padding(fd, bytes) != 0) return -1;
  if (read_message(fd, head, sizeof head) <= 0) return -1;
  const char* field = strstr(head, "\r\nServer: ");
  host[0] = 0;
  if (field != NULL) sscanf(field + 10, "%63s", host);
  *closes = strstr(head, "\r\nConnection: close") != NULL;
  int status = -1;
  sscanf(head, "%*15s %d", &status);
  return status;
}

int pool_is_full(struct pool* pool) {
  int open = 0;
  pthread_mutex_lock(&pool->lock);
  for (int i = 0; i < kLinks; ++i) open += pool->links[i].fd >= 0;
  pthread_mutex_unlock(&pool->lock);
  return open == kLinks;
}

// An idle connection to a host that is drawn, or NULL.
static struct link* take(struct pool* pool) {
  struct link *firsts[kLinks], *same[kLinks];
  int hosts = 0, count = 0;
  pthread_mutex_lock(&pool->lock);
  for (struct link* link = pool->links; link < pool->links + kLinks; ++link) {
    if (link->fd < 0 || link->is_busy) continue;
    int h = 0;
    while (h < hosts && strcmp(firsts[h]->host, link->host) != 0) ++h;
    if (h == hosts) firsts[hosts++] = link;
  }
  struct link* taken = NULL;
  if (hosts > 0) {
    const struct link* drawn = firsts[(unsigned)rand_r(&pool->chance) % (unsigned)hosts];
    for (struct link* link = pool->links; link < pool->links + kLinks; ++link) {
      if (link->fd >= 0 && !link->is_busy && strcmp(link->host, drawn->host) == 0)
        same[count++] = link;
    }
    taken = same[(unsigned)rand_r(&pool->chance) % (unsigned)count];
    taken->is_busy = 1;
  }
  pthread_mutex_unlock(&pool->lock);
  return taken;
}

static void give_back(struct pool* pool, struct link* link, int is_good) {
  pthread_mutex_lock(&pool->lock);
  if (!is_good) {
    close(link->fd);
    link->fd = -1;
  }
  link->is_busy = 0;
  pthread_mutex_unlock(&pool->lock);
}

int pool_call(struct pool* pool, int id, size_t bytes, const struct trace* trace) {
  char path[64], host[kHostBytes];
  int status = -1, closes = 0;
  snprintf(path, sizeof path, "/call/%d", id);
  struct link* link = take(pool);
  if (link != NULL) {
    status = exchange(link->fd, path, bytes, trace, host, &closes);
    give_back(pool, link, status >= 0 && !closes);
  }
  for (int tries = link != NULL ? 1 : 0; status < 0 && tries < 2; ++tries) {
    if (tries > 0) ++repeated;
    const int fd = connect_to(pool);
    if (fd < 0) continue;
    status = exchange(fd, path, bytes, trace, host, &closes);
    close(fd);
  }
  return status / 100 == 2 ? 0 : -1;
}

// A connection in place of one that is not there, has ended or is old; whether that went well.
static int renew(struct pool* pool, struct link* link) {
  char path[64], host[kHostBytes];
  int closes = 0;
  snprintf(path, sizeof path, "/warm/%zu", pool->warm_bytes);
  const int fd = connect_to(pool);
  if (fd < 0) return 0;
  for (int i = 0; i < kWarmings; ++i) {
    if (exchange(fd, path, pool->warm_bytes, NULL, host, &closes) == 200 && !closes) continue;
    close(fd);
    return 0;
  }
  pthread_mutex_lock(&pool->lock);
  if (link->fd >= 0) close(link->fd);
  link->fd = fd;
  link->is_busy = 0;
  memcpy(link->host, host, sizeof host);
  const double share = (double)(rand_r(&pool->chance) % 1000) / 1000;
  link->renew_at = now() + kLinkSeconds * (1 + share);
  pthread_mutex_unlock(&pool->lock);
  return 1;
}

// Takes a connection that is to be renewed away from the calls; whether it is one.
static int take_due(struct pool* pool, struct link* link) {
  struct pollfd seen = {.fd = link->fd, .events = POLLIN};
  pthread_mutex_lock(&pool->lock);
  int is_due = !link->is_busy;
  if (is_due && link->fd >= 0 && poll(&seen, 1, 0) > 0) {
    close(link->fd);  // What comes without a question is the end of the connection.
    link->fd = -1;
  }
  is_due = is_due && (link->fd < 0 || now() >= link->renew_at);
  if (is_due) link->is_busy = 1;
  pthread_mutex_unlock(&pool->lock);
  return is_due;
}

static void* keep(void* argument) {
  struct pool* pool = argument;
  for (;; nanosleep(&kTurn, NULL)) {
    for (struct link* link = pool->links; link < pool->links + kLinks; ++link) {
      if (!take_due(pool, link) || renew(pool, link)) continue;
      give_back(pool, link, 1);
      break;  // The others would not come further now.
    }
  }
  return NULL;
}

struct pool* pool_open(const char* service, size_t warm_bytes) {
  char name[300];
  size_t length = 0;
  for (const char* c = service; *c != 0 && length < 255; ++c)
    name[length++] = *c == '-' || *c == '.' ? '_' : (char)toupper((unsigned char)*c);
  strcpy(name + length, "_SERVICE_HOST");
  const char* host = getenv(name);
  strcpy(name + length, "_SERVICE_PORT");
  const char* port = getenv(name);
  struct pool* pool = calloc(1, sizeof *pool);
  if (pool == NULL || host == NULL || port == NULL ||
      inet_pton(AF_INET, host, &pool->address.sin_addr) != 1) {
    free(pool);
    return NULL;
  }
  pool->address.sin_family = AF_INET;
  pool->address.sin_port = htons((uint16_t)atoi(port));
  pool->warm_bytes = warm_bytes;
  pool->chance = (unsigned)time(NULL) ^ (unsigned)getpid() << 16 ^ (unsigned)(size_t)pool;
  pthread_mutex_init(&pool->lock, NULL);
  for (int i = 0; i < kLinks; ++i) pool->links[i].fd = -1;
  for (int i = 0; i < kKeepers; ++i) start_thread(keep, pool);
  return pool;
}
