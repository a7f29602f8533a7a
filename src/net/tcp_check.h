// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "net/socket_address.h"

// Whether servers accept connections, as load balancers check it: a connection is opened to each at
// the same time, and closed.

namespace rudderfish {

// One value for each address, in their order: 1 if it has accepted within `patience`, else 0.
std::vector<char> AcceptConnections(std::span<const SocketAddress> addresses,
                                    std::chrono::milliseconds patience);

}  // namespace rudderfish
