// SPDX-License-Identifier: Apache-2.0
#include "kube/credentials.h"

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "kube/oidc.h"

namespace rudderfish::kube {
namespace {

constexpr Duration kRefreshLook = std::chrono::milliseconds(20);  // While an issuer is asked.
constexpr Duration kPluginPause = std::chrono::seconds(1);        // After a failure.
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

ExecCredential CredentialOf(const OidcProvider& provider) {
  return {.token = provider.id_token, .expires = ExpiryOf(provider.id_token)};
}

}  // namespace

Result<Credentials> Credentials::Open(ClusterAccess access, const Clock* clock,
                                      Duration plugin_limit) {
  Credentials credentials(std::move(access), clock, plugin_limit);
  TRY(credentials.ReadFiles());
  const std::optional<OidcProvider>& oidc = credentials.access_.oidc;
  if (oidc && !oidc->id_token.empty()) credentials.Use(CredentialOf(*oidc));
  return credentials;
}

Credentials::Credentials(Credentials&& other) noexcept = default;
Credentials::~Credentials() = default;

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
  if (!IsRenewed()) return Standing::kReady;
  if (run_ || refresh_ != nullptr) {
    const auto outcome = CheckRun(now);
    if (!outcome) return Standing::kPending;
    run_.reset();
    refresh_.reset();
    Adopt(*outcome);
  }
  if (plugin_ && now < plugin_expires_) return Standing::kReady;
  if (now < plugin_retry_) return plugin_failed_ ? Standing::kFailed : Standing::kReady;
  return access_.exec ? StartPlugin(now) : StartRefresh(now);
}

bool Credentials::IsRenewed() const {
  return (access_.exec || access_.oidc) && access_.token.empty() && access_.token_file.empty();
}

Instant Credentials::wake() const {
  if (run_) return run_->deadline();
  return refresh_ != nullptr ? clock_->Now() + kRefreshLook : Instant::max();
}

std::optional<Result<ExecCredential>> Credentials::CheckRun(Instant now) {
  if (run_) return run_->Check(now);
  const std::optional<Result<OidcProvider>> outcome = refresh_->Check(now);
  if (!outcome) return std::nullopt;
  if (!*outcome) return Result<ExecCredential>(tl::unexpected(outcome->error()));
  const OidcProvider before = std::exchange(*access_.oidc, **outcome);
  if (before.refresh_token != access_.oidc->refresh_token) spent_ = before.refresh_token;
  if (const Result<void> saved = SaveRefreshToken(before, *access_.oidc); !saved) {
    LogWarning(
        "the OIDC issuer has replaced the refresh token, and the new one was not saved ({}); "
        "kubectl may have to log in again",
        saved.error().message);
  }
  return Result<ExecCredential>(CredentialOf(*access_.oidc));
}

Credentials::Standing Credentials::StartPlugin(Instant now) {
  auto run = ExecRun::Start(*access_.exec, now + plugin_limit_);
  if (!run) {
    Adopt(tl::unexpected(std::move(run).error()));
    return Standing::kFailed;
  }
  run_ = *std::move(run);
  return Standing::kPending;
}

// A login, or kubectl, may have renewed the tokens in the file meanwhile: then nothing is asked.
Credentials::Standing Credentials::StartRefresh(Instant now) {
  OidcProvider& known = *access_.oidc;
  if (Result<OidcProvider> read = ReadOidcAgain(known)) {
    const bool is_new = !read->id_token.empty() && read->id_token != known.id_token;
    if (read->refresh_token == spent_) read->refresh_token = known.refresh_token;
    known = *std::move(read);
    if (is_new) Use(CredentialOf(known));
    if (is_new && now < plugin_expires_) return Standing::kReady;
  }
  if (known.refresh_token.empty() || known.issuer.empty() || known.client_id.empty()) {
    Adopt(Fail(ErrorCode::kFailedPrecondition,
               "the id-token of user {} has expired or was refused, and {} does not say how to "
               "renew it (idp-issuer-url, client-id, refresh-token); log in again",
               known.user, known.file.string()));
    return Standing::kFailed;
  }
  refresh_ = std::make_unique<OidcRefresh>(known, now, now + plugin_limit_);
  return Standing::kPending;
}

void Credentials::Adopt(const Result<ExecCredential>& credential) {
  plugin_failed_ = !credential.has_value();
  plugin_retry_ = clock_->Now() + kPluginPause;
  if (!credential) {
    error_ = credential.error();
    return;
  }
  Use(*credential);
}

void Credentials::Use(ExecCredential credential) {
  const Instant now = clock_->Now();
  plugin_ = std::move(credential);
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
  const bool is_current =
      refused.token == identity_->token && refused.certificate == identity_->certificate;
  if (!is_current) return true;  // Renewed while the request was under way.
  if (IsRenewed()) {
    plugin_expires_ = clock_->Now();
    return true;
  }
  if (access_.token_file.empty() && access_.certificate.file.empty()) return false;
  if (!ReadFiles()) return false;
  return refused.token != identity_->token || refused.certificate != identity_->certificate;
}

}  // namespace rudderfish::kube
