// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "kube/kubeconfig.h"

// Renews the id-token of `auth-provider: {name: oidc}` as kubectl does: the issuer's discovery
// document names the token endpoint, which takes the refresh token. Messages name the issuer and
// never a token, a secret or what the issuer said beside its error code. Owned by one thread.

namespace rudderfish::kube {

struct HttpResult;
class Transfers;
struct Identity;

// When an id-token (a JWT) ends; nothing if it does not say.
std::optional<Date> ExpiryOf(std::string_view id_token);

class OidcRefresh {
 public:
  OidcRefresh(OidcProvider provider, Instant now, Instant deadline);
  ~OidcRefresh();
  OidcRefresh(const OidcRefresh&) = delete;
  OidcRefresh& operator=(const OidcRefresh&) = delete;

  // Goes on without waiting. Nothing while there is no answer; else the provider with its new
  // tokens.
  std::optional<Result<OidcProvider>> Check(Instant now);

 private:
  // The client's password goes into a header; an issuer that refuses that gets it in the body.
  enum class Step { kDiscovery, kTokenByHeader, kTokenByBody };
  Result<void> Send(const std::string& url, std::string body, std::string header);
  Result<void> AskForToken(Step step);
  std::optional<Result<OidcProvider>> Answered(const HttpResult& answer);
  Result<OidcProvider> ReadTokens(const std::string& body) const;
  tl::unexpected<Error> Refuse(ErrorCode code, std::string_view why) const;

  OidcProvider provider_;
  Instant deadline_;
  Duration limit_;
  Step step_ = Step::kDiscovery;
  std::string token_endpoint_;
  std::shared_ptr<const Identity> identity_;  // The issuer's authority alone.
  std::unique_ptr<Transfers> transfers_;
  std::unique_ptr<HttpResult> answer_;
  std::optional<Error> failed_;  // To send.
};

// Writes a refresh token that the issuer has replaced into the kubeconfig, in the old one's place,
// because the old one is of no use to kubectl any more. Nothing else is changed.
Result<void> SaveRefreshToken(const OidcProvider& before, const OidcProvider& after);

}  // namespace rudderfish::kube
