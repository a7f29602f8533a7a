// SPDX-License-Identifier: Apache-2.0
#include "kube/transfers.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/one_line.h"
#include "kube/status.h"

namespace rudderfish::kube {
namespace {

constexpr size_t kKeptBytesMax = 256 << 10;   // Of what a stream received, once it is told.
constexpr size_t kRefusalBytesMax = 1 << 20;  // Of the answer that refuses a stream.

long Milliseconds(Duration duration) {
  const auto count = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<long>(std::clamp<int64_t>(count, 0, std::numeric_limits<int>::max()));
}

void InitializeOnce() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK_EQ(code, CURLE_OK);
}

// host and port of https://host:port/prefix, as they stand there.
struct Address {
  std::string scheme, host, port, rest;
};

Address Split(const std::string& server) {
  Address address;
  const size_t at = server.find("://") + 3;
  address.scheme = server.substr(0, at - 3);
  const size_t end = std::min(server.find('/', at), server.size());
  address.rest = server.substr(end);
  const std::string authority = server.substr(at, end - at);
  const size_t colon = authority.rfind(':');
  if (colon != std::string::npos && authority.find(']', colon) == std::string::npos) {
    address.host = authority.substr(0, colon);
    address.port = authority.substr(colon + 1);
  } else {
    address.host = authority;
    address.port = address.scheme == "https" ? "443" : "80";
  }
  return address;
}

// Our end's; 0 while it is not connected.
int LocalPort(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return 0;
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

curl_blob Blob(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};
}

// Without what differs from attempt to attempt (milliseconds, ports), so that equal failures have
// equal reasons.
std::string Reason(CURL* easy, CURLcode code, const char* details) {
  long error = 0;
  curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &error);
  if (code == CURLE_COULDNT_CONNECT && error != 0)
    return "cannot connect: " + std::generic_category().message(static_cast<int>(error));
  if (code == CURLE_OPERATION_TIMEDOUT) return "no answer in time";
  if (code == CURLE_ABORTED_BY_CALLBACK) return "held back, and not sent";
  const bool has_details = code == CURLE_PEER_FAILED_VERIFICATION ||
                           code == CURLE_SSL_CONNECT_ERROR || code == CURLE_SSL_CERTPROBLEM ||
                           code == CURLE_COULDNT_RESOLVE_HOST ||
                           code == CURLE_COULDNT_RESOLVE_PROXY;
  return OneLine(has_details && *details != 0 ? details : curl_easy_strerror(code), 200);
}

HttpFailure FailureOf(CURL* easy, CURLcode code) {
  curl_off_t sent_after = 0;  // Microseconds until the request could be sent.
  curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &sent_after);
  switch (code) {
    case CURLE_OK:
      return HttpFailure::kNone;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
      return HttpFailure::kUnsent;
    case CURLE_ABORTED_BY_CALLBACK:
      return HttpFailure::kHeldBack;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CIPHER:
      return HttpFailure::kUntrusted;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpFailure::kTimeout;
    case CURLE_WRITE_ERROR:
      return HttpFailure::kTooLong;
    default:
      return sent_after == 0 ? HttpFailure::kUnsent : HttpFailure::kCut;
  }
}

}  // namespace

struct Transfers::Curl {
  CURLM* multi = nullptr;
  std::vector<CURL*> spare;  // Easy handles for further exchanges.
  std::vector<curl_waitfd> waited;
};

struct Transfers::Exchange {
  Transfers* owner = nullptr;
  Id id = 0;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  curl_slist* connect_to = nullptr;
  HttpRequest request;
  OnDone on_done;
  std::shared_ptr<const Stream> stream;  // Outlives a cancellation from within itself.
  std::string received;                  // The body, or the lines not yet told.
  size_t told = 0;                       // Of it.
  int status = 0;
  int local_port = 0;  // Of its connection; 0: it has none yet.
  bool is_open = false;
  bool has_news = false;
  bool is_answered = false;  // To its end.
  bool is_over_limit = false;
  std::string refused;  // Why libcurl did not take the request; empty: it did.
  char error[CURL_ERROR_SIZE] = {};

  template <class Value>
  void Set(CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(easy, option, value);
    if (code != CURLE_OK && refused.empty()) refused = curl_easy_strerror(code);
  }
};

