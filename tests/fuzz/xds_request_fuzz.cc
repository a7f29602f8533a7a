// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cloud/xds_session.h"

// Any bytes as messages of a client of xDS, each with its length before it: refused in one line, or
// answered; what a client says changes no weights.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rudderfish;  // NOLINT(google-build-using-namespace)
  XdsBoard board({{.name = "web",
                   .regions = {{"eu", {SocketAddress::Of("10.0.0.1", 80).value()}, 6000},
                               {"us", {SocketAddress::Of("10.0.0.2", 80).value()}, 4000}}}});
  const std::string before = board.Text();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  {
    XdsSession session(&board, 1);
    while (!rest.empty()) {
      const size_t length = std::min<size_t>(static_cast<uint8_t>(rest[0]), rest.size() - 1);
      const std::string_view message = rest.substr(1, length);
      rest.remove_prefix(1 + length);
      const auto taken = session.Take(message);
      CHECK(taken || taken.error().message.find('\n') == std::string::npos);
      for (int told = 0; session.Next(); ++told) CHECK(told < 3);  // One for each type at most.
      static_cast<void>(TakeLoadReport(message, &board));
    }
    for (const XdsVerdict& one : board.Verdicts("web"))
      CHECK(one.refusal.find('\n') == std::string::npos);
  }
  CHECK(board.Verdicts("web").empty());
  CHECK(board.Text() == before);
  return 0;
}
