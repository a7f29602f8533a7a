// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "kube/kubeconfig.h"

// A run of a credential plugin (client.authentication.k8s.io), beside everything else we do: its
// output is read when there is some. Standard input is empty, standard error goes nowhere, for
// either may carry secrets. It runs in a process group of its own, which is killed whole when the
// time is over or no caller waits any more. Owned by one thread.

namespace rudderfish::kube {

struct ExecCredential {
  std::string token;
  std::string certificate;  // PEM
  std::string key;
  std::optional<Date> expires;
};

// What a plugin of `api_version` printed. Messages tell what is wrong with it, never what it says.
Result<ExecCredential> ParseExecCredential(std::string_view output, std::string_view api_version);

class ExecRun {
 public:
  static Result<ExecRun> Start(const ExecPlugin& plugin, Instant deadline);

  ExecRun(ExecRun&& other) noexcept;
  ExecRun& operator=(ExecRun&& other) noexcept;
  ~ExecRun();  // Kills what is left of it.

  // Reads what is there. Nothing while the plugin still runs; at the deadline it is killed.
  std::optional<Result<ExecCredential>> Check(Instant now);

  int descriptor() const { return output_; }  // To wait for.
  Instant deadline() const { return deadline_; }

 private:
  ExecRun(const ExecPlugin& plugin, pid_t process, int output, Instant deadline);
  void Kill();
  Result<ExecCredential> Finish();

  std::string command_;
  std::string api_version_;
  pid_t process_ = -1;
  int output_ = -1;
  Instant deadline_;
  std::string text_;
};

}  // namespace rudderfish::kube