Transfers::Transfers(const ClusterAccess& access, int idle_connections_max)
    : server_(access.server),
      proxy_(access.proxy_url),
      certificate_check_(access.certificate_check),
      curl_(std::make_unique<Curl>()) {
  InitializeOnce();
  const Address address = Split(server_);
  if (!access.tls_server_name.empty() && address.scheme == "https") {
    // libcurl verifies the name in the URL, so that gets the name and the connection the address.
    server_ = fmt::format("https://{}:{}{}", access.tls_server_name, address.port, address.rest);
    host_header_ = fmt::format("Host: {}:{}", address.host, address.port);
    connect_to_ = fmt::format("::{}:{}", address.host, address.port);
  }
  if (proxy_.empty() && IsLoopback(address.host)) proxy_ = "-";  // No proxy leads there.
  curl_->multi = curl_multi_init();
  CHECK(curl_->multi != nullptr);
  curl_multi_setopt(curl_->multi, CURLMOPT_MAXCONNECTS, static_cast<long>(idle_connections_max));
  curl_multi_setopt(curl_->multi, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
}

Transfers::~Transfers() {
  while (!exchanges_.empty()) Cancel(exchanges_.begin()->first);
  for (CURL* easy : curl_->spare) curl_easy_cleanup(easy);
  curl_multi_cleanup(curl_->multi);
}

int Transfers::ConfigureSocket(void* transfers, int socket, int) {
  auto* self = static_cast<Transfers*>(transfers);
  self->sockets_.insert(socket);
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  const auto set = [&](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 3);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(Milliseconds(kPeerTimeout)));
  return CURL_SOCKOPT_OK;
}

int Transfers::CloseSocket(void* transfers, int socket) {
  auto* self = static_cast<Transfers*>(transfers);
  self->sockets_.erase(socket);
  self->ports_.erase(LocalPort(socket));
  return close(socket);
}

// libcurl keeps idle connections to itself, but looks whether one is dead before it uses it.
void Transfers::CloseIdle() {
  std::set<int> used;
  for (const auto& [id, exchange] : exchanges_) used.insert(exchange->local_port);
  for (const int socket : sockets_) {
    const int port = LocalPort(socket);
    if (ports_.contains(port) && !used.contains(port)) shutdown(socket, SHUT_RDWR);
  }
}

