// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

// Standard base64 with padding.

namespace rudderfish::kube {

// White space is passed over. Nothing if there is anything else.
std::optional<std::string> DecodeBase64(std::string_view text);

std::string EncodeBase64(std::string_view bytes);

}  // namespace rudderfish::kube
