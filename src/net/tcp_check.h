// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "base/result.h"
#include "net/socket_address.h"

// Whether servers accept connections, as load balancers check it: a connection is opened to each at
// the same time, and closed.

namespace rudderfish {

inline constexpr size_t kChecksAtOnce = 100;  // Each lot has a patience of its own.

// One value for each address, in their order: 1 if it has accepted within `patience`, else 0.
// kUnavailable: we cannot ask, as there are no more sockets, say; nothing is known then.
Result<std::vector<char>> AcceptConnections(std::span<const SocketAddress> addresses,
                                            std::chrono::milliseconds patience);

}  // namespace rudderfish