// Called when there is a connection, a kept one too, and nothing of the request is on it yet.
int Transfers::BeforeItGoes(void* context, char*, char*, int, int local_port) {
  auto* exchange = static_cast<Exchange*>(context);
  exchange->local_port = local_port;
  exchange->owner->ports_.insert(local_port);
  const std::function<bool()>& may_go = exchange->request.may_go;
  return may_go && !may_go() ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

// Called for each line of the head of an answer; the last one is empty.
size_t Transfers::ReceiveHeader(char* bytes, size_t size, size_t count, void* context) {
  auto* exchange = static_cast<Exchange*>(context);
  exchange->owner->bytes_received_ += static_cast<int64_t>(size * count);
  if (std::string_view(bytes, size * count) == "\r\n") {
    long status = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    exchange->status = static_cast<int>(status);
    exchange->has_news = true;
  }
  return size * count;
}

size_t Transfers::Receive(char* bytes, size_t size, size_t count, void* context) {
  auto* exchange = static_cast<Exchange*>(context);
  const size_t length = size * count;
  exchange->owner->bytes_received_ += static_cast<int64_t>(length);
  size_t limit = kBodyBytesMax;
  if (exchange->stream && exchange->status != 200) limit = kRefusalBytesMax;
  // Of a stream a line and what came with it; lines are told after each turn of libcurl.
  if (exchange->stream && exchange->status == 200) limit = 2 * kLineBytesMax;
  if (exchange->received.size() + length > limit) {
    exchange->is_over_limit = true;
    return 0;
  }
  exchange->received.append(bytes, length);
  exchange->has_news = true;
  return length;
}

Transfers::Id Transfers::Begin(HttpRequest request, OnDone on_done, std::optional<Stream> stream) {
  auto exchange = std::make_unique<Exchange>();
  exchange->owner = this;
  exchange->id = next_id_++;
  exchange->request = std::move(request);
  exchange->on_done = std::move(on_done);
  if (stream) exchange->stream = std::make_shared<const Stream>(*std::move(stream));
  if (curl_->spare.empty()) {
    exchange->easy = curl_easy_init();
    CHECK(exchange->easy != nullptr);
  } else {
    exchange->easy = curl_->spare.back();
    curl_->spare.pop_back();
  }
  // What a kubeconfig says may be more than libcurl takes: that ends this exchange and no more.
  SetOptions(exchange.get());
  if (exchange->refused.empty()) {
    const CURLMcode code = curl_multi_add_handle(curl_->multi, exchange->easy);
    if (code != CURLM_OK) exchange->refused = curl_multi_strerror(code);
  }
  const Id id = exchange->id;
  exchanges_.emplace(id, std::move(exchange));
  has_begun_ = true;
  return id;
}

void Transfers::SetOptions(Exchange* exchange) {
  const HttpRequest& request = exchange->request;
  const Identity& identity = *request.identity;
  const auto set = [&](CURLoption option, auto value) { exchange->Set(option, value); };
  set(CURLOPT_URL, (server_ + request.path).c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_ERRORBUFFER, exchange->error);
  set(CURLOPT_NOSIGNAL, 1L);  // Else every turn of every exchange ignores SIGPIPE again.
  set(CURLOPT_BUFFERSIZE, 256L << 10);
  set(CURLOPT_PRIVATE, static_cast<void*>(exchange));
  set(CURLOPT_WRITEFUNCTION, &Transfers::Receive);
  set(CURLOPT_WRITEDATA, static_cast<void*>(exchange));
  set(CURLOPT_HEADERFUNCTION, &Transfers::ReceiveHeader);
  set(CURLOPT_HEADERDATA, static_cast<void*>(exchange));
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(
      CURLOPT_SOCKOPTFUNCTION, +[](void* self, curl_socket_t socket, curlsocktype) {
        return ConfigureSocket(self, socket, 0);
      });
  set(CURLOPT_SOCKOPTDATA, static_cast<void*>(this));
  set(
      CURLOPT_CLOSESOCKETFUNCTION,
      +[](void* self, curl_socket_t socket) { return CloseSocket(self, socket); });
  set(CURLOPT_CLOSESOCKETDATA, static_cast<void*>(this));
  set(CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(request.connect_timeout));
  set(CURLOPT_TIMEOUT_MS, Milliseconds(request.timeout));
  if (proxy_ == "-") {
    set(CURLOPT_PROXY, "");
  } else if (!proxy_.empty()) {
    set(CURLOPT_PROXY, proxy_.c_str());
  }
  SetTls(exchange);
  const auto add = [&](const std::string& line) {
    exchange->headers = curl_slist_append(exchange->headers, line.c_str());
  };
  if (!host_header_.empty()) add(host_header_);
  add("Accept: application/json");
  add("Expect:");
  for (const std::string& header : request.headers) add(header);
  if (!identity.token.empty()) add("Authorization: Bearer " + identity.token);
  set(CURLOPT_HTTPHEADER, exchange->headers);
  if (!connect_to_.empty()) {
    exchange->connect_to = curl_slist_append(nullptr, connect_to_.c_str());
    set(CURLOPT_CONNECT_TO, exchange->connect_to);
  }
  if (!request.body.empty()) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.data());
  }
  if (request.method != "GET") set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  set(CURLOPT_PREREQFUNCTION, &Transfers::BeforeItGoes);
  set(CURLOPT_PREREQDATA, static_cast<void*>(exchange));
}

void Transfers::SetTls(Exchange* exchange) {
  const Identity& identity = *exchange->request.identity;
  const auto set = [&](CURLoption option, auto value) { exchange->Set(option, value); };
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (certificate_check_ == ServerCertificate::kAccepted) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  } else if (!identity.authority.empty()) {
    const curl_blob authority = Blob(identity.authority);
    set(CURLOPT_CAINFO, static_cast<const char*>(nullptr));
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // No other than this one.
    set(CURLOPT_CAINFO_BLOB, &authority);
  }
  if (!identity.certificate.empty()) {
    const curl_blob certificate = Blob(identity.certificate), key = Blob(identity.key);
    set(CURLOPT_SSLCERT_BLOB, &certificate);
    set(CURLOPT_SSLKEY_BLOB, &key);
  }
}

void Transfers::Cancel(Id id) {
  const auto found = exchanges_.find(id);
  if (found == exchanges_.end()) return;
  Exchange& exchange = *found->second;
  curl_multi_remove_handle(curl_->multi, exchange.easy);
  if (exchange.is_answered) {
    curl_easy_reset(exchange.easy);  // Keeps nothing of this request.
    curl_->spare.push_back(exchange.easy);
  } else {
    // A handle that did not come to its end, after a name was not found say, still holds buffers
    // and takes no new options for them.
    curl_easy_cleanup(exchange.easy);
  }
  curl_slist_free_all(exchange.headers);
  curl_slist_free_all(exchange.connect_to);
  exchanges_.erase(found);
}

