// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/exec_plugin.h"
#include "kube/kubeconfig.h"

// Who we are, kept fresh: files of tokens and certificates are read again every minute and when the
// server has refused us; an exec plugin runs again, and an OIDC issuer is asked for a new id-token,
// when what they gave has expired or was refused. What was read last stays good while a file cannot
// be read. Nothing here reaches a log. Owned by one thread.

namespace rudderfish::kube {

// What a connection and a request need. Replaced as a whole: requests under way keep theirs.
struct Identity {
  std::string authority;    // PEM, empty: the system's.
  std::string certificate;  // PEM, empty: none.
  std::string key;
  std::string token;  // Empty: none.
};

class OidcRefresh;

class Credentials {
 public:
  static constexpr Duration kRereadInterval = std::chrono::minutes(1);
  static constexpr Duration kPluginLimit = std::chrono::seconds(15);

  // Reads the files; fails if one of them cannot be read. The plugin is started when first needed.
  static Result<Credentials> Open(ClusterAccess access, const Clock* clock,
                                  Duration plugin_limit = kPluginLimit);
  Credentials(Credentials&& other) noexcept;
  ~Credentials();

  enum class Standing { kReady, kPending, kFailed };

  // Renews what is due. Call it before a request and after descriptor() had something to read or
  // wake() has passed.
  Standing Check();

  std::shared_ptr<const Identity> identity() const { return identity_; }
  const Error& error() const { return error_; }  // After kFailed.

  // The server did not know us (401): says whether there may be something newer to try.
  bool Reject(const Identity& refused);

  int descriptor() const { return run_ ? run_->descriptor() : -1; }
  Instant wake() const;
  const ClusterAccess& access() const { return access_; }

 private:
  Credentials(ClusterAccess access, const Clock* clock, Duration plugin_limit);
  Result<void> ReadFiles();
  // Whether a plugin or an issuer gives the token; one that the kubeconfig gives makes it needless.
  bool IsRenewed() const;
  std::optional<Result<ExecCredential>> CheckRun(Instant now);
  Standing StartPlugin(Instant now);
  Standing StartRefresh(Instant now);
  void Adopt(const Result<ExecCredential>& credential);
  void Use(ExecCredential credential);

  ClusterAccess access_;
  const Clock* clock_;
  Duration plugin_limit_;
  std::shared_ptr<const Identity> identity_;
  Instant reread_at_;

  std::optional<ExecRun> run_;
  std::unique_ptr<OidcRefresh> refresh_;
  std::string spent_;                     // The refresh token that the issuer has replaced last.
  std::optional<ExecCredential> plugin_;  // What it gave last.
  Instant plugin_expires_ = Instant::max();
  Instant plugin_retry_ = Instant::min();  // Not again before.
  bool plugin_failed_ = false;
  Error error_;
};

}  // namespace rudderfish::kube
