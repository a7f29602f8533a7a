// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// How the command line speaks with a controller that runs: a socket of the file system, which only
// its owner may use. A request is one line, the answer one line of JSON, then the connection is
// closed. The server is polled by the controller's one thread: a client that says nothing or reads
// nothing costs it nothing, and is dropped after a few seconds.

namespace rudderfish {

class ControlSocket {
 public:
  using Answer = std::function<std::string(std::string_view request)>;  // JSON in one line.

  // Takes the place of a socket that no process listens on any more; kConflict if one does.
  static Result<std::unique_ptr<ControlSocket>> Listen(const std::filesystem::path& path);
  ~ControlSocket();  // Removes the file.

  // Answers what has come, and waits for it for at most `timeout`, or until `wake` can be read.
  void Poll(std::chrono::milliseconds timeout, int wake, const Answer& answer);

 private:
  struct Client;
  ControlSocket(std::filesystem::path path, int listener);
  void Accept();

  std::filesystem::path path_;
  int listener_;
  std::vector<std::unique_ptr<Client>> clients_;
};

// Sends one request and returns the answer. kNotFound: no controller listens there.
Result<std::string> AskController(const std::filesystem::path& socket, std::string_view request,
                                  std::chrono::milliseconds timeout);

}  // namespace rudderfish
