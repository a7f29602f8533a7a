// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/timestamp.h"
#include "kube/access_review.h"
#include "kube/exec_plugin.h"
#include "kube/status.h"
#include "kube/watch_event.h"

// Any bytes as what an API server or a credential plugin says: understood or refused, in one line.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish::kube;  // NOLINT
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const rudderfish::Error error =
      ToError(ParseStatus(text, 403), Method::kGet, text.substr(0, 200));
  CHECK(!error.message.empty());
  CHECK(error.message.find('\n') == std::string::npos);
  simdjson::dom::parser parser;
  if (const auto event = ReadWatchEvent(&parser, text))
    CHECK(event->kind == WatchEventKind::kError || !event->version.empty());
  if (const auto page = ReadListPage(&parser, text)) CHECK(!page->version.empty());
  const auto allowed = internal::ReadAccessReview(text);
  CHECK(allowed || !allowed.error().message.empty());
  const auto credential = ParseExecCredential(text, "client.authentication.k8s.io/v1");
  if (credential) CHECK(!credential->token.empty() || !credential->certificate.empty());
  if (const auto date = rudderfish::ParseDate(text))
    CHECK(rudderfish::ParseDate(rudderfish::ToMicroTime(*date)) == date);
  return 0;
}
