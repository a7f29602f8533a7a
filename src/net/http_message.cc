// SPDX-License-Identifier: Apache-2.0
#include "net/http_message.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace rudderfish {

HttpResponse HttpError(int status, std::string_view what) {
  const Json body{{"message", std::string(what)}, {"status", "error"}};
  return {.status = status,
          .body = body.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n",
          .note = std::string(what)};
}

}  // namespace rudderfish
