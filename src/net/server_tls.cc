// SPDX-License-Identifier: Apache-2.0
#include "net/server_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <system_error>
#include <utility>

#include "base/log.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr unsigned char kSessionContext[] = "rudderfish";
constexpr long kSessionSeconds = 300;

// What OpenSSL last complained of on this thread; of a file that cannot be opened, the system's
// words, which it complains of first.
std::string TlsProblem() {
  const unsigned long first = ERR_peek_error(), code = ERR_peek_last_error();
  ERR_clear_error();
  if (ERR_SYSTEM_ERROR(first))
    return std::error_code(ERR_GET_REASON(first), std::generic_category()).message();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "cannot be read" : reason;
}

Result<std::shared_ptr<SSL_CTX>> MakeContext(const ServerTlsFiles& files) {
  ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return Fail(ErrorCode::kUnavailable, "TLS: {}", TlsProblem());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1)
    return Invalid("{}: expected a certificate in PEM: {}", files.certificate, TlsProblem());
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1)
    return Invalid("{}: expected the key of {} in PEM: {}", files.key, files.certificate,
                   TlsProblem());
  // Sessions of other servers of ours, or from before files were read again, are not resumed: keys
  // of tickets are a context's own, as is its cache. Within one, what was proven once holds for a
  // while, also by a certificate that expires meanwhile.
  SSL_CTX_set_session_id_context(context.get(), kSessionContext, sizeof(kSessionContext) - 1);
  SSL_CTX_set_timeout(context.get(), kSessionSeconds);
  if (files.client_ca.empty()) return context;
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(files.client_ca.c_str());
  if (names == nullptr ||
      SSL_CTX_load_verify_locations(context.get(), files.client_ca.c_str(), nullptr) != 1) {
    sk_X509_NAME_pop_free(names, X509_NAME_free);
    return Invalid("{}: expected certificates of who signs clients, in PEM: {}", files.client_ca,
                   TlsProblem());
  }
  SSL_CTX_set_client_CA_list(context.get(), names);  // Owns them now.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

// A file that is away at the moment has the time of none.
std::vector<fs::file_time_type> TimesOf(const ServerTlsFiles& files) {
  std::vector<fs::file_time_type> times;
  for (const std::string* file : {&files.certificate, &files.key, &files.client_ca}) {
    std::error_code ignored;
    times.push_back(file->empty() ? fs::file_time_type::min()
                                  : fs::last_write_time(*file, ignored));
  }
  return times;
}

}  // namespace

ServerTls::ServerTls(ServerTlsFiles files, Times times, std::shared_ptr<ssl_ctx_st> context)
    : files_(std::move(files)), times_(std::move(times)), context_(std::move(context)) {}

Result<std::unique_ptr<ServerTls>> ServerTls::Load(const ServerTlsFiles& files) {
  Times times = TimesOf(files);  // Before reading: what is written meanwhile is seen later.
  TRY_ASSIGN(std::shared_ptr<SSL_CTX> context, MakeContext(files));
  return std::unique_ptr<ServerTls>(new ServerTls(files, std::move(times), std::move(context)));
}

std::shared_ptr<ssl_ctx_st> ServerTls::Current() {
  Times times = TimesOf(files_);
  const std::lock_guard lock(mutex_);
  if (times == times_) return context_;
  times_ = std::move(times);
  Result<std::shared_ptr<SSL_CTX>> renewed = MakeContext(files_);
  if (renewed) {
    context_ = *std::move(renewed);
    LogInfo("{}: read again, as its files have changed", files_.certificate);
  } else {
    LogError("the certificate that was read before stays in use: {}", renewed.error().message);
  }
  return context_;
}

}  // namespace rudderfish