void Transfers::Poll(Duration timeout, std::vector<Waited>* waited) {
  int running = 0;
  // Each turn looks at every exchange, also at watches on which nothing comes: here only for those
  // that have no connection to wait on yet.
  if (std::exchange(has_begun_, false)) {
    curl_multi_perform(curl_->multi, &running);
    if (Deliver()) timeout = Duration::zero();  // There may be more to do already.
  }
  curl_->waited.clear();
  for (const Waited& other : *waited)
    curl_->waited.push_back({other.descriptor, CURL_WAIT_POLLIN, 0});
  curl_multi_poll(curl_->multi, curl_->waited.data(), static_cast<unsigned>(curl_->waited.size()),
                  static_cast<int>(Milliseconds(timeout)), nullptr);
  for (size_t i = 0; i < waited->size(); ++i)
    (*waited)[i].is_readable = curl_->waited[i].revents != 0;
  curl_multi_perform(curl_->multi, &running);
  Deliver();
}

// Tells what libcurl has received. True if anybody was told anything.
bool Transfers::Deliver() {
  bool told = false;
  std::vector<Id> streams, refused;
  for (const auto& [id, exchange] : exchanges_) {
    if (exchange->stream && exchange->has_news) streams.push_back(id);
    if (!exchange->refused.empty()) refused.push_back(id);
  }
  for (const Id id : streams) told |= DeliverLines(id);
  for (const Id id : refused) {
    const auto found = exchanges_.find(id);
    if (found == exchanges_.end()) continue;
    HttpResult result{.failure = HttpFailure::kUnsent, .why = found->second->refused};
    End(id, std::move(result));
    told = true;
  }
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(curl_->multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    char* context = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &context);
    auto* exchange = reinterpret_cast<Exchange*>(context);
    const Id id = exchange->id;
    exchange->is_answered = code == CURLE_OK;
    HttpResult result;
    result.failure =
        exchange->is_over_limit ? HttpFailure::kTooLong : FailureOf(exchange->easy, code);
    long status = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    result.status = exchange->status = static_cast<int>(status);
    curl_off_t retry_after = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_RETRY_AFTER, &retry_after);
    if (retry_after > 0)
      result.retry_after = std::chrono::seconds(std::min<curl_off_t>(retry_after, 3600));
    if (code != CURLE_OK) result.why = Reason(exchange->easy, code, exchange->error);
    if (exchange->is_over_limit) result.why = "the answer, or a line of it, is too long";
    if (!exchange->stream || status != 200) result.body = std::move(exchange->received);
    End(id, std::move(result));
    told = true;
  }
  return told;
}

bool Transfers::DeliverLines(Id id) {
  // Each callback may cancel the stream.
  const auto find = [&]() -> Exchange* {
    const auto found = exchanges_.find(id);
    return found == exchanges_.end() ? nullptr : found->second.get();
  };
  Exchange* exchange = find();
  if (exchange == nullptr) return false;
  exchange->has_news = false;
  if (exchange->status != 200) return false;
  const std::shared_ptr<const Stream> stream = exchange->stream;
  if (!exchange->is_open) {
    exchange->is_open = true;
    stream->on_open();
    exchange = find();
  }
  std::string line;
  while (exchange != nullptr) {
    const size_t end = exchange->received.find('\n', exchange->told);
    if (end == std::string::npos) break;
    line.assign(exchange->received, exchange->told, end - exchange->told);
    exchange->told = end + 1;
    if (!line.empty()) stream->on_line(line);
    exchange = find();
  }
  if (exchange == nullptr) return true;
  exchange->received.erase(0, exchange->told);
  exchange->told = 0;
  // A list came in one burst; the watch after it says little.
  if (exchange->received.capacity() > kKeptBytesMax && exchange->received.size() < kKeptBytesMax)
    exchange->received.shrink_to_fit();
  if (exchange->received.size() > kLineBytesMax) {
    HttpResult result;
    result.failure = HttpFailure::kTooLong;
    result.why = "a line of the stream is too long";
    result.status = exchange->status;
    End(id, std::move(result));
  }
  return true;
}

void Transfers::End(Id id, HttpResult result) {
  const auto found = exchanges_.find(id);
  CHECK(found != exchanges_.end());
  const OnDone on_done = std::move(found->second->on_done);
  Cancel(id);
  on_done(std::move(result));
}

}  // namespace rudderfish::kube
