// SPDX-License-Identifier: Apache-2.0
#include "tests/support/faulty_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>

#include "base/check.h"

namespace rudderfish::testing {
namespace {

// A key and a certificate signed by itself, into `context`; the certificate as PEM.
std::string MakeCertificate(SSL_CTX* context) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  CHECK(key != nullptr);
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509V3_CTX extensions;
  X509V3_set_ctx(&extensions, certificate, certificate, nullptr, nullptr, 0);
  const auto add = [&](int id, const char* value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &extensions, id, value);
    CHECK(extension != nullptr);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  };
  add(NID_basic_constraints, "critical,CA:TRUE");
  add(NID_subject_alt_name, "IP:127.0.0.1,DNS:kube");
  CHECK_GT(X509_sign(certificate, key, EVP_sha256()), 0);
  CHECK_EQ(SSL_CTX_use_certificate(context, certificate), 1);
  CHECK_EQ(SSL_CTX_use_PrivateKey(context, key), 1);
  BIO* memory = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(memory, certificate);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory, &bytes);
  std::string pem(bytes, size);
  BIO_free(memory);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return pem;
}

void ResetSocket(int socket) {
  const linger at_once{1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(socket);
}

size_t ContentLength(const std::string& head) {
  const size_t at = head.find("Content-Length: ");
  size_t length = 0;
  if (at != std::string::npos)
    std::from_chars(head.data() + at + 16, head.data() + head.size(), length);
  return length;
}

}  // namespace

void Connection::Write(const std::string& bytes) {
  size_t done = 0;
  while (is_open_ && done < bytes.size()) {
    const auto count = tls_ != nullptr
                           ? SSL_write(tls_, bytes.data() + done, bytes.size() - done)
                           : send(socket_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (count <= 0) is_open_ = false;
    done += std::max<ssize_t>(count, 0);
  }
}

void Connection::Answer(int status, const std::string& body, const std::string& headers) {
  Write("HTTP/1.1 " + std::to_string(status) + " -\r\nContent-Type: application/json\r\n" +
        headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

void Connection::BeginStream() {
  Write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void Connection::Chunk(const std::string& bytes) {
  char size[24];
  snprintf(size, sizeof(size), "%zx\r\n", bytes.size());
  Write(size + bytes + "\r\n");
}

void Connection::EndStream() { Write("0\r\n\r\n"); }

void Connection::Reset() {
  if (socket_ >= 0) ResetSocket(socket_);
  socket_ = -1;
  is_open_ = false;
}

void Connection::Hang() {
  while (!*is_over_) poll(nullptr, 0, 5);
  is_open_ = false;
}

FaultyServer::FaultyServer(Handler handler, Transport transport)
    : handler_(std::move(handler)), transport_(transport) {
  signal(SIGPIPE, SIG_IGN);
  context_ = SSL_CTX_new(TLS_server_method());
  CHECK(context_ != nullptr);
  certificate_ = MakeCertificate(context_);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  CHECK_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
  CHECK_EQ(listen(listener_, 64), 0);
  CHECK_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

FaultyServer::~FaultyServer() {
  is_over_ = true;
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  close(listener_);
  SSL_CTX_free(context_);
}

std::string FaultyServer::url() const {
  return (transport_ == Transport::kPlain ? "http" : "https") + std::string("://127.0.0.1:") +
         std::to_string(port_);
}

std::vector<SeenRequest> FaultyServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void FaultyServer::Accept() {
  while (!is_over_) {
    pollfd waited{listener_, POLLIN, 0};
    if (poll(&waited, 1, 5) <= 0) continue;
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    ++connections_;
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([this, socket] { Serve(socket); });
  }
}

void FaultyServer::Serve(int socket) {
  const timeval step{0, 5000};  // So that a silent peer cannot keep us beyond our end.
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &step, sizeof(step));
  const int no_delay = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof(no_delay));
  if (transport_ == Transport::kTlsReset) {
    char byte = 0;
    while (!is_over_ && recv(socket, &byte, 1, MSG_PEEK) < 0) {
    }
    ResetSocket(socket);
    return;
  }
  Connection connection;
  connection.socket_ = socket;
  connection.is_over_ = &is_over_;
  const auto read = [&](char* bytes, size_t size) -> ssize_t {
    while (!is_over_) {
      const auto count = connection.tls_ != nullptr ? SSL_read(connection.tls_, bytes, size)
                                                    : recv(socket, bytes, size, 0);
      if (count > 0) return count;
      const bool is_late = connection.tls_ != nullptr
                               ? SSL_get_error(connection.tls_, count) == SSL_ERROR_WANT_READ
                               : count < 0 && errno == EAGAIN;
      if (!is_late) return 0;
    }
    return 0;
  };
  if (transport_ == Transport::kTls) {
    connection.tls_ = SSL_new(context_);
    SSL_set_fd(connection.tls_, socket);
    int done = SSL_accept(connection.tls_);
    while (done <= 0 && !is_over_ && SSL_get_error(connection.tls_, done) == SSL_ERROR_WANT_READ)
      done = SSL_accept(connection.tls_);
    connection.is_open_ = done == 1;
  }
  std::string received;
  char buffer[4096];
  while (connection.is_open_ && !is_over_) {
    size_t end = received.find("\r\n\r\n");
    if (end == std::string::npos || received.size() < end + 4 + ContentLength(received)) {
      const ssize_t count = read(buffer, sizeof(buffer));
      if (count <= 0) break;
      received.append(buffer, count);
      continue;
    }
    SeenRequest request;
    const size_t length = ContentLength(received);
    request.head = received.substr(0, end + 2);
    request.body = received.substr(end + 4, length);
    received.erase(0, end + 4 + length);
    request.method = request.head.substr(0, request.head.find(' '));
    const size_t target = request.method.size() + 1;
    request.target = request.head.substr(target, request.head.find(' ', target) - target);
    {
      const std::lock_guard lock(mutex_);
      request.number = static_cast<int>(requests_.size());
      requests_.push_back(request);
    }
    handler_(request, &connection);
  }
  if (connection.tls_ != nullptr) SSL_free(connection.tls_);
  if (connection.socket_ >= 0) close(connection.socket_);
}

}  // namespace rudderfish::testing
