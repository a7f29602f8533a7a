// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

// One question to a server that answers and closes the connection. Blocks, at most for `limit`.

namespace rudderfish {

// `address`: the path of a socket file, if it has a slash, else HOST:PORT. kNotFound: nobody
// listens there; kDeadlineExceeded; kUnavailable. An answer beyond `answer_max` bytes is refused.
Result<std::string> SocketExchange(const std::string& address, std::string_view question,
                                   Duration limit, size_t answer_max);

}  // namespace rudderfish
