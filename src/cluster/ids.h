// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Things in a State are named by their position in its columns: 32-bit indices, dense from 0, valid
// for one version of one State. Names, uids and labels live beside them and never travel through
// the hot path.

namespace rudderfish {

using LayerId = int32_t;     // Catalog::layers
using KindId = int32_t;      // Catalog::kinds
using WorkloadId = int32_t;  // Catalog::workloads
using NodeId = int32_t;      // State::nodes
using PodId = int32_t;       // State::pods
using CallId = int32_t;      // CallGraph::calls

inline constexpr int32_t kNone = -1;

}  // namespace rudderfish
