// SPDX-License-Identifier: Apache-2.0
#include "kube/oidc.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/escape.h"
#include "base/files.h"
#include "kube/base64.h"
#include "kube/fields.h"
#include "kube/transfers.h"

namespace rudderfish::kube {
namespace {

constexpr int64_t kLastSecond = 32'503'680'000;  // The year 3000.
constexpr size_t kErrorCodeMax = 40;
// What a plain scalar of YAML may hold in any place, and tokens are made of.
constexpr std::string_view kTokenCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=";

// https://host[:port] and the path below it; nothing if it is anything else.
std::optional<std::pair<std::string, std::string>> SplitUrl(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  const std::string_view name = url.substr(0, scheme);
  if (name != "https" && name != "http") return std::nullopt;
  const bool is_odd = std::any_of(url.begin(), url.end(), [](const char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '@' || c == '#' || c == 0x7F;
  });
  const size_t end = std::min(url.find_first_of("/?", scheme + 3), url.size());
  if (is_odd || end == scheme + 3) return std::nullopt;
  std::string path(url.substr(end));
  if (!path.starts_with('/')) path.insert(0, "/");
  return std::pair(std::string(url.substr(0, end)), std::move(path));
}

std::string TextIn(const std::string& json, std::string_view key) {
  simdjson::dom::parser parser;
  Element root;
  if (parser.parse(json).get(root) != simdjson::SUCCESS || !root.is_object()) return "";
  return std::string(TextOf(root, key));
}

// The code of an OAuth 2.0 error, such as invalid_grant, in parentheses; empty: there is none.
std::string ErrorCodeIn(const std::string& json) {
  const std::string code = TextIn(json, "error");
  const bool is_code = !code.empty() && code.size() <= kErrorCodeMax &&
                       code.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
  return is_code ? fmt::format(" ({})", code) : "";
}

}  // namespace

std::optional<Date> ExpiryOf(std::string_view id_token) {
  const size_t first = id_token.find('.');
  if (first == std::string_view::npos) return std::nullopt;
  const size_t second = id_token.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  std::string claims(id_token.substr(first + 1, second - first - 1));
  std::replace(claims.begin(), claims.end(), '-', '+');
  std::replace(claims.begin(), claims.end(), '_', '/');
  claims.append((4 - claims.size() % 4) % 4, '=');
  const auto json = DecodeBase64(claims);
  if (!json) return std::nullopt;
  simdjson::dom::parser parser;
  Element root, expires;
  double seconds = 0;
  if (parser.parse(*json).get(root) != simdjson::SUCCESS || !root.is_object() ||
      root["exp"].get(expires) != simdjson::SUCCESS || expires.get(seconds) != simdjson::SUCCESS)
    return std::nullopt;
  const double bounded = std::clamp(seconds, 0.0, static_cast<double>(kLastSecond));
  return Date(std::chrono::seconds(static_cast<int64_t>(bounded)));
}

OidcRefresh::OidcRefresh(OidcProvider provider, Instant now, Instant deadline)
    : provider_(std::move(provider)), deadline_(deadline), limit_(deadline - now) {
  Identity identity;
  identity.authority = provider_.authority.text;
  if (!provider_.authority.file.empty()) {
    Result<std::string> pem = ReadFile(provider_.authority.file);
    if (!pem) {
      failed_ = pem.error();
      return;
    }
    identity.authority = *std::move(pem);
  }
  identity_ = std::make_shared<const Identity>(std::move(identity));
  std::string issuer = provider_.issuer;
  while (issuer.ends_with('/')) issuer.pop_back();
  if (const Result<void> sent = Send(issuer + "/.well-known/openid-configuration", "", ""); !sent)
    failed_ = sent.error();
}

OidcRefresh::~OidcRefresh() = default;

tl::unexpected<Error> OidcRefresh::Refuse(ErrorCode code, std::string_view why) const {
  const bool is_url = SplitUrl(provider_.issuer).has_value();
  return Fail(code, "OIDC issuer{}: {}", is_url ? " " + provider_.issuer : "", why);
}

Result<void> OidcRefresh::Send(const std::string& url, std::string body, std::string header) {
  const auto parts = SplitUrl(url);
  if (!parts) return Refuse(ErrorCode::kInvalidArgument, "its URL is not https://HOST[:PORT]/...");
  transfers_ = std::make_unique<Transfers>(ClusterAccess{.server = parts->first}, 1);
  answer_.reset();
  HttpRequest request{.method = body.empty() ? "GET" : "POST", .path = parts->second};
  if (!body.empty()) request.headers.push_back("Content-Type: application/x-www-form-urlencoded");
  if (!header.empty()) request.headers.push_back(std::move(header));
  request.body = std::move(body);
  request.identity = identity_;
  request.connect_timeout = request.timeout = limit_;
  transfers_->Begin(std::move(request), [this](HttpResult result) {
    answer_ = std::make_unique<HttpResult>(std::move(result));
  });
  return {};
}

Result<void> OidcRefresh::AskForToken(Step step) {
  step_ = step;
  std::string body =
      "grant_type=refresh_token&refresh_token=" + PercentEncoded(provider_.refresh_token);
  std::string header;
  if (step == Step::kTokenByHeader) {
    header = "Authorization: Basic " + EncodeBase64(PercentEncoded(provider_.client_id) + ":" +
                                                    PercentEncoded(provider_.client_secret));
  } else {
    body += "&client_id=" + PercentEncoded(provider_.client_id);
    if (!provider_.client_secret.empty())
      body += "&client_secret=" + PercentEncoded(provider_.client_secret);
  }
  return Send(token_endpoint_, std::move(body), std::move(header));
}

Result<OidcProvider> OidcRefresh::ReadTokens(const std::string& body) const {
  OidcProvider renewed = provider_;
  renewed.id_token = TextIn(body, "id_token");
  if (renewed.id_token.empty()) {
    return Refuse(ErrorCode::kFailedPrecondition,
                  "its answer to the refresh token has no id_token; log in with the scope openid");
  }
  if (renewed.id_token.find_first_of("\r\n") != std::string::npos)
    return Refuse(ErrorCode::kFailedPrecondition, "its id_token has more than one line");
  if (std::string token = TextIn(body, "refresh_token"); !token.empty())
    renewed.refresh_token = std::move(token);
  return renewed;
}

std::optional<Result<OidcProvider>> OidcRefresh::Answered(const HttpResult& answer) {
  const auto go_on = [this](Step step) -> std::optional<Result<OidcProvider>> {
    Result<void> sent = AskForToken(step);
    if (sent) return std::nullopt;
    return Result<OidcProvider>(tl::unexpected(std::move(sent).error()));
  };
  if (answer.failure != HttpFailure::kNone)
    return Result<OidcProvider>(Refuse(ErrorCode::kUnavailable, answer.why));
  const bool is_fine = answer.status / 100 == 2;
  if (step_ == Step::kDiscovery) {
    if (!is_fine) {
      return Result<OidcProvider>(
          Refuse(ErrorCode::kUnavailable,
                 fmt::format("status {} for its discovery document", answer.status)));
    }
    token_endpoint_ = TextIn(answer.body, "token_endpoint");
    const bool is_downgraded =
        provider_.issuer.starts_with("https://") && !token_endpoint_.starts_with("https://");
    if (!SplitUrl(token_endpoint_) || is_downgraded) {
      return Result<OidcProvider>(Refuse(ErrorCode::kFailedPrecondition,
                                         "its discovery document has no valid token_endpoint"));
    }
    return go_on(provider_.client_secret.empty() ? Step::kTokenByBody : Step::kTokenByHeader);
  }
  if (is_fine) return ReadTokens(answer.body);
  if (step_ == Step::kTokenByHeader && answer.status / 100 == 4) return go_on(Step::kTokenByBody);
  return Result<OidcProvider>(Refuse(
      answer.status / 100 == 4 ? ErrorCode::kFailedPrecondition : ErrorCode::kUnavailable,
      fmt::format("status {}{} for the refresh token{}", answer.status, ErrorCodeIn(answer.body),
                  answer.status / 100 == 4 ? "; log in again" : "")));
}

std::optional<Result<OidcProvider>> OidcRefresh::Check(Instant now) {
  if (failed_) return Result<OidcProvider>(tl::unexpected(*failed_));
  std::vector<Transfers::Waited> nothing;
  transfers_->Poll(Duration::zero(), &nothing);
  if (answer_ != nullptr) return Answered(*std::exchange(answer_, nullptr));
  if (now < deadline_) return std::nullopt;
  return Result<OidcProvider>(Refuse(ErrorCode::kDeadlineExceeded, "no answer in time"));
}

Result<void> SaveRefreshToken(const OidcProvider& before, const OidcProvider& after) {
  if (before.refresh_token == after.refresh_token || before.file.empty()) return {};
  TRY_ASSIGN(std::string text, ReadFile(before.file));
  const size_t at = text.find(before.refresh_token), size = before.refresh_token.size();
  const auto is_token = [&](size_t i) {
    return i < text.size() && kTokenCharacters.find(text[i]) != std::string_view::npos;
  };
  // Once, and not as a part of something longer.
  const bool is_its_place = at != std::string::npos &&
                            text.find(before.refresh_token, at + 1) == std::string::npos &&
                            !is_token(at - 1) && !is_token(at + size);
  const bool is_plain =
      after.refresh_token.find_first_not_of(kTokenCharacters) == std::string::npos;
  if (!is_its_place || !is_plain) {
    return Invalid("{}: the refresh token of user {} cannot be replaced in its place",
                   before.file.string(), before.user);
  }
  text.replace(at, size, after.refresh_token);
  return WriteFileAtomically(before.file, text);
}

}  // namespace rudderfish::kube
