// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/scheduling.h"
#include "kube/fields.h"

// The parts of pods and volumes that say where: selectors, terms, constraints. Parts of
// kube/scheduling_reader.h.

namespace rudderfish::kube::internal {

// Nothing if it is absent: selects no object. {} selects all.
Result<std::optional<LabelSelector>> ReadOptionalSelector(const Fields& object,
                                                          std::string_view path);

// A list of nodeSelectorTerms; those without any requirement, which fit no node, among them.
Result<std::vector<NodeTerm>> ReadNodeTerms(const Fields& object, std::string_view path);

// Node and pod affinity. What kube-scheduler fails on is named in `unmodelled`.
Result<void> ReadAffinity(const Fields& pod, PodClass* made);

// REQUIRES: the labels of `made` are read.
Result<void> ReadSpread(const Fields& pod, PodClass* made);

Result<void> ReadTolerations(const Fields& pod, PodClass* made);
Result<std::vector<NodeTaint>> ReadTaints(const Fields& node);

Result<std::vector<std::string>> ReadTexts(const Fields& object, std::string_view path);

}  // namespace rudderfish::kube::internal
