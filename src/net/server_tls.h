// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"

struct ssl_ctx_st;  // SSL_CTX of OpenSSL.

// What a server proves itself with, and which clients it takes. Certificates are renewed while
// servers run: files that have changed are read again.

namespace rudderfish {

// Paths of PEM files.
struct ServerTlsFiles {
  std::string certificate;  // With those between it and the authority, if any.
  std::string key;
  std::string client_ca;  // The CA of clients' certificates; empty: clients need no certificate.

  bool operator==(const ServerTlsFiles&) const = default;
};

class ServerTls {
 public:
  // TLS 1.2 at least. kInvalidArgument with the file's name: not there, no PEM, a key of another
  // certificate.
  static Result<std::unique_ptr<ServerTls>> Load(const ServerTlsFiles& files);

  // For a new connection. If files have changed and cannot be used, what held before goes on, and
  // the log says so. Any thread.
  std::shared_ptr<ssl_ctx_st> Current();

 private:
  using Times = std::vector<std::filesystem::file_time_type>;

  ServerTls(ServerTlsFiles files, Times times, std::shared_ptr<ssl_ctx_st> context);

  const ServerTlsFiles files_;
  std::mutex mutex_;
  Times times_;  // When the files of `context_`, or those last refused, were written.
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace rudderfish
