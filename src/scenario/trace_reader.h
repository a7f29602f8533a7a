// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "cluster/devices.h"
#include "scenario/scenario.h"

// Recorded pods and nodes. One format so far:
//
// openb, the columns of Alibaba's cluster-trace-gpu-v2023 (Weng et al., "Beware of Fragmentation",
// USENIX ATC 2023):
//   pods   cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, creation_time, deletion_time,
//          scheduled_time; in the order of creation
//   nodes  sn, cpu_milli, memory_mib, gpu, model
// A pod with num_gpu 1 takes gpu_milli thousandths of one GPU, one with more takes whole ones.
// gpu_spec names the models it may run on, separated by |; empty: any. Times are in s and shifted
// so that the first pod arrives at 0; a pod runs for deletion - scheduled, or, where it never was
// scheduled, for deletion - creation. Times of arrival are divided by
// `time_warp`, what pods run by `lifetime_warp`. A node is of the node type
// that has its model's name; without GPUs, of the type called `cpu`.
//
// Pods of equal requests become one workload, called by them: 6000m-12288Mi-1x460.

namespace rudderfish {

// Refuses formats that are not known.
Result<void> CheckTraceFormat(std::string_view format, const YamlNode& where);

// Both append what the text holds to the scenario, whose node types must be known.
Result<void> ReadOpenbNodes(std::string_view text, std::string_view source_name,
                            Scenario* scenario);
Result<void> ReadOpenbPods(std::string_view text, std::string_view source_name, Scenario* scenario);

// Reads the files that the scenario's arrivals name, from `folder` where they are relative. Does
// nothing if there are none.
Result<void> ReadTraces(const std::filesystem::path& folder, Scenario* scenario);

}  // namespace rudderfish
