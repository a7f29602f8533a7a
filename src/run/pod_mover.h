// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "control/move_machine.h"
#include "kube/move_api.h"

// Drives one move of a pod on a live cluster: looks, asks control/move_machine.h what is next, and
// has it written. What it keeps can be lost at any time.

namespace rudderfish {

class PodMover {
 public:
  // The client outlives this.
  PodMover(kube::ApiClient* client, MoveOptions options) : api_(client), options_(options) {}

  // What a move of that pod would be, and nothing written. kFailedPrecondition: why it may not be.
  Result<void> Plan(const std::string& object_namespace, const std::string& name,
                    const std::string& target, Duration limit);

  // Writes the intention that Plan has made. `by`: PodMove::by.
  Result<void> Begin(std::string_view by = "");

  // Takes over a move that a pod says it is in.
  void TakeOver(const kube::MoveApi::Listed& listed);

  // From the next step on the move is undone, if it still can be.
  void Abort(std::string why) { abort_ = std::move(why); }

  // One look and at most one write, if `may_write` still says so then: a look may take long. An
  // error is of the API server: nothing is known to be written, and the next step looks again.
  Result<MoveAction> Step(const std::function<bool()>& may_write = nullptr);

  const PodMove& move() const { return move_; }
  const MovedPod& pod() const { return pod_; }                     // As Plan or Step saw it last.
  const std::string& replacement() const { return replacement_; }  // Its name; empty: none yet.

 private:
  Result<void> Write(const MoveAction& action, const MoveView& view);

  kube::MoveApi api_;
  MoveOptions options_;
  MoveMemory memory_;
  MoveView planned_;
  PodMove move_;
  MovedPod pod_;
  std::string replacement_, abort_;
};

}  // namespace rudderfish
