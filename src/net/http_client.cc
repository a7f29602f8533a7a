// SPDX-License-Identifier: Apache-2.0
#include "net/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"

namespace rudderfish {
namespace {

constexpr size_t kHeaderBytesMax = 1 << 18;

struct Transfer {
  HttpFetch fetch;
  HttpClient::Done done;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::string body;
  std::vector<std::pair<std::string, std::string>> answered;  // Headers.
  size_t header_bytes = 0;
  bool too_large = false;

  ~Transfer() {
    curl_slist_free_all(headers);
    curl_easy_cleanup(easy);
  }
};

size_t Write(const char* bytes, size_t /*one*/, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  transfer->too_large = transfer->body.size() + count > transfer->fetch.body_limit_bytes;
  if (transfer->too_large) return 0;
  transfer->body.append(bytes, count);
  return count;
}

// Of the last answer, as there may be several: "100 Continue" comes before another.
size_t WriteHeader(const char* bytes, size_t /*one*/, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  const std::string_view line(bytes, count);
  transfer->header_bytes += count;
  transfer->too_large = transfer->header_bytes > kHeaderBytesMax;
  if (transfer->too_large) return 0;
  if (line.starts_with("HTTP/")) transfer->answered.clear();
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return count;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  std::string_view value = line.substr(colon + 1);
  const size_t first = value.find_first_not_of(" \t\r\n");
  value = first == std::string_view::npos ? "" : value.substr(first);
  value = value.substr(0, value.find_last_not_of(" \t\r\n") + 1);
  transfer->answered.emplace_back(std::move(name), value);
  return count;
}

int WholeMs(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(std::clamp<int64_t>(ms, 0, std::numeric_limits<int>::max()));
}

void Describe(Transfer* transfer) {
  CURL* easy = transfer->easy;
  const HttpFetch& fetch = transfer->fetch;
  for (const std::string& header : fetch.headers)
    transfer->headers = curl_slist_append(transfer->headers, header.c_str());
  curl_easy_setopt(easy, CURLOPT_URL, fetch.url.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, std::max(1L, long{WholeMs(fetch.deadline)}));
  curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Write);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &WriteHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
  if (fetch.on == HttpFetch::On::kNewConnection) {
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  }
  if (!fetch.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, fetch.ca_file.c_str());
  if (!fetch.body.empty()) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, fetch.body.c_str());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(fetch.body.size()));
  }
  if (!fetch.method.empty()) curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, fetch.method.c_str());
}

std::string WhatWasLate(Transfer* transfer) {
  long connections = 0;  // NOLINT(google-runtime-int): as curl gives it.
  curl_off_t asked = 0;  // When the request could be sent; 0: there was no connection.
  curl_easy_getinfo(transfer->easy, CURLINFO_NUM_CONNECTS, &connections);
  curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &asked);
  const bool is_kept = asked > 0 && connections == 0;
  return fmt::format("{} within {} s{}", asked > 0 ? "no answer" : "no connection",
                     Seconds(transfer->fetch.deadline), is_kept ? " on a kept connection" : "");
}

Result<HttpReply> Outcome(Transfer* transfer, CURLcode code) {
  const std::string url = PublicUrl(transfer->fetch.url);
  if (transfer->too_large) {
    return Fail(ErrorCode::kUnavailable, "{}: the answer is larger than {} bytes", url,
                transfer->fetch.body_limit_bytes);
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return Fail(ErrorCode::kDeadlineExceeded, "{}: {}", url, WhatWasLate(transfer));
  }
  if (code != CURLE_OK)
    return Fail(ErrorCode::kUnavailable, "{}: {}", url, curl_easy_strerror(code));
  long status = 0;  // NOLINT(google-runtime-int): as curl gives it.
  curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
  return HttpReply{.status = static_cast<int>(status),
                   .body = std::move(transfer->body),
                   .headers = std::move(transfer->answered)};
}

}  // namespace

std::string_view HttpReply::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::string PublicUrl(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string(url);
  const size_t host = scheme + 3;
  const size_t path = std::min(url.find('/', host), url.size());
  const size_t at = url.substr(0, path).rfind('@');
  if (at == std::string_view::npos || at < host) return std::string(url);
  return std::string(url.substr(0, host)) + std::string(url.substr(at + 1));
}

struct HttpClient::Transfers {
  CURLM* multi = nullptr;
  std::map<CURL*, std::unique_ptr<Transfer>> open;
};

HttpClient::HttpClient(int connections_per_host) : transfers_(std::make_unique<Transfers>()) {
  static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(once == CURLE_OK);
  transfers_->multi = curl_multi_init();
  CHECK(transfers_->multi != nullptr);
  curl_multi_setopt(transfers_->multi, CURLMOPT_MAX_HOST_CONNECTIONS,
                    static_cast<long>(connections_per_host));
}

HttpClient::~HttpClient() {
  for (const auto& [easy, transfer] : transfers_->open)
    curl_multi_remove_handle(transfers_->multi, easy);
  transfers_->open.clear();
  curl_multi_cleanup(transfers_->multi);
}

void HttpClient::Start(HttpFetch fetch, Done done) {
  auto transfer = std::make_unique<Transfer>();
  transfer->fetch = std::move(fetch);
  transfer->done = std::move(done);
  transfer->easy = curl_easy_init();
  CHECK(transfer->easy != nullptr);
  Describe(transfer.get());
  CURL* easy = transfer->easy;
  transfers_->open.emplace(easy, std::move(transfer));
  CHECK(curl_multi_add_handle(transfers_->multi, easy) == CURLM_OK);
}

int HttpClient::in_flight() const { return static_cast<int>(transfers_->open.size()); }

int HttpClient::Poll(Duration wait) {
  CURLM* multi = transfers_->multi;
  int running = 0;
  curl_multi_perform(multi, &running);
  if (running > 0 && running == in_flight() && wait.count() > 0) {
    curl_multi_poll(multi, nullptr, 0, WholeMs(wait), nullptr);
    curl_multi_perform(multi, &running);
  }
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const auto found = transfers_->open.find(message->easy_handle);
    CHECK(found != transfers_->open.end());
    const CURLcode code = message->data.result;
    const std::unique_ptr<Transfer> transfer = std::move(found->second);
    transfers_->open.erase(found);
    curl_multi_remove_handle(multi, transfer->easy);
    transfer->done(Outcome(transfer.get(), code));
  }
  return in_flight();
}

Result<HttpReply> HttpClient::Fetch(HttpFetch fetch) {
  std::optional<Result<HttpReply>> reply;
  Start(std::move(fetch), [&](Result<HttpReply> done) { reply = std::move(done); });
  while (!reply.has_value()) Poll(std::chrono::seconds(1));
  return *std::move(reply);
}

}  // namespace rudderfish
