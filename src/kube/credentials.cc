// SPDX-License-Identifier: Apache-2.0
#include "kube/credentials.h"

#include <algorithm>
#include <utility>

#include "base/files.h"

namespace rudderfish::kube {
namespace {

constexpr Duration kPluginPause = std::chrono::seconds(1);  // After a failure.
constexpr auto kExpiryMax = std::chrono::hours(24 * 365);
constexpr Duration kExpiryLeeway = std::chrono::seconds(10);  // Renewed this long before.

Result<void> ReadPem(const PemSource& source, std::string* pem) {
  if (source.file.empty()) {
    *pem = source.text;
    return {};
  }
  TRY_ASSIGN(*pem, ReadFile(source.file));
  return {};
}

// A token is one line; the file may end in a line break.
std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find_first_of("\r\n"));
}

}  // namespace

Result<Credentials> Credentials::Open(ClusterAccess access, const Clock* clock,
                                      Duration plugin_limit) {
  Credentials credentials(std::move(access), clock, plugin_limit);
  TRY(credentials.ReadFiles());
  return credentials;
}

Credentials::Credentials(ClusterAccess access, const Clock* clock, Duration plugin_limit)
    : access_(std::move(access)), clock_(clock), plugin_limit_(plugin_limit) {}

Result<void> Credentials::ReadFiles() {
  reread_at_ = clock_->Now() + kRereadInterval;
  Identity fresh;
  TRY(ReadPem(access_.authority, &fresh.authority));
  TRY(ReadPem(access_.certificate, &fresh.certificate));
  TRY(ReadPem(access_.key, &fresh.key));
  fresh.token = access_.token;
  if (!access_.token_file.empty()) {
    TRY_ASSIGN(const std::string text, ReadFile(access_.token_file));
    fresh.token = FirstLine(text);
    if (fresh.token.empty())
      return Invalid("{}: the file of the token is empty", access_.token_file.string());
  }
  if (plugin_) {
    if (fresh.token.empty()) fresh.token = plugin_->token;
    if (fresh.certificate.empty()) {
      fresh.certificate = plugin_->certificate;
      fresh.key = plugin_->key;
    }
  }
  identity_ = std::make_shared<const Identity>(std::move(fresh));
  return {};
}

Credentials::Standing Credentials::Check() {
  const Instant now = clock_->Now();
  if (now >= reread_at_) {
    // A file that is being replaced will be there next time.
    if (!ReadFiles()) reread_at_ = now + kRereadInterval;
  }
  // As everywhere, a token that the kubeconfig gives makes its plugin needless.
  if (!access_.exec || !access_.token.empty() || !access_.token_file.empty())
    return Standing::kReady;
  if (run_) {
    if (const auto outcome = run_->Check(now)) {
      run_.reset();
      Adopt(*outcome);
    } else {
      return Standing::kPending;
    }
  }
  if (plugin_ && now < plugin_expires_) return Standing::kReady;
  if (now < plugin_retry_) return plugin_failed_ ? Standing::kFailed : Standing::kReady;
  auto run = ExecRun::Start(*access_.exec, now + plugin_limit_);
  if (!run) {
    Adopt(tl::unexpected(std::move(run).error()));
    return Standing::kFailed;
  }
  run_ = *std::move(run);
  return Standing::kPending;
}

void Credentials::Adopt(const Result<ExecCredential>& credential) {
  const Instant now = clock_->Now();
  plugin_failed_ = !credential.has_value();
  plugin_retry_ = now + kPluginPause;
  if (!credential) {
    error_ = credential.error();
    return;
  }
  plugin_ = *credential;
  plugin_expires_ = Instant::max();
  if (plugin_->expires) {
    // Dates are compared once; from here on only time that passes counts.
    const Date today = Today();
    const Duration left = std::clamp(*plugin_->expires, today, today + kExpiryMax) - today;
    plugin_expires_ = now + left - std::min(kExpiryLeeway, left / 10);
  }
  if (!ReadFiles()) reread_at_ = now;
}

bool Credentials::Reject(const Identity& refused) {
  const bool has_plugin = access_.exec && access_.token.empty() && access_.token_file.empty();
  const bool is_current =
      refused.token == identity_->token && refused.certificate == identity_->certificate;
  if (!is_current) return true;  // Renewed while the request was under way.
  if (has_plugin) {
    plugin_expires_ = clock_->Now();
    return true;
  }
  if (access_.token_file.empty() && access_.certificate.file.empty()) return false;
  if (!ReadFiles()) return false;
  return refused.token != identity_->token || refused.certificate != identity_->certificate;
}

}  // namespace rudderfish::kube
