// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// The headers that go with each query, from files, as a Prometheus behind a door wants them. One
// `Name: value` a line; empty lines and those that begin with # are passed over. What is in these
// files is secret: no message shows any of it. Pure functions but for the files they read.

namespace rudderfish {

struct HeaderFiles {
  std::filesystem::path headers;       // Of lines; empty: none.
  std::filesystem::path bearer_token;  // A token and nothing else; empty: none.

  bool empty() const { return headers.empty() && bearer_token.empty(); }
};

// "Name: value" each. kInvalidArgument names the line.
Result<std::vector<std::string>> ParseHeaderFile(std::string_view text,
                                                 std::string_view source_name);

// "Authorization: Bearer TOKEN".
Result<std::string> ParseBearerToken(std::string_view text, std::string_view source_name);

// Of both files, as they are now: tokens are replaced while programs run.
Result<std::vector<std::string>> ReadHeaders(const HeaderFiles& files);

}  // namespace rudderfish
