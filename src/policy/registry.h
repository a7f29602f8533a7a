// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"

// Policies by name, as the command line and configurations spell them:
//
//   stay  random  kube-default  least-allocated  most-allocated  greedy  exact
//   lookahead                     beam search over several moves, as wide as 512
//   lookahead:evaluations=20000   as wide as so many looks at a move allow: the same
//                                 plan everywhere
//   lookahead:time=10ms           as wide as the time allows
//   lookahead:width=256           as wide as that; also patience=N; several options stand apart by
//                                 commas
//   RUN or CHECKPOINT             a learned policy: a run folder (its best checkpoint) or a
//                                 .safetensors file
//   best-of:16+RUN                the best of sampled rollouts of a learned policy, greedy's and
//                                 staying, on the Model
//   lookahead+RUN                 beam search with the learned policy as its prior
//
// An unknown name is refused with the nearest known one.

namespace rudderfish {

// Heuristics and search, which need no file.
std::vector<std::string_view> PolicyNames();

Result<std::unique_ptr<Policy>> MakePolicy(std::string_view spec, const Task& task);

}  // namespace rudderfish
