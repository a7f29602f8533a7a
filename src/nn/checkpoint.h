// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "nn/candidate_net.h"
#include "nn/safetensors.h"

// A network inside a safetensors file: one F32 tensor [rows, columns] for each of
// CandidateNet::tensors(), named PREFIX + its name, and its NetShape as JSON in the metadata key
// PREFIX + "shape". Other tensors and keys of the file (moments, counters) are the caller's, as
// long as their names do not begin with a non-empty PREFIX of a net.

namespace rudderfish::nn {

inline constexpr std::string_view kNetPrefix = "net.";

// Adds the net. REQUIRES: none of that prefix in the file.
void AddNet(const CandidateNet& net, SafetensorsFile* file, std::string_view prefix = kNetPrefix);

// The shape the stored net has.
Result<NetShape> StoredNetShape(const SafetensorsFile& file, std::string_view prefix = kNetPrefix);

// Fills a net of the right shape. Another encoder, and a tensor that is missing, too much, of
// another shape or not finite are refused by name; the net is then unchanged.
Result<void> LoadNet(const SafetensorsFile& file, CandidateNet* net,
                     std::string_view prefix = kNetPrefix);

// A net alone, to and from its own file.
Result<void> SaveNet(const CandidateNet& net, const std::filesystem::path& path);
Result<CandidateNet> OpenNet(const std::filesystem::path& path);

}  // namespace rudderfish::nn
