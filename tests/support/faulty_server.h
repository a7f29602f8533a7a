// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// An HTTP/1.1 server on loopback that misbehaves byte by byte as a test says: refuses, cuts lines,
// resets connections, stands still. It knows nothing of Kubernetes. Each connection has a thread,
// on which the test's handler answers; requests are numbered from 0 over all connections.

namespace rudderfish::testing {

struct SeenRequest {
  int number = 0;
  std::string method;
  std::string target;
  std::string head;  // All lines of it.
  std::string body;
};

class Connection {
 public:
  void Write(const std::string& bytes);
  void Answer(int status, const std::string& body, const std::string& headers = "");
  void BeginStream();                    // Chunked, status 200.
  void Chunk(const std::string& bytes);  // Of a stream.
  void EndStream();
  void Reset();  // The peer gets a RST.
  void Hang();   // Says nothing more until the server ends.

 private:
  friend class FaultyServer;
  int socket_ = -1;
  SSL* tls_ = nullptr;
  bool is_open_ = true;
  const std::atomic<bool>* is_over_ = nullptr;
};

enum class Transport { kPlain, kTls, kTlsReset };  // The last: resets in the handshake.

class FaultyServer {
 public:
  using Handler = std::function<void(const SeenRequest&, Connection*)>;

  explicit FaultyServer(Handler handler, Transport transport = Transport::kPlain);
  ~FaultyServer();
  FaultyServer(const FaultyServer&) = delete;
  FaultyServer& operator=(const FaultyServer&) = delete;

  std::string url() const;
  const std::string& certificate() const { return certificate_; }  // PEM, of 127.0.0.1 and "kube".
  std::vector<SeenRequest> requests() const;
  int connections() const { return connections_; }

 private:
  void Accept();
  void Serve(int socket);

  Handler handler_;
  Transport transport_;
  std::string certificate_;
  SSL_CTX* context_ = nullptr;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> is_over_ = false;
  std::atomic<int> connections_ = 0;
  mutable std::mutex mutex_;  // Of what follows.
  std::vector<SeenRequest> requests_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace rudderfish::testing
