// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cloud/xds_board.h"

// The server that clients of xDS connect to: gRPC's own (`xds:///SERVICE`) and Envoy. It answers on
// aggregated streams and takes load reports. While it does not listen, clients go on with what they
// were told last. Thread safe, but for Listen and HangUp, which one owner calls.

namespace rudderfish {

struct XdsListen {
  std::string address;  // "0.0.0.0:18000"; of port 0 any free one.
  // Files in PEM: who we are, and who may ask; no certificate: no TLS, no client_ca: anyone.
  std::filesystem::path certificate, key, client_ca;

  bool operator==(const XdsListen&) const = default;
};

class XdsServer {
 public:
  // `kept`: the file that keeps the weights, so that a process that begins again tells what was
  // told last; empty: none does.
  static Result<std::unique_ptr<XdsServer>> Open(std::vector<XdsService> services,
                                                 std::filesystem::path kept);
  virtual ~XdsServer() = default;

  // Reads the file again before: another process may have told other weights meanwhile.
  virtual Result<void> Listen(const XdsListen& listen) = 0;
  virtual void HangUp() = 0;
  virtual int port() const = 0;  // 0: it does not listen.

  // Keeps the weights of a service, one for each of its regions, and tells them to all clients. If
  // they cannot be kept, nothing changes.
  virtual Result<void> Set(const std::string& service, const std::vector<int64_t>& weights) = 0;

  // What is told, and what clients have said.
  virtual const XdsBoard& board() const = 0;
};

}  // namespace rudderfish
